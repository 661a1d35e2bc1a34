"""The verifier accepts proofs and nothing else: against brute force, mutations, exact numbers."""

import math
import subprocess
import sys
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from instances import REGIMES, Instance, bounded_fit, make, make_medium

from bestk.base.fingerprint import fingerprint, gram_digest, rows_digest
from bestk.results.certificate import Certificate, ProofTree, SplitRecord
from bestk.verification import evidence as evidence_module
from bestk.verification.enumeration import Enumeration
from bestk.verification.evidence import from_rows
from bestk.verification.exact import ExactForm, exact_products
from bestk.verification.numerics.scan import scan
from bestk.verification.numerics.single import f4, given, mark, padded, standardise
from bestk.verification.splits import ProvenSplit, Task
from bestk.verification.supports import Judge
from bestk.verification.verify import _enumeration, verify, verify_batches, verify_gram

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
        """(1 - g'Qg, {support: its sum in eqs. 3 or 14}) by brute force."""
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
        """Fill in fixings (eqs. 5, 6); True where the node's bound is enough."""
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
    names = ("k", "alpha", "lower", "upper", "include", "exclude", "fit_intercept")
    mark = fingerprint(digest, **{name: getattr(certificate, name) for name in names})
    return replace(certificate, fingerprint=mark)


def checked(instance: Instance, certificate: Certificate, **options):
    weight = instance.options.get("sample_weight")
    return verify(certificate, instance.X, instance.y, weight, n_threads=1, **options)


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


# --- Proofs are accepted, and nothing above the optimum is


@pytest.mark.parametrize("regime", REGIMES)
def test_random_proofs_hold_and_no_more_than_the_optimum_is_accepted(regime):
    for seed in range(12):
        instance = make_problem(seed, regime)
        certificate = certify(instance, seed)
        found = checked(instance, certificate)
        assert found, (seed, str(found))
        assert found.lower_bound <= certificate.objective * (1 + 1e-12)
        if not is_tiny(instance, certificate.objective):
            more = certificate.objective * (1 + 1e-6)
            greedy = replace(certificate, lower_bound=more, objective=more)
            refused = checked(instance, greedy)
            assert not refused, seed
            assert any("proven only to" in reason for reason in refused.failures)


def test_a_bound_below_the_optimum_is_accepted_too():
    for seed in range(40):
        instance = make_problem(seed)
        certificate = certify(instance, seed)
        modest = replace(certificate, lower_bound=0.7 * certificate.lower_bound)
        assert checked(instance, modest), seed


@pytest.mark.parametrize("seed", range(40))
def test_exact_and_floating_point_verification_agree(seed):
    instance = make_problem(seed)
    certificate = certify(instance, seed)
    found, exact = checked(instance, certificate), checked(instance, certificate, exact=True)
    assert exact.exact
    if instance.regime not in HARD and found.assumptions == certificate.assumptions:
        assert exact, str(exact)
        # The perfect fits of floating point are not perfect, so leave out what is below 1e-12.
        slack = 1e-9 * certificate.objective + 1e-20 * Form(instance).yy
        assert abs(found.lower_bound - exact.lower_bound) <= slack
        assert abs(found.objective - exact.objective) <= slack
    if not is_tiny(instance, certificate.objective):
        more = certificate.objective * (1 + 1e-6)
        greedy = replace(certificate, lower_bound=more, objective=more)
        assert not checked(instance, greedy, exact=True)


def test_certificates_of_the_search_hold():
    for seed in range(60):
        instance = make_problem(seed)
        certificate = instance.solve().certificate
        found = checked(instance, certificate)
        assert found, (seed, instance.regime, str(found))
        more = certificate.objective * (1 + 1e-6)
        greedy = replace(certificate, lower_bound=more, objective=more)
        if not is_tiny(instance, certificate.objective):
            assert not checked(instance, greedy), seed


def test_trees_of_the_search_hold_and_need_all_their_leaves():
    for seed in range(12):
        instance = make_medium(seed)
        certificate = instance.solve().certificate
        assert checked(instance, certificate), seed
        tree = certificate.tree
        leaves = np.flatnonzero(tree.is_leaf & ~tree.enumerated & (tree.split >= 0))
        for leaf in leaves[leaves > 0][:3]:
            weaker = replace(tree, split=np.where(np.arange(len(tree)) == leaf, -1, tree.split))
            found = checked(instance, replace(certificate, tree=weaker))
            if tree.fixed_in(leaf).size == tree.fixed_out(leaf).size == 0:
                assert not found, (seed, leaf)


# --- Other forms of the data


@pytest.mark.parametrize("seed", range(20))
def test_batches_are_verified_in_one_pass(seed):
    instance = make_problem(seed, ("plain", "integers", "tiny_units", "binary")[seed % 4])
    certificate = certify(instance, seed)
    found = verify_batches(certificate, as_batches(instance, 5), n_threads=1)
    assert found, str(found)
    greedy = replace(certificate, lower_bound=certificate.lower_bound * (1 + 1e-6),
                     objective=certificate.objective * (1 + 1e-6))  # fmt: skip
    if not is_tiny(instance, certificate.objective):
        assert not verify_batches(greedy, as_batches(instance, 5), n_threads=1)
    fewer = as_batches(replace(instance, X=instance.X[:-1], y=instance.y[:-1]), 5)
    if "sample_weight" not in instance.options:
        assert "fingerprint" in verify_batches(certificate, fewer).failures[0]


def test_few_batches_are_as_good_as_rows_and_more_are_summed_up(monkeypatch):
    """Features 1e-9 apart: products cannot tell them from copies, rows can."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[:, 1] = X[:, 0] + 1e-9 * rng.standard_normal(40)
    y = X[:, 2] + 1e9 * (X[:, 1] - X[:, 0]) + 0.5 * rng.standard_normal(40)
    for options in ({}, {"sample_weight": 1.0 + rng.random(40)}, {"fit_intercept": True}):
        instance = Instance(regime="plain", X=X, y=y, k=3, options=options)
        certificate = certify(instance)
        whole = checked(instance, certificate)
        assert whole
        found = verify_batches(certificate, as_batches(instance, 7), n_threads=1)
        assert replace(found, seconds=0.0) == replace(whole, seconds=0.0)
        monkeypatch.setattr(evidence_module, "KEPT_BYTES", 8 * 7 * 20)  # 20 rows
        found = verify_batches(certificate, as_batches(instance, 7), n_threads=1)
        assert any("products" in text for text in found.assumptions)
        monkeypatch.undo()


def test_rows_are_dropped_when_they_are_too_many(monkeypatch):
    monkeypatch.setattr(evidence_module, "KEPT_BYTES", 8 * 4 * 10)
    kept = evidence_module._Kept(2)
    assert kept.add(np.ones((6, 2)), np.ones(6), None)
    assert kept.add(np.ones((4, 2)), np.ones(4), np.full(4, 2.0))
    assert not kept.add(np.ones((1, 2)), np.ones(1), None)
    X, _, weight = kept.release()
    assert X.shape == (10, 2)
    assert weight.tolist() == [1.0] * 6 + [2.0] * 4
    assert kept.table.nbytes == 0
    assert kept.table.base is None


@pytest.mark.parametrize("lower", [0.0, -np.inf])
def test_dependent_features_with_signs_are_judged_by_products(monkeypatch, lower):
    """Three rows, four features, one sign: bounded where no mix of these features is zero."""
    monkeypatch.setattr(evidence_module, "KEPT_BYTES", 0)
    bounds = (0.0, np.inf) if lower == 0.0 else (-np.inf, 0.0)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X, y = np.abs(rng.standard_normal((3, 4))) + 0.1, rng.standard_normal(3)
        instance = Instance(regime="plain", X=X, y=y, k=4, options={"bounds": bounds})
        certificate = certify(instance, leaf_size=4)
        found = verify_batches(certificate, as_batches(instance, 3), n_threads=1)
        if is_tiny(instance, certificate.objective):
            continue
        assert found, str(found)
        assert found.assumptions == certificate.assumptions
        form, G, c = Form(instance), X.T @ X, X.T @ y
        by_gram = verify_gram(sealed(certificate, gram_digest(G, c, form.yy)), G, c, form.yy)
        assert by_gram, str(by_gram)
        more = certificate.objective * (1 + 1e-7)
        greedy = replace(certificate, lower_bound=more, objective=more)
        refused = verify_batches(greedy, as_batches(instance, 3), n_threads=1)
        assert any("proven only to" in reason for reason in refused.failures)


@pytest.mark.parametrize("seed", range(20))
def test_gram_matrices_are_verified(seed):
    instance = make_problem(3 * seed, ("plain", "integers", "huge_units")[seed % 3])
    instance.options.pop("sample_weight", None)
    X, y = instance.X.astype(float), instance.y.astype(float)
    G, c, yy = X.T @ X, X.T @ y, float(y @ y)
    certificate = sealed(certify(instance, seed), gram_digest(G, c, yy))
    found = verify_gram(certificate, G, c, yy, n_threads=1)
    assert found, str(found)
    greedy = replace(certificate, lower_bound=certificate.lower_bound * (1 + 1e-6),
                     objective=certificate.objective * (1 + 1e-6))  # fmt: skip
    if not is_tiny(instance, certificate.objective):
        assert not verify_gram(greedy, G, c, yy, n_threads=1)
    # Rows and products are different data.
    assert "fingerprint" in checked(instance, certificate).failures[0]
    assert "fingerprint" in verify_gram(certificate, G, c, yy * (1 + 1e-15)).failures[0]


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 70))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(60)
    certificate = certify_by_enumeration(X, y, 5)
    one, two = (verify(certificate, X, y, n_threads=count) for count in (1, 2))
    assert one
    assert one.lower_bound == two.lower_bound
    assert one.n_supports == two.n_supports == math.comb(70, 5)


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


@pytest.mark.parametrize("seed", range(12))
def test_blocks_of_any_size_bound_every_cell(seed):
    """Clusters of three and more: below the optimum of the cell, and as in rational numbers."""
    rng = np.random.default_rng(seed)
    instance = make(int(rng.integers(100)), "plain")
    X = rng.standard_normal((20, 8)) + 0.7 * rng.standard_normal((20, 1))
    instance = replace(instance, X=X, y=X[:, 0] + rng.standard_normal(20), k=4, options={})
    form = Form(instance)
    order = rng.permutation(8)
    clusters = (order[:3], order[3:7])
    t = np.where(np.isin(np.arange(8), order[7:]), 1.0, 0.0)
    T = np.diag(t)
    for cluster in clusters:
        T[np.ix_(cluster, cluster)] = form.A[np.ix_(cluster, cluster)]
    share = 0.9 / np.linalg.eigvals(np.linalg.solve(form.A, T)).real.max()
    record = SplitRecord(form.live, share * t, clusters,
                         tuple(share * T[np.ix_(c, c)] for c in clusters))  # fmt: skip
    evidence = from_rows(certify(instance), instance.X, instance.y, None)
    products = exact_products(instance.X, instance.y, None, False, range(8))
    exact = ExactForm(certify(instance), *products)
    values = values_of_supports(instance.X, instance.y, 4)
    for _ in range(6):
        state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), 8, p=[0.7, 0.15, 0.15])
        state[np.flatnonzero(state == IN)[4:]] = FREE
        g = np.linalg.solve(form.A, form.c).astype(np.float32) * rng.random()
        free = np.flatnonzero(state == FREE)
        fixed = (free[:1], free[1:3])
        task = Task(0, state, np.arange(8), g.astype(float), *fixed)
        (found,), (true,) = (s.evaluate([task]) for s in
                             (ProvenSplit(evidence, record), exact.split(record)))  # fmt: skip
        assert found.own <= float(true.own) <= found.own + 1e-9
        assert found.violation <= float(true.violation) <= found.violation + 1e-9
        inside, allowed = set(np.flatnonzero(state == IN)), set(np.flatnonzero(state != OUT))
        cell = [v for S, v in values.items() if inside <= set(S) <= allowed]
        assert found.own <= min(cell, default=np.inf)
        for j in fixed[0]:
            lacking = [v for S, v in values.items() if inside <= set(S) <= allowed - {j}]
            assert found.violation <= min(lacking, default=np.inf)
        for j in fixed[1]:
            having = [v for S, v in values.items() if inside | {j} <= set(S) <= allowed]
            assert found.violation <= min(having, default=np.inf)


# --- Enumeration


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


def library(rng, kind: str) -> tuple[np.ndarray, np.ndarray]:
    n, p = int(rng.integers(12, 40)), 9
    if kind == "powers":
        X = np.linspace(1.0, 1.0 + rng.random(), n)[:, None] ** np.arange(p)
    else:
        X = rng.standard_normal((n, p))
    if kind == "near copies":
        X[:, 1:4] = X[:, :1] + 10.0 ** -rng.integers(5, 13, 3) * rng.standard_normal((n, 3))
    elif kind == "near sums":
        X[:, 2] = X[:, 0] + X[:, 1] + 10.0 ** -rng.integers(5, 13) * rng.standard_normal(n)
    y = rng.standard_normal(n) + X[:, 0] - X[:, 1]
    if rng.random() < 0.5:  # nearly perfect fits: products have no digits left
        y = X[:, 2] - X[:, 5] + 10.0 ** -rng.integers(3, 7) * y / np.linalg.norm(y)
    return X, y


@pytest.mark.parametrize("kind", ["plain", "powers", "near copies", "near sums"])
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_enumeration_misses_no_support(kind, k):
    """Whatever the threshold, supports below it are found; nearly dependent ones too."""
    rng = np.random.default_rng([k, len(kind)])
    for _ in range(3):
        X, y = library(rng, kind)
        values = values_of_supports(X, y, k)
        order = sorted(values.values())
        certificate = certify_by_enumeration(X, y, k)
        evidence = from_rows(certificate, X, y, None)
        for rank in (0, 2, len(order) // 2):
            target = order[rank] * (1 + 1e-7)
            search = Enumeration(evidence, target, Judge(evidence, target), None)
            everything = np.arange(X.shape[1])
            found = {tuple(sorted(S.tolist())) for S in search._hits(EMPTY, everything, k)}
            dropped = {S for S in values if not any(set(T) <= set(S) for T in found)}
            missed = [S for S in dropped if values[S] < target * (1 - 2e-7)]
            assert not missed, (rank, missed[0], values[missed[0]], target)


@pytest.mark.parametrize("kind", ["plain", "powers", "near copies", "near sums"])
def test_bounds_of_supports_are_close_and_never_too_high(kind):
    rng = np.random.default_rng(len(kind))
    for _ in range(4):
        X, y = library(rng, kind)
        values = values_of_supports(X, y, 3)
        certificate = certify_by_enumeration(X, y, 3)
        evidence = from_rows(certificate, X, y, None)
        judge = _enumeration(certificate, evidence, None).judge
        judge.enough = math.inf
        supports = np.array(list(values))
        true = np.array(list(values.values()))
        bounds = judge.bounds(supports)
        # As far as Gram-Schmidt knows the values: columns 1e-12 apart leave it eight digits.
        assert (bounds <= true * (1 + 1e-6) + 1e-25).all()
        assert (bounds >= true * (1 - 1e-6) - 1e-25).all()


def plain_scan(H, d, needed, r) -> set[tuple[int, ...]]:
    gains = {S: d[list(S)] @ np.linalg.solve(H[np.ix_(S, S)], d[list(S)])
             for S in combinations(range(len(d)), r)}  # fmt: skip
    return {S for S, gain in gains.items() if gain > needed}


@pytest.mark.parametrize("r", [1, 2, 3, 4, 5])
def test_the_scan_lists_what_a_plain_loop_lists(r):
    rng = np.random.default_rng(r)
    for m in (r, r + 1, 9, 13):
        X = rng.standard_normal((30, m)) + 0.5 * rng.standard_normal((30, 1))
        X, y = X / np.linalg.norm(X, axis=0), rng.standard_normal(30)
        H, d = X.T @ X, X.T @ (y / np.linalg.norm(y))
        gains = sorted(d[list(S)] @ np.linalg.solve(H[np.ix_(S, S)], d[list(S)])
                       for S in combinations(range(m), r))  # fmt: skip
        needed = 0.999 * gains[-min(5, len(gains))]
        hits = np.empty((1000, r), dtype=np.int64)
        count = scan(H, d, needed, 0.0, r, 0, m, hits)
        found = {tuple(row) for row in hits[:count].tolist()}
        expected = plain_scan(H, d, needed, r)
        # A beginning that alone gains enough stands for all sets that begin with it.
        begun = {row[: row.index(-1)] for row in found if -1 in row}
        assert expected <= found | {S for S in expected for b in begun if S[: len(b)] == b}
        assert {row for row in found if -1 not in row} <= expected
        halves = [scan(H, d, needed, 0.0, r, *span, hits) for span in ((0, m // 2), (m // 2, m))]
        assert sum(halves) == count
        assert scan(H, d, -1.0, 0.0, r, 0, m, hits[:0]) == -1


def excess_of_pairs(H, d, needed, t) -> np.ndarray:
    """Left minus right side of eq. 17 for pairs given t: positive where one gains over `needed`."""
    unit = 1.0 / np.sqrt(H.diagonal())
    C, m = H * np.outer(unit, unit), d * unit / math.sqrt(needed)
    w, left = C[t], 1.0 - m[t] ** 2
    v, m = 1.0 - w * w, m - m[t] * w
    g = C - np.outer(w, w)
    with np.errstate(all="ignore"):
        rest = left - m * m / v
        h = m - (m / v)[:, None] * g
        excess = h * h / rest[:, None] + g * g / v[:, None] - v
    return np.where((rest > 0.0)[:, None], excess, np.inf)


@pytest.mark.parametrize("closeness", [0.5, 3.0, 30.0, 1000.0])
def test_single_precision_rules_out_what_double_does(closeness):
    """No pair that gains too much is passed over, whatever the margin; clear ones are."""
    rng = np.random.default_rng(int(closeness))
    clear = passed = 0
    for m in (3, 8, 9, 31, 50):
        X = rng.standard_normal((60, m)) + closeness * rng.standard_normal((60, 1))
        X, y = X / np.linalg.norm(X, axis=0), rng.standard_normal(60)
        H, d = X.T @ X, X.T @ (y / np.linalg.norm(y))
        width = padded(m)
        C, unit, moment = np.full((width, width), np.nan, f4), np.empty(m), np.empty(m)
        m_t, v_t, suspect = np.zeros(width, f4), np.zeros(width, f4), np.zeros(width, bool)
        for t in range(m - 2):
            alone = max(d[t] ** 2 / H[t, t], 1e-3)
            # Thresholds at the gain of some triple: there the smallest error counts.
            S = [t, *sorted(rng.choice(np.arange(t + 1, m), 2, replace=False))]
            gain = float(d[S] @ np.linalg.solve(H[np.ix_(S, S)], d[S]))
            for needed in (gain * (1 - 1e-9), gain * (1 + 1e-9), 2 * gain, 10 * gain):
                if needed <= alone:
                    continue
                standardise(H, d, needed, t, C, unit, moment)
                last_flat = given(C, t, moment, m_t, v_t)
                mark(C, t, f4(1.0 - moment[t] ** 2), m_t, v_t, suspect)
                excess = excess_of_pairs(H, d, needed, t)[t + 1 :, t + 1 :]
                excess[np.tril_indices(len(excess))] = -np.inf
                v = 1.0 - H[t, t + 1 :] ** 2
                assert (v > 1e-4).all() or last_flat > t
                ruled_out = ~suspect[t + 1 : m] & (np.arange(t + 1, m) > last_flat)
                assert (excess[ruled_out] <= 1e-12).all()
                clear += (excess < -0.01).all(axis=1).sum()
                passed += ruled_out.sum()
    assert passed >= 0.8 * clear or closeness > 10.0  # so alike that single precision sees nothing


# --- Mutations


def node_like(certificate: Certificate, **wanted) -> int:
    """A node with these properties of its row."""
    tree = certificate.tree
    for node in range(len(tree)):
        row = {"enumerated": bool(tree.enumerated[node]), "leaf": bool(tree.is_leaf[node]),
               "split": tree.split[node] >= 0, "root": node == 0}  # fmt: skip
        if all(row[name] == value for name, value in wanted.items()):
            return node
    return -1


def proof() -> tuple[Instance, Certificate]:
    """A proof with all kinds of nodes, nothing in it to spare."""
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 8)) + 0.6 * rng.standard_normal((30, 1))
    y = X[:, :3] @ [1.0, -0.8, 0.6] + 0.7 * rng.standard_normal(30)
    instance = Instance(regime="plain", X=X, y=y, k=3, options={"alpha": 0.1})
    for seed in range(100):
        certificate = certify(instance, seed, blocks=False, leaf_size=4)
        closed = node_like(certificate, leaf=True, split=True, enumerated=False)
        if closed > 0 and node_like(certificate, enumerated=True) > 0:
            return instance, certificate
    raise AssertionError("no such proof")


def with_tree(certificate: Certificate, **columns) -> Certificate:
    return replace(certificate, tree=replace(certificate.tree, **columns))


def changed(array, at, value):
    array = array.copy()
    array[at] = value
    return array


def without_node(certificate: Certificate, node: int) -> Certificate:
    """The leaf `node` moved to where it proves nothing: below itself it has no other side."""
    tree = certificate.tree
    rows = [
        {"parent": tree.parent[i], "feature": tree.feature[i], "inside": tree.inside[i],
         "split": tree.split[i], "enumerated": tree.enumerated[i], "g": tree.dual(i)[1],
         "at": tree.dual(i)[0], "in": tree.fixed_in(i), "out": tree.fixed_out(i)}
        for i in range(len(tree)) if i != node
    ]  # fmt: skip
    for row in rows:
        row["parent"] -= row["parent"] > node
    return replace(certificate, tree=tree_of(rows))


def test_a_dropped_leaf_is_noticed():
    instance, certificate = proof()
    assert checked(instance, certificate)
    leaves = np.flatnonzero(certificate.tree.is_leaf)
    for leaf in leaves[leaves > 0]:
        found = checked(instance, without_node(certificate, int(leaf)))
        assert not found
        assert "lacks the child" in found.failures[-1] or "it proves" in found.failures[-1]


def test_changed_numbers_prove_less():
    instance, certificate = proof()
    tree = certificate.tree
    closed = node_like(certificate, leaf=True, split=True, enumerated=False)
    tried = node_like(certificate, enumerated=True, root=False)
    row = slice(int(tree.dual_ends[closed - 1]), int(tree.dual_ends[closed]))
    flipped = changed(tree.dual_value, row, -tree.dual_value[row])
    mutations = {
        "sign of a dual": with_tree(certificate, dual_value=flipped),
        "no enumeration": with_tree(certificate, enumerated=changed(tree.enumerated, tried, False)),
        "lower bound": replace(certificate, lower_bound=certificate.lower_bound * (1 + 1e-6),
                               objective=certificate.objective * (1 + 1e-6)),
        "bound above objective": replace(certificate, lower_bound=certificate.objective * 1.01),
        "better objective": replace(certificate, objective=certificate.objective * (1 - 1e-6),
                                    lower_bound=certificate.objective * (1 - 1e-6)),
        "coefficient": replace(certificate, coef=certificate.coef * (1 + 1e-4)),
        "intercept": replace(certificate, intercept=0.1),
    }  # fmt: skip
    for name, mutated in mutations.items():
        assert not checked(instance, mutated), name
        assert not checked(instance, mutated, exact=True), name


def test_raised_charges_are_not_semidefinite():
    instance, certificate = proof()
    for factor in (1.5, 1.01):
        splits = tuple(split._replace(t=split.t * factor) for split in certificate.splits)
        for exact in (False, True):
            found = checked(instance, replace(certificate, splits=splits), exact=exact)
            assert not found
            assert "not positive semidefinite" in found.failures[0]


def test_enumeration_in_another_place_is_as_good():
    instance, certificate = proof()
    flag = np.zeros(len(certificate.tree), dtype=bool)
    flag[0] = True
    found = checked(instance, with_tree(certificate, enumerated=flag))
    assert found or all("fix" not in reason for reason in found.failures)
    split = np.full(len(flag), -1, dtype=np.int32)
    none = np.zeros(len(flag), dtype=np.int64)
    bare = with_tree(
        certificate, enumerated=flag, split=split, in_ends=none, out_ends=none,
        in_index=EMPTY, out_index=EMPTY,
    )  # fmt: skip
    assert checked(instance, bare).lower_bound == pytest.approx(certificate.objective, rel=1e-10)


def test_swapped_sides_and_other_parents_are_noticed():
    instance, certificate = proof()
    tree = certificate.tree
    assert not checked(instance, with_tree(certificate, inside=np.ones(len(tree), dtype=bool)))
    swapped = checked(instance, with_tree(certificate, inside=~tree.inside))
    assert swapped.lower_bound <= certificate.objective * (1 + 1e-12)
    refused = 0
    for node in range(2, len(tree)):
        for parent in range(node):
            if parent != tree.parent[node]:
                other = with_tree(certificate, parent=changed(tree.parent, node, parent))
                found = checked(instance, other)
                assert found.lower_bound <= certificate.objective * (1 + 1e-12)
                refused += not found
    assert refused > 0.9 * (len(tree) - 2)


def test_other_data_or_another_problem_are_noticed():
    instance, certificate = proof()
    X, y = instance.X, instance.y
    ulp = X.copy()
    ulp[3, 2] = np.nextafter(ulp[3, 2], 1.0)
    others = [
        verify(certificate, ulp, y),
        verify(certificate, X[:-1], y[:-1]),
        verify(certificate, X, y + 1e-9),
        verify(certificate, X[:, :-1], y),
        verify(certificate, X, y, np.full(len(y), 2.0)),
        verify(certificate, X[::-1], y[::-1]),
    ]
    far = np.full(8, 9.0)
    problems = {"k": 4, "alpha": 0.2, "fit_intercept": True, "include": np.array([1]),
                "exclude": np.array([7]), "lower": -far, "upper": far}  # fmt: skip
    others += [checked(instance, replace(certificate, **{k: v})) for k, v in problems.items()]
    for found in others:
        assert not found
        assert "fingerprint" in found.failures[0]


def test_a_forged_fingerprint_does_not_help():
    """Proofs are checked on the data: with another k or alpha the same tree proves less."""
    instance, certificate = proof()
    digest = rows_digest(instance.X, instance.y)
    for change in ({"k": 4}, {"alpha": 0.05}):
        forged = sealed(replace(certificate, **change), digest)
        assert not checked(instance, forged)
    digest = rows_digest(instance.X, instance.y * 1.001)
    forged = sealed(certificate, digest)
    assert not verify(forged, instance.X, instance.y * 1.001)


def test_inadmissible_models_are_noticed():
    instance, certificate = proof()
    used = np.flatnonzero(certificate.coef)
    digest = rows_digest(instance.X, instance.y)
    unused = np.setdiff1d(np.arange(8), used)
    for change, reason in (
        ({"k": 2}, "more than k"),
        ({"include": unused[:1]}, "more than k"),
        ({"exclude": used[:1]}, "excluded"),
        ({"upper": np.full(8, 1e-3), "lower": np.full(8, -1e-3)}, "out of its bounds"),
    ):
        found = checked(instance, sealed(replace(certificate, **change), digest))
        assert not found
        assert any(reason in failure for failure in found.failures), (change, found.failures)


def scrambled(rng, certificate: Certificate, value: float) -> Certificate:
    """A few random changes to a proof, all of them well-formed, and a claim of `value`."""
    tree, m = certificate.tree, len(certificate.tree)
    columns = {}
    for name in rng.choice(["parent", "feature", "inside", "split", "enumerated", "dual"], 2):
        at = int(rng.integers(1, m))
        if name == "dual":
            noise = rng.standard_normal(len(tree.dual_value)) * rng.choice([0.01, 0.3, 3.0])
            columns["dual_value"] = (tree.dual_value + noise).astype(np.float32)
        else:
            new = {
                "parent": rng.integers(at), "feature": rng.integers(-1, 8), "inside": True,
                "split": rng.integers(-1, 2), "enumerated": rng.random() < 0.5,
            }[name]  # fmt: skip
            columns[name] = changed(columns.get(name, getattr(tree, name)), at, new)
    if rng.random() < 0.3:  # somebody else's fixings
        columns["in_index"] = rng.integers(0, 8, len(tree.in_index))
        columns["out_index"] = rng.integers(0, 8, len(tree.out_index))
    factor = rng.choice([1.0, 1.0, 0.9, 1.001])
    splits = tuple(split._replace(t=split.t * factor) for split in certificate.splits)
    claim = replace(certificate, splits=splits, lower_bound=value, objective=value)
    return with_tree(claim, **columns)


@pytest.mark.parametrize("exact", [False, True])
def test_no_scrambled_proof_proves_too_much(exact):
    """The model is not the best one, so a bound above the optimum would show."""
    instance, certificate = proof()
    form, optimum = Form(instance), certificate.objective
    coef, _ = form.fit([4, 5, 6])
    worse = form.objective(instance, coef, 0.0)
    certificate = replace(certificate, coef=coef)
    rng = np.random.default_rng(exact)
    for _ in range(60 if exact else 400):
        found = checked(instance, scrambled(rng, certificate, worse), exact=exact)
        assert not found
        assert found.objective == pytest.approx(worse)
        assert found.lower_bound <= optimum * (1 + 1e-12)


def test_malformed_certificates_are_failures():
    instance, certificate = proof()
    tree, split = certificate.tree, certificate.splits[0]
    inner = len(tree) // 2
    far = len(tree) + 5

    def with_split(**fields):
        return replace(certificate, splits=(split._replace(**fields), *certificate.splits[1:]))

    malformed = [
        with_tree(certificate, parent=changed(tree.parent, inner, inner)),
        with_tree(certificate, parent=changed(tree.parent, inner, far)),
        with_tree(certificate, parent=changed(tree.parent, 0, 0)),
        with_tree(certificate, feature=changed(tree.feature, inner, 8)),
        with_tree(certificate, feature=changed(tree.feature, inner, -2)),
        with_tree(certificate, split=changed(tree.split, inner, 9)),
        with_tree(certificate, dual_value=changed(tree.dual_value, 0, np.nan)),
        with_tree(certificate, dual_value=changed(tree.dual_value, 0, np.inf)),
        with_tree(certificate, dual_index=changed(tree.dual_index, 0, 8)),
        with_tree(certificate, dual_ends=tree.dual_ends[::-1].copy()),
        with_tree(certificate, dual_ends=tree.dual_ends + 1),
        with_tree(certificate, in_ends=tree.in_ends[:-1]),
        with_tree(certificate, parent=tree.parent[:0]),
        with_tree(certificate, parent=tree.parent.astype(float)),
        with_split(t=changed(split.t, 0, -0.1)),
        with_split(t=changed(split.t, 0, np.nan)),
        with_split(t=split.t[:-1]),
        with_split(features=changed(split.features, 0, split.features[1])),
        with_split(features=changed(split.features, 0, 99)),
        with_split(clusters=(np.array([0, 1]),)),
        with_split(clusters=(np.array([0, 99]),), matrices=(np.eye(2),)),
        with_split(clusters=(np.array([0, 1]),), matrices=(np.eye(3),)),
        replace(certificate, k=-1),
        replace(certificate, alpha=np.nan),
        replace(certificate, lower_bound=np.inf),
        replace(certificate, objective=np.nan),
        replace(certificate, coef=changed(certificate.coef, 0, np.nan)),
        replace(certificate, lower=certificate.lower[:-1]),
        replace(certificate, lower=np.full(8, 1.0)),
        replace(certificate, include=np.array([9])),
        replace(certificate, include=np.array([1, 1])),
        replace(certificate, include=np.arange(4)),
        replace(certificate, include=np.array([2]), exclude=np.array([2])),
        replace(certificate, copies=np.array([[0, 99]])),
        replace(certificate, copies=np.array([1, 2])),
        replace(certificate, coef=None),
        replace(certificate, tree=None),
    ]  # fmt: skip
    for i, mutated in enumerate(malformed):
        found = checked(instance, mutated)
        assert not found, i
        assert found.failures, i
        assert str(found)


def test_decided_features_cannot_be_decided_again():
    instance, certificate = proof()
    tree = certificate.tree
    node = int(np.flatnonzero(tree.feature >= 0)[0])
    rows = np.arange(len(tree))
    again = with_tree(
        certificate, in_ends=np.where(rows >= node, 1, 0), out_ends=np.zeros(len(tree), dtype=int),
        in_index=tree.feature[node : node + 1], out_index=EMPTY,
    )  # fmt: skip
    assert any("not free" in reason for reason in checked(instance, again).failures)


def test_too_many_supports_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 200)), rng.standard_normal(30)
    found = verify(certify_by_enumeration(X, y, 20), X, y)
    assert not found
    assert "too many" in found.failures[0]


# --- Copies, constants, extremes


def with_copies(instance: Instance, pairs) -> Certificate:
    """A proof that leaves the copies out."""
    hidden = sorted({j for j, _ in pairs})
    shown = replace(instance, options={**instance.options, "exclude": hidden})
    certificate = certify(shown, blocks=False)
    copies = np.array(pairs)
    certificate = replace(certificate, exclude=EMPTY, copies=copies)
    return sealed(certificate, rows_digest(instance.X, instance.y))


def test_copies_may_be_left_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 6))
    y = X[:, 0] + rng.standard_normal(20)
    X[:, 4] = -2.0 * X[:, 1]  # exact
    instance = Instance(regime="plain", X=X, y=y, k=2)
    found = checked(instance, with_copies(instance, [(4, 1)]))
    assert found
    assert not found.assumptions
    assert checked(instance, with_copies(instance, [(4, 1)]), exact=True)
    X[:, 3] = 3.0 * X[:, 0]  # rounded
    found = checked(instance, with_copies(instance, [(3, 0), (4, 1)]))
    assert found, str(found)
    assert "agree to" in found.assumptions[0]
    assert not checked(instance, with_copies(instance, [(3, 0)]), exact=True)
    for pairs in ([(5, 1)], [(4, 5)], [(1, 4), (4, 1)], [(4, 4)]):
        for exact in (False, True):
            found = checked(instance, with_copies(instance, pairs), exact=exact)
            assert not found, pairs
            assert "cop" in found.failures[0] or "multiple" in found.failures[0]


def test_copies_may_not_be_left_out_with_a_penalty_or_bounds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4))
    X[:, 3] = X[:, 0]
    y = X[:, 0] + rng.standard_normal(20)
    for options in ({"alpha": 1.0}, {"bounds": (-1.0, 1.0)}, {"include": [3]}):
        instance = Instance(regime="plain", X=X, y=y, k=2, options=options)
        certificate = with_copies(replace(instance, options={}), [(3, 0)])
        form = Form(instance)
        certificate = replace(certificate, alpha=form.alpha, lower=form.lower, upper=form.upper,
                              include=form.include)  # fmt: skip
        found = checked(instance, sealed(certificate, rows_digest(X, y)))
        assert not found
        assert "cop" in found.failures[0]


@pytest.mark.parametrize("factor", [1e-180, 1e-120, 1e120, 1e180])
def test_extreme_units_are_no_problem(factor):
    instance = make(0, "plain")
    instance.options = {}
    plain = certify(instance)
    scaled = replace(instance, X=instance.X * [factor, *[1.0] * (instance.X.shape[1] - 1)])
    coef = plain.coef.copy()
    coef[0] /= factor
    certificate = replace(plain, coef=coef)
    found = checked(scaled, sealed(certificate, rows_digest(scaled.X, scaled.y)))
    assert found, str(found)


@pytest.mark.parametrize("factor", [2.0**-900, 2.0**900])
def test_extreme_weights_are_no_problem(factor):
    instance = make(0, "plain")
    instance.options = {"sample_weight": np.random.default_rng(0).random(len(instance.y))}
    plain = certify(instance)
    scaled = replace(
        instance, options={"sample_weight": factor * instance.options["sample_weight"]}
    )
    objective = plain.objective * factor
    certificate = replace(plain, objective=objective, lower_bound=objective)
    digest = rows_digest(scaled.X, scaled.y, scaled.options["sample_weight"])
    found = checked(scaled, sealed(certificate, digest))
    assert found, str(found)


def test_large_means_beside_an_intercept():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) + 1e6 * rng.standard_normal(6)
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(40) + 1e5
    instance = Instance(regime="plain", X=X, y=y, k=2, options={"fit_intercept": True})
    certificate = certify(instance)
    assert checked(instance, certificate), str(checked(instance, certificate))
    assert checked(instance, certificate, exact=True)
    assert verify_batches(certificate, as_batches(instance, 7))


def test_a_target_without_variation_needs_no_proof():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 4))
    for y in (np.zeros(20), np.full(20, 0.1)):
        instance = Instance(regime="plain", X=X, y=y, k=2, options={"fit_intercept": True})
        certificate = certify(instance)
        certificate = replace(certificate, coef=np.zeros(4), intercept=float(y[0]))
        assert checked(instance, certificate)
        assert checked(instance, certificate, exact=True)
        assert verify_batches(certificate, as_batches(instance, 6))
        for wrong in ({"intercept": 1.0}, {"lower_bound": 0.1, "objective": 0.1}):
            assert not checked(instance, replace(certificate, **wrong))


def test_many_rows_in_batches_keep_their_digits():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 6)) + 2.0
    y = 10 * X[:, 0] - 8 * X[:, 1] + 0.1 * rng.standard_normal(30_000)
    instance = Instance(regime="plain", X=X, y=y, k=2, options={"fit_intercept": True})
    certificate = certify(instance)
    assert verify_batches(certificate, as_batches(instance, 4000))
    assert checked(instance, certificate)


# --- The rest


def test_bad_data_are_errors_of_the_caller():
    instance, certificate = proof()
    with pytest.raises(ValueError, match="length"):
        verify(certificate, instance.X, instance.y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        verify(certificate, np.where(instance.X > 1, np.nan, instance.X), instance.y)
    with pytest.raises(ValueError, match="two dimensions"):
        verify(certificate, instance.y, instance.y)
    with pytest.raises(ValueError, match="at most 40 features"):
        verify(certificate, np.ones((5, 41)), np.ones(5), exact=True)
    with pytest.raises(ValueError, match="square"):
        verify_gram(certificate, instance.X, instance.y, 1.0)


def test_the_report_is_readable():
    instance, certificate = proof()
    found = checked(instance, certificate)
    assert bool(found) is found.is_valid is True
    assert str(found).startswith("Verified")
    assert found.n_nodes == len(certificate.tree)
    assert found.n_leaves == certificate.tree.is_leaf.sum()
    refused = checked(instance, replace(certificate, objective=1.0))
    assert "NOT verified" in str(refused)
    assert refused.failures[0] in str(refused)


def test_a_certificate_survives_its_file(tmp_path):
    instance, certificate = proof()
    certificate.save(tmp_path / "proof.npz")
    assert Certificate.load(tmp_path / "proof.npz").verify(instance.X, instance.y)


def test_the_verifier_shares_no_code_with_the_search():
    code = (
        "import sys, bestk.verification, bestk.certificate;"
        "print(*sorted(m for m in sys.modules if m.startswith('bestk')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    allowed = {"bestk", "bestk.base", "bestk.base.fingerprint", "bestk.base.validation",
               "bestk.certificate", "bestk.results", "bestk.results.certificate"}  # fmt: skip
    others = [m for m in found.stdout.split() if not m.startswith("bestk.verification")]
    assert set(others) <= allowed
