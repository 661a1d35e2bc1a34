"""Coefficients at their bounds are named, wherever a result is shown."""

import numpy as np
import pandas as pd

import bestk
from bestk import Status
from bestk.show import report


def test_coefficients_at_given_bounds_are_named(easy_data):
    X, y = easy_data
    free = bestk.solve(X, y, 3)
    assert free.at_bounds == ()
    assert "bound:" not in free.message
    j = int(np.argmax(free.coef))
    upper = np.full(12, np.inf)
    upper[j] = 0.9 * free.coef[j]
    result = bestk.solve(X, y, 3, bounds=(-np.inf, upper), include=[j])
    assert result.at_bounds == (j,)
    sentence = f"x{j} is at its bound: a wider box may allow a better model."
    for text in (result.message, str(result), report.result_page(result), result._repr_html_()):
        assert sentence in text
    assert result.status is Status.OPTIMAL
    assert not result.is_conditional


def test_signs_are_no_bounds_to_lie_at(easy_data):
    X, y = easy_data
    result = bestk.solve(X, -y, 3, bounds=(0.0, np.inf))
    assert (result.coef == 0.0).sum() > 0
    assert result.at_bounds == ()
    assert bestk.solve(X, y, 3, bounds=(0.0, 0.1)).at_bounds != ()


def test_several_are_listed_and_many_counted(easy_data):
    X, y = easy_data
    result = bestk.solve(pd.DataFrame(X).add_prefix("f"), y, 3, bounds=(-0.01, 0.01))
    assert len(result.at_bounds) == 3
    a, b, c = result.names
    assert f"{a}, {b} and {c} are at their bounds" in result.message
    many = bestk.solve(X, y, 8, bounds=(-1e-3, 1e-3))
    assert len(many.at_bounds) == 8
    assert "and 3 more are at their bounds" in many.message


def test_coefficients_at_a_chosen_bound_are_named(easy_data, force):
    force.box_factor(0.5)
    free = bestk.solve(*easy_data, 3)
    result = bestk.solve(*easy_data, 3, bounds="auto")
    assert result.at_bounds != ()
    assert set(result.at_bounds) <= set(result.support.tolist())
    assert result.objective > free.objective
    certificate = result.certificate
    for j in result.support:
        is_at = abs(result.coef[j]) > (1 - 1e-6) * certificate.upper[j]
        assert is_at == (j in result.at_bounds)
    assert "a wider box may allow" in result.message
