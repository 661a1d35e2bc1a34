"""Stands for NearOptimal in tests of what is shown: small problems, tried model by model."""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from bestk import Status


@dataclass(frozen=True, kw_only=True)
class Model:
    support: np.ndarray
    names: tuple[str, ...]
    values: np.ndarray
    intercept: float
    objective: float
    is_borderline: bool = False

    @property
    def size(self):
        return len(self.support)


@dataclass(frozen=True, kw_only=True)
class Found:
    models: tuple[Model, ...]
    best: Model
    threshold: float
    within: float | None
    k: int
    alpha: float
    names: tuple[str, ...]
    yy: float
    X: np.ndarray
    y: np.ndarray | None = None
    n_samples: int | None = 80
    complete: bool = True
    complete_below: float = np.inf
    status: Status = Status.OPTIMAL
    copies: tuple[tuple[int, int], ...] = ()
    include: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    exclude: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=int))
    only_k: bool = False

    @property
    def n_features(self):
        return len(self.names)

    def _spread(self, model, directions):
        """How far a linear function of the coefficients goes on one support."""
        A = self.X[:, model.support]
        A = A - A.mean(axis=0)
        H = A.T @ A + self.alpha * np.eye(model.size)
        room = max(self.threshold - model.objective, 0.0)
        return np.sqrt(room * np.einsum("ij,ji->i", directions, np.linalg.solve(H, directions.T)))

    def model_ranges(self):
        halves = [self._spread(m, np.eye(m.size)) for m in self.models]
        return [np.c_[m.values - h, m.values + h] for m, h in zip(self.models, halves, strict=True)]

    def coefficient_ranges(self):
        out = np.zeros((self.n_features, 2))
        for model, limits in zip(self.models, self.model_ranges(), strict=True):
            out[model.support, 0] = np.minimum(out[model.support, 0], limits[:, 0])
            out[model.support, 1] = np.maximum(out[model.support, 1], limits[:, 1])
        return out

    def predictions(self, X):
        X = np.asarray(X, dtype=float)
        out = np.empty((len(self.models), len(X), 3))
        for model, each in zip(self.models, out, strict=True):
            A = X[:, model.support]
            fitted = model.intercept + A @ model.values
            half = self._spread(model, A - self.X[:, model.support].mean(axis=0))
            each[:] = np.c_[fitted - half, fitted, fitted + half]
        return out

    def prediction_range(self, X):
        each = self.predictions(X)
        return np.c_[each[:, :, 0].min(axis=0), each[:, :, 2].max(axis=0)]


def fit(X, y, alpha, support):
    support = np.array(support, dtype=int)
    A, b = X[:, support] - X[:, support].mean(axis=0), y - y.mean()
    values = np.linalg.solve(A.T @ A + alpha * np.eye(len(support)), A.T @ b)
    objective = float(b @ b - (A.T @ b) @ values)
    return values, float(y.mean() - X[:, support].mean(axis=0) @ values), objective


def find(X, y, names, k, within, alpha=0.1, **more):
    """All irreducible models within a tolerance of the best, by brute force."""
    p = X.shape[1]
    tried = {
        support: fit(X, y, alpha, support)
        for size in range(k + 1)
        for support in combinations(range(p), size)
    }
    first = min(tried, key=lambda support: tried[support][2])
    threshold = (1 + within) * tried[first][2]
    near = {support for support, (_, _, value) in tried.items() if value <= threshold}
    small = [s for s in near if not any(s[:i] + s[i + 1 :] in near for i in range(len(s)))]

    def model(support):
        values, intercept, objective = tried[support]
        return Model(
            support=np.array(support, dtype=int),
            names=tuple(names[j] for j in support),
            values=values,
            intercept=intercept,
            objective=objective,
        )

    small.sort(key=lambda support: tried[support][2])
    more.setdefault("models", tuple(model(s) for s in small))
    return Found(
        best=model(first),
        threshold=threshold,
        within=within,
        k=k,
        alpha=alpha,
        names=tuple(names),
        yy=float(np.sum((y - y.mean()) ** 2)),
        X=X,
        y=y,
        n_samples=len(y),
        **more,
    )


def proxies(names, n=80, seed=0, noise=1.0):
    """(X, y): three causes, each with features that stand for it more or less well."""
    rng = np.random.default_rng(seed)
    p = len(names)
    causes = rng.standard_normal((n, 3))
    X = causes[:, np.arange(p) % 3] + np.linspace(0.4, 0.7, p) * rng.standard_normal((n, p))
    y = 5 + causes @ [3.0, -2.0, 1.0] + noise * rng.standard_normal(n)
    return X, y


def many(n_models=10_000, p=200, size=8, seed=0):
    """A long list of random models, for what must stay fast."""
    rng = np.random.default_rng(seed)
    names = tuple(f"feature {j}" for j in range(p))
    weights = 1.0 / (1 + np.arange(p))
    objectives = np.sort(100 + 5 * np.sqrt(rng.random(n_models)))
    models = []
    for objective in objectives:
        support = np.sort(rng.choice(p, size, replace=False, p=weights / weights.sum()))
        models.append(
            Model(
                support=support,
                names=tuple(names[j] for j in support),
                values=rng.standard_normal(size),
                intercept=0.0,
                objective=float(objective),
            )
        )
    X = rng.standard_normal((50, p))
    return Found(
        models=tuple(models),
        best=models[0],
        threshold=1.05 * models[0].objective,
        within=0.05,
        k=size,
        alpha=1.0,
        names=names,
        yy=1000.0,
        X=X,
    )
