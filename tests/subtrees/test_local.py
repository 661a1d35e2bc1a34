"""The part of a form that a unit is about, against the same in plain NumPy."""

import numpy as np
from helpers.instances import make_node
from helpers.seeds import seeds

from bestk.base.constants import FREE, IN, OUT
from bestk.bounds.split import first_split
from bestk.form.definiteness import is_positive_semidefinite
from bestk.subtrees.local import Whole, localise


def whole_of(form, k, least):
    is_boxed = bool(np.isfinite(form.lo).any() or np.isfinite(form.hi).any())
    return Whole(form.A, form.c, form.lo, form.hi, form.eps, k, is_boxed, least, 1e-5, 0.0)


@seeds(2000, chunk=250)
def test_features_that_are_in_are_eliminated(seed):
    case = make_node(seed)
    if case is None:
        return
    form, state = case.form, case.state
    split = first_split(form)
    whole = whole_of(form, case.k, 0.01 * split.smallest)
    own = bool(seed % 2)
    here, local, has_own = localise(
        whole, state, split.t, own, -np.inf, 0.5, np.empty(2 * len(state) ** 2)
    )
    inside, free = np.flatnonzero(state == IN), np.flatnonzero(state == FREE)
    assert set(here) == {*inside, *free}
    assert OUT not in state[here]
    gone = local.gone
    assert gone == (0 if whole.is_boxed else len(inside))
    np.testing.assert_array_equal(here[:gone], inside[:gone])
    np.testing.assert_array_equal(local.A, form.A[np.ix_(here, here)])
    np.testing.assert_array_equal(local.c, form.c[here])
    np.testing.assert_array_equal(local.lo, form.lo[here])
    np.testing.assert_array_equal(local.hi, form.hi[here])
    if has_own:
        assert own
        assert is_positive_semidefinite(local.A, local.t * (1.0 - 1e-12), 0.0)
        np.testing.assert_allclose(local.t[:gone], whole.least, rtol=0.11)
    else:
        np.testing.assert_array_equal(local.t, split.t[here])
    if gone and np.linalg.cond(local.A[:gone, :gone]) > 1e6:
        return
    block, sides = local.A[:gone, :gone], local.A[:gone, gone:]
    lift, lifted = np.linalg.solve(block, sides), np.linalg.solve(block, local.c[:gone])
    close = {"atol": 1e-8, "rtol": 1e-8}
    np.testing.assert_allclose(local.lift, lift, **close)
    np.testing.assert_allclose(local.lifted, lifted, **close)
    np.testing.assert_allclose(local.H, local.A[gone:, gone:] - sides.T @ lift, **close)
    np.testing.assert_allclose(local.d, local.c[gone:] - sides.T @ lifted, **close)
    np.testing.assert_allclose(local.base, 1.0 - local.c[:gone] @ lifted, **close)


def test_features_that_depend_on_each_other_leave_numbers():
    """Two copies that are both IN: any solution serves the search."""
    A = np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    c, infinite = np.array([0.4, 0.4, 0.3]), np.full(3, np.inf)
    whole = Whole(A, c, -infinite, infinite, 1e-15, 3, False, 0.0, 1e-5, 0.0)
    state = np.array([IN, IN, FREE], dtype=np.int8)
    _, local, has_own = localise(whole, state, np.zeros(3), True, -np.inf, 0.5, np.empty(18))
    assert not has_own
    np.testing.assert_allclose(local.H, [[0.75]], atol=1e-6)
    np.testing.assert_allclose(local.d, [0.1], atol=1e-6)
