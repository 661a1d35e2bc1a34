"""What chooses among the models of an equation: a criterion on rows they have not seen."""

from collections.abc import Sequence
from math import comb, log

import numpy as np
from scipy.signal import correlate

from bestk.results.gaps import PERFECT_FIT
from bestk.selection.path import Path


def scores_of(
    grid: dict[float, Path],
    ks: list[int],
    alphas: list[float],
    criterion: str,
    terms: np.ndarray,
    derivative: np.ndarray,
    lengths: Sequence[int],
) -> np.ndarray:
    """(a, m) scores of the models of a grid on rows they have not seen; inf where there is none.

    Rows of several trajectories stand one after the other; `lengths` are those of the trajectories.
    """
    least = PERFECT_FIT * float(derivative @ derivative)
    models = {
        (alphas.index(alpha), ks.index(k)): result
        for alpha, path in grid.items()
        for k, result in path.items()
    }
    residuals = {
        place: derivative - terms[:, result.support] @ result.coef[result.support]
        for place, result in models.items()
    }
    losses = {place: float(residual @ residual) for place, residual in residuals.items()}
    scores = np.full((len(alphas), len(ks)), np.inf)
    if not models:
        return scores
    # Of the model that fits best: what others leave also has the shape of missing terms.
    worth = rows_worth(residuals[min(losses, key=losses.__getitem__)], lengths)
    for place, result in models.items():
        mean = max(losses[place], least) / len(derivative)
        size = int(np.count_nonzero(result.coef))
        scores[place] = score_of(criterion, mean, worth, size, terms.shape[1])
    return scores


def score_of(criterion: str, mean_square: float, m: float, size: int, p: int) -> float:
    """AICc, BIC or EBIC of a model with some of p terms, on rows that are worth m (theory:
    rows-worth)."""
    fit = m * np.log(mean_square) if mean_square > 0 else -np.inf
    if criterion == "aicc":
        return float(2 * size + fit + 2 * (size + 1) * (size + 2) / max(m - size - 2, 1))
    choices = 2 * log(comb(p, size)) if criterion == "ebic" else 0.0
    return float(size * np.log(m) + fit + choices)


def rows_worth(residual: np.ndarray, lengths: Sequence[int]) -> float:
    """``m / (1 + 2 sum of autocorrelations)``: independent rows that say as much (theory:
    rows-worth).

    Rows close in time share what smoothing and missing terms leave in them. The sum ends before the
    first autocorrelation that is not positive, and products are of rows of the same trajectory.
    """
    centred = residual - residual.mean()
    covariance = np.zeros(max(lengths))
    for part in np.split(centred, np.cumsum(lengths)[:-1]):
        covariance[: len(part)] += correlate(part, part)[len(part) - 1 :]
    if covariance[0] <= 0.0:
        return float(len(residual))
    positive = covariance > 0.0
    end = len(covariance) if positive.all() else int(np.argmin(positive))
    return float(len(residual) / (2.0 * covariance[:end].sum() / covariance[0] - 1.0))
