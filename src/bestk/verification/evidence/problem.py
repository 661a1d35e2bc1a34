"""The problem of a certificate as the verifier sees it: in standard form (theory: form)."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bestk.verification.allowance import ANY_TIME, Allowance
from bestk.verification.numerics.matrices import Matrix
from bestk.verification.numerics.rows import Rows


class NoVariation(Exception):
    """y is zero, or a constant beside an intercept: zero is as good a bound as any.

    Arguments: the objective of the model, and the sum of squares of y it is to be compared with.
    """


class Unfit(Exception):
    """The certificate does not fit the data, for the reason given."""


class Model(NamedTuple):
    """The certificate's model: its features, a lower bound on f there, half the descent of f.

    ``gradient`` is X'(y - X b) - alpha b, known up to ``error``; in units of the data.
    """

    features: np.ndarray
    value: float
    gradient: np.ndarray
    error: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Evidence:
    """min 1 - 2 c'b + b'A b over the live features, all entries known up to ``eps``.

    A is stored, or known by the columns of data where these are much smaller.

    ``live`` are the features (numbers in the problem) that may enter a model, ``position`` finds
    them again (-1: not live), ``inside`` are the positions of those that must be used, or may be
    without being counted. ``k`` counts live features only, these among them. f = unit * f_form and
    b_form = to_form * b. ``rows`` is None where only products are known. ``allowance`` says how
    long the work on it may take.
    """

    A: Matrix = field(repr=False)
    c: np.ndarray = field(repr=False)
    eps: float
    lo: np.ndarray = field(repr=False)
    hi: np.ndarray = field(repr=False)
    live: np.ndarray
    position: np.ndarray = field(repr=False)
    inside: np.ndarray
    k: int
    unit: float
    objective: float
    form_coef: np.ndarray = field(repr=False)
    rows: Rows | None
    model: Model | None
    to_form: np.ndarray = field(repr=False)
    assumptions: list[str]
    allowance: Allowance = ANY_TIME

    @property
    def is_boxed(self) -> bool:
        return bool(np.isfinite(self.lo).any() or np.isfinite(self.hi).any())
