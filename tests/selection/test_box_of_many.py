"""Paths, grids, runners-up and folds in an automatic box: which box, and what is claimed."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers.boxes import lengths

import bestk
from bestk import Advanced, Problem, Status
from bestk.selection.cross_validation import cross_validate_batches
from bestk.selection.runner_up import _best_of
from bestk.show import report

SLOW = Advanced(enumeration=False, batch_size=1)
GREEDY = Advanced(beam_width=1)


def test_a_path_has_one_box_from_its_largest_size(easy_data):
    X, y = easy_data
    path = bestk.solve_path(X, y, [1, 2, 5], bounds="auto")
    largest = bestk.solve(X, y, 5, bounds="auto")
    assert {result.box for result in path.results} == {largest.box}
    assert path[5].objective == largest.objective
    assert path.is_closed
    assert path.is_conditional
    assert not path.is_proven
    upper = largest.certificate.upper
    for k, result in path.items():
        inside = bestk.solve(X, y, k, bounds=(-upper, upper))
        assert result.objective == pytest.approx(inside.objective, rel=1e-9)
        assert result.status is Status.CONDITIONAL
    assert "conditional: x" in str(path)
    assert "optimal" not in str(path)


def test_a_grid_has_one_box_in_standard_units(easy_data):
    X, y = easy_data
    problem = Problem.from_data(X, y, bounds="auto")
    grid = problem.solve_grid([1, 3], [0.5, 50.0])
    first = problem.with_alpha(0.5).solve(3)
    assert {r.box for path in grid.values() for r in path.results} == {first.box}
    for alpha, path in grid.items():
        long, y_long = lengths(X, y, alpha=alpha)
        reach = first.box * y_long / long
        for k, result in path.items():
            np.testing.assert_allclose(result.certificate.upper, reach, rtol=1e-12)
            inside = bestk.solve(X, y, k, alpha=alpha, bounds=(-reach, reach))
            assert result.objective == pytest.approx(inside.objective, rel=1e-9)
            assert result.status is Status.CONDITIONAL


def test_a_runner_up_is_sought_in_the_box_of_the_result(trap):
    X, y = trap
    problem = Problem.from_data(X, y, bounds="auto")
    result = problem.solve(2, advanced=GREEDY)
    other = problem.runner_up(result)
    assert other.box == result.box
    assert other.status is Status.CONDITIONAL
    np.testing.assert_array_equal(other.support == [2, 3], [False, True])
    # Without a box the same question has another answer, which is then proven.
    free = Problem.from_data(X, y).runner_up(result)
    assert free.support.tolist() == [0, 1]
    assert free.status is Status.OPTIMAL
    assert not free.is_conditional


def test_an_interrupted_runner_up_claims_no_more_than_holds(trap, monkeypatch):
    X, y = trap
    problem = Problem.from_data(X, y, bounds="auto")
    result = problem.solve(2, advanced=GREEDY)

    def interrupted(*args, **options):
        from bestk.search.solve import solve_problem

        return replace(solve_problem(*args, **options), status=Status.INTERRUPTED)

    monkeypatch.setattr("bestk.selection.runner_up.solve_problem", interrupted)
    inside = problem.runner_up(result)
    assert inside.status is Status.INTERRUPTED
    assert inside.lower_bound == pytest.approx(result.lower_bound)
    outside = Problem.from_data(X, y).runner_up(result)
    assert outside.lower_bound == 0.0  # the parts not searched may hold anything


def test_closed_parts_of_a_runner_up_are_not_open(easy_data):
    result = bestk.solve(*easy_data, 2, bounds="auto")
    assert _best_of([result, result]).status is Status.CONDITIONAL


def test_an_estimator_does_not_warn_of_what_is_closed(easy_data, hard_data):
    X, y = easy_data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = bestk.SparseRidge(k=3, bounds="auto").fit(X, np.column_stack([y, y**2]))
    assert model.status_ == [Status.CONDITIONAL] * 2
    assert model.result_[0].box != model.result_[1].box
    slow = bestk.SparseRidge(k=6, bounds="auto", node_limit=3, advanced=SLOW)
    with pytest.warns(UserWarning, match="the search stopped"):
        slow.fit(*hard_data)


def test_cross_validation_is_conditional_through_and_through(easy_data):
    X, y = easy_data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = bestk.SparseRidgeCV([1, 2], [0.0, 1.0], cv=3, bounds="auto").fit(X, y)
    assert model.status_ is Status.CONDITIONAL
    validation = model.cross_validation_
    assert validation.share_proven == 0.0
    assert validation.share_conditional == 1.0
    assert validation.is_closed
    assert validation.is_conditional
    assert not validation.is_proven
    assert "0% of the fits are proven optimal, 100% the best inside a box" in str(validation)
    for page in (report.cv_page(validation), validation._repr_html_()):
        assert "Conditional." in page
        assert "is proven optimal" not in page
    free = bestk.SparseRidgeCV([1, 2], [0.0, 1.0], cv=3).fit(X, y).cross_validation_
    assert str(free).endswith("100% of the fits are proven optimal")
    batches, problem = cross_validate_batches([(X, y)], [1, 2], [0.0], n_folds=3, bounds="auto")
    assert batches.share_conditional == 1.0
    assert problem.solve(2).status is Status.CONDITIONAL
