"""Objectives of single models, against rational numbers."""

from fractions import Fraction
from math import isqrt

import numpy as np
import pytest
from helpers.extended import DEPENDENT, Case, Reference, make, needs_extended

from bestk import Problem


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
def test_objectives_from_products_are_as_right_as_they_say(seed, no_triangles):
    """The products themselves are rounded; the allowance covers that, too."""
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
