"""Tiny problems of every awkward kind, and their true optimum by brute force."""

from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np
from scipy.optimize import lsq_linear

from bestk import Problem, Result, solve
from bestk.base.constants import FREE, IN, OUT
from bestk.form.definiteness import is_positive_semidefinite
from bestk.form.standard_form import StandardForm

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
    "copies",
)


@dataclass(kw_only=True)
class Instance:
    regime: str
    X: np.ndarray
    y: np.ndarray
    k: int
    options: dict = field(default_factory=dict)

    def solve(self, **settings) -> Result:
        """`bestk.solve` on one thread, with the options of the instance."""
        settings = {"n_threads": 1, **settings}
        return solve(self.X, self.y, self.k, **self.options, **settings)

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
            b = bounded_fit(M / norm, rhs, lo * norm, hi * norm)
        else:
            b = np.linalg.lstsq(M / norm, rhs, rcond=1e-14)[0]
        residual = rhs - (M / norm) @ b
        return float(residual @ residual)


def bounded_fit(M, rhs, lo, hi):
    """argmin ||rhs - M b||^2 with lo <= b <= hi; columns of unit length, dependent ones too."""
    b = lsq_linear(M, rhs, (lo, np.maximum(hi, lo + 1e-300)), method="bvls", tol=1e-15).x
    gradient = M.T @ (M @ b - rhs)
    small = 1e-9 * np.linalg.norm(rhs)
    optimal = ((gradient >= -small) | (b >= hi)) & ((gradient <= small) | (b <= lo))
    if optimal.all():
        return b
    # The solver fails on some dependent columns: try every set of coefficients at their bounds.
    best, best_loss = np.zeros(len(b)), rhs @ rhs
    sides = [[s for s in (None, low, high) if s is None or np.isfinite(s)]
             for low, high in zip(lo, hi, strict=True)]  # fmt: skip
    for pattern in product(*sides):
        free = np.array([side is None for side in pattern])
        b = np.array([0.0 if side is None else side for side in pattern])
        b[free] = np.linalg.lstsq(M[:, free], rhs - M @ b, rcond=1e-14)[0]
        b = np.clip(b, lo, hi)
        loss = np.sum((rhs - M @ b) ** 2)
        if loss < best_loss:
            best, best_loss = b, loss
    return best


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
    elif regime == "copies":
        X[:, : p // 2 + 1] = X[:, :1] * rng.choice([1.0, 1.0, -1.0], p // 2 + 1)
    elif regime == "zero_column":
        X[:, a] = 0.0
    elif regime == "constant_column":
        X[:, a] = 7.0
    elif regime == "collinear" and p > 2:
        X[:, a] = X[:, b] + X[:, next(j for j in range(p) if j not in (a, b))]
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


def make_medium(seed: int) -> Instance:
    """Too large for the root to close easily, small enough for `batched_optimum`: no boxes."""
    rng = np.random.default_rng(seed)
    p, k = int(rng.integers(16, 25)), int(rng.integers(3, 6))
    n = int(rng.integers(p // 2, 3 * p))
    X = rng.standard_normal((n, p)) + rng.choice([0.0, 0.5, 1.5]) * rng.standard_normal((n, 1))
    if seed % 3 == 0:
        X[:, 0] = X[:, 1] + 1e-4 * rng.standard_normal(n)
    y = X[:, :k].sum(axis=1) * rng.choice([0.0, 0.3]) + rng.standard_normal(n)
    options = {"alpha": float(rng.choice([0.01, 1.0]))}
    if seed % 4 == 0:
        options["include"] = [int(rng.integers(p))]
    return Instance(regime="medium", X=X, y=y, k=k, options=options)


def make_tree(seed: int) -> Instance:
    """Small enough for brute force, and yet a tree: features alike, more at work than chosen."""
    rng = np.random.default_rng([seed, 9])
    p, k = int(rng.integers(9, 13)), int(rng.integers(2, 6))
    n = p + int(rng.integers(-2, 8))
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] += rng.choice([0.5, 1.5]) * X[:, j - 1]
    X /= np.linalg.norm(X, axis=0)
    y = 2.0 * X @ (1.0 + rng.random(p)) * rng.choice([0.1, 1.0]) + rng.standard_normal(n)
    twist = rng.integers(6)
    if twist == 0:
        X[:, 2] = X[:, 0]
    elif twist == 1:
        X[:, 2] = X[:, 0] + X[:, 1] + 1e-3 * rng.standard_normal(n)
    elif twist == 2:
        X = np.round(20.0 * X)
    elif twist == 3:
        X = X * 10.0 ** rng.integers(-6, 7, p)
    options = _options(rng, n, p, k, X, y)
    options["alpha"] = float(rng.choice([0.0, 1e-3, 0.1])) * float(np.median((X * X).sum(axis=0)))
    return Instance(regime="tree", X=X, y=y, k=k, options=options)


def batched_optimum(instance: Instance) -> float:
    """The optimum over all supports of size k by stacked QR factorisations; alpha > 0, no boxes."""
    n, p = instance.X.shape
    include = set(instance.options.get("include", ()))
    supports = np.array([S for S in combinations(range(p), instance.k) if include <= set(S)])
    best = np.inf
    for part in np.array_split(supports, len(supports) // 4000 + 1):
        M = np.zeros((len(part), n + instance.k, instance.k))
        M[:, :n] = instance.X[:, part].transpose(1, 0, 2)
        M[:, n:] = np.sqrt(instance.options["alpha"]) * np.eye(instance.k)
        rhs = np.concatenate([instance.y, np.zeros(instance.k)])
        explained = (rhs @ np.linalg.qr(M)[0]) ** 2
        best = min(best, float(rhs @ rhs - explained.sum(axis=1).max()))
    return best


def tolerance(instance: Instance, optimum: float, yy: float) -> float:
    """How well brute force itself knows the optimum.

    With near-collinear columns coefficients reach 1e7, and no evaluation of the fit is better.
    """
    relative = 1e-7 if instance.regime in ("near_collinear", "monomials") else 1e-9
    return relative * optimum + 1e-11 * yy


@dataclass(kw_only=True)
class NodeCase:
    """A node of the tree of a tiny instance, with the value (over y'y) of each of its supports."""

    seed: int
    instance: Instance
    form: StandardForm
    k: int
    state: np.ndarray
    values: dict[tuple[int, ...], float]

    @property
    def name(self) -> str:
        return f"seed {self.seed}, regime {self.instance.regime}"

    @property
    def r(self) -> int:
        return self.k - int(np.count_nonzero(self.state == IN))

    @property
    def optimum(self) -> float:
        return min(self.values.values())

    @property
    def slack(self) -> float:
        return tolerance(self.instance, self.optimum, 1.0)


def standard_form(instance: Instance) -> StandardForm | None:
    """The instance as the tree sees it (exclusions applied), or None where nothing is left."""
    options = {name: instance.options.get(name) for name in ("bounds", "sample_weight")}
    alpha = instance.options.get("alpha", 0.0)
    problem = Problem.from_data(instance.X, instance.y, alpha=alpha, **options)
    useful = problem.squares > 0.0
    useful[instance.options.get("exclude", [])] = False
    if not useful.any() or problem.yy == 0.0:
        return None
    return StandardForm.of(problem, np.flatnonzero(useful))


def make_node(seed: int, regime: str | None = None) -> NodeCase | None:
    """A random node of a random instance: any IN and OUT that leave a support."""
    rng = np.random.default_rng([seed, 2])
    instance = make(seed, regime)
    form = standard_form(instance)
    if form is None or instance.k == 0:
        return None
    k = min(instance.k, form.p)
    state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), form.p, p=[0.7, 0.15, 0.15])
    inside = np.flatnonzero(state == IN)
    state[inside[k:]] = FREE
    return NodeCase(
        seed=seed, instance=instance, form=form, k=k, state=state,
        values=node_values(instance, form, state, k),
    )  # fmt: skip


def node_values(instance, form, state, k):
    """{support: loss / y'y} over the largest supports of a node; smaller ones are no better."""
    inside, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    size = min(k - len(inside), len(free))
    supports = [tuple(sorted((*inside, *more))) for more in combinations(free, size)]
    return {S: instance.loss(form.features[list(S)]) / form.problem.yy for S in supports}


def proven_split(rng, A: np.ndarray) -> np.ndarray:
    """A random t >= 0 with A - diag(t) proven positive semidefinite, the zero vector if need be."""
    t = rng.random(len(A)) ** rng.integers(0, 4) * rng.random() + 1e-9
    while not is_positive_semidefinite(A, t):
        t = 0.5 * t
        if t.max() < 1e-18:
            return np.zeros(len(A))
    return t
