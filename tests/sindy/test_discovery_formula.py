"""Equations as formulas: SymPy gives the derivatives that the model gives."""

import numpy as np
import pysindy as ps
import pytest
from helpers.trajectories import STEP

from bestk.sindy import discover


def test_latex_has_one_equation_per_state(found):
    first, *equations, last = found.to_latex(digits=2).splitlines()
    assert (first, last) == (r"\begin{aligned}", r"\end{aligned}")
    assert len(equations) == 3
    assert [each.endswith(r"\\") for each in equations] == [True, True, False]
    for equation, state, terms in zip(equations, "xyz", ("x,y", "x,x z", "z,x y"), strict=True):
        assert equation.startswith(rf"\dot{{{state}}} &= ")
        assert all(term.replace(" ", r"\,") in equation for term in terms.split(","))


def test_sympy_gives_the_derivatives(states, found):
    sympy = pytest.importorskip("sympy")
    expressions = found.to_sympy()
    assert list(expressions) == ["x", "y", "z"]
    rhs = sympy.lambdify(sympy.symbols("x y z"), list(expressions.values()), "numpy")
    expected = found.model.predict(states)
    np.testing.assert_allclose(np.transpose(rhs(*states.T)), expected, rtol=1e-9, atol=1e-9)


def test_functions_and_constants_are_read():
    sympy = pytest.importorskip("sympy")
    t = np.arange(0, 8, STEP)
    x = np.c_[t + np.sin(t), np.cos(t)]
    library = ps.FourierLibrary(n_frequencies=2) + ps.PolynomialLibrary(degree=1)
    found = discover(x, t, library=library, ks=[2, 3], alphas=[1e-5])
    rhs = sympy.lambdify(sympy.symbols("x0 x1"), list(found.to_sympy().values()), "numpy")
    rows = np.broadcast_arrays(*rhs(*x.T))
    np.testing.assert_allclose(np.transpose(rows), found.model.predict(x), rtol=1e-9, atol=1e-9)
    assert r"\text" not in found.to_latex()
