"""The runner-up is the best of all models that lack a feature of the answer."""

from itertools import combinations

import numpy as np
import pytest

from bestk import Problem, Status


def instance(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 8)) + rng.standard_normal((30, 1))
    y = X[:, 2] - X[:, 5] + rng.choice([0.1, 1.0]) * rng.standard_normal(30)
    return X, y


def best_lacking(problem, result, k, include=(), exclude=()):
    """Least objective of supports with `include`, not `exclude`, and not all of result's."""
    allowed = [j for j in range(problem.n_features) if j not in exclude]
    return min(
        problem.fit(np.array(S, dtype=int))[1]
        for size in range(k + 1)
        for S in combinations(allowed, size)
        if set(include) <= set(S) and not set(result.support) <= set(S)
    )


@pytest.mark.parametrize("k", [1, 2, 3, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.5])
@pytest.mark.parametrize("seed", range(6))
def test_runner_up_is_the_best_that_lacks_a_feature(seed, alpha, k):
    problem = Problem.from_data(*instance(seed), alpha=alpha)
    result = problem.solve(k, gap_tol=0.0)
    other = problem.runner_up(result, gap_tol=0.0)
    assert other.status is Status.OPTIMAL
    assert other.gap == 0.0
    assert other.objective == pytest.approx(best_lacking(problem, result, k), rel=1e-10)
    assert not set(result.support) <= set(other.support)
    assert other.objective >= result.objective


def test_included_features_stay_and_excluded_ones_stay_out():
    problem = Problem.from_data(*instance(1))
    rules = {"include": [0], "exclude": [5]}
    result = problem.solve(3, gap_tol=0.0, **rules)
    other = problem.runner_up(result, gap_tol=0.0, **rules)
    assert 0 in other.support
    assert 5 not in other.support
    best = best_lacking(problem, result, 3, include=[0], exclude=[5])
    assert other.objective == pytest.approx(best, rel=1e-10)


def test_no_runner_up_where_everything_is_included():
    problem = Problem.from_data(*instance(2))
    result = problem.solve(2, include=[1, 3])
    assert problem.runner_up(result, include=[1, 3]) is None


def test_a_copy_of_a_feature_is_as_good():
    X, y = instance(3)
    problem = Problem.from_data(np.column_stack([X, 2.0 * X[:, 2]]), y)
    result = problem.solve(2, gap_tol=0.0)
    other = problem.runner_up(result, gap_tol=0.0)
    assert other.objective == pytest.approx(result.objective, rel=1e-10)


def test_bound_holds_after_a_limit_and_after_an_interrupt():
    problem = Problem.from_data(*instance(4))
    result = problem.solve(3, gap_tol=0.0)
    best = best_lacking(problem, result, 3)
    stopped = problem.runner_up(result, gap_tol=0.0, node_limit=0)
    assert stopped.status is Status.NODE_LIMIT
    assert stopped.lower_bound <= best <= stopped.objective * (1 + 1e-12)

    def interrupt(snapshot):
        raise KeyboardInterrupt

    interrupted = problem.runner_up(result, gap_tol=0.0, callback=interrupt)
    assert interrupted.status is Status.INTERRUPTED
    assert interrupted.lower_bound <= min(best, result.lower_bound)
