"""Upper bounds: beam search over supports, then swaps of single features."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from bestk.base.tuning import tuning
from bestk.form.dense import DenseMatrix
from bestk.form.standard_form import StandardForm
from bestk.supports.growth import DEPENDENT, STEADY, best_children, extend, join_scores
from bestk.supports.scan import fit_rows


def never() -> bool:
    return False


def beam_supports(
    form: StandardForm,
    include: np.ndarray,
    k: int,
    *,
    width: int = 50,
    allowed: np.ndarray | None = None,
    stop: Callable[[], bool] = never,
) -> np.ndarray:
    """Up to `width` good supports of size min(k, allowed), best first; rows of form indices.

    Without bounds every child is ranked by the exact loss after a refit (theory: next-gain); with
    bounds by the gain of one coordinate step, then refitted, as in the paper. After a `stop`
    there is one support, completed at once by what looks best.
    """
    mask = np.ones(form.p, dtype=bool) if allowed is None else allowed.copy()
    mask[include] = False
    include = np.asarray(include, dtype=np.intp)
    size = min(k, len(include) + int(mask.sum()))
    width = max(1, min(width, int(tuning().beam_entries / form.p)))
    grow = _grow_by_gradient if form.is_boxed else _grow_exactly
    return grow(form, include, size, width, mask, stop)


def _completed(support, score, mask, size):
    """The support with the features of the largest scores."""
    score = np.where(mask, score, -np.inf)
    score[support] = -np.inf
    best = np.argsort(-_steady(score), kind="stable")[: size - len(support)]
    return np.sort(np.concatenate([support, best]))[None]


def _grow_exactly(form, include, size, width, mask, stop):
    A, p = form.matrix, form.p
    supports = np.zeros((1, 0), dtype=np.intp)
    basis = np.zeros((1, 0, 0))
    variance, moment, gain = np.ones((1, p)), form.c[None].copy(), np.zeros(1)
    tags = _tags(p)
    for t in range(size):
        if t < len(include):
            parents, chosen = np.zeros(1, dtype=np.intp), include[t : t + 1]
        elif stop():
            best = int(_steady(gain).argmax())
            gains = _exact_gains(variance[best], moment[best])
            return _completed(supports[best], gains, mask, size)
        else:
            parents, chosen = best_children(supports, gain, variance, moment, mask, tags, width)
        grown = _extended(A, supports, basis, variance, moment, gain, parents, chosen)
        supports, basis, variance, moment, gain = grown
    return supports[np.argsort(-_steady(gain), kind="stable")]


def _extended(A, supports, basis, variance, moment, gain, parents, chosen):
    """Supports with one feature more, and what is known about them; see :func:`extend`."""
    if isinstance(A, DenseMatrix):
        return extend(A.array, supports, basis, variance, moment, gain, parents, chosen)
    # What is left of the chosen feature beside its parent's, over all features at once.
    pivot = np.maximum(variance[parents, chosen], DEPENDENT)
    grown = np.column_stack([supports[parents], chosen])
    direction = _left_over(A, basis[parents], grown) / np.sqrt(pivot)[:, None]
    new = A.sums(grown, direction)
    step = moment[parents, chosen] / np.sqrt(pivot)
    longer = np.pad(basis[parents], ((0, 0), (0, 0), (0, 1)))
    return (
        grown,
        np.concatenate([longer, direction[:, None]], axis=1),
        variance[parents] - new**2,
        moment[parents] - step[:, None] * new,
        gain[parents] + step**2,
    )


def _left_over(A, basis, supports):
    """The last feature of each support less its projection on the others, as a sum of features."""
    features = np.unique(supports)
    place = np.searchsorted(features, supports)
    block = A.submatrix(features)
    products = block[place[:, :-1], place[:, -1:]]
    projection = np.einsum("bit,bt->bi", basis, products)
    return np.column_stack([-np.einsum("bi,bit->bt", projection, basis), np.ones(len(supports))])


def _exact_gains(variance, moment):
    """Loss decrease by each further feature, all coefficients refitted."""
    usable = variance > DEPENDENT
    return np.where(usable, moment**2 / np.where(usable, variance, 1.0), 0.0)


def _distinct_best(supports, score, width):
    """(parent, feature) of the `width` best distinct supports; score is (parents, features)."""
    score = _steady(score)
    # A support is reached from at most t + 1 parents, so this many contain `width` distinct ones.
    many = min(score.size, width * (supports.shape[1] + 1))
    flat = np.argpartition(-score.ravel(), many - 1)[:many]
    flat = flat[np.lexsort((flat, -score.ravel()[flat]))]
    parents, chosen = np.divmod(flat[np.isfinite(score.ravel()[flat])], score.shape[1])
    tags = _tags(score.shape[1])
    keys = tags[supports].sum(axis=1, dtype=np.uint64)[parents] + tags[chosen]
    _, first = np.unique(keys, return_index=True)
    best = np.sort(first)[:width]
    return parents[best], chosen[best]


def _steady(score):
    """Scores cut to twelve digits: ties go to the first feature, not to rounding."""
    return np.rint(score * STEADY)


@lru_cache(maxsize=8)
def _tags(p: int) -> np.ndarray:
    """Random numbers whose sums tell sets apart."""
    return np.random.default_rng(0).integers(2**63, size=p, dtype=np.uint64)


def _grow_by_gradient(form, include, size, width, mask, stop):
    supports = np.sort(include)[None]
    coefs, values = fit_supports(form, supports)
    while supports.shape[1] < size:
        score = _coordinate_gains(form, supports, coefs)
        if stop():
            return _completed(supports[0], score[0], mask, size)
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
    u = form.c - form.matrix.sums(supports, coefs)
    v = np.clip(u, form.lo, form.hi)
    return v * (2.0 * u - v)


def fit_supports(form: StandardForm, supports: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and values on the Gram matrix of many supports of one size."""
    coefs, values = np.empty(supports.shape), np.empty(len(supports))
    form, supports = form.around(np.ascontiguousarray(supports, dtype=np.int64))
    fit_rows(form.A, form.c, form.lo, form.hi, supports, coefs, values)
    return coefs, values


def improve_by_swaps(
    form: StandardForm,
    support: np.ndarray,
    keep: np.ndarray,
    mask: np.ndarray,
    stop: Callable[[], bool] = never,
) -> np.ndarray:
    """Exchange single features (never those in `keep`) while the loss falls."""
    support = np.sort(support)
    value = fit_supports(form, support[None])[1][0]
    while not stop():
        leaving = np.setdiff1d(support, keep)
        if len(leaving) == 0:
            return support
        rest = np.array([support[support != j] for j in leaving])
        score = _steady(_swap_scores(form, rest))
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
        best = np.lexsort((flat, _steady(values)))[0]
        if not values[best] < value - 1e-12:
            return support
        support, value = candidates[best], values[best]
    return support


def _swap_scores(form, rest):
    """How low the loss gets when a feature joins each support in `rest` (larger is better)."""
    if isinstance(form.matrix, DenseMatrix) and not form.is_boxed:
        scores = np.empty((len(rest), form.p))
        join_scores(form.A, form.c, rest, scores)
        return scores
    coefs, values = fit_supports(form, rest)
    if form.is_boxed:
        return _coordinate_gains(form, rest, coefs) - values[:, None]
    u = form.c - form.matrix.sums(rest, coefs)
    scores = np.empty((len(rest), form.p))
    for i, features in enumerate(rest):
        inner = form.matrix.submatrix(features) + DEPENDENT * np.eye(len(features))
        rows = form.matrix.rows(features)
        variance = 1.0 - np.einsum("tp,tp->p", rows, np.linalg.solve(inner, rows))
        scores[i] = _exact_gains(variance, u[i]) - values[i]
    return scores
