"""Forms by rows: the same answers without any p x p matrix, on tiny problems and a larger one."""

import tracemalloc

import numpy as np
import pytest
from instances import REGIMES, make, make_node
from test_optimality import check_result, configuration

import bestk
from bestk import Advanced, Problem, SparseRidgeCV, Status
from bestk.base.constants import FREE, IN, OUT
from bestk.base.threads import Workers
from bestk.bounds import wide
from bestk.bounds.methods import bound_and_fix, make_method
from bestk.bounds.node_batch import Batch
from bestk.bounds.split import first_split
from bestk.datasets import make_synthetic
from bestk.form import matrix as operators
from bestk.form.matrix import ByRows, Stored
from bestk.form.presolve import Presolved
from bestk.form.systems import systems_of
from bestk.selection.cross_validation import cross_validate_batches
from bestk.supports.enumeration import hits
from bestk.verification.verify import verify_batches

ONE = Workers(1)


@pytest.fixture
def by_rows(monkeypatch):
    """Every problem is treated as wide, however small, with tiny cores."""
    monkeypatch.setattr(operators, "FEWEST_WIDE", 1)
    monkeypatch.setattr(operators, "WIDE_FROM", 0.0)
    monkeypatch.setattr(wide, "_FIRST", 2)
    monkeypatch.setattr(wide, "_PER_CHOICE", 0)
    monkeypatch.setattr(wide, "_ENTRANTS", 1)
    monkeypatch.setattr(wide, "_MANY", 4)


def forms(X, y, **options):
    """The same problem by rows and stored."""
    form = Presolved.of(Problem.from_data(X, y, **options)).form
    assert form.is_wide
    return form, form.restricted(np.arange(form.p), stored=True)


@pytest.mark.parametrize("seed", range(20))
def test_both_operators_say_the_same(seed, by_rows):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(1, 8), rng.integers(2, 12)
    weight = rng.random(n) + 0.1 if seed % 2 else None
    X, y = rng.standard_normal((n, p)) + seed % 3, rng.standard_normal(n) + 1.0
    alpha = float(rng.choice([0.0, 0.3]))
    by, stored = (
        form.operator
        for form in forms(X, y, alpha=alpha, sample_weight=weight, fit_intercept=bool(n > 2))
    )
    assert isinstance(by, ByRows)
    assert isinstance(stored, Stored)
    some = rng.permutation(p)[: rng.integers(1, p + 1)]
    np.testing.assert_allclose(by.rows(some), stored.rows(some), atol=1e-13)
    np.testing.assert_allclose(by.block(some), stored.block(some), atol=1e-13)
    np.testing.assert_array_equal(by.block(some), by.block(some).T)
    supports = np.array([rng.permutation(p)[:2] for _ in range(5)])
    coefs = rng.standard_normal(supports.shape)
    np.testing.assert_allclose(by.sums(supports, coefs), stored.sums(supports, coefs), atol=1e-12)
    dense = np.zeros((5, p))
    np.put_along_axis(dense, supports, coefs, axis=1)
    np.testing.assert_allclose(stored.sums(supports, coefs), dense @ stored.A, atol=1e-12)
    np.testing.assert_allclose(
        by.restricted(some).block(np.arange(len(some))), stored.block(some), atol=1e-13
    )


@pytest.mark.parametrize("seed", range(20))
def test_woodbury_solves_the_same_systems(seed, by_rows):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(2, 6), rng.integers(3, 12)
    X, y = rng.standard_normal((n, p)), rng.standard_normal(n)
    by, stored = forms(X, y, alpha=float(rng.choice([0.01, 1.0])))
    t = 0.9 * first_split(by).t
    a, b = systems_of(by, t), systems_of(stored, t)
    rows = rng.standard_normal((4, p))
    np.testing.assert_allclose(a.product(rows), b.product(rows), atol=1e-12)
    for system in (a, b):
        system.shift(0.37)
    np.testing.assert_allclose(a.solve(rows), b.solve(rows), atol=1e-10)
    state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), p)
    np.testing.assert_allclose(a.ridge(state), b.ridge(state), atol=1e-10)
    A, inside = stored.A, state != OUT
    expected = np.zeros(p)
    expected[inside] = np.linalg.solve(A[np.ix_(inside, inside)], by.c[inside])
    np.testing.assert_allclose(a.ridge(state), expected, atol=1e-10)
    largest = b.eigenvalues()[-1]
    assert a.eigenvalues()[-1] == pytest.approx(largest, abs=2 * by.operator.ridge.max())


@pytest.mark.parametrize("first", range(0, 1500, 50))
def test_tiny_problems_by_rows_are_proven_as_promised(first, by_rows):
    for seed in range(first, first + 50):
        instance, config = make(seed + 20_000), configuration(seed)
        # Without a penalty or a box nothing is charged, and trees are as large as they can be.
        config["node_limit"] = min(config["node_limit"] or 60, 60)
        result = instance.solve(**config)
        try:
            check_result(instance, result, config["gap_tol"])
            if result.certificate is not None:
                data = instance.X, instance.y, instance.options.get("sample_weight")
                assert result.certificate.verify(*data, n_threads=1)
        except AssertionError as error:
            error.add_note(f"seed {seed}, regime {instance.regime}, {config}\n{result}")
            raise


@pytest.mark.parametrize("method", ["descent", "admm", "fast", "subgradient"])
@pytest.mark.parametrize("regime", REGIMES)
def test_bounds_and_fixings_by_rows_hold_at_every_node(regime, method, by_rows):
    for seed in range(8):
        case = make_node(seed + 30_000, regime)
        if case is None:
            continue
        form = case.form
        assert form.is_wide
        split = first_split(form)
        for cutoff in (case.optimum * 0.5, case.optimum * (1.0 - 1e-9), 2.0):
            batch = Batch(
                states=case.state[None].copy(),
                duals=np.zeros((1, form.p)),
                levels=np.zeros(1),
                bounds=np.zeros(1),
                work=np.zeros(1),
            )
            searching = make_method(method, form, split, ONE)
            bound_and_fix(searching, form, split, batch, case.k, cutoff, True, ONE)
            assert batch.bounds[0] <= case.optimum + case.slack
            after = batch.states[0]
            for support, value in case.values.items():
                chosen = np.isin(np.arange(form.p), support)
                kept = (chosen | (after != IN)).all() and (~chosen | (after != OUT)).all()
                assert kept or value >= cutoff - case.slack


@pytest.mark.parametrize("seed", range(6))
def test_a_core_that_grows_proves_what_all_features_do(seed):
    """At a size where cores are much smaller than the problem, and have to be begun anew."""
    data = make_synthetic(40, 300, 4, rho=0.3, seed=seed)
    problem = Problem.from_data(data.X, data.y, alpha=1.0, bounds=(-2.0, 2.0))
    stored = Presolved.of(problem).form
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "FEWEST_WIDE", 1)
        patch.setattr(wide, "_FIRST", 8)
        patch.setattr(wide, "_PER_CHOICE", 1)
        patch.setattr(wide, "_ENTRANTS", 4)
        patch.setattr(wide, "_MANY", 30 if seed % 2 else 1000)
        problem = Problem.from_data(data.X, data.y, alpha=1.0, bounds=(-2.0, 2.0))
        form = Presolved.of(problem).form
        assert form.is_wide
        split = first_split(form)
        rng = np.random.default_rng(seed)
        states = np.zeros((5, form.p), dtype=np.int8)
        for row in range(1, 5):
            states[row, rng.permutation(form.p)[:60]] = OUT
            states[row, rng.permutation(form.p)[:row]] = IN
        bounds = {}
        for name, here in (("by rows", form), ("stored", stored)):
            batch = Batch(
                states=states.copy(),
                duals=np.zeros(states.shape),
                levels=np.zeros(5),
                bounds=np.zeros(5),
                work=np.zeros(5),
            )
            method = make_method("descent", here, split, ONE)
            method.closeness, method.sweeps = 1e-6, 4000
            bound_and_fix(method, here, split, batch, 4, 0.6, False, ONE)
            bounds[name] = batch.bounds
    np.testing.assert_allclose(bounds["by rows"], bounds["stored"], atol=2e-4)


def test_one_more_feature_is_found_without_their_products(monkeypatch):
    rng = np.random.default_rng(0)
    n, p = 12, 60
    X = rng.standard_normal((n, p))
    X[:, 7] = X[:, 3]  # a copy of a feature that is in
    y = X[:, 3] - 0.5 * X[:, 20] + 0.2 * rng.standard_normal(n)
    stored = Presolved.of(Problem.from_data(X, y, alpha=0.1)).form
    monkeypatch.setattr(operators, "FEWEST_WIDE", 1)
    monkeypatch.setattr("bestk.supports.enumeration._MOST_FREE", 5)
    form = Presolved.of(Problem.from_data(X, y, alpha=0.1)).form
    assert form.is_wide
    for inside in ([], [3], [3, 50]):
        chosen, free = np.array(inside, dtype=np.intp), np.setdiff1d(np.arange(p), inside)
        problem = form.problem
        values = {j: problem.fit(np.append(chosen, j))[1] / problem.yy for j in free}
        for value in (min(values.values()) * 1.0001, np.median(list(values.values()))):
            found = hits(form, chosen, free, 1, value, ONE)
            again = hits(stored, chosen, free, 1, value, ONE)
            below = {j for j in free if values[j] < value}
            assert below <= {int(support[-1]) for support in found}
            assert len(found) <= len(again) + 1


def test_a_wide_problem_is_solved_without_a_square_matrix():
    n, p = 60, 6000
    data = make_synthetic(n, p, 3, rho=0.1, snr=20.0)
    tracemalloc.start()
    result = bestk.solve(data.X, data.y, k=3, alpha=1.0, bounds=(-2.0, 2.0), n_threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert result.status is Status.OPTIMAL
    assert peak < 0.25 * 8 * p**2
    assert result.lower_bound == pytest.approx(result.objective, rel=1e-4)
    check = result.certificate.verify(data.X, data.y, n_threads=1)
    assert check, check.failures
    # The same question to the path that has all products.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "FEWEST_WIDE", 10**9)
        stored = bestk.solve(data.X[:, :1500], data.y, k=3, alpha=1.0, bounds=(-2.0, 2.0))
    assert result.objective <= stored.objective * (1 + 1e-9)


def test_products_of_wide_data_are_not_at_hand_and_say_so():
    data = make_synthetic(20, 2500, 3)
    problem = Problem.from_data(data.X, data.y)
    assert problem.is_partial
    np.testing.assert_allclose(problem.squares, (data.X**2).sum(axis=0))
    with pytest.raises(ValueError, match="not formed for wide data"):
        _ = problem.gram


def test_cross_validation_of_wide_data(by_rows):
    data = make_synthetic(60, 40, 3, rho=0.1, snr=10.0)
    options = {"ks": (1, 2, 3), "alphas": (0.1, 1.0), "bounds": (-3.0, 3.0)}
    by = SparseRidgeCV(**options).fit(data.X, data.y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "FEWEST_WIDE", 10**9)
        stored = SparseRidgeCV(**options).fit(data.X, data.y)
    assert by.result_.certificate is not None
    np.testing.assert_allclose(
        by.cross_validation_.errors, stored.cross_validation_.errors, rtol=1e-6
    )
    np.testing.assert_allclose(by.coef_, stored.coef_, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_a_box_bounds_without_any_penalty(seed):
    """alpha = 0 and p > n: A is singular, and the box is all that charges a feature."""
    data = make_synthetic(25, 40, 2, rho=0.1, snr=50.0, seed=seed)
    options = {"k": 2, "bounds": (-1.5, 1.5), "advanced": Advanced(enumeration=False)}
    result = bestk.solve(data.X, data.y, **options)
    assert result.status is Status.OPTIMAL
    assert result.certificate.verify(data.X, data.y)
    assert result.n_nodes < 100
    unbounded = bestk.solve(data.X, data.y, **(options | {"bounds": None, "node_limit": 200}))
    assert unbounded.status is Status.NODE_LIMIT
    assert unbounded.lower_bound == 0.0


def wide_batches(weighted):
    """Blocks of wide data that all lie in one array, as some readers make them."""
    rng = np.random.default_rng(4)
    X, y, weight = rng.standard_normal((60, 300)), rng.standard_normal(60), rng.random(60)
    y += X[:, :3].sum(axis=1)

    def blocks():
        room = np.empty((25, 300))
        for start in range(0, 60, 25):
            part = slice(start, start + 25)
            block = room[: len(y[part])]
            block[:] = X[part]
            # The second block says nothing about weights: they are one.
            yield (block, y[part], weight[part]) if weighted and start != 25 else (block, y[part])

    if weighted:
        weight[25:50] = 1.0
    return X, y, weight if weighted else None, blocks


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_batches_of_wide_data_are_kept_in_place_of_their_products(weighted, fit_intercept):
    X, y, weight, blocks = wide_batches(weighted)
    options = {"alpha": 1.0, "fit_intercept": fit_intercept, "bounds": (-2.0, 2.0)}
    problem = bestk.Problem.from_batches(blocks(), **options)
    assert problem.is_partial
    rows = bestk.Problem.from_data(X, y, sample_weight=weight, **options)
    ours, theirs = problem.solve(3), rows.solve(3)
    assert ours.status is Status.OPTIMAL
    assert ours.n_nodes == theirs.n_nodes
    np.testing.assert_array_equal(ours.coef, theirs.coef)
    assert ours.certificate.fingerprint == theirs.certificate.fingerprint
    assert verify_batches(ours.certificate, blocks())


def test_batches_that_are_no_longer_wide_are_summed_up():
    rng = np.random.default_rng(5)
    X, y = rng.standard_normal((400, 210)), rng.standard_normal(400)
    blocks = ((X[i : i + 60], y[i : i + 60]) for i in range(0, 400, 60))
    problem = bestk.Problem.from_batches(blocks, alpha=1.0)
    assert not problem.is_partial
    assert problem.n_samples == 400
    np.testing.assert_allclose(problem.gram, X.T @ X, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
def test_cross_validation_of_wide_batches(weighted):
    X, y, weight, blocks = wide_batches(weighted)
    grid = {"ks": [1, 3], "alphas": [1.0], "bounds": (-2.0, 2.0), "n_folds": 4}
    ours, problem = cross_validate_batches(blocks(), **grid)
    assert problem.is_partial
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(operators, "FEWEST_WIDE", 10**9)
        theirs, dense = cross_validate_batches(
            [(X, y) if weight is None else (X, y, weight)], **grid
        )
    assert not dense.is_partial
    np.testing.assert_allclose(ours.errors, theirs.errors, rtol=1e-6)
    with pytest.raises(ValueError, match="too few rows for n_folds = 61"):
        cross_validate_batches(blocks(), **grid | {"n_folds": 61})
