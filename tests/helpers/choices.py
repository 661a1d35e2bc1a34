"""Tiny problems with structure, and their optimum by trying every choice and every active set."""

from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.optimize import LinearConstraint

from bestk import Problem, rules
from bestk.structure.compose import structure_of

KINDS = (
    "plain", "plain", "copies", "zero column", "constant column", "units", "dependent", "perfect",
    "no variation",
)  # fmt: skip


@dataclass(kw_only=True)
class Instance:
    """Data and options of :func:`bestk.solve`."""

    kind: str
    X: np.ndarray
    y: np.ndarray
    k: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def structure(self):
        chosen = {name: self.options.get(name) for name in ("groups", "rules", "constraints")}
        return structure_of(self.X.shape[1], None, **chosen)

    def problem(self) -> Problem:
        wanted = ("alpha", "bounds", "sample_weight", "fit_intercept")
        options = {name: self.options[name] for name in wanted if name in self.options}
        return Problem.from_data(self.X, self.y, **options)


def make(seed: int) -> Instance:
    """What a seed says: data of all awkward kinds, groups, rules, constraints, bounds, sides."""
    rng = np.random.default_rng([seed, 2020])
    kind = KINDS[rng.integers(len(KINDS))]
    n, p = int(rng.integers(2, 15)), int(rng.integers(1, 7))
    X = rng.normal(size=(n, p))
    if kind == "copies":
        X[:, 0] = -2.0 * X[:, -1]
    elif kind == "zero column":
        X[:, 0] = 0.0
    elif kind == "constant column":
        X[:, 0] = 1.0
    elif kind == "units":
        X *= 10.0 ** rng.integers(-6, 7)
    elif kind == "dependent" and p > 2:
        X[:, 2] = X[:, 0] + X[:, 1]
    b = rng.normal(size=p) * (rng.random(p) < 0.6)
    y = X @ b
    if kind != "perfect":
        y = y + 0.3 * rng.normal(size=n) * max(np.abs(y).max(), np.abs(X).max() * 0.1)
    if kind == "no variation":
        y[:] = 0.0
    options: dict[str, Any] = {"alpha": float(rng.choice([0.0, 0.0, 1.0, 0.01]))}
    if rng.random() < 0.5:
        options["groups"] = [int(g) for g in rng.integers(0, max(2, p - 1), p)]
    options["rules"] = _rules(rng, p)
    if rng.random() < 0.6:
        options["constraints"] = _constraints(rng, p, 1.0 / (np.abs(X).max() or 1.0))
    if rng.random() < 0.25:
        reach = np.abs(b).max() + 0.1
        options["bounds"] = (0.0, np.inf) if rng.random() < 0.5 else (-0.6 * reach, 0.7 * reach)
    for side, share in (("free", 0.2), ("include", 0.15), ("exclude", 0.15)):
        if rng.random() < share:
            options[side] = [int(rng.integers(p))]
    if rng.random() < 0.2:
        options["sample_weight"] = rng.random(n) + 0.1
    options["fit_intercept"] = bool(rng.random() < 0.3)
    return Instance(kind=kind, X=X, y=y, k=int(rng.integers(0, p + 2)), options=options)


def _rules(rng, p: int) -> list[rules.Rule]:
    found = []
    for _ in range(rng.integers(0, 3)):
        some = rng.choice(p, size=min(p, int(rng.integers(1, 4))), replace=False).tolist()
        kind = rng.integers(4)
        if kind == 0:
            found.append(rules.at_most(int(rng.integers(0, 3)), some))
        elif kind == 1:
            found.append(rules.at_least(1, some))
        elif kind == 2 and len(some) > 1:
            found.append(rules.implies(some[0], some[1:], any=bool(rng.random() < 0.5)))
    return found


def _constraints(rng, p: int, unit: float) -> list[LinearConstraint]:
    found = []
    for _ in range(rng.integers(1, 3)):
        row = np.round(rng.normal(size=p), 1) * (rng.random(p) < 0.6)
        row[rng.integers(p)] = 1.0
        end = round(float(rng.normal()), 1) * unit if rng.random() < 0.5 else 0.0
        lower, upper = [(end, end), (-np.inf, end), (end, end + unit)][rng.integers(3)]
        found.append(LinearConstraint(row, lower, upper))
    if len(found) > 1 and np.array_equal(found[0].A, found[1].A):
        return found[:1]  # which may contradict each other, an error of its own
    return found


def sides(instance: Instance) -> tuple[set, set, set]:
    """(included, excluded, free) groups."""
    groups = instance.structure.groups
    named = [instance.options.get(side, []) for side in ("include", "exclude", "free")]
    included, excluded, free = ({int(groups[j]) for j in one} for one in named)
    return included - free, excluded, free


def admissible(instance: Instance) -> list[np.ndarray]:
    """All choices of groups that satisfy everything but constraints."""
    structure = instance.structure
    included, excluded, free = sides(instance)
    found = []
    for size in range(structure.n_groups + 1):
        for one in combinations(range(structure.n_groups), size):
            chosen = set(one)
            fits = len(chosen - free) <= instance.k and not chosen & excluded
            if fits and included | free <= chosen and not structure.broken(np.array(one, int)):
                found.append(np.array(one, dtype=int))
    return found


def optimum(instance: Instance) -> float:
    """The least objective of all; infinite where nothing is admissible."""
    return min((value(instance, chosen) for chosen in admissible(instance)), default=np.inf)


def value(instance: Instance, chosen: np.ndarray) -> float:
    """The objective of a choice of groups."""
    structure, problem, options = instance.structure, instance.problem(), instance.options
    support = structure.features_of(chosen)
    weight = np.sqrt(options.get("sample_weight", np.ones(len(instance.y))))
    X, y = instance.X, instance.y
    if options["fit_intercept"]:
        share = weight**2 / np.sum(weight**2)
        origin = np.abs(X).max(axis=0)
        X, y = X - share @ X, y - share @ y
        X[:, np.abs(X).max(axis=0) <= 1e-13 * origin] = 0.0  # constants, up to rounding
    M = np.vstack(
        [X[:, support] * weight[:, None], np.sqrt(options["alpha"]) * np.eye(len(support))]
    )
    z = np.append(y * weight, np.zeros(len(support)))
    C = np.vstack([structure.matrix[:, support], np.eye(len(support))])
    lower = np.append(structure.lower, problem.lower[support])
    upper = np.append(structure.upper, problem.upper[support])
    ends = np.isfinite(lower) | np.isfinite(upper)
    return constrained_minimum(M, z, C[ends], lower[ends], upper[ends])


def constrained_minimum(M, z, C, lower, upper) -> float:
    """min ||z - M b||^2 over lower <= C b <= upper: every set of active rows is tried."""
    lengths, size = np.linalg.norm(M, axis=0), float(np.linalg.norm(z)) or 1.0
    lengths[lengths == 0.0] = 1.0
    M, C, z = M / lengths, C / lengths * size, z / size
    rows = np.linalg.norm(C, axis=1)
    rows[rows == 0.0] = 1.0
    C, lower, upper = C / rows[:, None], lower / rows, upper / rows
    ends = [
        [low] if low == high else [None, *(end for end in (low, high) if np.isfinite(end))]
        for low, high in zip(lower, upper, strict=True)
    ]
    best = np.inf
    for active in product(*ends):
        held = [i for i, end in enumerate(active) if end is not None]
        point = _fit_with(M, z, C[held], np.array([active[i] for i in held], dtype=float))
        if point is None:
            continue
        at, near = C @ point, 1e-8 * (1.0 + np.linalg.norm(point))
        if ((at >= lower - near) & (at <= upper + near)).all():
            best = min(best, float(np.sum((z - M @ point) ** 2)))
    return best * size**2


def _fit_with(M, z, rows, values):
    """The best b with rows b = values; None if there is none."""
    start, N = np.zeros(M.shape[1]), np.eye(M.shape[1])
    if M.shape[1] == 0:
        return start if (values == 0.0).all() else None
    if len(rows):
        start = np.linalg.lstsq(rows, values, rcond=1e-12)[0]
        if np.abs(rows @ start - values).max() > 1e-9 * (1.0 + np.abs(values).max()):
            return None
        _, s, Vt = np.linalg.svd(rows)
        N = Vt[int((s > 1e-12 * s.max(initial=1e-300)).sum()) :].T
    if N.shape[1] == 0 or np.abs(M @ N).max(initial=0.0) <= 1e-12:
        return start
    return start + N @ np.linalg.lstsq(M @ N, z - M @ start, rcond=1e-13)[0]


def is_beyond_the_verifier(instance: Instance) -> bool:
    """Is a refusal to be expected? Without a penalty and with constraints, in two cases.

    What changes no fitted value, columns of zeros and differences of copies, takes part in several
    constraints at once: whether it can satisfy all of these takes a linear program, which the
    verifier does not solve. Or features depend on each other up to rounding: as they are, in
    rational numbers, huge coefficients fit the rounding.
    """
    if instance.options["alpha"] > 0.0 or not instance.options.get("constraints"):
        return False
    X = instance.X - instance.X.mean(axis=0) if instance.options["fit_intercept"] else instance.X
    _, sizes, directions = np.linalg.svd(X)
    rank = int((sizes > 1e-12 * sizes.max(initial=0.0)).sum())
    moved = instance.structure.matrix @ directions[rank:].T
    rows = (np.abs(moved) > 1e-9).any(axis=1)
    is_dependent = instance.kind == "dependent" or instance.X.shape[0] < instance.X.shape[1]
    return int(rows.sum()) > 1 or is_dependent
