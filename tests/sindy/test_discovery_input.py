"""discover: errors that say what to do."""

import numpy as np
import pandas as pd
import pysindy as ps
import pytest
from helpers.trajectories import T, table

from bestk.sindy import discover


@pytest.mark.parametrize(
    ("x", "t", "options", "error", "match"),
    [
        (T, 1.0, {}, ValueError, r"x must have two dimensions.*reshape\(-1, 1\)"),
        (np.ones((3, 4, 5)), 1.0, {}, ValueError, r"several trajectories pass list\(x\)"),
        ([[1, 2], [3]], 1.0, {}, TypeError, "x cannot be read as an array of numbers"),
        (table() * 1j, 1.0, {}, TypeError, "x is complex"),
        (np.where(T[:, None] == 7, np.nan, table()), 1.0, {}, ValueError, "x contains NaN"),
        (table(d=0), 1.0, {}, ValueError, "x has no columns"),
        ([], 1.0, {}, ValueError, "x is an empty list"),
        ([T, T[:9]], 1.0, {}, ValueError, r"x\[0\] must have two dimensions"),
        ([T[:, None], T], 1.0, {}, ValueError, r"x\[1\] must have two dimensions"),
        ([table(), table(d=3)], 1.0, {}, ValueError, r"x\[1\] has 3 states, but x\[0\] has 2"),
        (table(), None, {}, TypeError, "t is missing"),
        (table(), 0.0, {}, ValueError, "t is the step between rows; it must be above 0, got 0"),
        (table(), -1.0, {}, ValueError, "t is the step between rows; it must be above 0, got -1"),
        (table(), "now", {}, TypeError, "t must be a number"),
        (table(), T[:-1], {}, ValueError, r"t has shape \(59,\), but the trajectory has 60 rows"),
        (table(), np.where(T == 5, np.nan, T), {}, ValueError, "t contains NaN"),
        (table(), np.where(T == 5, 4, T), {}, ValueError, r"t must increase, but t\[5\] = 4"),
        (table(), T * 1j, {}, TypeError, "t is complex"),
        ([table()] * 2, [1.0], {}, ValueError, "t has 1 entry for 2 trajectories"),
        ([table()] * 2, [1.0, T[:3]], {}, ValueError, r"t\[1\] has shape"),
        (table(), 1.0, {"names": ["a"]}, ValueError, "names must be 2 strings"),
        (table(), 1.0, {"names": ["a", "a"]}, ValueError, "names must be distinct"),
        (table(), 1.0, {"names": [1, 2]}, ValueError, "names must be 2 strings"),
        (table(), 1.0, {"names": 2}, ValueError, "names must be 2 strings, one per state, got 2"),
        (table(), 1.0, {"u": T, "control_names": 1}, ValueError, "must be 1 string, one per contr"),
        (table(), 1.0, {"control_names": ["a"]}, ValueError, "pass these as u, or leave control_n"),
        ([table()] * 2, 1.0, {"u": 3.0}, TypeError, "u must be a list of control inputs"),
        ([table()] * 2, 1.0, {"u": [T, table()]}, ValueError, "columns.*; give all the same"),
        (table(), 1.0, {"constraint_rhs": [1.0]}, ValueError, "rhs needs constraint_lhs, one row"),
        (table(1), 1.0, {}, ValueError, "x has 1 row, 1 to fit and 0 for validation"),
        (
            table(),
            1.0,
            {"include": {2: ["x0"]}},
            ValueError,
            "include: there is no equation 2; .*1",
        ),
        (table(), 1.0, {"bounds": {"x0": (0, 1)}}, ValueError, "bounds: there is no equation 'x0'"),
        (table(), 1.0, {"degree": 0}, ValueError, "degree must be at least 1"),
        (table(), 1.0, {"degree": 2.5}, TypeError, "degree must be a whole number"),
        (table(), 1.0, {"validation": 0.0}, ValueError, "validation must be between 0 and 1"),
        (table(), 1.0, {"validation": 1}, ValueError, "validation must be between 0 and 1"),
        (table(), 1.0, {"validation": -1}, ValueError, "validation must be between 0 and 1"),
        (table(), 1.0, {"validation": np.nan}, ValueError, "validation must be between 0 and 1"),
        (table(), 1.0, {"validation": "a"}, TypeError, "validation must be a number"),
        (table(), 1.0, {"ks": 3}, TypeError, "ks must be several sizes"),
        (table(), 1.0, {"ks": []}, ValueError, "ks must hold at least one"),
        (table(), 1.0, {"alphas": [-1]}, ValueError, "each of alphas"),
        (table(), 1.0, {"gap_tol": -1}, ValueError, "gap_tol"),
        (table(), 1.0, {"time_limit": "x"}, TypeError, "time_limit"),
        (table(), 1.0, {"library": "cubic"}, TypeError, "library must be a PySINDy"),
        (table(), 1.0, {"differentiation": np.gradient}, TypeError, "differentiation must be"),
        (table(20), 1.0, {}, ValueError, "x has 20 rows, 13 to fit and 7 for validation"),
        ([table(), table(5)], 1.0, {}, ValueError, r"x\[1\] has 5 rows, 3 to fit and 2 for"),
        (table() * 1e80, 1.0, {}, ValueError, "library has terms that are NaN or infinite"),
    ],
)
def test_bad_input_is_named(x, t, options, error, match):
    with pytest.raises(error, match=match):
        discover(x, t, **options)


def test_names_may_be_an_array():
    names = {"names": np.array(["a", "b"]), "control_names": np.array(["f", "g"])}
    found = discover(table(), 1.0, degree=1, ks=[1], alphas=[0.1], u=table() ** 2, **names)
    assert (found.states, found.control_names) == (("a", "b"), ("f", "g"))


def test_states_that_rest_at_zero_have_equations_without_terms():
    library = ps.PolynomialLibrary(degree=2, include_bias=False)
    found = discover(np.zeros((60, 2)), 0.1, library=library)
    assert not any(result.coef.any() for result in found.results)


def test_frames_of_other_columns_are_an_error():
    frames = [pd.DataFrame(table(), columns=names) for names in (["a", "b"], ["b", "a"])]
    with pytest.raises(ValueError, match="different column names"):
        discover(frames, 1.0)


def test_libraries_of_fields_are_an_error():
    x = np.linspace(0, 1, 8)
    library = ps.PDELibrary(ps.PolynomialLibrary(degree=1), derivative_order=1, spatial_grid=x)
    with pytest.raises(TypeError, match=r"optimizer=bestk\.sindy\.OKRidge"):
        discover(table(), 1.0, library=library)
