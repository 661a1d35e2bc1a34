"""Ill-conditioned libraries, and every support of them fitted in extended precision.

What double precision can attain: coefficients b are rounded, so the residual of a reported model is
off by up to u ||x_j b_j||, and its objective by the square of that. Hence the tolerance, with s the
sum of ||y|| and all ||x_j b_j|| of the best model:

    objective <= (1 + 1e-9) optimum + (16 u s)^2.

Supports with a feature that depends on the others up to 1e-13 of its length are left out: there the
digits of the data end, and they are treated as dependent.
"""

from dataclasses import dataclass, field
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from bestk import Result, datasets, solve
from bestk.base.constants import UNIT_ROUNDOFF

Long = np.longdouble
DEPENDENT = 1e-13
KINDS = ("lorenz", "powers", "vandermonde", "copies", "sums")
needs_extended = pytest.mark.skipif(
    np.finfo(Long).eps > 2e-19, reason="no extended precision on this machine"
)


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
