"""What a list is checked on: rows, batches of rows, or sums of products."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from bestk.base.fingerprint import DataDigest, gram_digest, rows_digest
from bestk.results.certificate import Certificate
from bestk.results.completeness import CompletenessCertificate, ListedModel
from bestk.verification import evidence as data
from bestk.verification.allowance import Allowance
from bestk.verification.completeness.models import seconds_of_models
from bestk.verification.evidence import Evidence
from bestk.verification.forecast import Work
from bestk.verification.numerics.matrices import is_wide
from bestk.verification.numerics.rounding import LONG
from bestk.verification.threads import summing


class Rows(NamedTuple):
    """Data as rows."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_rows(self) -> int:
        return len(self.X)

    @property
    def n_wide(self) -> int | None:
        """Rows of wide data, whose products are not formed."""
        return len(self.X) if is_wide(*self.X.shape) else None

    def digest(self) -> str:
        return rows_digest(self.X, self.y, self.weight)

    def evidence(self, claim: Certificate) -> Evidence:
        return data.from_rows(claim, self.X, self.y, self.weight)

    def size(self, fit_intercept: bool) -> float:
        """The sum of squares of y, about its mean if there is an intercept."""
        y, w = self.y.astype(LONG), 1.0 if self.weight is None else self.weight
        total = len(y) if self.weight is None else self.weight.sum()
        centre = np.sum(w * y) / total if fit_intercept and total > 0 else 0.0
        return float(np.sum(w * (y - centre) ** 2))

    def losses(self, models: Sequence[ListedModel]) -> list[float]:
        return [float(_loss(model, self.X, self.y, self.weight)) for model in models]


def _loss(model: ListedModel, X, y, weight) -> Any:
    fitted = model.intercept + X[:, model.support].astype(LONG) @ model.values.astype(LONG)
    residual = y.astype(LONG) - fitted
    return np.sum(residual**2 if weight is None else weight * residual**2)


class Batches:
    """Data as rows that come in batches. They come when the digest is asked for, which is once the
    certificate is known to be well formed.
    """

    def __init__(
        self,
        certificate: CompletenessCertificate,
        batches: Iterable[tuple[Any, ...]],
        allowance: Allowance,
    ) -> None:
        self.certificate, self.allowance, self.n_rows = certificate, allowance, 0
        rows = (batch for batch in data.checked_batches(batches) if len(batch[1]) > 0)
        first = list(islice(rows, 1))
        self.rows, self.n_features = chain(first, rows), first[0][0].shape[1] if first else 0
        self.totals = np.zeros(len(certificate.models), dtype=LONG)
        # Sums of w, w y and w y^2, about a typical y.
        self.origin = LONG(first[0][1].mean(dtype=np.float64) if first else 0)
        self.sums = np.zeros(3, dtype=LONG)

    @property
    def n_wide(self) -> int | None:
        return self.collected.n_wide

    def digest(self) -> str:
        digest = DataDigest()
        c, nothing = self.certificate, np.zeros(self.n_features)
        self.collected = data.Collected(data.EmptyModel(nothing, c.alpha, c.fit_intercept))
        with summing(self.n_features):
            for X, y, weight in self.rows:
                self.allowance.check()
                digest.add(X, y, weight)
                if X.shape[1] == self.n_features:  # else other data, as the digest tells
                    self._add(X, y, weight)
        return str(digest)

    def _add(self, X, y, weight) -> None:
        self.collected.add(X, y, weight)
        self.n_rows += len(y)
        # Models are evaluated before all rows are known, and so before all work is.
        seconds = seconds_of_models(self.certificate.models, self.n_rows)
        self.allowance.require(Work(0.0, 0.0, seconds), 1, False)
        for i, model in enumerate(self.certificate.models):
            self.totals[i] += _loss(model, X, y, weight)
        w, about = np.ones(len(y)) if weight is None else weight, y.astype(LONG) - self.origin
        self.sums += np.array([w.astype(LONG).sum(), w @ about, w @ about**2])

    def evidence(self, claim: Certificate) -> Evidence:
        return self.collected.evidence(claim)

    def size(self, fit_intercept: bool) -> float:
        """The sum of squares of y, about its mean if there is an intercept."""
        weight, total, squares = self.sums
        if fit_intercept:
            return float(squares - total**2 / weight) if weight > 0 else 0.0
        return float(squares + 2 * self.origin * total + self.origin**2 * weight)

    def losses(self, models: Sequence[ListedModel]) -> list[float]:
        return [float(total) for total in self.totals]


class Gram(NamedTuple):
    """Data as sums of products."""

    G: np.ndarray
    c: np.ndarray
    yy: float

    @property
    def n_features(self) -> int:
        return len(self.c)

    @property
    def n_rows(self) -> int:
        """As many as there are features: to evaluate a model takes a product for each pair."""
        return len(self.c)

    @property
    def n_wide(self) -> int | None:
        return None

    def digest(self) -> str:
        return gram_digest(self.G, self.c, self.yy)

    def evidence(self, claim: Certificate) -> Evidence:
        return data.from_gram(claim, data.full_gram(self.G, self.c, self.yy))

    def size(self, fit_intercept: bool) -> float:
        return self.yy

    def losses(self, models: Sequence[ListedModel]) -> list[float]:
        return [self._loss(model.support, model.values.astype(LONG)) for model in models]

    def _loss(self, S: np.ndarray, b: np.ndarray) -> float:
        return float(self.yy + b @ (self.G[np.ix_(S, S)].astype(LONG) @ b - 2.0 * self.c[S]))
