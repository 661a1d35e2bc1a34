"""Linear systems of the paper's bounds: by inverses, or by n x n factors where n is smaller.

For A = Z Z' + diag(ridge) Woodbury's formula turns a p x p system into one with as many unknowns as
there are rows of data.
"""

from functools import cached_property
from typing import Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bestk.base.constants import OUT
from bestk.form.matrix import ByRows
from bestk.form.standard_form import StandardForm


class Systems(Protocol):
    """Systems with A, and with Q = A - diag(t), for one right-hand side per row."""

    def product(self, rows: np.ndarray) -> np.ndarray:
        """rows @ Q"""

    def eigenvalues(self) -> np.ndarray:
        """Those of Q, ascending; some that are zero may be left out."""

    def shift(self, shift: float) -> None:
        """Prepare `solve` for Q + shift I."""

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """rows @ inverse of (Q + shift I)"""

    def ridge(self, state: np.ndarray) -> np.ndarray:
        """The minimiser of 1 - 2 c'b + b'A b over features that are not OUT."""


def systems_of(form: StandardForm, t: np.ndarray) -> Systems:
    return _ByRows(form, t) if form.is_wide else _Stored(form, t)


class _Stored:
    def __init__(self, form: StandardForm, t: np.ndarray) -> None:
        self.form, self.t = form, t

    @cached_property
    def inverse(self) -> np.ndarray:
        return np.linalg.inv(self.form.A)

    @cached_property
    def Q(self) -> np.ndarray:
        return self.form.A - np.diag(self.t)

    def product(self, rows: np.ndarray) -> np.ndarray:
        return rows @ self.Q

    def eigenvalues(self) -> np.ndarray:
        return np.linalg.eigvalsh(self.Q)

    def shift(self, shift: float) -> None:
        self.shifted = np.linalg.inv(self.Q + shift * np.eye(len(self.Q)))

    def solve(self, rows: np.ndarray) -> np.ndarray:
        return rows @ self.shifted

    def ridge(self, state: np.ndarray) -> np.ndarray:
        # From the inverse with all features (Schur complement).
        full = self.inverse @ self.form.c
        out = np.flatnonzero(state == OUT)
        block = self.inverse[np.ix_(out, out)]
        solution = full - self.inverse[:, out] @ np.linalg.solve(block, full[out])
        solution[out] = 0.0
        return solution


class _ByRows:
    def __init__(self, form: StandardForm, t: np.ndarray) -> None:
        assert isinstance(form.operator, ByRows)
        self.form, self.A, self.rest = form, form.operator, form.operator.ridge - t

    def product(self, rows: np.ndarray) -> np.ndarray:
        return (rows @ self.A.Z) @ self.A.Z.T + self.rest * rows

    def eigenvalues(self) -> np.ndarray:
        # Up to the rest, which is next to nothing; p - n more are zero.
        return np.linalg.eigvalsh(self.A.Z.T @ self.A.Z)

    def shift(self, shift: float) -> None:
        self.diagonal = self.rest + shift
        self.factor = cho_factor(self._inner(self.A.Z, self.diagonal), lower=True)

    def solve(self, rows: np.ndarray) -> np.ndarray:
        return self._solve(self.A.Z, self.diagonal, self.factor, rows)

    @cached_property
    def inner(self) -> np.ndarray:
        return self._inner(self.A.Z, self.A.ridge)

    def ridge(self, state: np.ndarray) -> np.ndarray:
        """Zero where there is no penalty: then every fit is perfect, and there are many."""
        if not (self.A.ridge > 0.0).all():
            return np.zeros(self.form.p)
        Z, penalty, out = self.A.Z, self.A.ridge, state == OUT
        if 2 * np.count_nonzero(out) <= len(out):
            inner = self.inner - Z[out].T @ (Z[out] / penalty[out, None])
        else:  # little would be left of the difference
            inner = self._inner(Z[~out], penalty[~out])
        c = np.where(out, 0.0, self.form.c)
        solution = self._solve(Z, penalty, cho_factor(inner, lower=True), c)
        solution[out] = 0.0
        return solution

    @staticmethod
    def _inner(Z: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        inner = Z.T @ (Z / diagonal[:, None])
        inner[np.diag_indices(len(inner))] += 1.0
        return inner

    @staticmethod
    def _solve(Z, diagonal, factor, rows) -> np.ndarray:
        scaled = rows / diagonal
        return scaled - (cho_solve(factor, (scaled @ Z).T).T @ Z.T) / diagonal
