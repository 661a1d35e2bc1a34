"""Sums in a fixed order: the same digits as rational numbers rounded in that order."""

import importlib
import pkgutil
from fractions import Fraction

import numpy as np
import pytest
from numba.core.registry import CPUDispatcher

import bestk
from bestk.base import arithmetic
from bestk.base.arithmetic import add, add_row, dot, dot_parts, dot_rows, times

SIZES = [*range(21), 31, 32, 37, 65, 100]


def fma(a, b, c):
    return float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def dot_in_order(x, y):
    """Sixteen sums at a time, then four, then one; halves are added until one is left."""
    total, done = 0.0, 0
    for width in (16, 4, 1):
        steps = (len(x) - done) // width
        if steps == 0:
            continue
        lanes = [0.0] * width
        for _ in range(steps):
            lanes = [fma(x[done + a], y[done + a], lanes[a]) for a in range(width)]
            done += width
        while len(lanes) > 1:
            half = len(lanes) // 2
            lanes = [lanes[a] + lanes[half + a] for a in range(half)]
        total += lanes[0]
    return total


def vectors(size, count):
    rng = np.random.default_rng(size)
    return rng.standard_normal((count, size)) * 10.0 ** rng.integers(-9, 9, (count, size))


@pytest.mark.parametrize("size", SIZES)
def test_dot_products_have_the_digits_of_their_order(size):
    x, y = vectors(size, 2)
    assert dot(x, y) == dot_in_order(x, y)
    assert dot(x, y) == pytest.approx(x @ y, abs=1e-13 * float(abs(x) @ abs(y)))


@pytest.mark.parametrize("size", SIZES)
def test_parts_and_rows_begin_anywhere(size):
    X, Y = vectors(size + 9, 3), vectors(size + 5, 2)
    part, stop = X.ravel()[size + 12 :], 4 + size
    assert dot_parts(X, size + 12, Y, 3, size) == dot_in_order(part[:size], Y[0, 3 : 3 + size])
    assert dot_rows(X, 2, Y, 1, 4, stop) == dot_in_order(X[2, 4:stop], Y[1, 4:stop])
    assert dot_rows(X, 1, X, 1, 2, 2) == 0.0


@pytest.mark.parametrize("size", SIZES)
def test_multiples_are_added_with_one_rounding(size):
    x, y = vectors(size, 2)
    expected = [fma(-1.7, b, a) for a, b in zip(x, y, strict=True)]
    added, rows = x.copy(), np.append(x, 5.0)
    add(added, -1.7, y)
    add_row(rows, -1.7, np.array([x, y]), 1, size)
    np.testing.assert_array_equal(added, expected)
    np.testing.assert_array_equal(rows, [*expected, 5.0])


def test_products_with_matrices_are_dot_products():
    A, out = vectors(23, 24)[:23], np.empty(23)
    times(A, A[5], out)
    np.testing.assert_array_equal(out, [dot_in_order(row, A[5]) for row in A])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_products_are_fused_in_both_precisions(kind):
    tiny = kind(np.finfo(kind).eps)
    a, b = kind(1) + tiny, kind(1) - tiny
    assert arithmetic.fma(a, b, kind(-1)) == -tiny * tiny


def test_no_part_of_the_search_leaves_rounding_to_the_compiler():
    """Else the tree depends on what was compiled before, in which process, for which machine."""
    kernels = {
        f"{module.name}.{name}": value
        for module in pkgutil.walk_packages(bestk.__path__, "bestk.")
        if not module.name.startswith("bestk.verification")
        if not module.name.endswith("__main__")
        for name, value in vars(importlib.import_module(module.name)).items()
        if isinstance(value, CPUDispatcher)
    }
    assert len(kernels) > 100
    assert [name for name, found in kernels.items() if found.targetoptions.get("fastmath")] == []
