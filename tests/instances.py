"""Tiny problems of every awkward kind, and their true optimum by brute force."""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from scipy.optimize import lsq_linear

REGIMES = (
    "plain",
    "wide",
    "square",
    "duplicate",
    "zero_column",
    "constant_column",
    "collinear",
    "near_collinear",
    "monomials",
    "tiny_units",
    "huge_units",
    "mixed_units",
    "zero_y",
    "perfect_fit",
    "orthogonal_y",
    "integers",
    "binary",
    "one_feature",
    "one_row",
)


@dataclass(kw_only=True)
class Instance:
    regime: str
    X: np.ndarray
    y: np.ndarray
    k: int
    options: dict = field(default_factory=dict)

    def brute_force(self) -> float:
        """The optimum by fitting every support of at most k features on the data."""
        options = self.options
        p = self.X.shape[1]
        include = set(options.get("include", ()))
        allowed = [j for j in range(p) if j not in set(options.get("exclude", ()))]
        size = min(self.k, len(allowed))
        supports = [S for S in combinations(allowed, size) if include <= set(S)]
        return min((self.loss(S) for S in supports), default=self.loss(()))

    def loss(self, support) -> float:
        options = self.options
        support = list(support)
        root = np.sqrt(options.get("sample_weight", np.ones(len(self.y))))
        alpha = options.get("alpha", 0.0)
        M = self.X[:, support].astype(float) * root[:, None]
        rhs = self.y.astype(float) * root
        if not support:
            return float(rhs @ rhs)
        # Unit columns first, so that the rank decision does not depend on units.
        M = np.vstack([M, np.sqrt(alpha) * np.eye(len(support))])
        rhs = np.concatenate([rhs, np.zeros(len(support))])
        norm = np.linalg.norm(M, axis=0)
        norm[norm == 0] = 1.0
        if "bounds" in options:
            lo, hi = (np.broadcast_to(b, (self.X.shape[1],))[support] for b in options["bounds"])
            hi = np.maximum(hi, lo + 1e-300)
            b = lsq_linear(M / norm, rhs, (lo * norm, hi * norm), method="bvls", tol=1e-15).x
        else:
            b = np.linalg.lstsq(M / norm, rhs, rcond=1e-14)[0]
        residual = rhs - (M / norm) @ b
        return float(residual @ residual)


def make(seed: int, regime: str | None = None) -> Instance:
    """A random instance; the seed decides everything, the regime too unless it is given."""
    rng = np.random.default_rng(seed)
    regime = regime or REGIMES[seed % len(REGIMES)]
    p = int(rng.integers(2, 9))
    n = int(rng.integers(p + 1, 25))
    if regime == "wide":
        n = int(rng.integers(1, p))
    elif regime == "square":
        n = p
    elif regime == "one_feature":
        p = 1
    elif regime == "one_row":
        n = 1
    k = int(rng.integers(0, p + 2))
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    y = X @ (rng.standard_normal(p) * (rng.random(p) < 0.5)) + 0.5 * rng.standard_normal(n)
    X, y = _twist(rng, regime, X, y)
    return Instance(regime=regime, X=X, y=y, k=k, options=_options(rng, n, p, k, X, y))


def _twist(rng, regime, X, y):
    n, p = X.shape
    a, b = rng.permutation(p)[:2] if p > 1 else (0, 0)
    if regime == "duplicate":
        X[:, a] = X[:, b] * rng.choice([1.0, -1.0, 3.0])
    elif regime == "zero_column":
        X[:, a] = 0.0
    elif regime == "constant_column":
        X[:, a] = 7.0
    elif regime == "collinear" and p > 2:
        X[:, a] = X[:, b] + X[:, [j for j in range(p) if j not in (a, b)][0]]
    elif regime == "near_collinear":
        X[:, a] = X[:, b] + 10.0 ** -rng.integers(3, 8) * rng.standard_normal(n)
        y = y + (X[:, a] - X[:, b]) / max(np.abs(X[:, a] - X[:, b]).max(), 1e-300)
    elif regime == "monomials":
        x = rng.uniform(0.5, 1.5, n)
        X = x[:, None] ** np.arange(p)
        y = 1.0 + x - 0.3 * x**3 + 0.01 * rng.standard_normal(n)
    elif regime == "tiny_units":
        X, y = X * 1e-8, y * 1e-6
    elif regime == "huge_units":
        X, y = X * 1e8, y * 1e7
    elif regime == "mixed_units":
        X = X * 10.0 ** rng.integers(-8, 9, p)
    elif regime == "zero_y":
        y = np.zeros(n)
    elif regime == "perfect_fit":
        y = X @ (rng.standard_normal(p) * (np.arange(p) < 2))
    elif regime == "orthogonal_y" and n > p:
        q, _ = np.linalg.qr(np.column_stack([X, y]))
        y = q[:, -1]
    elif regime == "integers":
        X = rng.integers(-100, 100, (n, p)).astype(np.int8)
        y = rng.integers(-100, 100, n).astype(np.int16)
    elif regime == "binary":
        X = rng.integers(0, 2, (n, p)).astype(bool)
        y = y.astype(np.float32)
    return X, y


def _options(rng, n, p, k, X, y):
    options = {}
    if rng.random() < 0.6:
        scale = float(np.mean(X.astype(float) ** 2)) or 1.0
        options["alpha"] = float(rng.choice([1e-6, 1e-3, 0.1, 10.0])) * scale
    if rng.random() < 0.25:
        size = 0.3 * (np.abs(y.astype(float)).max() or 1.0) / (np.abs(X.astype(float)).max() or 1.0)
        options["bounds"] = [(0.0, np.inf), (-size, size), (-size, 2 * size), (-np.inf, 0.0)][
            rng.integers(4)
        ]
    order = rng.permutation(p)
    if rng.random() < 0.2 and k >= 1:
        options["include"] = order[:1].tolist()
    if rng.random() < 0.2:
        options["exclude"] = order[1:2].tolist()
    if rng.random() < 0.2:
        options["sample_weight"] = rng.random(n) * (rng.random(n) < 0.9) + 1e-3
    return options
