"""Ways into the solver: the same problem whatever its form, type, order or units."""

from contextlib import suppress
from itertools import product

import numpy as np
import pytest
from instances import Instance, make

import bestk
from bestk import Problem, Status


def data(seed=0, n=40, p=8):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    y = X[:, 0] - 2.0 * X[:, 3] + 0.5 * X[:, 5] + rng.standard_normal(n)
    return X, y


def batches(X, y, size):
    for start in range(0, len(y), size):
        yield X[start : start + size], y[start : start + size]


@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("bounds", [None, (-0.8, 0.8), (0.0, np.inf)])
@pytest.mark.parametrize("seed", range(5))
def test_data_gram_and_batches_give_the_same_model(seed, bounds, alpha):
    X, y = data(seed)
    options = {"alpha": alpha, "bounds": bounds}
    problems = [
        Problem.from_data(X, y, **options),
        Problem.from_gram(X.T @ X, X.T @ y, y @ y, len(y), **options),
        Problem.from_batches(batches(X, y, 7), **options),
    ]
    results = [problem.solve(3) for problem in problems]
    direct = bestk.solve(X, y, 3, **options)
    for result in results:
        assert result.objective == pytest.approx(direct.objective, rel=1e-12)
        np.testing.assert_allclose(result.coef, direct.coef, atol=1e-11)
        assert result.status is Status.OPTIMAL
    assert {problem.n_samples for problem in problems} == {40}


@pytest.mark.parametrize(
    "regime",
    [
        "wide",
        "duplicate",
        "zero_column",
        "integers",
        "one_row",
        "mixed_units",
        "tiny_units",
        "binary",
    ],
)
def test_gram_gives_the_objective_of_the_data(regime):
    for seed in range(10):
        instance = make(seed, regime)
        X, y = instance.X.astype(float), instance.y.astype(float)
        options = {name: instance.options[name] for name in ("alpha",) if name in instance.options}
        of_data = Problem.from_data(X, y, **options).solve(instance.k)
        of_gram = Problem.from_gram(X.T @ X, X.T @ y, y @ y, **options).solve(instance.k)
        assert of_gram.objective == pytest.approx(of_data.objective, rel=1e-7, abs=1e-9 * (y @ y))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8])
def test_data_are_neither_changed_nor_copied(dtype, order):
    X, y = data()
    X = np.asarray(10 * X, dtype=dtype, order=order)
    before = X.tobytes(), y.tobytes()
    X.flags.writeable = y.flags.writeable = False
    problem = Problem.from_data(X, y, sample_weight=np.full(len(y), 0.5), alpha=0.1)
    problem.solve(3)
    assert (X.tobytes(), y.tobytes()) == before
    assert np.shares_memory(problem._data.X, X)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, np.uint8, np.bool_, np.float16])
def test_number_types_give_the_float64_result(dtype):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 2 if dtype is np.bool_ else 100, (30, 6)).astype(dtype)
    y = rng.integers(-100, 100, 30).astype(np.int8)
    converted = bestk.solve(X.astype(float), y.astype(float), 3, alpha=0.1)
    result = bestk.solve(X, y, 3, alpha=0.1)
    assert result.support.tolist() == converted.support.tolist()
    assert result.objective == pytest.approx(converted.objective, rel=1e-13)


def test_small_integers_do_not_overflow():
    X = np.full((50, 2), 127, dtype=np.int8)
    X[::2, 1] = -128
    y = np.full(50, 32767, dtype=np.int16)
    result = bestk.solve(X, y, 1)
    assert result.support.tolist() == [0]
    assert result.coef[0] == pytest.approx(32767 / 127)
    assert result.objective <= 1e-12 * 50 * 32767.0**2


@pytest.mark.parametrize(
    "arrange",
    [
        np.asfortranarray,
        lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
        lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
        lambda X: X.tolist(),
        np.ma.asarray,
    ],
    ids=["fortran", "strided", "reversed", "lists", "masked without mask"],
)
def test_layout_of_the_data_does_not_matter(arrange):
    X, y = data()
    expected, result = bestk.solve(X, y, 3), bestk.solve(arrange(X), y, 3)
    assert result.support.tolist() == expected.support.tolist()
    np.testing.assert_allclose(result.coef, expected.coef, rtol=1e-12)


def test_column_vector_y_is_accepted():
    X, y = data()
    np.testing.assert_array_equal(bestk.solve(X, y[:, None], 2).coef, bestk.solve(X, y, 2).coef)


def test_pandas_objects_are_accepted():
    import pandas

    X, y = data()
    expected = bestk.solve(X, y, 3)
    result = bestk.solve(pandas.DataFrame(X), pandas.Series(y), 3)
    np.testing.assert_array_equal(result.coef, expected.coef)


@pytest.mark.parametrize("bounds", [None, (-0.5, 0.5)])
def test_weights_equal_replicated_rows(bounds):
    X, y = data(n=20)
    count = np.random.default_rng(2).integers(0, 4, 20)
    weighted = bestk.solve(X, y, 3, alpha=0.2, bounds=bounds, sample_weight=count)
    replicated = bestk.solve(
        np.repeat(X, count, axis=0), np.repeat(y, count), 3, alpha=0.2, bounds=bounds
    )
    assert weighted.support.tolist() == replicated.support.tolist()
    assert weighted.objective == pytest.approx(replicated.objective, rel=1e-12)
    np.testing.assert_allclose(weighted.coef, replicated.coef, rtol=1e-9)


def test_objective_is_the_formula():
    X, y = data()
    rng = np.random.default_rng(3)
    weight = rng.random(40)
    coef = rng.standard_normal(8) * (rng.random(8) < 0.6)
    expected = np.sum(weight * (y - X @ coef) ** 2) + 0.3 * coef @ coef
    root = np.sqrt(weight)[:, None]
    of_data = Problem.from_data(X, y, alpha=0.3, sample_weight=weight)
    Xw, yw = root * X, root[:, 0] * y
    of_gram = Problem.from_gram(Xw.T @ Xw, Xw.T @ yw, yw @ yw, alpha=0.3)
    assert of_data.objective(coef) == pytest.approx(expected, rel=1e-13)
    assert of_gram.objective(coef) == pytest.approx(expected, rel=1e-12)
    assert of_data.objective(np.zeros(8)) == pytest.approx(yw @ yw)


@pytest.mark.parametrize("bounds", [None, (-0.6, 0.6), (0.0, np.inf)])
def test_fit_is_optimal_on_its_support(bounds):
    X, y = data()
    problem = Problem.from_data(X, y, alpha=0.1, bounds=bounds)
    support = np.array([1, 3, 6])
    coef, value = problem.fit(support)
    rng = np.random.default_rng(4)
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(50):
            other = np.zeros(8)
            other[support] = np.clip(
                coef + size * rng.standard_normal(3), problem.lower[support], problem.upper[support]
            )
            assert problem.objective(other) >= value - 1e-10


@pytest.mark.parametrize("seed", [9, 28, 70])
def test_fit_is_optimal_among_opposite_columns_with_signs(seed):
    """x and -x with b >= 0: one of the two is enough, and a bounded solver may get lost."""
    rng = np.random.default_rng(seed)
    x, z, y = rng.standard_normal((3, 6))
    problem = Problem.from_data(np.column_stack([x, -x, z]), y, bounds=(0.0, np.inf))
    smaller = min(problem.fit(np.array(S))[1] for S in ([0, 2], [1, 2]))
    assert problem.fit(np.array([0, 1, 2]))[1] <= smaller * (1 + 1e-9)
    assert problem.solve(3).objective <= smaller * (1 + 1e-9)


@pytest.mark.parametrize("bounds", [(0.0, np.inf), (-np.inf, 0.0), (-0.3, 0.3)])
def test_fit_among_copies_is_optimal_with_sane_coefficients(bounds):
    """x, x, -x, -x: huge coefficients that cancel would leave nothing but rounding."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        x, z, w, y = rng.standard_normal((4, 12)) + 0.5 * rng.standard_normal(12)
        instance = Instance(
            regime="copies", X=np.column_stack([x, x, -x, -x, z, w]), y=y, k=4,
            options={"bounds": bounds},
        )  # fmt: skip
        support = np.sort(rng.permutation(6)[:4])
        coef, value = Problem.from_data(instance.X, y, bounds=bounds).fit(support)
        assert value == pytest.approx(instance.loss(support), rel=1e-9)
        assert np.abs(coef).max() < 1e3


@pytest.mark.parametrize("x_units", [1e-200, 1e-160, 1e-100, 1e100, 1e150, 1e200])
@pytest.mark.parametrize("column", [0, 3, 7])
def test_extreme_units_of_a_column_do_not_change_the_model(x_units, column):
    X, y = data()
    expected = bestk.solve(X, y, 3)
    X[:, column] *= x_units
    result = bestk.solve(X, y, 3)
    assert result.status is Status.OPTIMAL
    assert result.support.tolist() == expected.support.tolist()
    assert result.objective == pytest.approx(expected.objective, rel=1e-10)


@pytest.mark.parametrize("units", [1e-150, 1e-100, 1e-30, 1e30, 1e100, 1e150])
def test_extreme_units_of_everything_do_not_change_the_model(units):
    X, y = data()
    expected = bestk.solve(X, y, 3)
    result = bestk.solve(X * units, y * units, 3)
    assert result.status is Status.OPTIMAL
    assert result.support.tolist() == expected.support.tolist()
    np.testing.assert_allclose(result.coef, expected.coef, rtol=1e-9)


@pytest.mark.parametrize("units", [1e170, 1e200])
def test_y_too_large_to_square_is_refused(units):
    X, y = data()
    with pytest.raises(ValueError, match="y'y overflows"):
        bestk.solve(X, y * units, 3)


@pytest.mark.parametrize("units", [1e-200, 1e-170])
def test_y_too_small_to_square_is_not_taken_for_zero(units):
    """A right answer or an explanation, but not the empty model."""
    X, y = data()
    with suppress(ValueError):
        assert bestk.solve(X, y * units, 3).support.tolist() == [0, 3, 5]


def test_batches_with_extreme_units_say_what_overflows():
    X, y = data()
    with pytest.raises(ValueError, match="batch 0"):
        Problem.from_batches([(X * 1e200, y)])


def test_batches_are_read_once_and_may_be_of_any_size():
    X, y = data()
    blocks = [(X[:1], y[:1]), (X[1:1], y[1:1]), (X[1:30], y[1:30]), (X[30:], y[30:])]
    problem = Problem.from_batches(iter(blocks))
    assert problem.n_samples == 40
    np.testing.assert_allclose(problem.gram, X.T @ X, rtol=1e-12)


def test_one_problem_serves_many_k():
    X, y = data()
    problem = Problem.from_data(X, y)
    objectives = [problem.solve(k).objective for k in range(9)]
    assert objectives == sorted(objectives, reverse=True)
    for k, objective in enumerate(objectives):
        assert objective == pytest.approx(bestk.solve(X, y, k).objective, rel=1e-12)


def test_initial_support_is_used():
    X, y = data()
    best = bestk.solve(X, y, 3)
    start = bestk.solve(X, y, 3, initial_support=best.support, node_limit=0)
    assert start.objective == best.objective
    poor = bestk.solve(X, y, 3, initial_support=[1, 2])
    assert poor.support.tolist() == best.support.tolist()


@pytest.mark.parametrize("as_mask", [True, False])
def test_include_and_exclude_take_indices_or_masks(as_mask):
    X, y = data()
    include, exclude = [1], [3, 4]
    if as_mask:
        include, exclude = np.isin(np.arange(8), include), np.isin(np.arange(8), exclude)
    result = bestk.solve(X, y, 3, include=include, exclude=exclude)
    assert 1 in result.support
    assert not {3, 4} & set(result.support.tolist())


def test_nothing_to_choose_is_answered_at_once():
    X, y = data()
    empty = bestk.solve(X, y, 0)
    assert empty.support.size == 0
    assert empty.objective == empty.lower_bound == pytest.approx(y @ y)
    excluded = bestk.solve(X, y, 3, exclude=range(8))
    assert excluded.support.size == 0
    assert excluded.status is Status.OPTIMAL


def test_without_rows_nothing_is_explained():
    result = bestk.solve(np.zeros((0, 3)), np.zeros(0), 2)
    assert result.objective == result.lower_bound == 0.0
    assert not result.coef.any()


def test_without_columns_y_is_all_residual():
    y = np.array([1.0, 2.0])
    result = bestk.solve(np.zeros((2, 0)), y, 2)
    assert result.coef.shape == (0,)
    assert result.objective == result.lower_bound == 5.0


@pytest.mark.parametrize("factor", [1.0, -1.0, 3.0, 1e-7])
def test_copies_of_features_do_not_hinder_the_proof(factor):
    """Without ridge a copy makes every relaxation worthless; it is left out instead."""
    X, y, _ = bestk.datasets.make_synthetic(300, 40, k=6, rho=0.5, seed=1)
    doubled = np.column_stack([X, factor * X[:, 0], factor * X[:, 7]])
    plain, result = bestk.solve(X, y, 6), bestk.solve(doubled, y, 6, node_limit=500)
    assert result.status is bestk.Status.OPTIMAL
    assert result.objective == pytest.approx(plain.objective, rel=1e-12)


def test_included_copies_stay():
    X, y, _ = bestk.datasets.make_synthetic(100, 8, k=2, rho=0.5, seed=1)
    doubled = np.column_stack([X, X[:, 0]])
    result = bestk.solve(doubled, y, 3, include=[0, 8])
    assert {0, 8} <= set(result.support.tolist())
    assert result.objective == pytest.approx(bestk.solve(X, y, 2, include=[0]).objective, rel=1e-12)


def test_nearly_equal_features_are_not_taken_for_copies():
    rng = np.random.default_rng(0)
    x, e = rng.standard_normal((2, 50))
    X = np.column_stack([x, x + 1e-9 * e, rng.standard_normal(50)])
    result = bestk.solve(X, e, 2)
    assert result.support.tolist() == [0, 1]
    assert result.objective < 1e-9 * (e @ e)


@pytest.mark.parametrize("reach", [6e3, 6.1e4, 2e5])
def test_a_fit_at_its_bounds_is_the_best_with_huge_coefficients(reach):
    """Monomials whose best coefficients are 1e4 times as large as standardised ones should be."""
    instance = make(3068)
    X, y = instance.X, instance.y
    upper = reach * np.linalg.norm(y) / np.linalg.norm(X, axis=0)
    support = np.arange(X.shape[1])
    _, objective = Problem.from_data(X, y, bounds=(-upper, upper)).fit(support)
    assert objective == pytest.approx(best_within(X, y, -upper, upper), rel=1e-5)


def best_within(X, y, lower, upper):
    """The optimum over a box: every way to hold some coefficients at an end, the others fitted."""
    best = np.inf
    for sides in product((None, 0, 1), repeat=X.shape[1]):
        held = np.array([side is not None for side in sides])
        ends = [(lower[j], upper[j])[side] for j, side in enumerate(sides) if side is not None]
        coef = np.zeros(X.shape[1])
        coef[held] = ends
        if not held.all():
            coef[~held] = np.linalg.lstsq(X[:, ~held], y - X[:, held] @ coef[held], rcond=None)[0]
        if (coef >= lower * (1 + 1e-9)).all() and (coef <= upper * (1 + 1e-9)).all():
            best = min(best, float(np.sum((y - X @ coef) ** 2)))
    return best
