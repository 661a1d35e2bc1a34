"""Tiny problems with structure, their optimum by brute force, and random proofs of it.

Plain NumPy, without rounding analysis, propagation or anything else of the verifier.
"""

from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from bestk.base.fingerprint import fingerprint, rows_digest
from bestk.base.structure import Row, Structure
from bestk.results.certificate import Certificate, ChoiceProof, SplitRecord
from bestk.verification.verify import verify
from helpers.prover import EMPTY, tree_of

FREE, IN, OUT = 0, 1, 2


@dataclass(kw_only=True)
class Asked:
    """Data and a question with structure."""

    X: np.ndarray
    y: np.ndarray
    k: int
    structure: Structure
    lower: np.ndarray
    upper: np.ndarray
    weight: np.ndarray | None = None
    alpha: float = 0.0
    centre: bool = False
    include: np.ndarray = field(default_factory=lambda: EMPTY)
    exclude: np.ndarray = field(default_factory=lambda: EMPTY)
    free: np.ndarray = field(default_factory=lambda: EMPTY)

    def root(self) -> np.ndarray:
        state = np.full(self.structure.n_groups, FREE)
        state[self.structure.groups[self.include]] = IN
        state[self.structure.groups[self.free]] = IN
        state[self.structure.groups[self.exclude]] = OUT
        return state

    def counted(self) -> np.ndarray:
        counted = np.ones(self.structure.n_groups, dtype=bool)
        counted[self.structure.groups[self.free]] = False
        return counted

    def choices(self, state=None) -> list[tuple[int, ...]]:
        """All that are allowed, by trying every set of groups."""
        state, found = self.root() if state is None else state, []
        sides = [(True,) if s == IN else (False,) if s == OUT else (True, False) for s in state]
        for pattern in product(*sides):
            Z = np.flatnonzero(pattern)
            if self.counted()[Z].sum() <= self.k and not self.structure.broken(Z):
                found.append(tuple(Z.tolist()))
        return found

    def centred(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """(M, z, mean of x, mean of y), weighted."""
        X, y = self.X.astype(float), self.y.astype(float)
        w = np.ones(len(y)) if self.weight is None else self.weight
        x0, y0 = np.zeros(X.shape[1]), 0.0
        if self.centre:
            x0, y0 = w @ X / w.sum(), float(w @ y / w.sum())
        root = np.sqrt(w)
        return (X - x0) * root[:, None], (y - y0) * root, x0, y0

    def fit(self, Z) -> np.ndarray | None:
        """The best coefficients on a choice, None where none is feasible: every active set."""
        M, z, _, _ = self.centred()
        p, S = M.shape[1], self.structure.features_of(np.array(Z, dtype=int))
        S = S[self.lower[S] < self.upper[S]]
        M = np.vstack([M[:, S], np.sqrt(self.alpha) * np.eye(len(S))])
        z = np.concatenate([z, np.zeros(len(S))])
        size = np.linalg.norm(M, axis=0)
        size[size < 1e-13 * np.abs(self.X[:, S]).max(axis=0, initial=0.0)] = 0.0
        M = np.where(size > 0, M, 0.0)
        size[size == 0] = 1.0
        M = M / size
        C = np.vstack([self.structure.matrix[:, S] / size, np.eye(len(S))])
        low = np.concatenate([self.structure.lower, self.lower[S] * size])
        high = np.concatenate([self.structure.upper, self.upper[S] * size])
        unit = np.abs(C).max(axis=1, initial=0.0)
        unit[unit == 0] = 1.0
        root = float(np.sqrt(z @ z)) or 1.0  # coefficients of usual size are about one
        C, low, high, z = C / unit[:, None], low / unit / root, high / unit / root, z / root
        best, least = None, np.inf
        options = [_options(a, b) for a, b in zip(low, high, strict=True)]
        for pattern in product(*options):
            active = np.array([side is not None for side in pattern], dtype=bool)
            d = np.array([0.0 if side is None else side for side in pattern])
            b = _on_face(M, z, C[active], d[active])
            if b is None:
                continue
            value, room = C @ b, 1e-11 * (1.0 + np.abs(C) @ np.abs(b))
            if (value < low - room).any() or (value > high + room).any():
                continue
            loss = float(np.sum((z - M @ b) ** 2))
            if loss < least:
                best, least = b, loss
        if best is None:
            return None
        best[np.abs(best) < 1e-13 * np.abs(best).max(initial=0.0)] = 0.0
        coef = np.zeros(p)
        coef[S] = np.clip(best * root / size, self.lower[S], self.upper[S])
        return coef

    def intercept(self, coef) -> float:
        _, _, x0, y0 = self.centred()
        return y0 - float(x0 @ coef) if self.centre else 0.0

    def objective(self, coef) -> float:
        w = np.ones(len(self.y)) if self.weight is None else self.weight
        r = (
            self.y.astype(np.longdouble)
            - self.intercept(coef)
            - self.X.astype(np.longdouble) @ coef
        )
        return float((w * r * r).sum() + self.alpha * (coef @ coef))

    def fits(self) -> list[tuple[float, tuple[int, ...], np.ndarray]]:
        """(objective, choice, coefficients), the best first."""
        found = [(Z, self.fit(Z)) for Z in self.choices()]
        valued = [(self.objective(b), Z, b) for Z, b in found if b is not None]
        return sorted(valued, key=lambda item: item[0])

    @property
    def yy(self) -> float:
        z = self.centred()[1]
        return float(z @ z)

    def is_admissible(self, Z, coef) -> bool:
        s, Z = self.structure, np.array(Z, dtype=int)
        value, size = s.matrix @ coef, np.abs(s.matrix) @ np.abs(coef)
        outside = np.setdiff1d(np.flatnonzero(coef), s.features_of(Z))
        return (
            tuple(sorted(Z.tolist())) in self.choices()
            and len(outside) == 0
            and bool((value >= s.lower - 1e-6 * (1 + size)).all())
            and bool((value <= s.upper + 1e-6 * (1 + size)).all())
        )


def _options(low, high):
    if low == high:
        return [low]
    return [None, *(side for side in (low, high) if np.isfinite(side))]


def _on_face(M, z, C, d):
    """argmin |z - M b| over C b = d; None where there is no such b."""
    if len(C) == 0:
        return np.linalg.lstsq(M, z, rcond=1e-13)[0] if M.shape[1] else np.zeros(0)
    if M.shape[1] == 0:
        return np.zeros(0) if not np.any(d) else None
    start = np.linalg.lstsq(C, d, rcond=1e-12)[0]
    if not np.allclose(C @ start, d, rtol=1e-9, atol=1e-11 * (1.0 + np.abs(d).max())):
        return None
    _, s, V = np.linalg.svd(C)
    N = V[int((s > 1e-12 * s[0]).sum()) :].T
    if N.shape[1] == 0:
        return start
    return start + N @ np.linalg.lstsq(M @ N, z - M @ start, rcond=1e-13)[0]


# Random questions ---------------------------------------------------------------------------------


def structure_of(groups, rows=(), matrix=None, lower=(), upper=()) -> Structure:
    p = len(groups)
    _, first, numbered = np.unique(groups, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    groups = order[numbered.ravel()].astype(np.int64)
    m = int(groups.max()) + 1
    return Structure(
        groups=groups, group_names=tuple(f"g{i}" for i in range(m)),
        rows=tuple(Row(np.array(a, dtype=np.int64), np.array(b, dtype=np.int64), c, i)
                   for i, (a, b, c) in enumerate(rows)),
        words=tuple(f"rule {i}" for i in range(len(rows))),
        matrix=np.zeros((0, p)) if matrix is None else np.array(matrix, dtype=float).reshape(-1, p),
        lower=np.array(lower, dtype=float), upper=np.array(upper, dtype=float),
        constraint_words=tuple(f"constraint {i}" for i in range(len(lower))),
    )  # fmt: skip


KINDS = (
    "plain",
    "wide",
    "zero_column",
    "duplicate",
    "tiny_units",
    "huge_units",
    "constant",
    "exact",
)


def make_asked(seed: int, *, constraints: bool | None = None, kind: str | None = None) -> Asked:
    """A random question; the seed decides everything."""
    rng = np.random.default_rng(seed)
    kind = kind or KINDS[seed % len(KINDS)]
    p = int(rng.integers(2, 9))
    n = int(rng.integers(2, max(p, 3))) if kind == "wide" else int(rng.integers(p + 2, 22))
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    y = X @ (rng.standard_normal(p) * (rng.random(p) < 0.6)) + 0.5 * rng.standard_normal(n)
    a, b = rng.permutation(p)[:2]
    if kind == "zero_column":
        X[:, a] = 0.0
    elif kind == "constant":
        X[:, a] = 3.0
    elif kind == "duplicate":
        X[:, a] = -2.0 * X[:, b]
    elif kind == "exact":
        y = X @ (rng.standard_normal(p) * (rng.random(p) < 0.4))
    units = np.ones(p)
    if kind == "tiny_units":
        units, y = 10.0 ** rng.integers(-9, 1, p), y * 1e-6
    elif kind == "huge_units":
        units, y = 10.0 ** rng.integers(0, 9, p), y * 1e5
    X = X * units
    groups = np.arange(p) if rng.random() < 0.3 else rng.integers(0, max(2, 2 * p // 3), p)
    plain = structure_of(groups)
    m = plain.n_groups
    rows = [_rule(rng, m) for _ in range(int(rng.integers(0, 4)))] if m > 1 else []
    matrix, lower, upper = _constraints(rng, p, units, y, constraints)
    asked = Asked(
        X=X, y=y, k=int(rng.integers(0, m + 1)),
        structure=structure_of(groups, rows, matrix, lower, upper),
        lower=np.full(p, -np.inf), upper=np.full(p, np.inf),
        weight=rng.random(n) + 0.1 if rng.random() < 0.3 else None,
        alpha=0.0 if rng.random() < 0.4 else float(0.1 * rng.random() * (X**2).sum(axis=0).mean()),
        centre=bool(rng.random() < 0.4),
    )  # fmt: skip
    kinds = rng.choice(["", "include", "exclude", "free"], m, p=[0.7, 0.1, 0.1, 0.1])
    for name in ("include", "exclude", "free"):
        setattr(asked, name, asked.structure.features_of(np.flatnonzero(kinds == name)))
    asked.k = max(asked.k, int((kinds == "include").sum()))
    for j in rng.permutation(p)[: int(rng.integers(0, 3)) if rng.random() < 0.4 else 0]:
        size = 0.3 * np.abs(y).max() / units[j]
        asked.lower[j], asked.upper[j] = [(0.0, np.inf), (-size, size), (0.0, size)][
            rng.integers(3)
        ]
    return asked


def _rule(rng, m):
    a, *others = rng.permutation(m).tolist()
    return [
        ([a], others[:1], 0),  # a needs another one
        ([a, others[0]], [], 1),  # not both
        ([], others[:2], -1),  # one of them
        (rng.permutation(m)[: max(2, m // 2)].tolist(), [], int(rng.integers(0, 3))),
        ([a], others[:2], 0),
    ][int(rng.integers(5))]


def _constraints(rng, p, units, y, wanted):
    count = int(rng.integers(1, 3)) if wanted else int(rng.integers(0, 3)) if wanted is None else 0
    size, rows, lower, upper = float(np.abs(y).mean()), [], [], []
    for _ in range(count):
        row = rng.choice([0.0, 1.0, -1.0, 2.0], p) * units
        a = float(rng.choice([0.0, 0.5, 0.1]) * size)
        low, high = [(0.0, 0.0), (a, a), (-np.inf, a), (a, np.inf), (-a, a)][int(rng.integers(5))]
        rows.append(row)
        lower.append(low)
        upper.append(high)
    return np.array(rows).reshape(-1, p), lower, upper


# Proofs -------------------------------------------------------------------------------------------


class Form:
    """The standard form in coordinates, plainly computed; blocks are random triangles."""

    def __init__(self, rng, asked: Asked, *, blocks: bool = True) -> None:
        self.asked, s = asked, asked.structure
        M, z, _, _ = asked.centred()
        size = np.abs(asked.X).max(axis=0)
        useful = (np.linalg.norm(M, axis=0) > 1e-12 * size) & (asked.lower < asked.upper)
        useful[asked.exclude] = False
        self.live = np.flatnonzero(useful)
        self.owner = s.groups[self.live]
        M = M[:, self.live]
        scale = np.sqrt((M**2).sum(axis=0) + asked.alpha)
        self.to_form = scale / np.sqrt(z @ z)
        A = (M.T @ M + asked.alpha * np.eye(len(scale))) / np.outer(scale, scale)
        c = M.T @ z / scale / np.sqrt(z @ z)
        self.lo, self.hi = (
            asked.lower[self.live] * self.to_form,
            asked.upper[self.live] * self.to_form,
        )
        W, self.bases = np.eye(len(c)), []
        for g in range(s.n_groups):
            own = np.flatnonzero(self.owner == g)
            if len(own) < 2 or np.isfinite([self.lo[own], self.hi[own]]).any() or not blocks:
                continue
            T = np.triu(0.5 * rng.standard_normal((len(own), len(own))), 1)
            T += np.diag(0.5 + rng.random(len(own)))
            W[np.ix_(own, own)] = T
            self.bases.append((self.live[own], T))
        self.A, self.c = W.T @ A @ W, W.T @ c
        self.C = (s.matrix[:, self.live] / self.to_form) @ W
        self.idle = np.setdiff1d(np.flatnonzero(asked.lower < asked.upper), self.live)
        self.idle = np.setdiff1d(self.idle, asked.exclude)

    def charges(self, rng) -> np.ndarray:
        if len(self.c) == 0:
            return np.zeros(0)
        t = rng.random(len(self.c)) + 0.05
        low, high = 0.0, 2.0
        for _ in range(40):
            share = 0.5 * (low + high)
            fine = np.linalg.eigvalsh(self.A - share * np.diag(t))[0] > 1e-12
            low, high = (share, high) if fine else (low, share)
        return 0.9 * low * t

    def dual(self, rng, state) -> np.ndarray:
        on = state[self.owner] != OUT
        g = np.zeros(len(self.c))
        if on.any():
            A = self.A[np.ix_(on, on)] + 1e-6 * np.eye(int(on.sum()))
            g[on] = np.linalg.solve(A, self.c[on]) * (1.0 if rng.random() < 0.7 else rng.random())
        return g

    def multipliers(self, rng) -> np.ndarray:
        """Random, of a sign that has a side, zero where idle features would make them useless."""
        s = self.asked.structure
        unit = np.maximum(np.abs(self.C).max(axis=1, initial=0.0), 1e-300)
        lam = 0.3 * rng.standard_normal(len(s.matrix)) / unit
        lam[(lam > 0) & np.isinf(s.upper) | (lam < 0) & np.isinf(s.lower)] = 0.0
        lam[(s.matrix[:, self.idle] != 0).any(axis=1)] = 0.0
        return np.where(rng.random(len(lam)) < 0.3, 0.0, lam)

    def gains(self, t, g, lam) -> tuple[float, np.ndarray]:
        """(what is left without any group, Phi of every group)"""
        s = self.asked.structure
        Q = self.A - np.diag(t)
        u = self.c - 0.5 * lam @ self.C - Q @ g
        sides = np.where(lam > 0, s.upper, s.lower)
        base = 1.0 - float(g @ Q @ g) - float((lam * np.where(lam == 0, 0.0, sides)).sum())
        reach = np.where(u > 0, self.hi, -self.lo)
        with np.errstate(all="ignore"):
            v = np.minimum(np.abs(u) / np.maximum(t, 1e-300), reach)
            phi = np.where(u == 0, 0.0, 2 * np.abs(u) * v - t * v * v)
        return base, np.bincount(self.owner, phi, minlength=s.n_groups)


class ChoiceProver:
    """A tiny branch and bound with random splits, duals, multipliers, branchings and fixings."""

    def __init__(self, rng, asked: Asked, value: float, *, leaf_size: int = 3, blocks=True) -> None:
        self.rng, self.asked, self.value, self.leaf_size = rng, asked, value, leaf_size
        self.form = Form(rng, asked, blocks=blocks)
        self.t = [self.form.charges(rng) for _ in range(2)]
        self.rows: list[dict] = []
        self.node(-1, -1, False, asked.root())

    def node(self, parent, group, inside, state) -> None:
        asked, rng, me = self.asked, self.rng, len(self.rows)
        row = {"parent": parent, "feature": group, "inside": inside, "split": -1,
               "enumerated": False, "g": np.zeros(0), "at": EMPTY, "in": [], "out": [],
               "broken": self.broken(state),
               "lam": np.zeros(len(asked.structure.matrix))}  # fmt: skip
        self.rows.append(row)
        if row["broken"] != -1:
            return
        state = state.copy()
        if rng.random() < 0.8 and len(self.form.c):
            self.bound(row, state)
            if row["closed"]:
                return
        free = np.flatnonzero(state == FREE)
        if len(free) <= self.leaf_size or rng.random() < 0.1:
            if rng.random() < 0.2:
                self.node(me, -1, False, state)
            else:
                row["enumerated"] = True
            return
        g = int(rng.choice(free))
        for side in rng.permutation([True, False]).tolist():
            child = state.copy()
            child[g] = IN if side else OUT
            self.node(me, g, side, child)

    def broken(self, state) -> int:
        """A row that all choices of the cell break, by counting; -2: the count, -1: none."""
        if (self.asked.counted() & (state == IN)).sum() > self.asked.k:
            return -2
        for i, rule in enumerate(self.asked.structure.rows):
            if (state[rule.plus] == IN).sum() - (state[rule.minus] != OUT).sum() > rule.limit:
                return i
        return -1

    def bound(self, row, state) -> None:
        form, rng = self.form, self.rng
        number = int(rng.integers(2))
        g, lam = form.dual(rng, state).astype(np.float32).astype(float), form.multipliers(rng)
        at = np.flatnonzero(g)
        row.update(split=number, g=g[at].astype(np.float32), at=form.live[at], lam=lam)
        base, phi = form.gains(self.t[number], g, lam)
        enough = self.value + 1e-9 * (1.0 + abs(base) + phi.sum())
        row["closed"] = base - self.most(phi, state) >= enough
        for G in np.flatnonzero(state == FREE) if not row["closed"] else ():
            for side, name in ((IN, "out"), (OUT, "in")):
                forced = state.copy()
                forced[G] = side
                if base - self.most(phi, forced) >= enough:
                    row[name].append(int(G))
                    break
        state[row["out"]], state[row["in"]] = OUT, IN

    def most(self, phi, state) -> float:
        """The largest total of a cell, -inf where more than k groups are in."""
        r = self.asked.k - int((self.asked.counted() & (state == IN)).sum())
        if r < 0:
            return -np.inf
        free = np.sort(phi[state == FREE])[::-1]
        return float(phi[state == IN].sum() + free[:r].sum())

    def splits(self) -> tuple[SplitRecord, ...]:
        return tuple(SplitRecord(self.form.live.copy(), t) for t in self.t)

    def proof(self, chosen) -> ChoiceProof:
        return choice_proof(chosen, [row["broken"] for row in self.rows],
                            [row["lam"] for row in self.rows], self.form.bases)  # fmt: skip


def choice_proof(chosen, broken, multipliers, bases=()) -> ChoiceProof:
    return ChoiceProof(
        chosen=np.array(chosen, dtype=np.int64),
        broken=np.array(broken, dtype=np.int64),
        multipliers=np.array(multipliers, dtype=float).reshape(len(broken), -1),
        block_ends=np.cumsum([len(f) for f, _ in bases]).astype(np.int64),
        block_features=np.concatenate([EMPTY, *(f for f, _ in bases)]).astype(np.int64),
        blocks=np.concatenate([np.zeros(0), *(np.ravel(T) for _, T in bases)]),
    )


def certificate_of(asked: Asked, coef, tree, choices, splits=(), lower_bound=None) -> Certificate:
    objective = asked.objective(coef)
    certificate = Certificate(
        fingerprint="", k=asked.k, alpha=asked.alpha, fit_intercept=asked.centre,
        include=asked.include, exclude=asked.exclude, free=asked.free, lower=asked.lower,
        upper=asked.upper, structure=asked.structure, coef=coef, intercept=asked.intercept(coef),
        objective=objective, lower_bound=objective if lower_bound is None else lower_bound,
        copies=np.zeros((0, 2), dtype=np.int64), splits=tuple(splits), tree=tree, choices=choices,
    )  # fmt: skip
    return sealed(asked, certificate)


def sealed(asked: Asked, certificate: Certificate) -> Certificate:
    digest = rows_digest(asked.X, asked.y, asked.weight)
    return replace(certificate, fingerprint=fingerprint(digest, certificate))


def enumerated(asked: Asked, Z, coef, **claims) -> Certificate:
    """A claim whose proof is the root alone, every choice tried."""
    row = {"parent": -1, "feature": -1, "inside": False, "split": -1, "enumerated": True,
           "g": np.zeros(0), "at": EMPTY, "in": [], "out": []}  # fmt: skip
    choices = choice_proof(Z, [-1], [np.zeros(len(asked.structure.matrix))])
    return certificate_of(asked, coef, tree_of([row]), choices, **claims)


def bounded(asked: Asked, Z, coef, rng, *, lower_bound: float = 0.0, blocks=True):
    """(a claim by one dual vector at the root, what it proves without rounding, a share of y'y)"""
    form = Form(rng, asked, blocks=blocks)
    t, g, lam = form.charges(rng), form.dual(rng, asked.root()), form.multipliers(rng)
    at = np.flatnonzero(g)
    row = {"parent": -1, "feature": -1, "inside": False, "split": 0, "enumerated": False,
           "g": g[at].astype(np.float32), "at": form.live[at], "in": [], "out": []}  # fmt: skip
    g[at] = g[at].astype(np.float32)
    base, phi = form.gains(t, g, lam)
    room = asked.k - int((asked.counted() & (asked.root() == IN)).sum())
    free = np.sort(phi[asked.root() == FREE])[::-1]
    value = base - phi[asked.root() == IN].sum() - free[:room].sum()
    choices = choice_proof(Z, [-1], [lam], form.bases)
    splits = (SplitRecord(form.live.copy(), t),)
    claim = certificate_of(asked, coef, tree_of([row]), choices, splits, lower_bound)
    return claim, float(value)


def certify(asked: Asked, seed: int, **options) -> Certificate:
    """A certificate of the optimum with a random proof."""
    objective, Z, coef = asked.fits()[0]
    prover = ChoiceProver(np.random.default_rng(seed), asked, objective / asked.yy, **options)
    tree = tree_of(prover.rows)
    return certificate_of(asked, coef, tree, prover.proof(Z), prover.splits())


def checked(asked: Asked, certificate: Certificate, **options):
    return verify(certificate, asked.X, asked.y, asked.weight, n_threads=1, **options)
