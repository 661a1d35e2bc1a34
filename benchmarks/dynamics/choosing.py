"""Criteria of bestk, by which models that are there already are chosen among."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bestk.results.gaps import PERFECT_FIT
from bestk.sindy.scoring import rows_worth, score_of


def _scores(
    criterion: str,
    worth: Callable[[np.ndarray], float],
    coefs: np.ndarray,
    X: np.ndarray,
    y: np.ndarray,
) -> list[float]:
    """Of models (n, p); ``worth`` says for how many rows the best residuals count."""
    residuals = y - coefs @ X.T
    # A fit that is perfect to six digits is as good as any other.
    squares = np.maximum(np.mean(residuals**2, axis=1), PERFECT_FIT * np.mean(y**2))
    m = worth(residuals[np.argmin(squares)])
    return [
        score_of(criterion, square, m, size, coefs.shape[1])
        for square, size in zip(squares, np.count_nonzero(coefs, axis=1).tolist(), strict=True)
    ]


aicc, bic, ebic = (partial(_scores, criterion, len) for criterion in ("aicc", "bic", "ebic"))
by_rows_worth = partial(_scores, "aicc", lambda rows: rows_worth(rows, [len(rows)]))
"""AICc of independent rows, as bestk.sindy.discover chooses."""
