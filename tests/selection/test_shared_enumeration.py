"""One enumeration for several penalties gives what separate searches give."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from bestk import Advanced, Problem, Status
from bestk.base.settings import Settings
from bestk.form.presolve import Presolved
from bestk.search.lessons import Lessons
from bestk.selection import shared_enumeration as penalties
from bestk.supports import enumeration as closure

ALPHAS = [1e-4, 1e-2, 0.3, 2.0]


@pytest.fixture
def eager(force, monkeypatch):
    """Share every enumeration, however short and however good the bounds; counts shortlists."""
    used = []
    shortlists = penalties.shortlists

    def counted(*args):
        found = shortlists(*args)
        used.extend(found)
        return found

    force.sharing(least=0.0, close=np.inf, useless=2.0)
    monkeypatch.setattr("bestk.selection.path.shortlists", counted)
    return used


def library(seed, n=60, p=12):
    """Features that resemble each other, and a target made of two of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 2.0 * rng.standard_normal((n, 1))
    if seed % 3 == 0:
        X[:, 5] = X[:, 4] + 1e-7 * rng.standard_normal(n)
    if seed % 4 == 0:
        X[:, 7] = -3.0 * X[:, 8]
    y = 3.0 * X[:, 1] - 2.0 * X[:, 3] + rng.choice([0.01, 0.5, 3.0]) * rng.standard_normal(n)
    return X * 10.0 ** rng.uniform(-2, 2, p), y


def best_of_all(X, y, k, alpha):
    best = np.inf
    for S in combinations(range(X.shape[1]), k):
        M = np.vstack([X[:, S], np.sqrt(alpha) * np.eye(k)])
        rhs = np.concatenate([y, np.zeros(k)])
        b = np.linalg.lstsq(M, rhs, rcond=None)[0]
        best = min(best, float(np.sum((rhs - M @ b) ** 2)))
    return best


@pytest.mark.parametrize("wide", [True, False], ids=["by rows", "stored"])
@pytest.mark.parametrize("seed", range(24))
def test_grid_is_optimal_for_every_penalty(eager, seed, wide, force):
    if wide:
        force.wide_search()
    X, y = library(seed)
    grid = Problem.from_data(X, y).solve_grid([2, 3, 4], ALPHAS, gap_tol=0.0)
    for alpha, path in grid.items():
        for k, result in path.items():
            best = best_of_all(X, y, k, alpha)
            assert result.status is Status.OPTIMAL
            assert result.gap == 0.0
            assert result.objective == pytest.approx(best, rel=1e-9)
            assert result.lower_bound <= best * (1 + 1e-9)
    assert len(eager) == 3 * len(ALPHAS)


def test_work_is_shared(eager):
    for seed in range(24):
        Problem.from_data(*library(seed)).solve_grid([3, 4], ALPHAS, gap_tol=0.0)
    assert np.mean([shortlist is not None for shortlist in eager]) > 0.5


@pytest.mark.parametrize("seed", range(8))
def test_grid_with_required_and_forbidden_features_and_boxes(eager, seed):
    X, y = library(seed)
    bounds = (-1.0, 5.0) if seed % 2 else None
    problem = Problem.from_data(X, y, bounds=bounds)
    options = {"include": [6], "exclude": [1, 9], "gap_tol": 0.0}
    grid = problem.solve_grid([3, 4], ALPHAS, **options)
    for alpha, path in grid.items():
        for k, result in path.items():
            alone = problem.with_alpha(alpha).solve(k, **options)
            assert result.objective == pytest.approx(alone.objective, rel=1e-9)
            assert result.gap == 0.0
            assert 6 in result.support
            assert not {1, 9} & set(result.support.tolist())


def test_shortlist_holds_all_that_is_below_its_floor(eager):
    X, y = library(2)
    problems = [Presolved.of(Problem.from_data(X, y, alpha=alpha)) for alpha in ALPHAS]
    lessons = [Lessons(presolved.form) for presolved in problems]
    starts = [[] for _ in ALPHAS]
    found = penalties.shortlists(problems, 3, starts, Settings(gap_tol=0.0), lessons)
    for presolved, shortlist in zip(problems, found, strict=True):
        listed = {tuple(sorted(support.tolist())) for support in shortlist.supports}
        for S in combinations(range(X.shape[1]), 3):
            assert S in listed or presolved.problem.fit(S)[1] >= shortlist.floor * (1 - 1e-12)


def test_penalties_far_apart_do_not_share(eager, force):
    force.sharing(close=1.05)
    X, y = library(2)
    grid = Problem.from_data(X, y).solve_grid([3], [1e-9, 1e-8, 10.0], gap_tol=0.0)
    assert [shortlist is None for shortlist in eager] == [False, False, True]
    for alpha, path in grid.items():
        assert path[3].gap == 0.0
        assert path[3].objective == pytest.approx(best_of_all(X, y, 3, alpha), rel=1e-9)


def test_without_a_ridge_nothing_is_shared(eager):
    Problem.from_data(*library(0)).solve_grid([3], [0.0, 1.0])
    assert eager == [None, None]


def test_one_penalty_or_no_enumeration_is_not_shared(eager):
    problem = Problem.from_data(*library(2))
    problem.solve_grid([3], [1.0])
    problem.solve_grid([3], ALPHAS, advanced=Advanced(enumeration=False))
    problem.solve_grid([3], ALPHAS, time_limit=0.0)
    problem.solve_grid([3], ALPHAS, node_limit=0)
    assert set(eager) == {None}


def test_good_bounds_are_preferred_to_enumeration(eager, force):
    force.sharing(useless=0.02)
    Problem.from_data(*library(2)).solve_grid([3], ALPHAS)
    assert set(eager) == {None}


def test_interrupted_enumeration_keeps_the_first_model(eager, monkeypatch):
    X, y = library(2)
    problem = Problem.from_data(X, y)

    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(penalties, "hits", interrupted)
    grid = problem.solve_grid([3, 4], ALPHAS, gap_tol=0.0)
    assert list(grid) == ALPHAS[:1]
    (result,) = grid[ALPHAS[0]].results
    assert result.status is Status.INTERRUPTED
    assert len(result.support) == 3
    assert result.lower_bound <= best_of_all(X, y, 3, ALPHAS[0]) <= result.objective


def test_interrupt_of_a_first_model_is_not_lost(eager, monkeypatch):
    """The search of a first model ends quietly on Ctrl-C; the enumeration must not begin."""
    first_model = penalties._first_model

    def interrupted(*args):
        return replace(first_model(*args), status=Status.INTERRUPTED)

    monkeypatch.setattr(penalties, "_first_model", interrupted)
    monkeypatch.setattr(penalties, "hits", None)  # would fail
    grid = Problem.from_data(*library(2)).solve_grid([3, 4], ALPHAS, gap_tol=0.0)
    assert [path.results[-1].status for path in grid.values()] == [Status.INTERRUPTED]


def test_enumeration_that_takes_too_long_is_left_to_the_tree(eager, monkeypatch):
    def limited(*args, **options):
        raise closure.LimitReached

    monkeypatch.setattr(penalties, "hits", limited)
    grid = Problem.from_data(*library(2)).solve_grid([3], ALPHAS, gap_tol=0.0)
    assert all(path[3].gap == 0.0 for path in grid.values())
    assert set(eager) == {None}
