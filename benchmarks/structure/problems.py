"""The problems, by name, and their structure as plain data that the judge and every peer read.

    min ||y - X b||^2 + alpha ||b||^2   at most k groups, rules on them, C b = d

Nothing of bestk reads the structure here: parents come from exponents, not from names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations_with_replacement
from typing import NamedTuple

import numpy as np

PARTS = ("hierarchy", "factors", "constraints")
HIERARCHIES = ("none", "weak", "strong")
LEVELS = (2, 3, 4, 5, 6)
TRUE_FACTORS = 10
LORENZ_ALPHA = 1e-3
LORENZ_SECONDS = 4.0


class Problem(NamedTuple):
    """One question; those with the same data and k that differ in structure are compared."""

    part: str
    data: str
    """Such as "diabetes 2", "correlated 2000" (factors, and rows) or "lorenz 3" (degree)."""
    structure: str
    """A kind of hierarchy, "groups", "within" or "across" equations."""
    k: int
    alpha: float
    limit: float = 10.0
    """Seconds for every solver alike."""

    def __str__(self) -> str:
        return f"{self.data}, {self.structure}, k = {self.k}, alpha = {self.alpha:g}"


@dataclass(frozen=True, kw_only=True, eq=False)
class Data:
    """X (n, p), Y (n, d), and what is asked of p d coefficients, one target after the other."""

    X: np.ndarray
    Y: np.ndarray
    fit_intercept: bool
    names: Sequence[str]
    groups: np.ndarray
    """Labels 0, 1, ..., one for each of the p d coefficients."""
    parents: Sequence[Sequence[int]] = ()
    """Of each group, those that a hierarchy may ask for; empty without one."""
    lhs: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    rhs: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def stacked(self) -> tuple[np.ndarray, np.ndarray]:
        """One matrix and one target for all coefficients, the intercept taken out."""
        X, Y = self.X, self.Y
        if self.fit_intercept:
            X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
        d = Y.shape[1]
        return (X if d == 1 else np.kron(np.eye(d), X)), Y.T.ravel()


def problems(quick: bool = False) -> list[Problem]:
    """All of them, those that bestk measures in turns next to each other."""
    if quick:
        return [
            *[Problem("hierarchy", "diabetes 2", kind, 3, 1.0, 5.0) for kind in HIERARCHIES],
            *[Problem("factors", "independent 200", "groups", 3, alpha, 5.0) for alpha in (0, 1.0)],
            Problem("constraints", "lorenz 2", "within", 2, LORENZ_ALPHA, 5.0),
            Problem("constraints", "lorenz 2", "across", 5, LORENZ_ALPHA, 5.0),
        ]
    found = [
        Problem("hierarchy", "diabetes 2", kind, k, 1.0, 20.0 if k == 15 else 10.0)
        for k in (5, 8, 10, 15)
        for kind in HIERARCHIES
    ]
    found += [
        Problem("factors", f"{kind} 2000", "groups", k, alpha)
        for kind in ("independent", "correlated")
        for k in (4, 8, 12)
        for alpha in (0.0, 1.0)
    ]
    found += [Problem("factors", "correlated 300", "groups", k, 1.0) for k in (4, 8)]
    found += [
        Problem("constraints", f"lorenz {degree}", "within", k, LORENZ_ALPHA)
        for degree in (2, 3)
        for k in (2, 3, 5)
    ]
    found += [Problem("constraints", "lorenz 2", "across", k, LORENZ_ALPHA) for k in (6, 7, 8, 10)]
    found += [
        Problem("constraints", "lorenz 3", "across", k, LORENZ_ALPHA, 20.0) for k in (6, 7, 8)
    ]
    return found


def data_of(problem: Problem) -> Data:
    name, number = problem.data.split()
    if problem.part == "hierarchy":
        return products(name, int(number), problem.structure)
    if problem.part == "factors":
        return factors(int(number), {"independent": 0.0, "correlated": 0.9}[name])
    return lorenz(int(number), problem.structure)


# Products of columns ----------------------------------------------------------------------------


def products(table: str, degree: int, kind: str) -> Data:
    """All products of the columns as they are, standardised; repetitions stay."""
    X, y, names, powers = _terms(table, degree)
    parents = divisors(powers) if kind != "none" else ()
    return Data(
        X=X,
        Y=y[:, None],
        fit_intercept=True,
        names=names,
        groups=np.arange(X.shape[1]),
        parents=parents,
    )


@lru_cache
def _terms(table: str, degree: int) -> tuple[np.ndarray, np.ndarray, list[str], np.ndarray]:
    from sklearn import datasets
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    loaded = getattr(datasets, f"load_{table}")()
    terms = PolynomialFeatures(degree, include_bias=False)
    X = StandardScaler().fit_transform(terms.fit_transform(loaded.data))
    names = list(terms.get_feature_names_out(loaded.feature_names))
    return X, loaded.target.astype(float), names, terms.powers_


def divisors(powers: np.ndarray) -> list[list[int]]:
    """The parents of each term, by exponents (p, m): one factor less, but for the constant."""
    place = {tuple(row): j for j, row in enumerate(powers.tolist())}
    found = []
    for row in powers.tolist():
        smaller = (
            tuple(e - (i == factor) for i, e in enumerate(row))
            for factor in range(len(row))
            if row[factor] > 0
        )
        found.append(sorted(place[term] for term in smaller if term in place))
    return found


# Factors ----------------------------------------------------------------------------------------


def factors(
    n: int, rho: float, n_factors: int = 30, true: int = TRUE_FACTORS, seed: int = 0
) -> Data:
    """Factors of 2 to 6 levels, one column for each level but the first; SNR 1.

    Levels are cut from normal variables of which those i and j are correlated by rho^|i - j|, at
    quantiles, so that they are about equally frequent. Effects of the true factors, which are
    spread evenly, are standard normal.
    """
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((n, n_factors))
    for j in range(1, n_factors):
        hidden[:, j] = rho * hidden[:, j - 1] + np.sqrt(1.0 - rho**2) * hidden[:, j]
    columns, names, groups = [], [], []
    for j in range(n_factors):
        levels = LEVELS[j % len(LEVELS)]
        cuts = np.quantile(hidden[:, j], np.arange(1, levels) / levels)
        level = np.searchsorted(cuts, hidden[:, j])
        for other in range(1, levels):
            columns.append((level == other).astype(float))
            names.append(f"f{j}={other}")
            groups.append(j)
    X, labels = np.column_stack(columns), np.array(groups)
    chosen = np.unique(np.linspace(0, n_factors - 1, true).astype(int))
    effects = np.where(np.isin(labels, chosen), rng.standard_normal(len(labels)), 0.0)
    signal = X @ effects
    y = 5.0 + signal + signal.std() * rng.standard_normal(n)
    return Data(X=X, Y=y[:, None], fit_intercept=True, names=names, groups=labels)


# Equations --------------------------------------------------------------------------------------


def lorenz(degree: int, structure: str, duration: float = LORENZ_SECONDS) -> Data:
    """The Lorenz equations in a library of monomials, noisy.

    within: the first equation alone, its coefficients of x0 and x1 sum up to 0 (-10 and 10).
    across: all three equations, their quadratic terms preserve energy.
    """
    from bestk.datasets import make_dynamics

    X, derivatives, names, _ = make_dynamics("lorenz", duration, degree=degree)
    monomials = [m for d in range(degree + 1) for m in combinations_with_replacement(range(3), d)]
    if structure == "within":
        Y, lhs = derivatives[:, :1], np.zeros((1, len(monomials)))
        lhs[0, [monomials.index((0,)), monomials.index((1,))]] = 1.0
    else:
        Y, lhs = derivatives, energy(monomials, 3)
    return Data(
        X=X,
        Y=np.ascontiguousarray(Y),
        fit_intercept=False,
        names=list(names),
        groups=np.arange(X.shape[1] * Y.shape[1]),
        lhs=lhs,
        rhs=np.zeros(len(lhs)),
    )


def energy(monomials: Sequence[tuple[int, ...]], d: int) -> np.ndarray:
    """x'Q(x) = 0 for the quadratic part Q: one row for each cubic monomial that appears in it."""
    p = len(monomials)
    rows: dict[tuple[int, ...], list[int]] = {}
    for i in range(d):
        for j, monomial in enumerate(monomials):
            if len(monomial) == 2:
                rows.setdefault(tuple(sorted((*monomial, i))), []).append(i * p + j)
    C = np.zeros((len(rows), d * p))
    for row, places in zip(C, rows.values(), strict=True):
        row[places] = 1.0
    return C
