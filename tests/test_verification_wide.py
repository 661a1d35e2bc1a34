"""Verification by columns: what products of all features prove, without forming them."""

import tracemalloc
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from instances import REGIMES, Instance, make, make_medium, tolerance
from test_verification import (
    EMPTY,
    FREE,
    HARD,
    IN,
    OUT,
    Form,
    as_batches,
    certify,
    certify_by_enumeration,
    changed,
    checked,
    is_tiny,
    make_problem,
    sealed,
    values_of_supports,
    with_tree,
    without_node,
)

import bestk
from bestk.base.fingerprint import rows_digest
from bestk.datasets import make_synthetic
from bestk.form import matrix as operators
from bestk.results.certificate import SplitRecord
from bestk.verification import cover, enumeration, splits
from bestk.verification import evidence as evidence_module
from bestk.verification.enumeration import Enumeration
from bestk.verification.evidence import from_rows
from bestk.verification.exact import ExactForm, exact_products
from bestk.verification.numerics import matrices, wide
from bestk.verification.numerics.matrices import ByColumns, Stored
from bestk.verification.numerics.rounding import UNIT, fill_gains, largest_gain
from bestk.verification.splits import ProvenSplit, Task
from bestk.verification.supports import Judge
from bestk.verification.verify import verify_batches


def by_columns(patch) -> None:
    """The verifier takes every problem for wide, in parts as small as they can be."""
    patch.setattr(matrices, "FEWEST_WIDE", 1)
    patch.setattr(matrices, "WIDE_FROM", 0.0)
    patch.setattr(matrices, "_GATHERED", 40)
    patch.setattr(wide, "_BLOCK", 40)
    patch.setattr(splits, "_PART", 3)
    patch.setattr(splits, "_GAINS", 20)
    patch.setattr(enumeration, "_MANY", 1)
    patch.setattr(cover, "_WAITING", 50)


def search_by_rows(patch) -> None:
    patch.setattr(operators, "FEWEST_WIDE", 1)
    patch.setattr(operators, "WIDE_FROM", 0.0)


@pytest.fixture
def wide_verifier(monkeypatch):
    by_columns(monkeypatch)


def both(instance: Instance, certificate):
    """The same verification by columns and by products."""
    with pytest.MonkeyPatch.context() as patch:
        by_columns(patch)
        found = checked(instance, certificate)
    return found, checked(instance, certificate)


def agree(instance: Instance, certificate) -> None:
    found, stored = both(instance, certificate)
    assert bool(found) == bool(stored), f"{found}\n{stored}"
    if not stored:  # signs on copies with opposite signs: no products can judge these
        assert instance.regime == "duplicate"
        assert "bounds" in instance.options
        return
    slack = 1e-9 * stored.objective + 1e-12 * Form(instance).yy
    assert abs(found.lower_bound - stored.lower_bound) <= slack
    assert found.objective == stored.objective
    if instance.regime not in HARD:
        assert found.assumptions == stored.assumptions
    if not is_tiny(instance, certificate.objective):
        more = certificate.objective * (1 + 1e-6)
        greedy = replace(certificate, lower_bound=more, objective=more)
        for refused in both(instance, greedy):
            assert not refused
            assert any("proven only to" in reason for reason in refused.failures)


# --- The same as by products


@pytest.mark.parametrize("regime", REGIMES)
def test_random_proofs_are_judged_as_by_products(regime):
    """Charges far above the penalty, and blocks: proven on products of the features they need."""
    for seed in range(40, 52):
        instance = make_problem(seed, regime)
        try:
            agree(instance, certify(instance, seed))
        except AssertionError as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_proofs_of_the_search_by_rows_hold_and_prove_no_more_than_is_true(first, monkeypatch):
    search_by_rows(monkeypatch)
    for seed in range(first, first + 20):
        instance = make(seed + 40_000)
        certificate = instance.solve(node_limit=60).certificate
        found, stored = both(instance, certificate)
        optimum, yy = instance.brute_force(), Form(instance).yy
        try:
            assert found, str(found)
            assert stored, str(stored)
            slack = tolerance(instance, optimum, yy)
            assert found.lower_bound <= optimum + slack
            if instance.regime not in HARD:
                assert abs(found.lower_bound - stored.lower_bound) <= slack
        except AssertionError as error:
            error.add_note(f"seed {seed}, regime {instance.regime}")
            raise


@pytest.mark.parametrize("seed", range(8))
def test_trees_of_the_search_by_rows_need_all_their_leaves(seed, monkeypatch, wide_verifier):
    search_by_rows(monkeypatch)
    instance = make_medium(seed)
    certificate = instance.solve().certificate
    assert checked(instance, certificate), seed
    tree = certificate.tree
    for leaf in np.flatnonzero(tree.is_leaf)[1:6]:
        found = checked(instance, without_node(certificate, leaf))
        fixed = tree.fixed_in(tree.parent[leaf]).size + tree.fixed_out(tree.parent[leaf]).size
        if not fixed and tree.feature[leaf] >= 0:
            assert not found, leaf


# --- Rounding, against rational numbers


def awkward(seed: int) -> tuple[Instance, bool]:
    """Few rows, many features, large means, weights and mixed units; is there an intercept?"""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 12)), int(rng.integers(2, 9))
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-6, 7, p)
    y = rng.standard_normal(n) * 10.0 ** rng.integers(-5, 6)
    options = {"alpha": float(rng.choice([0.0, 1e-3, 1e3]))}
    if seed % 2:
        options["fit_intercept"] = True
        X, y = X + 10.0 ** rng.integers(0, 12) * X.std(axis=0), y + 1e9 * y.std()
    if seed % 3 == 0:
        options["sample_weight"] = rng.random(n) * 10.0 ** rng.integers(-4, 5)
    return Instance(regime="plain", X=X, y=y, k=2, options=options), bool(seed % 2)


def exact_form(instance: Instance, evidence) -> tuple[np.ndarray, np.ndarray]:
    """(A, c) of the data in the units of the evidence, rounded only in the end."""
    options, p = instance.options, instance.X.shape[1]
    weight, centre = options.get("sample_weight"), options.get("fit_intercept", False)
    G, denominator = exact_products(instance.X, instance.y, weight, centre, range(p))
    unit = [Fraction(float(x)) for x in evidence.to_form]
    whole = Fraction(evidence.unit)
    A = np.empty((p, p), dtype=object)
    for i in range(p):
        for j in range(p):
            value = Fraction(int(G[i, j]), denominator) + (i == j) * Fraction(options["alpha"])
            A[i, j] = value / (unit[i] * unit[j] * whole)
    c = np.array([Fraction(int(G[i, p]), denominator) / (unit[i] * whole) for i in range(p)])
    return A, c


@pytest.mark.parametrize("seed", range(60))
def test_products_are_known_as_well_as_is_said(seed, wide_verifier):
    instance, _ = awkward(seed)
    certificate = certify(instance, blocks=False)
    evidence = from_rows(certificate, instance.X, instance.y, instance.options.get("sample_weight"))
    p = len(evidence.live)
    assert isinstance(evidence.A, ByColumns)
    assert p == instance.X.shape[1]
    A, c = exact_form(instance, evidence)
    every = np.arange(p)
    columns = np.vectorize(Fraction)(evidence.A.Z)
    exact = columns @ columns.T + np.diag(np.vectorize(Fraction)(evidence.A.ridge))
    assert np.abs(exact - A).astype(float).max() <= evidence.eps
    assert np.abs(evidence.A.block(every) - A).astype(float).max() <= evidence.eps
    assert np.abs(evidence.A.blocks(every[None])[0] - A).astype(float).max() <= evidence.eps
    assert np.abs(evidence.c - c).astype(float).max() <= evidence.eps
    half = p // 2
    between = evidence.A.between(every[:half], every[half:])
    assert np.abs(between - A[:half, half:]).astype(float).max(initial=0.0) <= evidence.eps
    # The error is not only large enough, it is of the size of some roundings.
    assert evidence.eps <= 1e-6 if seed % 2 else evidence.eps <= 1e-14


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_nodes_are_those_of_rational_numbers(seed, wide_verifier):
    """Charges at the penalty, none at all in a box, far above it, and blocks."""
    rng = np.random.default_rng(seed)
    kind = ("penalty", "none", "above", "blocks")[seed % 4]
    n, p, k = int(rng.integers(3, 10)), 8, 3
    if kind in ("above", "blocks"):
        n += 8
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-3, 4, p)
    y = X[:, 0] / X[:, 0].std() + rng.standard_normal(n)
    size = 2.0 / np.abs(X).max()
    options = {"bounds": (-size, size)} if kind == "none" else {"alpha": 0.3 * (X**2).mean()}
    instance = Instance(regime="plain", X=X, y=y, k=k, options=options)
    certificate, form = certify(instance, blocks=False), Form(instance)
    evidence = from_rows(certificate, X, y, None)
    exact = ExactForm(certificate, *exact_products(X, y, None, False, range(p)))
    t, clusters, blocks = np.zeros(p), (), ()
    if kind == "penalty":
        t = options["alpha"] / ((X**2).sum(axis=0) + options["alpha"]) * (1 - 1e-14)
    elif kind == "above":
        t = np.full(p, 0.9 * np.linalg.eigvalsh(form.A)[0])
    elif kind == "blocks":
        order = rng.permutation(p)
        clusters, t[order[5:]] = (order[:3], order[3:5]), 1.0
        T = np.diag(t)
        for cluster in clusters:
            T[np.ix_(cluster, cluster)] = form.A[np.ix_(cluster, cluster)]
        share = 0.9 / np.linalg.eigvals(np.linalg.solve(form.A, T)).real.max()
        t, blocks = share * t, tuple(share * T[np.ix_(c, c)] for c in clusters)
    record = SplitRecord(form.live[::-1].copy() if kind == "penalty" else form.live,
                         t[::-1].copy() if kind == "penalty" else t, clusters, blocks)  # fmt: skip
    tasks = []
    for _ in range(8):
        state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), p, p=[0.6, 0.15, 0.25])
        state[np.flatnonzero(state == IN)[k:]] = OUT
        free = np.flatnonzero(state == FREE)
        g = (form.c * rng.random(p) * (rng.random(p) < 0.7)).astype(np.float32).astype(float)
        used = np.flatnonzero(g)
        tasks.append(Task(0, state, used, g[used], free[:1], free[1:3]))
    found = ProvenSplit(evidence, record).evaluate(tasks)
    true = exact.split(record).evaluate(tasks)
    for mine, exactly in zip(found, true, strict=True):
        for value, best in zip(mine, exactly, strict=True):
            assert value <= float(best) * (1 + 1e-15)
            assert value >= float(best) - 1e-9 * (1 + abs(float(best)))


def test_sums_over_rows_count_among_the_roundings():
    """Equal numbers are rounded the same way again and again."""
    found = []
    for n in (2000, 20_000, 50_000):
        for value in (0.1, 0.3, 0.7):
            Z = np.full((2, n), value / np.sqrt(n))
            matrix, zero = ByColumns(Z, np.zeros(2)), np.zeros(1)
            product = matrix.product(zero.astype(int), np.ones((1, 1)), zero)
            exact = n * Fraction(float(Z[0, 0])) ** 2
            error = abs(Fraction(float(product(np.arange(2))[0, 1])) - exact)
            assert error <= (1 + matrix.n_terms + 6) * Fraction(UNIT) * exact
            found.append(float(error / exact))
    assert max(found) > 7 * UNIT  # what a product of stored numbers may be off


def test_gains_in_a_box_without_charges():
    """Compiled as in numpy, and never below what is attained: t > 0, t = 0, t < 0."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        u, error = rng.standard_normal((4, 30)), rng.random(4) * 1e-3
        t = rng.choice([0.0, -1e-13, -0.1, 1e-12, 0.5], 30)
        lo, hi = -rng.choice([0.0, 0.1, 3.0, np.inf], 30), rng.choice([0.0, 0.1, 3.0, np.inf], 30)
        gains, wanted = np.full(u.shape, -1.0), rng.random(u.shape) < 0.8
        fill_gains(u, error, t, lo, hi, wanted, gains)
        expected = largest_gain(u, error[:, None], t, lo, hi)
        np.testing.assert_array_equal(gains[wanted], expected[wanted])
        assert (gains[~wanted] == -1.0).all()
        x = np.linspace(np.maximum(lo, -50.0), np.minimum(hi, 50.0), 101)[:, None]
        v = u + rng.choice([-1.0, 1.0], u.shape) * error[:, None]
        attained = (2 * v * x - t * x * x).max(axis=0)
        assert (expected >= attained - 1e-12 * (1 + np.abs(attained))).all()


# --- Parts of the proof


def test_the_last_feature_needs_no_products_among_the_others(wide_verifier):
    rng = np.random.default_rng(0)
    for k in (1, 2, 4):
        X, y = rng.standard_normal((15, 9)), rng.standard_normal(15)
        X[:, 4] = X[:, 3]
        values = values_of_supports(X, y, k)
        evidence = from_rows(certify_by_enumeration(X, y, k), X, y, None)
        inside, free = np.arange(k - 1), np.arange(k - 1, 9)
        order = sorted(v for S, v in values.items() if set(inside) <= set(S))
        for rank in (0, 2, len(order) - 1):
            target = order[rank] * (1 + 1e-9)
            search = Enumeration(evidence, target, Judge(evidence, target), None)
            found = search._hits_of_one(inside, free)
            expected = {S for S, v in values.items() if set(inside) <= set(S) and v < target}
            assert {tuple(sorted(S.tolist())) for S in found} == expected


def test_charges_above_the_penalty_need_products_of_few_features(monkeypatch, wide_verifier):
    instance = Instance(
        regime="plain", X=np.random.default_rng(0).standard_normal((30, 8)),
        y=np.random.default_rng(1).standard_normal(30), k=2, options={"alpha": 1.0},
    )  # fmt: skip
    certificate = certify(instance, blocks=False)
    assert checked(instance, certificate)
    monkeypatch.setattr(matrices, "_FEW", 7)
    monkeypatch.setattr(matrices, "_SHARE", 0.0)
    found = checked(instance, certificate)
    assert any("too many" in reason for reason in found.failures), str(found)


# --- Other forms of the data, and larger ones


@pytest.fixture(scope="module")
def wide_proof():
    data = make_synthetic(60, 20_000, 2, rho=0.1, snr=20.0)
    options = {"k": 2, "alpha": 1.0, "bounds": (-2.0, 2.0), "n_threads": 1}
    return data.X, data.y, bestk.solve(data.X, data.y, **options).certificate


def test_no_square_matrix_is_formed(wide_proof, monkeypatch):
    X, y, certificate = wide_proof
    monkeypatch.setattr(wide, "_BLOCK", 1 << 14)
    monkeypatch.setattr(splits, "_GAINS", 1 << 16)
    tracemalloc.start()
    evidence = from_rows(certificate, X, y, None)
    _, peak = tracemalloc.get_traced_memory()
    assert isinstance(evidence.A, ByColumns)
    assert peak < 1.6 * X.nbytes  # the columns, and vectors of features
    del evidence
    tracemalloc.reset_peak()
    found = certificate.verify(X, y, n_threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found, str(found)
    assert found.gap <= 1.001e-4
    assert peak < 3 * X.nbytes < 0.01 * 8 * X.shape[1] ** 2


def test_tampered_proofs_of_wide_data_are_refused(wide_proof):
    X, y, certificate = wide_proof
    tree, split = certificate.tree, certificate.splits[0]
    more = certificate.objective * (1 + 1e-6)
    raised = replace(certificate, lower_bound=more, objective=more)
    assert not raised.verify(X, y)
    charged = replace(certificate, splits=(split._replace(t=split.t * 1.01),))
    reasons = charged.verify(X, y).failures
    assert any("exceed the penalty" in reason for reason in reasons), reasons
    dual = replace(tree, dual_value=np.zeros_like(tree.dual_value))
    assert not replace(certificate, tree=dual).verify(X, y)
    doubled = replace(tree, dual_value=tree.dual_value * 2.0)
    assert not replace(certificate, tree=doubled).verify(X, y)
    leaf = int(np.flatnonzero(tree.is_leaf)[-1])
    assert not without_node(certificate, leaf).verify(X, y)
    some = with_tree(certificate, out_index=changed(tree.out_index, 0, int(tree.out_index[1])))
    assert not some.verify(X, y)


def test_charges_a_little_above_the_penalty_are_lowered(wide_proof):
    X, y, certificate = wide_proof
    split = certificate.splits[0]
    others = replace(certificate, splits=(split._replace(t=split.t * (1 + 1e-11)),))
    evidence = from_rows(others, X, y, None)
    assert (ProvenSplit(evidence, others.splits[0]).t <= evidence.A.ridge).all()
    found, plain = others.verify(X, y), certificate.verify(X, y)
    assert found, str(found)
    assert found.lower_bound == pytest.approx(plain.lower_bound, rel=1e-9)


def test_wide_batches_are_kept_however_many(wide_proof, monkeypatch):
    monkeypatch.setattr(evidence_module, "KEPT_BYTES", 8 * 2500 * 10)
    monkeypatch.setattr(matrices, "WIDE_FROM", 2.0)
    kept, rows = evidence_module._Kept(2498), np.random.default_rng(0).random((1300, 2498))
    for start in range(0, 1200, 240):
        part = rows[start : start + 240]
        assert kept.add(part, part[:, 0], None)
    assert not kept.add(rows[1200:], rows[1200:, 0], None)  # as large as their products
    X, y, _ = kept.release()
    np.testing.assert_array_equal(X, rows[:1200])
    np.testing.assert_array_equal(y, rows[:1200, 0])
    assert not kept.add(rows[:1], y[:1], None)
    X, y, certificate = wide_proof
    instance = Instance(regime="plain", X=X, y=y, k=2)
    whole = certificate.verify(X, y, n_threads=1)
    monkeypatch.setattr(evidence_module, "KEPT_BYTES", 8 * X.shape[1] * 10)
    found = verify_batches(certificate, as_batches(instance, 7), n_threads=1)
    assert replace(found, seconds=0.0) == replace(whole, seconds=0.0)


@pytest.mark.parametrize("kind", ["float32", "int8", "fortran"])
def test_other_types_and_layouts(kind):
    rng = np.random.default_rng(0)
    X = rng.integers(-9, 10, (30, 2500)).astype(np.int8)
    y = X[:, :3].sum(axis=1) + rng.standard_normal(30).astype(np.float32)
    X = {"float32": X.astype(np.float32), "int8": X, "fortran": np.asfortranarray(X * 1.0)}[kind]
    result = bestk.solve(X, y, k=2, alpha=1.0, node_limit=20, fit_intercept=True, n_threads=1)
    found = result.certificate.verify(X, y, n_threads=1)
    assert found, str(found)
    assert isinstance(from_rows(result.certificate, X, y, None).A, ByColumns)


@pytest.mark.parametrize("factor", [1e-180, 1e-120, 1e120, 1e180])
def test_extreme_units(factor, wide_verifier):
    instance = make(0, "plain")
    instance.options = {}
    plain = certify(instance)
    scaled = replace(instance, X=instance.X * [factor, *[1.0] * (instance.X.shape[1] - 1)])
    certificate = replace(plain, coef=np.append(plain.coef[:1] / factor, plain.coef[1:]))
    found = checked(scaled, sealed(certificate, rows_digest(scaled.X, scaled.y)))
    assert found, str(found)


@pytest.mark.parametrize("factor", [2.0**-900, 2.0**900])
@pytest.mark.parametrize("centre", [False, True])
def test_extreme_weights(factor, centre, wide_verifier):
    instance = make(0, "plain")
    weight = np.random.default_rng(0).random(len(instance.y))
    instance.options = {"sample_weight": weight, "fit_intercept": centre}
    plain = certify(instance)
    scaled = replace(instance, options={"sample_weight": factor * weight, "fit_intercept": centre})
    objective = plain.objective * factor
    certificate = replace(plain, objective=objective, lower_bound=objective)
    found = checked(scaled, sealed(certificate, rows_digest(scaled.X, scaled.y, factor * weight)))
    assert found, str(found)


def test_the_matrices_are_interchangeable():
    rng = np.random.default_rng(0)
    Z, ridge = rng.standard_normal((7, 4)), rng.random(7)
    Z *= np.sqrt((1 - ridge) / (Z**2).sum(axis=1))[:, None]
    by, stored = ByColumns(Z, ridge), Stored(Z @ Z.T + np.diag(ridge))
    order, some = rng.permutation(7), np.array([5, 0, 2])
    G, t = rng.standard_normal((3, 3)), rng.random(3)
    for name, args in {"block": [order], "between": [some, np.array([1, 6])],
                       "blocks": [np.array([[0, 3], [5, 1]])]}.items():  # fmt: skip
        np.testing.assert_allclose(getattr(by, name)(*args), getattr(stored, name)(*args))
    np.testing.assert_allclose(by.product(some, G, t)(order), stored.product(some, G, t)(order))
    part = by.restricted(some), stored.restricted(some)
    np.testing.assert_allclose(*(m.block(np.arange(3)) for m in part))
    assert by.penalty(EMPTY).size == 0
    assert stored.penalty(some) is None
