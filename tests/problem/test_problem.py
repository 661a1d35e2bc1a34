"""Ways into the solver: the same problem whatever its form, type, order or units."""

import numpy as np
import pytest
from helpers.instances import make
from helpers.regression import batches, data
from helpers.seeds import seeds

import bestk
from bestk import Problem, Status


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


@seeds(10, chunk=10)
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
def test_gram_gives_the_objective_of_the_data(seed, regime):
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
    assert np.shares_memory(problem.rows.X, X)


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
    """An explanation, not the empty model."""
    X, y = data()
    with pytest.raises(ValueError, match="y'y underflows"):
        bestk.solve(X, y * units, 3)


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
