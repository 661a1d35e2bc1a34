"""The promise itself, on thousands of tiny problems whose optimum is known by brute force."""

import numpy as np
import pytest
from helpers.checks import BOUNDS, SEARCHES, SWITCHES, check_result, configuration
from helpers.instances import REGIMES, Instance, batched_optimum, make, make_medium
from helpers.seeds import seeds

import bestk
from bestk import Advanced, Problem, Status


@seeds(3000, chunk=50)
def test_bound_optimum_incumbent_are_in_order(seed):
    instance, config = make(seed), configuration(seed)
    result = instance.solve(**config)
    try:
        check_result(instance, result, config["gap_tol"])
    except AssertionError as error:
        error.add_note(f"{instance.regime}, {config}\n{result}")
        raise


@seeds(300, chunk=50)
@pytest.mark.parametrize("units_from", [2, 6, 1000])
def test_batches_may_come_before_units(seed, units_from, force):
    """None, a few, or all nodes of a tree are bounded in batches, and one proof holds them all."""
    force.units_from(units_from)
    force.units(nodes=3, in_flight=2)
    force.closed_in_units_only()
    instance = make_medium(seed) if seed % 10 == 0 else make(seed + 40_000)
    result = instance.solve(advanced=Advanced(enumeration=False), n_threads=1)
    assert result.status is Status.OPTIMAL
    optimum = batched_optimum(instance) if seed % 10 == 0 else None
    check_result(instance, result, 1e-4, optimum)
    weight = instance.options.get("sample_weight")
    assert result.certificate.verify(instance.X, instance.y, weight, n_threads=1)


@seeds(6, chunk=6)
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("bound", BOUNDS)
def test_every_bound_method_proves_every_regime(seed, regime, bound):
    instance = make(seed + 10_000, regime)
    result = instance.solve(bound=bound, advanced=Advanced(enumeration=False))
    assert result.status is Status.OPTIMAL
    check_result(instance, result, 1e-4)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("switches", ["default", "no enumeration", "no fixing", "paper"])
def test_trees_of_many_nodes_find_the_optimum(seed, switches):
    instance = make_medium(seed)
    result = instance.solve(search=SEARCHES[seed % 3], advanced=SWITCHES[switches])
    assert result.status is Status.OPTIMAL
    check_result(instance, result, 1e-4, batched_optimum(instance))


@seeds(4, start=100)
@pytest.mark.parametrize("gap_tol", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("search", SEARCHES)
def test_gap_tol_is_kept_by_every_search_order(seed, search, gap_tol):
    instance = make_medium(seed)
    switches = Advanced(enumeration=False)
    result = instance.solve(search=search, gap_tol=gap_tol, advanced=switches)
    assert result.status is Status.OPTIMAL
    check_result(instance, result, gap_tol, batched_optimum(instance))


def fingerprint(result):
    history = result.history[["nodes", "incumbent", "bound"]].tolist()
    return result.coef.tobytes(), result.lower_bound, result.n_nodes, history


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("enumeration", [True, False])
def test_result_does_not_depend_on_threads_or_repetition(bound, enumeration):
    switches = Advanced(enumeration=enumeration)
    for instance in (make_medium(3), make_medium(8), make(18), make(37)):
        runs = [
            instance.solve(bound=bound, n_threads=threads, advanced=switches)
            for threads in (1, 2, 2, 1)
        ]
        assert len({repr(fingerprint(run)) for run in runs}) == 1


@seeds(40, chunk=40)
@pytest.mark.parametrize("regime", ["plain", "orthogonal_y", "zero_y", "zero_column", "wide"])
def test_included_features_are_in_the_support(seed, regime):
    instance = make(seed, regime)
    include = instance.options.get("include", [])
    result = instance.solve()
    assert set(include) <= set(result.support.tolist())


@pytest.mark.parametrize("advanced", [Advanced(), Advanced(beam_width=1)])
def test_copies_of_a_feature_add_up_within_their_bounds(advanced):
    """Four copies of x at their limit beat every other model; none of them is redundant."""
    rng = np.random.default_rng(0)
    x, s, e, f = np.linalg.qr(rng.standard_normal((20, 4)))[0].T
    X = np.column_stack([x, x, x, x, x + s + 0.05 * e, x - s + 0.05 * f])
    limit = np.array([0.249, 0.249, 0.249, 0.249, 9.0, 9.0])
    result = bestk.solve(X, x, 4, bounds=(-limit, limit), advanced=advanced)
    assert result.support.tolist() == [0, 1, 2, 3]
    assert result.lower_bound <= 0.004**2 * (1 + 1e-9)


def centred(instance):
    """The instance with weighted means subtracted, constants exactly zero: no intercept needed."""
    X, y = np.asarray(instance.X, dtype=float), np.asarray(instance.y, dtype=float)
    weight = np.asarray(instance.options.get("sample_weight", np.ones(len(y))), dtype=float)
    columns = np.column_stack([X, y])
    shifted = columns - (weight @ columns) / weight.sum()
    largest = np.abs(columns).max(axis=0)
    shifted[:, np.abs(shifted).max(axis=0) <= 1e-14 * largest] = 0.0
    plain = Instance(
        regime=instance.regime, X=shifted[:, :-1], y=shifted[:, -1], k=instance.k,
        options=instance.options,
    )  # fmt: skip
    return plain, X, y, weight


@seeds(400, chunk=50)
def test_intercepts_hold_in_every_regime_from_data_and_batches(seed):
    instance = make(seed)
    plain, X, y, weight = centred(instance)
    best, yy = plain.brute_force(), float(weight @ plain.y**2)
    results = [instance.solve(fit_intercept=True)]
    # A Gram matrix cannot tell features apart whose angle is below the root of rounding.
    if instance.regime != "near_collinear":
        half = (len(y) + 1) // 2
        blocks = [(X[:half], y[:half], weight[:half]), (X[half:], y[half:], weight[half:])]
        options = {n: v for n, v in instance.options.items() if n in ("alpha", "bounds")}
        limits = {n: v for n, v in instance.options.items() if n in ("include", "exclude")}
        problem = Problem.from_batches(blocks, fit_intercept=True, **options)
        results.append(problem.solve(instance.k, n_threads=1, **limits))
    for result in results:
        slack = 1e-7 * yy
        assert result.lower_bound <= best + slack
        assert best - slack <= result.objective <= best * (1 + 2e-4) + slack


@seeds(200, chunk=25)
@pytest.mark.parametrize("by_rows", [False, True])
def test_the_last_feature_is_found_without_products(seed, by_rows, force):
    """As with more free features than products are formed for, by rows or with a dense matrix."""
    force.enumeration(most_free=2)
    if by_rows:
        force.wide_search()
    instance = make(seed + 700_000)
    result = instance.solve()
    check_result(instance, result, 1e-4)
    weight = instance.options.get("sample_weight")
    assert result.certificate.verify(instance.X, instance.y, weight, n_threads=1)
