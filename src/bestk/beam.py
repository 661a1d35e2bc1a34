"""Upper bounds: beam search over supports, then swaps of single features."""

import numpy as np

from bestk._scan import fit_rows
from bestk.scaling import StandardForm

# A feature whose residual variance given a support is below this adds nothing but rounding.
_DEPENDENT = 1e-10
_SCRATCH_DOUBLES = 5e7


def beam_supports(
    form: StandardForm,
    include: np.ndarray,
    k: int,
    *,
    width: int = 50,
    allowed: np.ndarray | None = None,
) -> np.ndarray:
    """Up to `width` good supports of size min(k, allowed), best first; rows of form indices.

    Without bounds every child is ranked by the exact loss after a refit (theory eq. 9); with
    bounds by the gain of one coordinate step, then refitted, as in the paper.
    """
    mask = np.ones(form.p, dtype=bool) if allowed is None else allowed.copy()
    mask[include] = False
    size = min(k, len(include) + int(mask.sum()))
    width = max(1, min(width, int(_SCRATCH_DOUBLES / (max(size, 1) * form.p))))
    grow = _grow_by_gradient if form.is_boxed else _grow_exactly
    return grow(form, np.asarray(include, dtype=np.intp), size, width, mask)


def _grow_exactly(form, include, size, width, mask):
    A, p = form.A, form.p
    supports = np.zeros((1, 0), dtype=np.intp)
    rows = np.zeros((1, 0, p))
    variance, moment, gain = np.ones((1, p)), form.c[None].copy(), np.zeros(1)
    for t in range(size):
        if t < len(include):
            parents, chosen = np.zeros(1, dtype=np.intp), include[t : t + 1]
        else:
            parents, chosen = _best_children(supports, gain, variance, moment, mask, width)
        # One more row of each parent's Cholesky factor, over all features at once.
        pivot = np.maximum(variance[parents, chosen], _DEPENDENT)
        rows = rows[parents]
        new = A[chosen] - np.einsum("bt,btp->bp", rows[np.arange(len(parents)), :, chosen], rows)
        new /= np.sqrt(pivot)[:, None]
        step = moment[parents, chosen] / np.sqrt(pivot)
        gain = gain[parents] + step**2
        variance = variance[parents] - new**2
        moment = moment[parents] - step[:, None] * new
        rows = np.concatenate([rows, new[:, None]], axis=1)
        supports = np.column_stack([supports[parents], chosen])
    return supports[np.argsort(-_steady(gain), kind="stable")]


def _exact_gains(variance, moment):
    """Loss decrease by each further feature, all coefficients refitted."""
    usable = variance > _DEPENDENT
    return np.where(usable, moment**2 / np.where(usable, variance, 1.0), 0.0)


def _best_children(supports, gain, variance, moment, mask, width):
    """The `width` best distinct supports with one feature more: (parent, feature) arrays."""
    total = np.where(mask, gain[:, None] + _exact_gains(variance, moment), -np.inf)
    np.put_along_axis(total, supports, -np.inf, axis=1)
    return _distinct_best(supports, total, width)


def _distinct_best(supports, score, width):
    """(parent, feature) of the `width` best distinct supports; score is (parents, features)."""
    score = _steady(score)
    # A support is reached from at most t + 1 parents, so this many contain `width` distinct ones.
    many = min(score.size, width * (supports.shape[1] + 1))
    flat = np.argpartition(-score.ravel(), many - 1)[:many]
    flat = flat[np.lexsort((flat, -score.ravel()[flat]))]
    parents, chosen = np.divmod(flat[np.isfinite(score.ravel()[flat])], score.shape[1])
    # Sums of random numbers tell sets apart; a collision would cost one candidate, no more.
    tags = np.random.default_rng(0).integers(2**63, size=score.shape[1], dtype=np.uint64)
    keys = tags[supports].sum(axis=1, dtype=np.uint64)[parents] + tags[chosen]
    _, first = np.unique(keys, return_index=True)
    best = np.sort(first)[:width]
    return parents[best], chosen[best]


def _steady(score):
    """Scores cut to twelve digits: ties go to the first feature, not to rounding."""
    return np.rint(score * 2.0**40)


def _grow_by_gradient(form, include, size, width, mask):
    supports = np.sort(include)[None]
    coefs, values = fit_supports(form, supports)
    while supports.shape[1] < size:
        score = _coordinate_gains(form, supports, coefs)
        score = np.where(mask, score, -np.inf)
        np.put_along_axis(score, supports, -np.inf, axis=1)
        if supports.shape[1] < form.p:
            # Per parent, only its `width` most promising children are refitted.
            cut = min(width, form.p) - 1
            kth = -np.partition(-score, cut, axis=1)[:, cut]
            score = np.where(score >= kth[:, None], score, -np.inf)
        parents, chosen = _distinct_best(supports, score - values[:, None], width * width)
        supports = np.sort(np.column_stack([supports[parents], chosen]), axis=1)
        coefs, values = fit_supports(form, supports)
        best = np.argsort(values, kind="stable")[:width]
        supports, coefs, values = supports[best], coefs[best], values[best]
    return supports


def _coordinate_gains(form, supports, coefs):
    """max over v of 2 u v - v^2 in the box: the gain of moving one coefficient alone."""
    u = form.c - np.einsum("bt,btp->bp", coefs, form.A[supports])
    v = np.clip(u, form.lo, form.hi)
    return v * (2.0 * u - v)


def fit_supports(form: StandardForm, supports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and values on the Gram matrix of many supports of one size."""
    supports = np.ascontiguousarray(supports, dtype=np.int64)
    coefs, values = np.empty(supports.shape), np.empty(len(supports))
    fit_rows(form.A, form.c, form.lo, form.hi, supports, coefs, values)
    return coefs, values


def improve_by_swaps(
    form: StandardForm, support: np.ndarray, keep: np.ndarray, mask: np.ndarray
) -> np.ndarray:
    """Exchange single features (never those in `keep`) while the loss falls."""
    support = np.sort(support)
    value = fit_supports(form, support[None])[1][0]
    while True:
        leaving = np.setdiff1d(support, keep)
        if len(leaving) == 0:
            return support
        rest = np.array([support[support != j] for j in leaving])
        score = _swap_scores(form, rest)
        score[:, ~mask] = -np.inf
        score[:, support] = -np.inf
        many = min(score.size, 50)
        flat = np.argpartition(-score.ravel(), many - 1)[:many]
        flat = flat[np.isfinite(score.ravel()[flat])]
        if len(flat) == 0:
            return support
        row, new = np.divmod(flat, form.p)
        candidates = np.sort(np.column_stack([rest[row], new]), axis=1)
        values = fit_supports(form, candidates)[1]
        best = np.lexsort((flat, values))[0]
        if not values[best] < value - 1e-12:
            return support
        support, value = candidates[best], values[best]


def _swap_scores(form, rest):
    """How low the loss gets when a feature joins each support in `rest` (larger is better)."""
    coefs, values = fit_supports(form, rest)
    if form.is_boxed:
        return _coordinate_gains(form, rest, coefs) - values[:, None]
    u = form.c - np.einsum("bt,btp->bp", coefs, form.A[rest])
    inner = form.A[rest[:, :, None], rest[:, None, :]]
    inner[:, np.arange(rest.shape[1]), np.arange(rest.shape[1])] += _DEPENDENT
    rows = form.A[rest]
    variance = 1.0 - np.einsum("btp,btp->bp", rows, np.linalg.solve(inner, rows))
    return _exact_gains(variance, u) - values[:, None]
