"""Paths over k: each size proven as if it were solved alone, and a choice among them."""

import numpy as np
import pytest
from helpers.instances import make
from helpers.seeds import seeds
from sklearn.datasets import load_diabetes

import bestk
from bestk import Path, Problem, Status, solve_path


@seeds(60, chunk=20)
def test_every_size_is_as_good_as_solved_alone(seed):
    instance = make(seed)
    include = instance.options.get("include", ())
    ks = range(len(include), min(instance.X.shape[1], 4) + 1)
    if len(ks) == 0:
        return
    path = solve_path(instance.X, instance.y, ks, n_threads=1, **instance.options)
    yy = max(float(instance.y @ instance.y), 1e-300)
    for k, result in path.items():
        alone = bestk.solve(instance.X, instance.y, k, n_threads=1, **instance.options)
        assert result.status is alone.status is Status.OPTIMAL
        assert result.k == k
        tolerance = 2e-4 * alone.objective + 1e-9 * yy
        assert result.objective == pytest.approx(alone.objective, abs=tolerance)
        assert result.lower_bound <= alone.objective + 1e-9 * yy
    slack = 2e-4 * path.objectives[:-1] + 1e-9 * yy
    assert (np.diff(path.objectives) <= slack).all()


@pytest.fixture(scope="module")
def path():
    X, y, _ = bestk.datasets.make_synthetic(300, 20, k=4, rho=0.5)
    return solve_path(X, y, ks=[5, 1, 3, 4, 2, 3])


def test_path_is_a_mapping_in_ascending_order(path):
    assert list(path) == [1, 2, 3, 4, 5]
    assert len(path) == 5
    assert path[3].k == 3
    assert 7 not in path
    with pytest.raises(KeyError):
        path[7]
    assert path.ks.tolist() == [1, 2, 3, 4, 5]
    assert path.coefs.shape == (5, 20)
    assert path.is_proven
    assert (path.lower_bounds <= path.objectives).all()
    assert (path.gaps <= 1e-4).all()


@pytest.mark.parametrize("criterion", ["aicc", "bic", "ebic"])
def test_best_is_the_smallest_criterion(path, criterion):
    scores = path.scores(criterion)
    assert path.best(criterion) is path.results[int(np.argmin(scores))]
    assert scores[0] == path[1].criterion(criterion)


def test_ebic_finds_the_true_size(path):
    assert path.best("ebic").k == 4


def test_table_names_every_size(path):
    lines = str(path).splitlines()
    assert [int(line.split()[0]) for line in lines[1:]] == [1, 2, 3, 4, 5]


def test_a_model_without_features_explains_nothing():
    X, y = load_diabetes(return_X_y=True)  # of its y, rounding used to explain -2e-16
    path = bestk.solve_path(X, y, [0, 1], fit_intercept=True)
    assert path[0].r2 == 0.0
    assert "-0.0" not in str(path)
    assert "optimal: no feature\n" in str(path)


def test_perfect_fits_do_not_reward_further_features():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    path = solve_path(X, 2 * X[:, 1] - X[:, 4], ks=range(1, 6))
    for criterion in ("aicc", "bic", "ebic"):
        assert path.best(criterion).k == 2


def test_problem_makes_paths_too():
    X, y, _ = bestk.datasets.make_synthetic(100, 10, k=2, rho=0.3)
    problem = Problem.from_gram(X.T @ X, X.T @ y, y @ y, n=100)
    by_gram, by_data = problem.solve_path([1, 2]), solve_path(X, y, [1, 2])
    assert isinstance(by_gram, Path)
    np.testing.assert_allclose(by_gram.objectives, by_data.objectives, rtol=1e-9)
    assert by_gram.best("bic").support.tolist() == by_data.best("bic").support.tolist()


@pytest.mark.parametrize(
    ("ks", "error", "match"),
    [
        (3, TypeError, r"range\(1, 4\)"),
        ([], ValueError, "at least one size"),
        ([1.5], TypeError, "each of ks must be a whole number"),
        ([-1], ValueError, "each of ks must be at least 0"),
    ],
)
def test_sizes_are_checked(ks, error, match):
    with pytest.raises(error, match=match):
        solve_path(np.eye(4), np.ones(4), ks)


def test_limits_hold_for_each_size():
    X, y, _ = bestk.datasets.make_synthetic(200, 80, k=10, rho=0.9)
    path = solve_path(X, y, [4, 8, 10], node_limit=0)
    assert all(result.status is Status.NODE_LIMIT for result in path.values())
    assert not path.is_proven
    assert (path.lower_bounds <= path.objectives).all()


def test_interrupt_keeps_the_sizes_that_are_there():
    X, y, _ = bestk.datasets.make_synthetic(200, 80, k=10, rho=0.9)
    seen = []

    def interrupt(snapshot):
        seen.append(snapshot)
        if len(seen) == 4:
            raise KeyboardInterrupt

    path = solve_path(X, y, range(1, 9), callback=interrupt)
    assert 1 <= len(path) < 8
    assert path.results[-1].status is Status.INTERRUPTED


def test_names_of_a_frame_are_used_throughout():
    pandas = pytest.importorskip("pandas")
    X, y, _ = bestk.datasets.make_synthetic(100, 6, k=2, rho=0.3)
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    path = solve_path(frame, y, [2, 3], include=["b"], exclude="d")
    assert "b" in path[2].names
    assert "d" not in path[3].names
    assert path[2].equation("target").startswith("target = ")
    with pytest.raises(ValueError, match=r"no feature 'bb'; did you mean 'b'\?"):
        solve_path(frame, y, [2], include=["bb"])
    with pytest.raises(ValueError, match="its columns in another order than the data of the fit"):
        path[2].predict(frame[list("bacdef")])
    np.testing.assert_allclose(path[2].predict(frame), path[2].predict(X))
