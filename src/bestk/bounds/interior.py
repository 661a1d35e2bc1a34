"""The best diagonal for one node, by an interior-point method (theory: own-charges).

Over charges t and slopes u the bound of a node is concave,

    base - (d - u)'Q^-1(d - u) - (sum of the r largest u_j^2 / t_j),    Q = H - diag(t),

and its largest value is that of a semidefinite program, the optimal perspective relaxation. The sum
of the r largest is  min r lam + sum nu  with  u_j^2 <= t_j (lam + nu_j),  so Newton steps on

    ... + beta [logdet Q + sum log(t_j (lam + nu_j) - u_j^2) + sum log nu_j + log lam]

for a falling beta reach it in some 20 steps of four products of m^3 each. Nothing is
proven until :func:`proven_charges` has cut them.
"""

from typing import NamedTuple

import numpy as np

from bestk.base.arithmetic import dot, times
from bestk.base.compiling import kernel, step
from bestk.base.constants import UNIT_ROUNDOFF
from bestk.bounds.kernels.cholesky import factor, invert_factored, solve_factored
from bestk.bounds.kernels.gains import sum_largest

# The first steps begin this far inside: close to the boundary they would be short.
_INSIDE = 0.8
_FALL = 0.2
_STEPS = 60
# Numbers times this are still below what they were once they are rounded to single precision.
_BELOW = 1.0 - 2.0**-23
# Charges are proven after at most so many cuts: an interior point has some room.
_CUTS = (1.0, 0.998, 0.99, 0.9)
# A duality gap, as a share of what is missing to the cutoff, that is not worth another step.
_CLOSE = 3e-2


class OwnCharges(NamedTuple):
    """Charges t of the node, a dual vector g, their bound (-inf: there are none), and steps."""

    t: np.ndarray
    g: np.ndarray
    bound: float
    steps: int


@step
def own_charges(H, d, base, r, cutoff, start):
    """The best charges for choosing r features under H, d.

    `start` are feasible charges: H - diag(start) is positive semidefinite. Some that are not
    positive leave nothing to begin with, and so does an H that is singular up to rounding.
    """
    m = len(d)
    t, u, U = _INSIDE * start, d.copy(), np.empty((m, m))
    nothing = OwnCharges(t, u, -np.inf, 0)
    if not 0 < r < m or not (start > 0.0).all() or not _is_definite(H, np.zeros(m), U):
        return nothing
    solve_factored(U, u, m)
    largest = 1e-300
    for j in range(m):
        u[j] *= t[j]
        largest = max(largest, u[j] * u[j] / t[j])
    lam = 1.5 * largest
    nu = np.full(m, 0.5 * lam)
    beta = 0.1 * max(abs(cutoff), 1e-12) / (4 * m + 1)
    bound, t, g, steps = _ascend(H, d, base, r, cutoff, t, u, lam, nu, beta, 1e-4 * abs(cutoff))
    return OwnCharges(t, g, bound, steps) if np.isfinite(bound) else nothing


@step
def proven_charges(A, t, error):
    """Charges that are proven to leave A - diag(t) positive semidefinite, cut a little if need be.

    They are in single precision, rounded towards zero: a certificate keeps them so. Empty where
    there is no proof. See theory: definite, as in :func:`bestk.form.definiteness`.
    """
    p = len(t)
    charges, U = np.empty(p), np.empty((p, p))
    for cut in _CUTS:
        trace = 1.0
        for j in range(p):
            charges[j] = np.float32(cut * t[j] * _BELOW)
            trace += A[j, j] - charges[j]
        shift = (p + 4) * UNIT_ROUNDOFF * 1.1 * trace + p * error
        if np.isfinite(trace) and _is_definite(A, charges + shift, U):
            return charges
    return np.empty(0)


def own_charges_multiplies(m: int) -> float:
    """Multiplications of one ascent, about."""
    return 20 * 6.0 * m**3


@step
def _ascend(H, d, base, r, cutoff, t, u, lam, nu, beta, need):
    """(bound, t, dual vector, steps) at the best point; t, u and nu move in place."""
    m = len(d)
    best, best_t, best_g = -np.inf, np.empty(m), np.empty(m)
    square, rows = np.empty((4, m, m)), np.empty((12, m))
    room = _Room(
        square[0], square[1], square[2], square[3], rows[0], rows[1], rows[2], rows[3], rows[4],
        rows[5], rows[6], rows[7], rows[8], rows[9], rows[10], rows[11],
    )  # fmt: skip
    rest, steps = room.rest, 0
    while steps < _STEPS:
        steps += 1
        if not _is_definite(H, t, room.U):
            break
        invert_factored(room.U, room.V, room.P, m)
        for j in range(m):
            rest[j] = d[j] - u[j]
            room.prices[j] = u[j] * u[j] / t[j]
        times(room.P, rest, room.w)
        bound = base - dot(room.w, rest) - sum_largest(room.prices, m, r)
        if bound > best:
            best = bound
            for j in range(m):
                best_t[j], best_g[j] = t[j], room.w[j]
        if best >= cutoff:
            break
        dlam, decrease = _newton(t, u, lam, nu, beta, r, room)
        length = _longest(H, t, u, lam, nu, dlam, room)
        if not length > 1e-6:
            break
        lam += length * dlam
        for j in range(m):
            t[j] += length * room.dt[j]
            u[j] += length * room.du[j]
            nu[j] += length * room.dnu[j]
        gap = beta * (4 * m + 1)  # of the point that belongs to beta
        if length >= 0.5 and gap < _CLOSE * max(cutoff - best, need):
            break
        if decrease < 0.1 * beta * m or length >= 0.95:
            beta *= _FALL
    return best, best_t, best_g, steps


class _Room(NamedTuple):
    """Matrices and vectors to work in."""

    U: np.ndarray
    V: np.ndarray
    P: np.ndarray
    M: np.ndarray
    w: np.ndarray
    rest: np.ndarray
    prices: np.ndarray
    dt: np.ndarray
    du: np.ndarray
    dnu: np.ndarray
    D3: np.ndarray
    ru: np.ndarray
    ul: np.ndarray
    rt: np.ndarray
    tl: np.ndarray
    x: np.ndarray


@step
def _newton(t, u, lam, nu, beta, r, room):
    """The Newton step: dlam, the decrease it promises, and room.dt, room.du, room.dnu.

    Here room.P is the inverse of Q. With M = 2 P + D1 the blocks of the Hessian are M for (u, u),
    D3 - M W for (u, t) with W = diag(w), and beta P.P + 2 W P W + Dt for (t, t): eliminating u
    leaves beta P.P - D3 M^-1 D3 plus a diagonal. nu, tied to t, u and lam feature by feature, is
    eliminated before everything else.
    """
    U, V, P, M, w, _, Dt, dt, du, dnu, D3, ru, ul, rt, tl, x = room
    m = len(t)
    gl, ll, rl = beta / lam - r, beta / lam**2, beta / lam - r
    for j in range(m):
        price = lam + nu[j]
        s = t[j] * price - u[j] * u[j]
        a, b = beta / (s * s), beta / s
        gt, gu = beta * (price / s - P[j, j]) - w[j] * w[j], 2.0 * w[j] - 2.0 * b * u[j]
        gn = b * t[j] + beta / nu[j] - 1.0
        tp, up, pp = a * price * t[j] - b, -2.0 * a * u[j] * t[j], a * t[j] * t[j]
        nn = pp + beta / (nu[j] * nu[j])
        D1 = 4.0 * a * u[j] * u[j] + 2.0 * b - up * up / nn
        D3[j] = D1 * w[j] - 2.0 * a * u[j] * price - up * tp / nn
        Dt[j] = a * price * price - tp * tp / nn - w[j] * w[j] * D1 + 2.0 * w[j] * D3[j]
        tl[j], ul[j] = tp - tp * pp / nn, up - up * pp / nn
        rt[j], ru[j] = gt - tp * gn / nn, gu - up * gn / nn
        gl += b * t[j]
        ll += pp - pp * pp / nn
        rl += b * t[j] - pp * gn / nn
        for i in range(j, m):
            U[j, i] = 2.0 * P[j, i]
        U[j, j] += D1
    if not factor(U, m):
        return np.nan, 0.0
    invert_factored(U, V, M, m)
    for i in range(m):
        for j in range(i, m):
            U[i, j] = beta * P[i, j] * P[i, j] - D3[i] * M[i, j] * D3[j]
        U[i, i] += Dt[i]
    if not factor(U, m):
        return np.nan, 0.0
    times(M, ru, dt)
    times(M, ul, du)
    l2, r2 = ll - dot(ul, du), rl - dot(ul, dt)
    for j in range(m):
        x[j] = tl[j] + w[j] * ul[j] - D3[j] * du[j]
        dt[j] = rt[j] + w[j] * ru[j] - D3[j] * dt[j]
        dnu[j] = x[j]
    solve_factored(U, dt, m)
    solve_factored(U, x, m)
    dlam = (r2 - dot(dnu, dt)) / (l2 - dot(dnu, x))
    for j in range(m):
        dt[j] -= dlam * x[j]
        x[j] = ru[j] - dlam * ul[j] - D3[j] * dt[j]
    times(M, x, du)
    decrease = gl * dlam
    for j in range(m):
        du[j] += w[j] * dt[j]
        price = lam + nu[j]
        s = t[j] * price - u[j] * u[j]
        a, b = beta / (s * s), beta / s
        gt, gu = beta * (price / s - P[j, j]) - w[j] * w[j], 2.0 * w[j] - 2.0 * b * u[j]
        gn = b * t[j] + beta / nu[j] - 1.0
        tp, up, pp = a * price * t[j] - b, -2.0 * a * u[j] * t[j], a * t[j] * t[j]
        dnu[j] = (gn - tp * dt[j] - up * du[j] - pp * dlam) / (pp + beta / (nu[j] * nu[j]))
        decrease += gt * dt[j] + gu * du[j] + gn * dnu[j]
    return dlam, decrease


@step
def _longest(H, t, u, lam, nu, dlam, room):
    """How far to go: the whole step, or most of the way to the boundary; 0 if not at all."""
    x, length = room.x, 1.0
    for _ in range(40):
        inside = lam + length * dlam > 0.0
        for j in range(len(t)):
            x[j], nu_j = t[j] + length * room.dt[j], nu[j] + length * room.dnu[j]
            u_j = u[j] + length * room.du[j]
            inside = inside and x[j] > 0.0 and nu_j > 0.0
            inside = inside and x[j] * (lam + length * dlam + nu_j) > u_j * u_j
        if inside and _is_definite(H, x, room.U):
            return length if length == 1.0 else 0.95 * length
        length *= 0.7
    return 0.0


@kernel
def _is_definite(H, t, U):
    """Whether H - diag(t) has a factor, which U then is."""
    m = len(t)
    for i in range(m):
        for j in range(i, m):
            U[i, j] = H[i, j]
        U[i, i] -= t[i]
    return factor(U, m)
