"""The part of a form that a unit is about: features that are OUT are gone, those that are IN
eliminated, and the charges are those of the unit, perhaps its own.

All of it is compiled: while one thread prepares a unit, the others need not wait for it.
"""

from typing import NamedTuple

import numpy as np

from bestk.base.arithmetic import add_row
from bestk.base.compiling import kernel, step
from bestk.base.constants import FREE, IN
from bestk.bounds.interior import own_charges, proven_charges
from bestk.bounds.kernels.cholesky import factor, solve_factored

# A share of the smallest charge for features that are IN is only safe where that is well above
# what whoever checks the proof may have to take off for rounding.
_SAFE = 1e-7
# Added to the diagonal of features that depend on each other: any solution serves the search.
_LITTLE = 1e-10


class Local(NamedTuple):
    """The part of a form that a unit is about, its first ``gone`` features IN and eliminated.

    What is left of A and c for the others is H and d: relaxations are solved there, with charges
    t[gone:]. The dual vector of the others determines that of the first: ``lifted - lift @ g``.
    Proofs are about A, c, t and the box, for all of them. Dual vectors are kept in single precision
    if ``is_single``: where charges are large enough for that.
    """

    A: np.ndarray
    c: np.ndarray
    t: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    gone: int
    H: np.ndarray
    d: np.ndarray
    base: float
    lift: np.ndarray
    lifted: np.ndarray
    is_single: bool


class Whole(NamedTuple):
    """The form, in a box or not.

    ``least`` is a charge that features that are IN may bear, ``single_from`` a mean charge from
    which on single precision is enough. ``own_from`` is the share of what is missing to the cutoff
    that charges of a unit's own have to gain.
    """

    A: np.ndarray
    c: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    eps: float
    k: int
    is_boxed: bool
    least: float
    single_from: float
    own_from: float


@kernel
def localise(whole, state, t, own, bound, cutoff, room):
    """(features, the part of the form, whether its charges are its own)

    With `own` better charges than t, which prove `bound`, are looked for. Those that raise the
    bound most make many features equally good, so that fewer are fixed: a little more is not worth
    that. Within a box features that are IN cannot be eliminated: relaxations need all of them.
    `room` holds both matrices: numbers for two of all features.
    """
    here, n_inside = _features(state, whole.is_boxed)
    gone = 0 if whole.is_boxed else n_inside
    A, q = _block(whole.A, here, room), len(here)
    c, charges, lo, hi = np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    for i in range(q):
        j = here[i]
        c[i], charges[i], lo[i], hi[i] = whole.c[j], t[j], whole.lo[j], whole.hi[j]
    H, d, base, lift, lifted = _eliminated(A, c, gone, room)
    has_own = False
    if own and not whole.is_boxed and q > gone and (gone == 0 or whole.least >= _SAFE):
        found = own_charges(H, d, base, whole.k - gone, cutoff, charges[gone:])
        # Not a number where nothing was proven before: then any charges are worth it.
        too_little = found.bound < bound + whole.own_from * (cutoff - bound)
        if found.bound > -np.inf and not too_little:
            wanted = np.full(q, whole.least)
            for j in range(gone, q):
                wanted[j] = found.t[j - gone]
            proven = proven_charges(A, wanted, whole.eps)
            if len(proven) > 0:
                charges, has_own = proven, True
    total, least = 0.0, np.inf
    for i in range(q):
        total, least = total + charges[i], min(least, charges[i])
    is_single = total >= q * whole.single_from and least >= 0.1 * whole.single_from
    local = Local(A, c, charges, lo, hi, gone, H, d, base, lift, lifted, is_single)
    return here, local, has_own


@step
def _features(state, in_order):
    """Features that are not OUT, in their order or IN before FREE, and how many are IN."""
    here, n_inside, count = np.empty(len(state), np.int64), 0, 0
    for j in range(len(state)):
        n_inside += state[j] == IN
        if state[j] == IN or (in_order and state[j] == FREE):
            here[count] = j
            count += 1
    for j in range(len(state)):
        if not in_order and state[j] == FREE:
            here[count] = j
            count += 1
    return here[:count].copy(), n_inside


@step
def _block(A, here, room):
    q = len(here)
    block = room[: q * q].reshape((q, q))
    for i in range(q):
        for j in range(q):
            block[i, j] = A[here[i], here[j]]
    return block


@step
def _eliminated(A, c, gone, room):
    """(H, d, base, lift, lifted) of :class:`Local` for the first `gone` features.

    H is symmetric up to rounding, which is enough to search with it.
    """
    if gone == 0:
        return A, c, 1.0, np.empty((0, len(c))), np.empty(0)
    m = len(c) - gone
    used = len(c) ** 2
    H, d, base = room[used : used + m * m].reshape((m, m)), np.empty(m), 1.0
    for j in range(m):
        d[j] = c[gone + j]
        for e in range(m):
            H[j, e] = A[gone + j, gone + e]
    lift, lifted = np.empty((gone, m)), np.empty(gone)
    U, x = np.empty((gone, gone)), np.empty(gone)
    for little in (0.0, _LITTLE):
        for i in range(gone):
            lifted[i] = c[i]
            for j in range(gone):
                U[i, j] = A[i, j]
            U[i, i] += little
        if factor(U, gone):
            break
    solve_factored(U, lifted, gone)
    for j in range(m):
        for i in range(gone):
            x[i] = A[i, gone + j]
        solve_factored(U, x, gone)
        for i in range(gone):
            lift[i, j] = x[i]
    for i in range(gone):
        base -= c[i] * lifted[i]
    for j in range(m):  # row by row: large matrices are read once
        for i in range(gone):
            d[j] -= A[gone + j, i] * lifted[i]
            add_row(H[j], -A[gone + j, i], lift, i, m)
    return H, d, base, lift, lifted
