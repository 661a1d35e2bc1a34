"""Ill-conditioned libraries, judged in extended precision.

Short trajectories give libraries with condition numbers of 1e13 and beyond, so products of columns
say nothing about many models. Every support is fitted here in extended precision (64 bits), and
objectives of single models are computed in rational numbers.

What double precision can attain: coefficients b are rounded, so the residual of a reported model is
off by up to u ||x_j b_j||, and its objective by the square of that. Hence the tolerance, with s the
sum of ||y|| and all ||x_j b_j|| of the best model:

    objective <= (1 + 1e-9) optimum + (16 u s)^2.

Supports with a feature that depends on the others up to 1e-13 of its length are left out: there the
digits of the data end, and they are treated as dependent.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import combinations
from math import isqrt

import numpy as np
import pytest

from bestk import Problem, Result, Status, datasets, solve
from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.threads import Workers
from bestk.form.standard_form import StandardForm
from bestk.supports import enumeration as closure

Long = np.longdouble
DEPENDENT = 1e-13
KINDS = ("lorenz", "powers", "vandermonde", "copies", "sums")

needs_extended = pytest.mark.skipif(
    np.finfo(Long).eps > 2e-19, reason="no extended precision on this machine"
)


# Cases ------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Case:
    X: np.ndarray
    y: np.ndarray
    k: int
    options: dict = field(default_factory=dict)

    def solve(self, **settings) -> Result:
        return solve(self.X, self.y, self.k, n_threads=1, gap_tol=0.0, **self.options, **settings)


@cache
def lorenz(trial: int, noise: float) -> datasets.Dynamics:
    return datasets.make_dynamics("lorenz", 0.4, noise=noise, seed=trial)


def library(rng, kind, n, p):
    """X of a kind, and a target that no few of its columns explain."""
    if kind == "lorenz":
        data = lorenz(int(rng.integers(1, 6)), float(rng.choice([0.0, 1e-5, 2e-3])))
        start = rng.integers(0, len(data.X) - n + 1)
        rows = slice(start, start + n)
        columns = np.sort(rng.permutation(data.X.shape[1])[:p])
        return data.X[rows, columns], data.derivatives[rows, rng.integers(3)].copy()
    if kind == "powers":
        ends = rng.choice([[0.0, 1.0], [1.0, 2.0], [-1.0, 1.0], [10.0, 11.0]])
        x = np.sort(rng.uniform(*ends, n))
        return x[:, None] ** np.arange(p), np.sin(3.0 * x)
    if kind == "vandermonde":
        x = np.linspace(0.0, 1.0, n) + rng.choice([0.0, 1.0, 30.0])
        return np.vander(x, p), np.exp(-x)
    X = rng.standard_normal((n, p))
    for _ in range(rng.integers(1, 4)):
        a, b, c = rng.permutation(p)[:3]
        if kind == "copies":
            X[:, a] = X[:, b] + 10.0 ** -rng.uniform(6, 12) * X[:, a]
        else:
            X[:, a] = X[:, b] + X[:, c] + rng.choice([0.0, 10.0 ** -rng.uniform(3, 12)]) * X[:, a]
    return X, rng.standard_normal(n)


def make(seed: int) -> Case:
    rng = np.random.default_rng([seed, 81])
    n, p = int(rng.integers(20, 201)), int(rng.integers(6, 21))
    X, y = library(rng, KINDS[seed % len(KINDS)], n, p)
    norm = np.linalg.norm(X, axis=0)
    if rng.random() < 0.75:
        true = rng.permutation(p)[: rng.integers(1, 5)]
        unit = X[:, true] / norm[true]
        b = rng.standard_normal(len(true))
        if rng.random() < 0.4 and len(true) > 1:  # terms that nearly cancel
            b = np.linalg.svd(unit)[2][-1] * 10.0 ** rng.uniform(0, 6)
        y = unit @ b
        noise = rng.choice([0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0])
        y += noise * np.linalg.norm(y) / np.sqrt(n) * rng.standard_normal(n)
    options = {}
    if rng.random() < 0.4:
        options["alpha"] = 10.0 ** rng.uniform(-16, -1) * rng.choice([1.0, np.median(norm) ** 2])
    if rng.random() < 0.3:
        options["fit_intercept"] = True
    if rng.random() < 0.3:
        options["sample_weight"] = rng.uniform(0.1, 2.0, n)
    return Case(X=np.ascontiguousarray(X), y=y, k=int(rng.integers(1, 5)), options=options)


# Extended precision -------------------------------------------------------------------------------


@dataclass
class Reference:
    """Columns of unit length and target in extended precision, with no more rows than needed."""

    R: np.ndarray
    z: np.ndarray

    @classmethod
    def of(cls, case: Case) -> "Reference":
        options = case.options
        M = np.column_stack([case.X, case.y]).astype(Long)
        weight = options.get("sample_weight", np.ones(len(M))).astype(Long)[:, None]
        if options.get("fit_intercept"):
            largest = np.abs(M).max(axis=0)
            for _ in range(3):  # means are rounded; what is left of them goes, too
                M = M - (weight * M).sum(axis=0) / weight.sum()
            M[:, np.abs(M).max(axis=0) < 1e-17 * largest] = 0.0
        M = M * np.sqrt(weight)
        p = M.shape[1] - 1
        ridge = np.sqrt(Long(options.get("alpha", 0.0))) * np.eye(p, p + 1, dtype=Long)
        M = np.vstack([M, ridge])
        norm = np.sqrt((M[:, :-1] ** 2).sum(axis=0))
        M[:, :-1] /= np.where(norm > 0.0, norm, 1.0)
        M = triangular(M)
        return cls(M[:, :-1], M[:, -1])

    @property
    def yy(self) -> float:
        return float(self.z @ self.z)

    def error(self, size) -> float:
        """Rounding of a residual norm in extended precision, for a sum of |x_j b_j|."""
        return float(64 * np.finfo(Long).eps * (np.sqrt(self.yy) + size))

    def fits(self, supports):
        """For each support (a row of indices) its least objective, how far from the span of the
        others its features are at least, and its sum of |x_j b_j|. Gram-Schmidt, three passes.
        """
        supports = np.asarray(supports)
        count, size = supports.shape
        Q, T = np.zeros((size, count, len(self.z)), Long), np.zeros((size, size, count), Long)
        rhs = np.zeros((size, count, size + 1), Long)  # T b = Q'z, and the inverse of T
        r = np.broadcast_to(self.z, (count, len(self.z))).copy()
        for i in range(size):
            q = self.R.T[supports[:, i]].copy()
            zero = ~q.any(axis=1)  # a constant beside an intercept adds nothing
            for j in [*range(i)] * 3:
                part = (Q[j] * q).sum(axis=1)
                T[j, i] += part
                q -= part[:, None] * Q[j]
            T[i, i] = np.where(zero, 1.0, np.sqrt((q * q).sum(axis=1)))
            Q[i] = q / np.where(T[i, i] > 0.0, T[i, i], 1.0)[:, None]
            rhs[i, :, 1 + i] = 1.0
        for i in [*range(size)] * 3:
            part = (Q[i] * r).sum(axis=1)
            rhs[i, :, 0] += part
            r -= part[:, None] * Q[i]
        for i in reversed(range(size)):
            rhs[i] -= (T[i, i + 1 :, :, None] * rhs[i + 1 :]).sum(axis=0)
            rhs[i] /= np.where(T[i, i] > 0.0, T[i, i], 1e-30)[:, None]
        distance = 1.0 / np.sqrt((rhs[:, :, 1:] ** 2).sum(axis=2)).max(axis=0, initial=1.0)
        return (r * r).sum(axis=1), distance, np.abs(rhs[:, :, 0]).sum(axis=0)


def triangular(M):
    """Upper triangular matrix with the same products of columns, by Householder reflections."""
    M = M.copy()
    for j in range(min(len(M) - 1, M.shape[1])):
        v = M[j:, j].copy()
        length = np.sqrt(v @ v)
        if length == 0.0:
            continue
        v[0] += length if v[0] >= 0.0 else -length
        M[j:, j:] -= v[:, None] * ((v[:, None] * M[j:, j:]).sum(axis=0) * (2.0 / (v @ v)))
    return np.triu(M[: M.shape[1]])


@dataclass
class Verdict:
    """The optimum over all supports, and how far from it double precision may stay."""

    optimum: float
    size: float  # of the terms of the best model, ||y|| included

    @property
    def tolerance(self) -> float:
        return 1e-9 * self.optimum + (16.0 * UNIT_ROUNDOFF * self.size) ** 2


def verdict(case: Case, reference: Reference) -> Verdict:
    p = case.X.shape[1]
    supports = np.array(list(combinations(range(p), min(case.k, p))))
    losses, distances, sizes = reference.fits(supports)
    losses[distances < DEPENDENT] = np.inf
    best = int(losses.argmin())
    return Verdict(float(losses[best]), float(np.sqrt(reference.yy) + sizes[best]))


@needs_extended
@pytest.mark.parametrize("first", range(0, 400, 40))
def test_supports_and_bounds_of_ill_conditioned_libraries(first):
    for seed in range(first, first + 40):
        case = make(seed)
        reference = Reference.of(case)
        truth = verdict(case, reference)
        result = case.solve()
        loss, _, size = reference.fits(result.support[None])
        ours, error = float(loss[0]), reference.error(size[0])
        if result.status is not Status.OPTIMAL:  # terms so large that their rounding shows
            assert result.status is Status.NUMERICAL_LIMIT, seed
            assert truth.size > 1e4 * np.sqrt(reference.yy), seed
        assert ours <= truth.optimum + truth.tolerance, seed
        # The objective of the reported coefficients, which carry the rounding of the fit.
        assert np.sqrt(result.objective) >= np.sqrt(ours) * (1 - 1e-9) - error, seed
        assert result.lower_bound <= truth.optimum * (1 + 1e-8), seed


# The last ones have a best model with large multiples of nearly dependent features.
@needs_extended
@pytest.mark.parametrize("seed", [*range(412, 424), 13, 28, 94, 123, 213])
def test_what_enumeration_passes_over_is_worse(seed):
    """Whatever the value to beat, every support below it is listed: no rounding is forgiven."""
    case = make(seed)
    problem = Problem.from_data(case.X, case.y, **case.options)
    form = StandardForm.of(problem, np.flatnonzero(problem.gram.diagonal() > 0.0))
    supports = np.array(list(combinations(range(form.p), case.k)))
    losses, distances, sizes = Reference.of(case).fits(form.features[supports])
    values = (losses / Long(problem.yy)).astype(float)
    certain = np.flatnonzero(distances > DEPENDENT)
    best = certain[np.argsort(values[certain])[:3]]
    largest = certain[np.argsort(-sizes[certain])[:3]]
    for value in values[[*best, *largest, *certain[:: len(certain) // 3 + 1]]]:
        everything, nothing = np.arange(form.p), np.zeros(0, dtype=np.intp)
        value_to_beat = value * (1.0 + 1e-9) + 1e-30
        with Workers(1) as workers:
            hits = closure.hits(form, nothing, everything, case.k, value_to_beat, workers)
        if hits is None:
            continue  # too many: left to branching
        listed = {tuple(sorted(hit.tolist())) for hit in hits}
        for support in supports[certain[values[certain] <= value]]:
            # A shorter hit stands for itself and features that add nothing to it.
            parts = (part for part in listed if len(part) < case.k)
            shorter = any(set(part) <= set(support.tolist()) for part in parts)
            assert tuple(support.tolist()) in listed or shorter


@needs_extended
@pytest.mark.parametrize("kind", KINDS)
def test_cases_are_ill_conditioned(kind):
    """Some of each kind are beyond what a Gram matrix can judge; some fits are perfect."""
    cases = [make(seed) for seed in range(KINDS.index(kind), 150, len(KINDS))]
    lengths = [case.X / np.linalg.norm(case.X, axis=0) for case in cases]
    assert max(np.linalg.cond(X) for X in lengths) > 1e10
    objectives = [case.solve().objective / (case.y @ case.y) for case in cases]
    assert min(objectives) < 1e-20
    assert max(objectives) > 1e-4


@needs_extended
def test_near_copies_are_told_apart_where_coefficients_are_moderate():
    """The pair that is closest in angle is the best model, and by far; no Gram matrix shows it."""
    rng = np.random.default_rng(7)
    for exponent in range(6, 12):
        X = rng.standard_normal((40, 8))
        difference = rng.standard_normal(40)
        X[:, 5] = X[:, 2] + 10.0**-exponent * difference
        y = difference + 1e-3 * rng.standard_normal(40)
        case = Case(X=X, y=y, k=2)
        assert case.solve().support.tolist() == [2, 5]


# Rational numbers -------------------------------------------------------------------------------


def rational(values) -> list:
    """Numbers or nested lists of them as fractions: every float is one."""
    if np.ndim(values):
        return [rational(value) for value in values]
    return Fraction(float(values))


def exact_objective(case: Case, support, coef) -> Fraction:
    """||y - X b||^2 + alpha ||b||^2 after the best intercept, without any rounding."""
    X, y, b = rational(case.X[:, support]), rational(case.y), rational(coef)
    weight = rational(case.options.get("sample_weight", np.ones(len(y))))
    residual = [t - sum(x * c for x, c in zip(row, b, strict=True))
                for t, row in zip(y, X, strict=True)]  # fmt: skip
    if case.options.get("fit_intercept"):
        mean = sum(w * r for w, r in zip(weight, residual, strict=True)) / sum(weight)
        residual = [r - mean for r in residual]
    loss = sum(w * r * r for w, r in zip(weight, residual, strict=True))
    return loss + rational(case.options.get("alpha", 0.0)) * sum(c * c for c in b)


def exact_minimum(case: Case, support) -> Fraction:
    """The least objective on a support, by elimination in fractions; no intercept."""
    X, y = rational(case.X[:, support]), rational(case.y)
    weight = rational(case.options.get("sample_weight", np.ones(len(y))))
    columns = [*zip(*X, strict=True), y]
    G = [[sum(w * u * v for w, u, v in zip(weight, a, b, strict=True)) for b in columns]
         for a in columns]  # fmt: skip
    for i in range(len(support)):
        G[i][i] += rational(case.options.get("alpha", 0.0))
    for i in range(len(support)):
        for row in range(i + 1, len(G)):
            factor = G[row][i] / G[i][i]
            G[row] = [a - factor * b for a, b in zip(G[row], G[i], strict=True)]
    return G[-1][-1]


def root(value: Fraction) -> float:
    """Square root, correct to all digits of a float."""
    shift = 2 * max(0, 200 - value.numerator.bit_length() + value.denominator.bit_length())
    scaled = isqrt((value.numerator << shift) // value.denominator)
    return float(Fraction(scaled, 1 << (shift // 2)))


def small(seed: int) -> Case:
    """A case with few rows: fractions grow long."""
    case = make(seed)
    rows = np.linspace(0, len(case.y) - 1, 20).astype(int)
    options = dict(case.options)
    if "sample_weight" in options:
        options["sample_weight"] = options["sample_weight"][rows]
    return Case(X=case.X[rows], y=case.y[rows], k=min(case.k, 3), options=options)


@needs_extended
@pytest.mark.parametrize("seed", range(15))
def test_extended_precision_agrees_with_rational_numbers(seed):
    case = small(seed)
    case.options.pop("fit_intercept", None)
    reference = Reference.of(case)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        support = np.sort(rng.permutation(case.X.shape[1])[: case.k])
        loss, distance, size = (value[0] for value in reference.fits(support[None]))
        if distance < DEPENDENT:
            continue
        true = root(exact_minimum(case, support))
        assert float(np.sqrt(loss)) == pytest.approx(true, rel=1e-12, abs=reference.error(size))


def coefficients(rng, problem: Problem, support) -> list[np.ndarray]:
    """Those of the fit, and others: of any size, and slightly beside the fit."""
    best = problem.fit(support)[0]
    return [best, best * (1.0 + 1e-9 * rng.standard_normal(len(best))),
            rng.standard_normal(len(best)) * 10.0 ** rng.uniform(-3, 3)]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_objectives_are_right_however_large_the_terms(seed):
    """Large terms that cancel do not show: they are computed with twice the digits."""
    case = small(seed)
    rng = np.random.default_rng(seed)
    problem = Problem.from_data(case.X, case.y, **case.options)
    support = np.sort(rng.permutation(case.X.shape[1])[: rng.integers(0, 5)])
    if case.options.get("fit_intercept"):
        support = support[problem.gram.diagonal()[support] > 0.0]
    for coef in coefficients(rng, problem, support):
        true = root(exact_objective(case, support, coef))
        computed = np.sqrt(problem._loss(support, coef))
        assert computed == pytest.approx(true, rel=1e-10, abs=1e-24 * root(rational(problem.yy)))


@pytest.mark.parametrize("seed", range(40))
def test_objectives_from_products_are_as_right_as_they_say(seed, monkeypatch):
    """The products themselves are rounded; the allowance covers that, too."""
    monkeypatch.setattr("bestk.problem.rows._TRIANGLE_UP_TO", 0)
    case = small(seed)
    case.options.pop("fit_intercept", None)
    rng = np.random.default_rng(seed)
    weight = case.options.get("sample_weight", np.ones(len(case.y)))
    half = [slice(0, 10), slice(10, None)]
    batches = [(case.X[rows], case.y[rows], weight[rows]) for rows in half]
    problem = Problem.from_batches(batches, alpha=case.options.get("alpha", 0.0))
    support = np.sort(rng.permutation(case.X.shape[1])[: case.k])
    for coef in coefficients(rng, problem, support):
        true = float(exact_objective(case, support, coef))
        computed = problem._loss(support, coef)
        assert problem.least_objective(support, coef, computed) <= true * (1 + 1e-12)
