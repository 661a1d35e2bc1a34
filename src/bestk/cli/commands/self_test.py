"""Tiny problems whose best model is found a second time, by trying every support with NumPy.

    lower_bound <= min over supports of ||y - X b||² + alpha ||b||² = objective

Each check solves one, compares both sides with brute force, and verifies the proof.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

_N, _P, _K, _ALPHA = 40, 9, 3, 0.5
# Of the optimum: what brute force may be wrong by on data of this size and condition.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Check:
    """What was tried, what went wrong (nothing if empty), and how long it took."""

    name: str
    problem: str
    seconds: float

    @property
    def passed(self) -> bool:
        return not self.problem


def self_test(n_threads: int | None = None) -> Iterator[Check]:
    """All checks, one after the other; the first ones compile the loops if that was never done."""
    for name, check in _CHECKS.items():
        start = perf_counter()
        try:
            problem = check(n_threads)
        except Exception as error:  # whatever it is, it is what a doctor is asked for
            problem = f"{type(error).__name__}: {error}"
        yield Check(name=name, problem=problem, seconds=perf_counter() - start)


def _data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features that are alike, more of them at work than a model may have."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((_N, _P)) + rng.standard_normal((_N, 1))
    return X, X[:, ::2] @ rng.uniform(0.5, 1.0, (_P + 1) // 2) + rng.standard_normal(_N) + 2.0


def _supports(most: int, n: int = _P) -> Iterator[tuple[int, ...]]:
    for size in range(most + 1):
        yield from combinations(range(n), size)


def _rows(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ridge penalty as rows of the data."""
    p = X.shape[1]
    return np.vstack([X, np.sqrt(_ALPHA) * np.eye(p)]), np.concatenate([y, np.zeros(p)])


def _least(X: np.ndarray, y: np.ndarray) -> float:
    """min_b ||y - X b||² + alpha ||b||²."""
    A, b = _rows(X, y)
    return float(np.sum((b - A @ np.linalg.lstsq(A, b, rcond=None)[0]) ** 2))


def _least_in_box(X: np.ndarray, y: np.ndarray, low: float, high: float) -> float:
    """The same with low <= b <= high: one of the faces of the box has the optimum inside."""
    best, p = np.inf, X.shape[1]
    for sides in np.ndindex(*[3] * p):
        side = np.array(sides, dtype=int)
        held, inner = np.array([low, high, 0.0])[side], np.flatnonzero(side == 2)
        A, b = _rows(X, y)
        rest = b - A @ held
        free = np.linalg.lstsq(A[:, inner], rest, rcond=None)[0]
        if np.all((free >= low) & (free <= high)):
            best = min(best, float(np.sum((rest - A[:, inner] @ free) ** 2)))
    return best


def _least_on_plane(X: np.ndarray, y: np.ndarray, a: np.ndarray, level: float) -> float:
    """The same with a'b = level, by its Lagrange equations; infinite if a is zero."""
    if not np.any(a):
        return np.inf if level else _least(X, y)
    A, b = _rows(X, y)
    system = np.block([[A.T @ A, a[:, None]], [a[None, :], np.zeros((1, 1))]])
    coef = np.linalg.solve(system, np.concatenate([A.T @ b, [level]]))[:-1]
    return float(np.sum((b - A @ coef) ** 2))


def _compare(result: Any, X: Any, y: Any, optimum: float, n_threads: int | None) -> str:
    """What is wrong with a result, in words."""
    slack = _ROUNDING * optimum
    if not result.is_closed:
        return f"a gap of {result.gap:.2g} is left: {result.status}"
    if abs(result.objective - optimum) > slack:
        return f"objective {result.objective!r}, and brute force finds {optimum!r}"
    if result.lower_bound > optimum + slack:
        return f"lower bound {result.lower_bound!r} is above the optimum {optimum!r}"
    verification = result.certificate.verify(X, y, n_threads=n_threads)
    return "" if verification else f"the proof was not verified: {verification}"


def _models(n_threads: int | None) -> str:
    """By enumeration, and by a tree."""
    from bestk import Advanced, solve

    for seed, enumeration in ((0, True), (1, True), (2, False), (3, False)):
        X, y = _data(seed)
        centred, target = X - X.mean(axis=0), y - y.mean()
        optimum = min(_least(centred[:, list(S)], target) for S in _supports(_K))
        result = solve(
            X, y, _K, alpha=_ALPHA, fit_intercept=True, gap_tol=0.0, n_threads=n_threads,
            advanced=Advanced(enumeration=enumeration),
        )  # fmt: skip
        if problem := _compare(result, X, y, optimum, n_threads):
            return problem
    return ""


def _boxes(n_threads: int | None) -> str:
    from bestk import solve

    low, high = -0.1, 0.9
    X, y = _data(4)
    optimum = min(_least_in_box(X[:, list(S)], y, low, high) for S in _supports(_K))
    options: dict[str, Any] = {"alpha": _ALPHA, "bounds": (low, high), "gap_tol": 0.0}
    result = solve(X, y, _K, n_threads=n_threads, **options)
    return _compare(result, X, y, optimum, n_threads)


def _groups(n_threads: int | None) -> str:
    from bestk import solve

    X, y = _data(5)
    groups = {"a": [0, 1, 2], "b": [3, 4], "c": [6, 7]}
    chosen = [*groups.values(), [5], [8]]
    optimum = min(
        _least(X[:, [j for g in S for j in chosen[g]]], y) for S in _supports(2, len(chosen))
    )
    options: dict[str, Any] = {"alpha": _ALPHA, "groups": groups, "gap_tol": 0.0}
    result = solve(X, y, 2, n_threads=n_threads, **options)
    return _compare(result, X, y, optimum, n_threads)


def _rules(n_threads: int | None) -> str:
    from bestk import rules, solve

    X, y = _data(6)
    asked = [rules.at_most(1, [0, 2, 4]), rules.implies(6, [1]), rules.exclusive([7, 8])]

    def allowed(S: set[int]) -> bool:
        return len(S & {0, 2, 4}) <= 1 and (6 not in S or 1 in S) and len(S & {7, 8}) <= 1

    optimum = min(_least(X[:, list(S)], y) for S in _supports(_K) if allowed(set(S)))
    options: dict[str, Any] = {"alpha": _ALPHA, "rules": asked, "gap_tol": 0.0}
    result = solve(X, y, _K, n_threads=n_threads, **options)
    return _compare(result, X, y, optimum, n_threads)


def _constraints(n_threads: int | None) -> str:
    from bestk import solve

    X, y = _data(7)
    a = np.zeros(_P)
    a[[0, 1, 2]] = 1.0
    optimum = min(_least_on_plane(X[:, list(S)], y, a[list(S)], 1.0) for S in _supports(_K))
    options: dict[str, Any] = {"alpha": _ALPHA, "constraints": "x0 + x1 + x2 = 1", "gap_tol": 0.0}
    result = solve(X, y, _K, n_threads=n_threads, **options)
    return _compare(result, X, y, optimum, n_threads)


def _lists(n_threads: int | None) -> str:
    from bestk import near_optimal

    X, y = _data(8)
    objectives = sorted(_least(X[:, list(S)], y) for S in combinations(range(_P), _K))[:5]
    found = near_optimal(X, y, _K, n_best=5, alpha=_ALPHA, n_threads=n_threads)
    listed = sorted(model.objective for model in found.models)
    if not found.complete:
        return "the list of the 5 best models is not complete"
    if len(listed) != 5 or not np.allclose(listed, objectives, rtol=_ROUNDING, atol=0.0):
        return f"objectives {listed}, and brute force finds {objectives}"
    if found.certificate is None or not found.certificate.verify(X, y, n_threads=n_threads):
        return "the proof of completeness was not verified"
    return ""


def _files(n_threads: int | None) -> str:
    """A proof holds in rational numbers after it was written and read, and not for other data."""
    from bestk import Certificate, solve

    X, y = _data(9)
    result = solve(X, y, _K, alpha=_ALPHA, n_threads=n_threads)
    if result.certificate is None:
        return "there is no proof"
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "proof.npz"
        result.certificate.save(path)
        certificate = Certificate.load(path)
    verification = certificate.verify(X, y, exact=True)
    if not verification:
        return f"the proof was not verified in rational numbers: {verification}"
    return "a proof was verified on other data" if certificate.verify(X, y + 1.0) else ""


_CHECKS: dict[str, Callable[[int | None], str]] = {
    "models": _models,
    "boxes": _boxes,
    "groups": _groups,
    "rules": _rules,
    "constraints": _constraints,
    "lists of models": _lists,
    "proofs in files, exact": _files,
}
