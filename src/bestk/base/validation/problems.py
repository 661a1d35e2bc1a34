"""What belongs to a problem: bounds, penalties, and products of data."""

from typing import Any

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.validation.arrays import as_real
from bestk.base.validation.scalars import require_number
from bestk.base.validation.words import shown


def is_auto(bounds: Any) -> bool:
    """Are bounds to be chosen by the solver?"""
    return isinstance(bounds, str) and bounds == "auto"


def as_bounds(
    bounds: Any, p: int, names: tuple[str, ...] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) as (p,) arrays; lower <= 0 <= upper. Infinite where they are yet to choose."""
    if bounds is None or is_auto(bounds):
        return np.full(p, -np.inf), np.full(p, np.inf)
    if isinstance(bounds, str):
        raise ValueError(f'bounds must be a pair (lower, upper), "auto" or None, got {bounds!r}')
    if not isinstance(bounds, tuple | list) or len(bounds) != 2:
        way = ""
        if (
            isinstance(bounds, list | tuple | np.ndarray)
            and len(bounds) == p
            and all(np.size(pair) == 2 for pair in bounds)
        ):
            way = "; for one pair per feature, pass tuple(numpy.array(bounds).T)"
        raise ValueError(
            f"bounds must be a pair (lower, upper) of numbers or arrays of length {p}, "
            f"got {shown(bounds)}{way}"
        )
    sides = []
    for name, side in zip(("lower", "upper"), bounds, strict=True):
        if side is None:
            raise TypeError(f"bounds: the {name} bound is None; use -inf and inf for no bound")
        side = as_real(f"bounds: the {name} bound", side).astype(np.float64)
        if side.ndim > 1 or (side.ndim == 1 and len(side) != p):
            raise ValueError(
                f"bounds: the {name} bound must be a number or have length {p}, one per feature; "
                f"got shape {side.shape}"
            )
        sides.append(np.broadcast_to(side, (p,)).copy())
    lower, upper = sides
    if np.isnan(lower).any() or np.isnan(upper).any():
        raise ValueError("bounds contain NaN; use -inf and inf for no bound")
    if (lower > 0).any() or (upper < 0).any():
        j = int(np.flatnonzero((lower > 0) | (upper < 0))[0])
        raise ValueError(
            f"bounds must allow 0 (lower <= 0 <= upper); feature {names[j] if names else j!r} has "
            f"({lower[j]:g}, {upper[j]:g})"
        )
    return lower, upper


def as_penalties(alphas: Any) -> list[float]:
    """Ascending unique penalties."""
    values = [alphas] if np.ndim(alphas) == 0 else list(alphas)
    if not values:
        raise ValueError(
            "alphas must hold at least one penalty, such as [0.0, 0.1, 1.0]; it is empty"
        )
    return sorted({require_number("each of alphas", alpha, least=0.0) for alpha in values})


def require_consistent_gram(G: np.ndarray, c: np.ndarray, yy: float) -> None:
    """[[G, c], [c', yy]] must be positive semidefinite up to rounding, as products of data are."""
    if not np.allclose(G, G.T, rtol=1e-8, atol=1e-10 * np.abs(G).max(initial=0.0)):
        raise ValueError("G is not symmetric; pass X.T @ X")
    squares = np.diag(G)
    if (squares < 0).any():
        raise ValueError(
            "G is not positive semidefinite: its diagonal has negative entries; pass X.T @ X"
        )
    full = np.block([[0.5 * (G + G.T), c[:, None]], [c[None, :], np.array([[yy]])]])
    root = np.sqrt(np.append(squares, yy))
    live = root > 0
    if np.abs(full[~live]).max(initial=0.0) > 0:
        raise ValueError(
            "G is not positive semidefinite: a zero on its diagonal, but not beside it; "
            "pass X.T @ X"
        )
    full = full[np.ix_(live, live)] / np.outer(root[live], root[live])
    if len(full) == 0:
        return
    tolerance = 1e-9 + 64 * len(full) * UNIT_ROUNDOFF
    if np.linalg.eigvalsh(full[:-1, :-1] if live[-1] else full).min(initial=0.0) < -tolerance:
        raise ValueError("G is not positive semidefinite; it cannot be X.T @ X of any data")
    if np.linalg.eigvalsh(full)[0] < -tolerance:
        raise ValueError(
            "c and yy do not fit G: y'y is smaller than what c claims to explain; pass G = X.T @ "
            "X, c = X.T @ y and yy = y @ y of the same rows"
        )
