"""Random proofs of tiny problems, in shapes that no search produces."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np

from bestk.base.fingerprint import fingerprint, rows_digest
from bestk.results.certificate import Certificate, ProofTree, SplitRecord
from bestk.verification.verify import verify
from helpers.instances import Instance, bounded_fit, make

EMPTY = np.zeros(0, dtype=np.int64)
FREE, IN, OUT = 0, 1, 2
# Where the data are so nearly dependent that even brute force knows few digits of the optimum.
HARD = ("near_collinear", "monomials")


class Form:
    """The standard form of an instance, plainly computed."""

    def __init__(self, instance: Instance) -> None:
        X, y, options = instance.X.astype(float), instance.y.astype(float), instance.options
        p = X.shape[1]
        self.weight = options.get("sample_weight")
        self.centre = options.get("fit_intercept", False)
        self.alpha = options.get("alpha", 0.0)
        w = np.ones(len(y)) if self.weight is None else self.weight
        self.x_mean, self.y_mean = np.zeros(p), 0.0
        if self.centre:
            self.x_mean, self.y_mean = w @ X / w.sum(), float(w @ y / w.sum())
        self.M = (X - self.x_mean) * np.sqrt(w)[:, None]
        self.rhs = (y - self.y_mean) * np.sqrt(w)
        self.yy = float(self.rhs @ self.rhs)
        self.include = np.array(options.get("include", []), dtype=np.int64)
        self.exclude = np.array(options.get("exclude", []), dtype=np.int64)
        lower, upper = options.get("bounds", (-np.inf, np.inf))
        self.lower, self.upper = np.full(p, float(lower)), np.full(p, float(upper))
        useful = (self.M != 0).any(axis=0)
        if self.centre:
            used = X[w > 0]
            useful &= used.min(axis=0) < used.max(axis=0)
        useful[self.exclude] = False
        self.live = np.flatnonzero(useful)
        s = np.sqrt((self.M**2).sum(axis=0) + self.alpha)[self.live]
        root = math.sqrt(self.yy) or 1.0
        G = self.M.T @ self.M + self.alpha * np.eye(p)
        self.A = G[np.ix_(self.live, self.live)] / np.outer(s, s)
        self.c = (self.M.T @ self.rhs)[self.live] / s / root
        self.lo, self.hi = self.lower[self.live] * s / root, self.upper[self.live] * s / root
        self.k = min(instance.k - int(np.isin(self.include, self.live, invert=True).sum()),
                     len(self.live))  # fmt: skip

    def fit(self, support) -> tuple[np.ndarray, float]:
        """(coefficients of all features, intercept) fitted on one support."""
        support = list(support)
        M = np.vstack([self.M[:, support], math.sqrt(self.alpha) * np.eye(len(support))])
        rhs = np.concatenate([self.rhs, np.zeros(len(support))])
        norm = np.sqrt((M**2).sum(axis=0))
        norm[norm == 0] = 1.0
        lo, hi = self.lower[support] * norm, self.upper[support] * norm
        if not support:
            b = np.zeros(0)
        elif np.isfinite(lo).any() or np.isfinite(hi).any():
            b = bounded_fit(M / norm, rhs, lo, hi)
        else:
            b = np.linalg.lstsq(M / norm, rhs, rcond=1e-14)[0]
        coef = np.zeros(len(self.x_mean))
        coef[support] = np.clip(b / norm, self.lower[support], self.upper[support])
        return coef, self.y_mean - float(self.x_mean @ coef) if self.centre else 0.0

    def objective(self, instance: Instance, coef, intercept) -> float:
        w = np.ones(len(self.rhs)) if self.weight is None else self.weight
        r = instance.y.astype(np.longdouble) - intercept - instance.X.astype(np.longdouble) @ coef
        return float((w * r * r).sum() + self.alpha * (coef @ coef))

    def best(self, instance: Instance) -> tuple[np.ndarray, float, float]:
        """(coefficients, intercept, objective) of the best support, by brute force."""
        inside = self.include[np.isin(self.include, self.live)].tolist()
        others = [j for j in self.live.tolist() if j not in inside]
        size = min(self.k - len(inside), len(others))
        fits = (self.fit([*inside, *more]) for more in combinations(others, max(size, 0)))
        valued = [(*fit, self.objective(instance, *fit)) for fit in fits]
        return min(valued, key=lambda item: item[2])


class Prover:
    """A tiny branch and bound with random splits, duals, branchings: shapes no search produces."""

    def __init__(self, rng, form: Form, value: float, *, blocks: bool, leaf_size: int = 3) -> None:
        self.rng, self.form, self.value, self.leaf_size = rng, form, value, leaf_size
        self.splits = [self.split(blocks and i == 0) for i in range(2)]
        self.rows: list[dict] = []
        state = np.full(len(form.c), FREE)
        state[np.isin(form.live, form.include)] = IN
        self.node(-1, -1, False, state)

    def split(self, blocks: bool) -> SplitRecord:
        form, p = self.form, len(self.form.c)
        t = self.rng.random(p) ** self.rng.integers(0, 3) + 1e-3
        clusters = []
        if blocks and p > 2:
            order = self.rng.permutation(p)
            clusters = [order[:2], order[2:4]] if p > 4 else [order[:2]]
            t[np.concatenate(clusters)] = 0.0
        T = np.diag(t)
        for cluster in clusters:
            T[np.ix_(cluster, cluster)] = form.A[np.ix_(cluster, cluster)]
        low, high = 0.0, 1.0
        for _ in range(40):
            share = 0.5 * (low + high)
            fine = p == 0 or np.linalg.eigvalsh(form.A - share * T)[0] > 1e-12
            low, high = (share, high) if fine else (low, share)
        if clusters and low < 1e-6:  # nothing to charge: blocks would be singular
            return self.split(False)
        matrices = tuple(low * T[np.ix_(c, c)] for c in clusters)
        return SplitRecord(form.live.copy(), low * t, tuple(clusters), matrices)

    def T(self, split: SplitRecord) -> np.ndarray:
        T = np.diag(split.t)
        for cluster, matrix in zip(split.clusters, split.matrices, strict=True):
            T[np.ix_(cluster, cluster)] = matrix
        return T

    def totals(self, split, g, state) -> tuple[float, dict]:
        """(1 - g'Qg, {support: its sum in theory: bound, cluster-bound}) by brute force."""
        form, T = self.form, self.T(split)
        Q = form.A - T
        u = form.c - Q @ g
        inside = np.flatnonzero(state == IN).tolist()
        free = np.flatnonzero(state == FREE).tolist()
        r = form.k - len(inside)
        totals = {}
        for size in range(min(max(r, -1), len(free)) + 1):
            for more in combinations(free, size):
                S = tuple(sorted([*inside, *more]))
                totals[S] = self.total(split, T, u, S)
        return 1.0 - float(g @ Q @ g), totals

    def total(self, split, T, u, S) -> float:
        clustered = {int(j) for cluster in split.clusters for j in cluster}
        form, total = self.form, 0.0
        for cluster in split.clusters:
            B = [j for j in S if j in cluster]
            if B:
                total += float(u[B] @ np.linalg.lstsq(T[np.ix_(B, B)], u[B], rcond=None)[0])
        for j in S:
            if j not in clustered:
                reach = form.hi[j] if u[j] > 0 else -form.lo[j]
                v = min(abs(u[j]) / max(T[j, j], 1e-300), reach)
                total += 2 * abs(u[j]) * v - T[j, j] * v * v
        return total

    def node(self, parent: int, feature: int, inside: bool, state: np.ndarray) -> None:
        form, rng = self.form, self.rng
        me = len(self.rows)
        row = {"parent": parent, "feature": feature, "inside": inside, "split": -1,
               "enumerated": False, "g": np.zeros(0), "at": EMPTY, "in": [], "out": []}  # fmt: skip
        self.rows.append(row)
        state = state.copy()
        if rng.random() < 0.8 and len(form.c):
            number = int(rng.integers(len(self.splits)))
            g = self.dual(state)
            at = np.flatnonzero(g)
            row.update(split=number, g=g[at].astype(np.float32), at=form.live[at])
            if self.prove(row, number, g, state):
                return
        free = np.flatnonzero(state == FREE)
        r = form.k - np.count_nonzero(state == IN)
        if r < 0:
            return
        if r == 0 or len(free) <= self.leaf_size or rng.random() < 0.1:
            if rng.random() < 0.2:
                self.node(me, -1, False, state)
            else:
                row["enumerated"] = True
            return
        j = int(rng.choice(free))
        for side in rng.permutation([True, False]).tolist():
            child = state.copy()
            child[j] = IN if side else OUT
            self.node(me, int(form.live[j]), side, child)

    def dual(self, state) -> np.ndarray:
        """The ridge solution of the cell, or something random, in single precision."""
        form = self.form
        g, on = np.zeros(len(form.c)), state != OUT
        if on.any() and self.rng.random() < 0.8:
            A = form.A[np.ix_(on, on)] + 1e-6 * np.eye(int(on.sum()))
            g[on] = np.linalg.solve(A, form.c[on]) * (
                self.rng.random() if self.rng.random() < 0.3 else 1
            )
        else:
            g = 0.3 * self.rng.standard_normal(len(g))
        return g.astype(np.float32).astype(float)

    def prove(self, row, number, g, state) -> bool:
        """Fill in fixings (theory: fix-out, fix-in); True where the node's bound is enough."""
        base, totals = self.totals(self.splits[number], g, state)
        enough = self.value + 1e-9
        if base - max(totals.values(), default=-np.inf) >= enough:
            return True
        for j in np.flatnonzero(state == FREE):
            with_j = max((v for S, v in totals.items() if j in S), default=-np.inf)
            without_j = max((v for S, v in totals.items() if j not in S), default=-np.inf)
            if base - with_j >= enough:
                row["out"].append(int(self.form.live[j]))
                state[j] = OUT
            elif base - without_j >= enough:
                row["in"].append(int(self.form.live[j]))
                state[j] = IN
        return False

    def tree(self) -> ProofTree:
        return tree_of(self.rows)


def tree_of(rows: list[dict]) -> ProofTree:
    def column(name, dtype):
        return np.array([row[name] for row in rows], dtype=dtype)

    def ends(name):
        return np.cumsum([len(row[name]) for row in rows]).astype(np.int64)

    def joined(name, dtype):
        return np.concatenate([np.zeros(0, dtype), *[row[name] for row in rows]]).astype(dtype)

    return ProofTree(
        parent=column("parent", np.int32), feature=column("feature", np.int32),
        inside=column("inside", bool), split=column("split", np.int32),
        enumerated=column("enumerated", bool),
        dual_ends=ends("g"), dual_index=joined("at", np.int32), dual_value=joined("g", np.float32),
        in_ends=ends("in"), in_index=joined("in", np.int32),
        out_ends=ends("out"), out_index=joined("out", np.int32),
    )  # fmt: skip


def certify(instance: Instance, seed: int = 0, **prover) -> Certificate:
    """A certificate of the optimum (by brute force) with a random proof."""
    rng = np.random.default_rng(seed)
    form = Form(instance)
    coef, intercept, objective = form.best(instance)
    value = objective / form.yy if form.yy > 0 else 0.0
    prover = {"blocks": seed % 3 == 0 and "bounds" not in instance.options, **prover}
    proof = Prover(rng, form, value, **prover)
    certificate = Certificate(
        fingerprint="", k=instance.k, alpha=form.alpha, fit_intercept=form.centre,
        include=form.include, exclude=form.exclude, lower=form.lower, upper=form.upper,
        coef=coef, intercept=intercept, objective=objective, lower_bound=objective,
        copies=np.zeros((0, 2), dtype=np.int64), splits=tuple(proof.splits), tree=proof.tree(),
    )  # fmt: skip
    return sealed(certificate, rows_digest(instance.X, instance.y, form.weight))


def sealed(certificate: Certificate, digest: str) -> Certificate:
    """The certificate with the fingerprint of its own problem."""
    return replace(certificate, fingerprint=fingerprint(digest, certificate))


def checked(instance: Instance, certificate: Certificate, n_threads: int = 1, **options):
    weight = instance.options.get("sample_weight")
    return verify(certificate, instance.X, instance.y, weight, n_threads=n_threads, **options)


def make_problem(seed: int, regime: str | None = None) -> Instance:
    """An instance, every third one with an intercept."""
    instance = make(seed, regime)
    if seed % 3 == 1:
        instance.options["fit_intercept"] = True
    instance.k = max(instance.k, len(instance.options.get("include", ())))
    return instance


def as_batches(instance: Instance, rows: int):
    weight = instance.options.get("sample_weight")
    for start in range(0, len(instance.y), rows):
        part = slice(start, start + rows)
        block = (instance.X[part], instance.y[part])
        yield block if weight is None else (*block, weight[part])


def is_tiny(instance: Instance, objective: float) -> bool:
    """Is a claim too close to a perfect fit for a relative error to show?"""
    return objective <= 1e-7 * Form(instance).yy


def certify_by_enumeration(X, y, k: int, support=None) -> Certificate:
    """A claim whose proof is the root alone, enumerated; the support is found greedily."""
    chosen: list[int] = list(support or [])
    while len(chosen) < k:
        rest = y - X[:, chosen] @ np.linalg.lstsq(X[:, chosen], y, rcond=None)[0] if chosen else y
        gain = np.abs(X.T @ rest) / np.linalg.norm(X, axis=0)
        gain[chosen] = -1
        chosen.append(int(np.argmax(gain)))
    coef = np.zeros(X.shape[1])
    coef[chosen] = np.linalg.lstsq(X[:, chosen], y, rcond=None)[0]
    residual = y.astype(np.longdouble) - X.astype(np.longdouble) @ coef
    row = {"parent": -1, "feature": -1, "inside": False, "split": -1, "enumerated": True,
           "g": np.zeros(0), "at": EMPTY, "in": [], "out": []}  # fmt: skip
    objective = float(residual @ residual)
    free = np.full(X.shape[1], np.inf)
    certificate = Certificate(
        fingerprint="", k=k, alpha=0.0, fit_intercept=False, include=EMPTY, exclude=EMPTY,
        lower=-free, upper=free, coef=coef, intercept=0.0, objective=objective,
        lower_bound=0.5 * objective, copies=np.zeros((0, 2), dtype=np.int64), splits=(),
        tree=tree_of([row]),
    )  # fmt: skip
    return sealed(certificate, rows_digest(X, y))


def values_of_supports(X, y, k: int) -> dict[tuple[int, ...], float]:
    """f(S) / y'y of all supports by Gram-Schmidt, twice, in extended precision."""
    X = X.astype(np.longdouble) / np.sqrt((X.astype(np.longdouble) ** 2).sum(axis=0))
    y = y.astype(np.longdouble) / np.sqrt((y.astype(np.longdouble) ** 2).sum())
    values = {}
    for S in combinations(range(X.shape[1]), k):
        rest, basis = y.copy(), []
        for j in S:
            x = X[:, j].copy()
            for _ in range(2):
                for q in basis:
                    x -= q * (q @ x)
            norm = np.sqrt(x @ x)
            if norm > 1e-13 * math.sqrt(len(y)):
                basis.append(x / norm)
        for _ in range(2):
            for q in basis:
                rest -= q * (q @ rest)
        values[S] = float(rest @ rest)
    return values


def assert_refused(found) -> None:
    """Claims above the optimum are refused because that much is not proven."""
    assert not found
    assert any("proven only to" in reason for reason in found.failures), found.failures
