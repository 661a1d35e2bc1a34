"""The PySINDy optimizer: proven equations, whatever PySINDy does around it."""

import pickle
import warnings
from itertools import combinations, product

import numpy as np
import pysindy as ps
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, TimeSeriesSplit

from bestk import Status, solve
from bestk.datasets import make_dynamics, make_synthetic, simulate
from bestk.sindy import OKRidge, discover

LORENZ = {"x": {"x", "y"}, "y": {"x", "y", "x z"}, "z": {"z", "x y"}}


@pytest.fixture(scope="module")
def lorenz():
    return make_dynamics("lorenz", duration=4.0, degree=2)


@pytest.fixture(scope="module")
def states():
    return simulate("lorenz", 6.0, noise=0.001)


def small(seed, n=40, p=6, equations=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-2, 3, p)
    return X, X @ rng.standard_normal((p, equations)) + rng.standard_normal((n, equations))


def loss(X, y, support, alpha=0.0):
    S = list(support)
    M = np.vstack([X[:, S], np.sqrt(alpha) * np.eye(len(S))])
    rhs = np.append(y, np.zeros(len(S)))
    b = np.linalg.lstsq(M, rhs, rcond=None)[0] if S else np.zeros(0)
    return float(np.sum((rhs - M @ b) ** 2))


def best(X, y, k, alpha=0.0):
    return min(loss(X, y, S, alpha) for S in combinations(range(X.shape[1]), k))


def test_every_equation_is_solved_as_if_alone(lorenz):
    optimizer = OKRidge(k=[2, 3, 2], alpha=1e-3).fit(lorenz.X, lorenz.derivatives)
    assert optimizer.coef_.shape == (3, lorenz.X.shape[1])
    for i, (k, result) in enumerate(zip([2, 3, 2], optimizer.results_, strict=True)):
        alone = solve(lorenz.X, lorenz.derivatives[:, i], k=k, alpha=1e-3)
        np.testing.assert_allclose(optimizer.coef_[i], alone.coef, rtol=1e-9)
        assert result.status is Status.OPTIMAL
        assert result.gap == 0.0
        assert set(result.support) == set(np.flatnonzero(lorenz.coef[i]))
    assert optimizer.objective_ == pytest.approx(sum(r.objective for r in optimizer.results_))
    assert optimizer.lower_bound_ <= optimizer.objective_
    assert len(optimizer.summary().splitlines()) == 4
    assert optimizer.complexity == 7


def test_a_summary_names_terms_as_the_library_does():
    states = simulate("lorenz", 2.0)
    model = ps.SINDy(OKRidge(k=[2, 3, 2]), ps.PolynomialLibrary(degree=2))
    model.fit(states, t=0.002, feature_names=["x", "y", "z"])
    lines = model.optimizer.summary(model.get_feature_names()).splitlines()
    assert [line.split("optimal: ")[1] for line in lines[1:]] == ["x, y", "x, y, x z", "z, x y"]
    with pytest.raises(ValueError, match="feature_names must be 10 strings"):
        model.optimizer.summary(["x", "y", "z"])


@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("total_k", [0, 1, 3, 5, 9])
@pytest.mark.parametrize("seed", range(3))
def test_total_is_shared_out_in_the_best_way(seed, total_k, alpha):
    X, Y = small(seed)
    optimizer = OKRidge(k=4, total_k=total_k, alpha=alpha).fit(X, Y)
    assert np.count_nonzero(optimizer.coef_) <= total_k
    table = [[best(X, y, k, alpha) for k in range(5)] for y in Y.T]
    expected = min(
        sum(row[k] for row, k in zip(table, ks, strict=True))
        for ks in product(range(5), repeat=3)
        if sum(ks) <= total_k
    )
    assert optimizer.objective_ == pytest.approx(expected, rel=1e-6)
    assert optimizer.lower_bound_ <= expected * (1 + 1e-9)
    assert optimizer.lower_bound_ >= expected * (1 - 2e-4)


def test_terms_per_equation_by_name_and_index(lorenz):
    names = lorenz.names
    optimizer = OKRidge(
        k=3, include={0: [names[4]], 2: [0]}, exclude={1: [names[1]]}, feature_names=names
    ).fit(lorenz.X, lorenz.derivatives)
    assert names[4] in optimizer.results_[0].names
    assert 0 in optimizer.results_[2].support
    assert names[1] not in optimizer.results_[1].names
    everywhere = OKRidge(k=3, exclude=[1, 2]).fit(lorenz.X, lorenz.derivatives)
    assert not everywhere.coef_[:, [1, 2]].any()
    with pytest.raises(ValueError, match="include: there is no feature"):
        OKRidge(include={1: ["nonsense"]}, feature_names=names).fit(lorenz.X, lorenz.derivatives)


def test_bounds_per_equation():
    X, Y = small(0)
    optimizer = OKRidge(k=3, bounds={1: (0, np.inf)}).fit(X, Y)
    assert (optimizer.coef_[1] >= 0).all()
    free = OKRidge(k=3).fit(X, Y)
    np.testing.assert_allclose(optimizer.coef_[[0, 2]], free.coef_[[0, 2]])


@pytest.mark.parametrize(
    "library", [ps.PolynomialLibrary(degree=2), ps.PolynomialLibrary(degree=3)]
)
def test_sindy_finds_the_equations(states, library):
    model = ps.SINDy(optimizer=OKRidge(k=[2, 3, 2]), feature_library=library)
    model.fit(states, t=0.002, feature_names=["x", "y", "z"])
    names = model.get_feature_names()
    for row, expected in zip(model.coefficients(), LORENZ.values(), strict=True):
        assert {names[j] for j in np.flatnonzero(row)} == expected
    assert all(result.status is Status.OPTIMAL for result in model.optimizer.results_)
    assert model.score(states, t=0.002) > 0.99


def test_ensembles_of_proven_models(states):
    np.random.seed(0)  # noqa: NPY002 - PySINDy draws from the global generator
    optimizer = ps.EnsembleOptimizer(OKRidge(k=[2, 3, 2]), bagging=True, n_models=4, n_subset=800)
    model = ps.SINDy(optimizer=optimizer, feature_library=ps.PolynomialLibrary(degree=2))
    model.fit(states, t=0.002)
    assert np.shape(optimizer.coef_list) == (4, 3, 10)
    assert np.count_nonzero(model.coefficients()) == 7


@pytest.mark.parametrize("weak", [False, True])
def test_partial_differential_equations(weak):
    """Advection: u_t = -c u_x, found among products of u and its derivatives."""
    x, t = np.linspace(0, 2 * np.pi, 64, endpoint=False), np.linspace(0, 1, 80)
    u = np.exp(np.sin(x[:, None] - 1.5 * t[None, :]))[..., None]
    powers = ps.PolynomialLibrary(degree=2, include_bias=False)
    if weak:
        np.random.seed(0)  # noqa: NPY002 - PySINDy draws from the global generator
        grid = np.stack(np.meshgrid(x, t, indexing="ij"), axis=-1)
        library = ps.WeakPDELibrary(powers, derivative_order=2, spatiotemporal_grid=grid, K=60)
    else:
        library = ps.PDELibrary(powers, derivative_order=2, spatial_grid=x)
    model = ps.SINDy(optimizer=OKRidge(k=1), feature_library=library).fit(u, t=t)
    (result,) = model.optimizer.results_
    assert model.get_feature_names()[result.support[0]] == "x0_1"
    assert result.coef[result.support[0]] == pytest.approx(-1.5, rel=0.02)


def test_weights_and_missing_rows():
    X, Y = small(1)
    weight = np.arange(40) % 3
    weighted = OKRidge(k=2).fit(X, Y, sample_weight=weight)
    repeated = OKRidge(k=2).fit(X.repeat(weight, axis=0), Y.repeat(weight, axis=0))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-8)
    broken_X, broken_Y = X.copy(), Y.copy()
    broken_X[3, 1], broken_Y[7, 0] = np.nan, np.nan
    kept = np.delete(np.arange(40), [3, 7])
    with_gaps = OKRidge(k=2).fit(broken_X, broken_Y)
    np.testing.assert_allclose(with_gaps.coef_, OKRidge(k=2).fit(X[kept], Y[kept]).coef_)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_parallel_equations_and_a_guess_change_nothing(n_jobs):
    X, Y = small(2)
    plain = OKRidge(k=3).fit(X, Y)
    other = OKRidge(k=3, n_jobs=n_jobs, initial_guess=np.ones((3, 6))).fit(X, Y)
    np.testing.assert_array_equal(plain.coef_, other.coef_)


def test_normalised_columns_and_unbiased_coefficients():
    X, Y = small(3)
    plain = OKRidge(k=3).fit(X, Y)
    np.testing.assert_allclose(OKRidge(k=3, normalize_columns=True).fit(X, Y).coef_, plain.coef_)
    shrunk = OKRidge(k=3, alpha=1e3, normalize_columns=True, unbias=True).fit(X, Y)
    for i, support in enumerate(shrunk.ind_):
        fit = np.linalg.lstsq(X[:, support], Y[:, i], rcond=None)[0]
        np.testing.assert_allclose(shrunk.coef_[i, support], fit, rtol=1e-8)


def test_clone_pickle_and_parameters():
    X, Y = small(4)
    optimizer = OKRidge(k=[1, 2, 3], alpha=0.1, include={0: [2]}).fit(X, Y)
    assert clone(optimizer).get_params() == optimizer.get_params()
    copy = pickle.loads(pickle.dumps(optimizer))
    np.testing.assert_array_equal(copy.coef_, optimizer.coef_)
    np.testing.assert_allclose(copy.predict(X), X @ optimizer.coef_.T)
    assert optimizer.set_params(alpha=0.2) is optimizer


def test_names_may_be_an_array():
    X, Y = small(5)
    found = OKRidge(k=1, feature_names=np.array(list("abcdef"))).fit(X, Y)
    assert set(found.results_[0].names) <= set("abcdef")


def test_a_summary_before_the_fit():
    with pytest.raises(NotFittedError):
        OKRidge().summary()


def test_a_search_over_sizes(states):
    """What PySINDy's users do with thresholds."""
    library = ps.PolynomialLibrary(degree=2)
    found = GridSearchCV(
        ps.SINDy(OKRidge(k=1), library),
        {"optimizer__k": [1, 3], "feature_library__degree": [1, 2]},
        scoring=lambda model, x: model.score(x, t=0.002),
        cv=TimeSeriesSplit(n_splits=3),
    ).fit(states, t=0.002)
    assert found.best_params_ == {"optimizer__k": 3, "feature_library__degree": 2}
    assert [len(result.support) for result in found.best_estimator_.optimizer.results_] == [3] * 3


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"k": [1, 2]}, ValueError, "k has 2 entries for 3 equations"),
        ({"k": 1.5}, TypeError, "k must be a whole number"),
        ({"total_k": -1}, ValueError, "total_k must be at least 0"),
        ({"total_k": 1, "include": [0, 1]}, ValueError, "too small|raise k"),
        ({"alpha": -1}, ValueError, "alpha must be"),
        ({"k": "1"}, TypeError, "k must be a whole number"),
        ({"k": [1]}, ValueError, "k has 1 entry for 3 equations"),
        ({"feature_names": ["a"]}, ValueError, "feature_names must be 6 strings"),
        ({"feature_names": 6}, TypeError, "feature_names must be 6 strings"),
        ({"include": {3: [0]}}, ValueError, "include: there is no equation 3; .* 0 to 2"),
        ({"constraint_rhs": [1.0]}, ValueError, "constraint_rhs needs constraint_lhs"),
        (
            {"constraint_lhs": np.ones((1, 18)), "constraint_rhs": [1.0], "equality": 1},
            TypeError,
            "equality must be True or False",
        ),
    ],
)
def test_bad_input_is_named(options, error, match):
    X, Y = small(5)
    with pytest.raises(error, match=match):
        OKRidge(**options).fit(X, Y)


def test_open_gap_is_a_warning():
    X, y, _ = make_synthetic(200, 80, k=10, rho=0.9)
    with pytest.warns(ConvergenceWarning, match=r"gap of \d+\.\d\d% left") as caught:
        optimizer = OKRidge(k=10, time_limit=0.0).fit(X, y)
    assert caught[0].filename == __file__
    assert optimizer.results_[0].status is Status.TIME_LIMIT


def test_equations_have_boxes_of_their_own(easy_data):
    pytest.importorskip("pysindy")
    from bestk.sindy import OKRidge

    X, y = easy_data
    Y = np.column_stack([y, X[:, 0] - 3.0 * X[:, 5] + 0.1 * y])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        every = OKRidge(k=2, bounds="auto").fit(X, Y)
        one = OKRidge(k=2, bounds={1: "auto"}).fit(X, Y)
    assert [result.status for result in every.results_] == [Status.CONDITIONAL] * 2
    assert every.results_[0].box != every.results_[1].box
    assert "conditional" in every.summary()
    assert [result.status for result in one.results_] == [Status.OPTIMAL, Status.CONDITIONAL]
    other = every.problems_[1].runner_up(every.results_[1])
    assert other.box == every.results_[1].box
    shared = OKRidge(k=3, total_k=4, bounds="auto").fit(X, Y)
    assert all(result.is_closed for result in shared.results_)


@pytest.mark.parametrize("total_k", [None, 6])
def test_free_terms_do_not_count(total_k):
    data = make_dynamics("lorenz", duration=2.0, degree=2)
    free = [list(data.names).index("1")] if "1" in data.names else [0]
    optimizer = OKRidge(k=3, total_k=total_k, free=free).fit(data.X, data.derivatives)
    for result in optimizer.results_:
        assert free[0] in result.support
        assert len(np.setdiff1d(result.support, free)) <= result.k <= 3
    counted = sum(len(np.setdiff1d(result.support, free)) for result in optimizer.results_)
    assert counted <= (9 if total_k is None else total_k)
    plain = OKRidge(k=3, total_k=total_k).fit(data.X, data.derivatives)
    assert optimizer.objective_ <= plain.objective_ * (1 + 1e-9)
    some = OKRidge(k=2, free={0: free}).fit(data.X, data.derivatives)
    assert free[0] in some.results_[0].support
    assert some.results_[1].certificate.free.tolist() == []


def test_a_term_that_is_twice_in_a_library_is_named():
    library = ps.PolynomialLibrary(2) + ps.PolynomialLibrary(1)
    states = simulate("lorenz", 2.0)
    words = r"same name in the library: '1' \(columns 0, 10\).*include_bias=False"
    with pytest.raises(ValueError, match=words):
        discover(states, 0.002, library=library)
    names = library.fit(states).get_feature_names()
    terms = np.random.default_rng(0).standard_normal((30, len(names)))
    with pytest.raises(ValueError, match=words):
        OKRidge(k=2, feature_names=names).fit(terms, terms[:, :1])
