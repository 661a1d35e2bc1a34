"""The promise itself, on thousands of tiny problems whose optimum is known by brute force."""

import numpy as np
import pytest
from instances import REGIMES, Instance, batched_optimum, make, make_medium, tolerance

import bestk
from bestk import Advanced, Problem, Status
from bestk.results.result import PERFECT_FIT

SEEDS = 3000
CHUNK = 50
SEARCHES = ("best-first", "breadth-first", "depth-first")
BOUNDS = ("descent", "admm", "fast", "subgradient")
SWITCHES = {
    "default": Advanced(),
    "no enumeration": Advanced(enumeration=False),
    "no fixing": Advanced(fixing=False),
    "no enumeration, no fixing": Advanced(enumeration=False, fixing=False),
    "uniform split": Advanced(enumeration=False, split="uniform"),
    "no rebuild": Advanced(enumeration=False, rebuild=False),
    "heuristic branching": Advanced(enumeration=False, branching="heuristic"),
    "single nodes": Advanced(enumeration=False, batch_size=1, beam_width=1),
    "paper": Advanced.paper(),
}


def configuration(seed):
    """Method, switches, tolerance and limit of a run, drawn independently of the instance."""
    rng = np.random.default_rng([seed, 1])
    return {
        "search": str(rng.choice(SEARCHES)),
        "bound": str(rng.choice(BOUNDS)),
        "advanced": SWITCHES[str(rng.choice(list(SWITCHES)))],
        "gap_tol": float(rng.choice([1e-4, 0.0, 0.1])),
        "node_limit": [None, None, None, 0, 1, 3, 8][rng.integers(7)],
        "n_threads": 1,
    }


def check_result(instance, result, gap_tol, optimum=None):
    """Everything a Result promises, against brute force and against the data."""
    X, y, options = instance.X.astype(float), instance.y.astype(float), instance.options
    weight = options.get("sample_weight", np.ones(len(y)))
    yy = float(y @ (weight * y))
    optimum = instance.brute_force() if optimum is None else optimum
    allowance = tolerance(instance, optimum, yy)

    assert result.lower_bound <= optimum + allowance
    assert result.objective >= optimum - allowance
    assert 0.0 <= result.lower_bound <= result.objective
    if result.status is Status.OPTIMAL:
        slack = gap_tol * max(result.objective, PERFECT_FIT * yy)
        assert result.objective - optimum <= slack + allowance
        assert result.gap <= gap_tol + 1e-15
    else:
        assert result.status is Status.NODE_LIMIT

    coef, support = result.coef, result.support
    assert coef.shape == (X.shape[1],)
    assert np.isfinite(coef).all()
    assert len(support) <= instance.k
    assert (np.diff(support) > 0).all()
    assert set(np.flatnonzero(coef)) <= set(support.tolist())
    assert not set(support.tolist()) & set(options.get("exclude", ()))
    lower, upper = options.get("bounds", (-np.inf, np.inf))
    assert (coef >= lower).all()
    assert (coef <= upper).all()

    residual = y - X @ coef
    recomputed = residual @ (weight * residual) + options.get("alpha", 0.0) * (coef @ coef)
    terms = np.abs(y) + np.abs(X) @ np.abs(coef)
    rounding = 1e-14 * float(terms @ (weight * terms)) + 1e-14 * recomputed
    assert result.objective == pytest.approx(recomputed, rel=0, abs=rounding)

    difference = result.objective - result.lower_bound
    if difference > 0:
        assert result.gap == pytest.approx(difference / max(result.objective, PERFECT_FIT * yy))
        explained = yy - result.objective
        if explained > 1e-9 * yy:
            assert result.explained_gap == pytest.approx(difference / explained, rel=1e-5)
    else:
        assert result.gap == result.explained_gap == 0.0


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_bound_optimum_incumbent_are_in_order(first):
    for seed in range(first, first + CHUNK):
        instance, config = make(seed), configuration(seed)
        result = instance.solve(**config)
        try:
            check_result(instance, result, config["gap_tol"])
        except AssertionError as error:
            error.add_note(f"seed {seed}, regime {instance.regime}, {config}\n{result}")
            raise


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("bound", BOUNDS)
def test_every_bound_method_proves_every_regime(regime, bound):
    for seed in range(6):
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


@pytest.mark.parametrize("gap_tol", [0.0, 1e-4, 0.1])
@pytest.mark.parametrize("search", SEARCHES)
def test_gap_tol_is_kept_by_every_search_order(search, gap_tol):
    for seed in range(100, 104):
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


@pytest.mark.parametrize("regime", ["plain", "orthogonal_y", "zero_y", "zero_column", "wide"])
def test_included_features_are_in_the_support(regime):
    for seed in range(40):
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


@pytest.mark.parametrize("first", range(0, 400, 50))
def test_intercepts_hold_in_every_regime_from_data_and_batches(first):
    for seed in range(first, first + 50):
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
