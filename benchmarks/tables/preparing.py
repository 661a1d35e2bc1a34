"""From a table to (X, y): no missing values, columns standardised, none constant, none twice."""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np

from .sources import TABLES

MOST_FEATURES = 600
"""Tables with more terms are not made."""
CONSTANT = 1e-10
"""A column that varies by less than this share of its largest value is constant."""
DUPLICATE = 1e-9
"""Columns are the same if their correlation, in absolute value, is 1 up to this."""


class Prepared(NamedTuple):
    """Columns of X, and y, have mean 0 and variance 1: the intercept is 0 in every model."""

    X: np.ndarray
    y: np.ndarray
    names: list[str]


@lru_cache(maxsize=2)
def prepared(table: str, degree: int) -> Prepared | None:
    """The table with all monomials up to ``degree``, or None if they would be too many.

    Features are standardised before they are multiplied, so that a product is not a copy of its
    factors, and terms afterwards.
    """
    from sklearn.preprocessing import PolynomialFeatures

    features, target = TABLES[table].load()
    features = features.select_dtypes("number").astype(float)
    whole = (features.notna().all(axis=1) & target.notna()).to_numpy()
    X, kept = distinct(features.to_numpy()[whole])
    names = [str(features.columns[j]) for j in kept]
    if comb(X.shape[1] + degree, degree) - 1 > MOST_FEATURES:
        return None
    if degree > 1:
        terms = PolynomialFeatures(degree, include_bias=False)
        X, kept = distinct(terms.fit_transform(X))
        names = list(terms.get_feature_names_out(names)[kept])
    y = target.to_numpy(dtype=float)[whole]
    return Prepared(X, (y - y.mean()) / y.std(), names)


def distinct(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns without constant ones and repetitions, and which of Z they are."""
    centred = Z - Z.mean(axis=0)
    spread = centred.std(axis=0)
    varying = np.flatnonzero(spread > CONSTANT * np.abs(Z).max(axis=0))
    X = centred[:, varying] / spread[varying]
    alike = np.abs(X.T @ X) / len(X) >= 1.0 - DUPLICATE
    first = ~np.triu(alike, 1).any(axis=0)
    return np.ascontiguousarray(X[:, first]), varying[first]
