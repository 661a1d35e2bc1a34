"""Compiled loops of the bounds: few, small, each with a plain NumPy twin in the tests.

All kernels work on the standard form ``1 - 2 c'b + b'A b`` with ``A_jj = 1`` (see ``scaling.py``).
They release the GIL, hold no state and start no threads: callers split the rows of a batch
over a thread pool, so a result never depends on the number of threads.
"""

import math

import numpy as np

from bestk.base.compiling import add_row, kernel
from bestk.base.constants import FREE, IN, OUT, UNIT_ROUNDOFF

# Sweeps over one working set, before others are asked in.
AT_ONCE = 60


@kernel
def _phi(u, t, lo, hi):
    """max over lo <= v <= hi of 2 u v - t v^2  (theory eq. 4), also for t <= 0."""
    if t <= 0.0:
        # Convex: largest at an end of the box, or at infinity where it rises there.
        if (hi == np.inf and (t < 0.0 or u > 0.0)) or (lo == -np.inf and (t < 0.0 or u < 0.0)):
            return np.inf
        right = hi * (2.0 * u - t * hi) if hi < np.inf else 0.0
        left = lo * (2.0 * u - t * lo) if lo > -np.inf else 0.0
        return max(right, left, 0.0)
    reach = hi if u > 0 else -lo
    u = abs(u)
    if u <= t * reach:
        return u * u / t
    return reach * (2.0 * u - t * reach)


@kernel
def _largest_first(a, m, r):
    """Reorder a[:m] so that its r largest entries come first (quickselect, in place)."""
    low, high = 0, m - 1
    while low < high and 0 < r < m:
        x, y, z = a[low], a[(low + high) // 2], a[high]
        pivot = max(min(x, y), min(max(x, y), z))
        i, j = low, high
        while i <= j:
            while a[i] > pivot:
                i += 1
            while a[j] < pivot:
                j -= 1
            if i <= j:
                a[i], a[j] = a[j], a[i]
                i += 1
                j -= 1
        if r - 1 <= j:
            high = j
        elif r - 1 >= i:
            low = i
        else:
            break


@kernel
def _sum_largest(a, m, r):
    """Sum of the r largest of a[:m]; reorders a."""
    _largest_first(a, m, r)
    total = 0.0
    for j in range(min(m, r)):
        total += a[j]
    return total


@kernel
def _residual(A, c, t, g, u):
    """u = c - (A - diag t) g, touching only the rows where g is not zero."""
    p = c.shape[0]
    for j in range(p):
        u[j] = c[j]
    for j in range(p):
        if g[j] != 0.0:
            add_row(u, -g[j], A, j, p)
            u[j] += t[j] * g[j]


@kernel
def _is_close(primal, bound, cutoff, closeness):
    """Is what a better dual could still gain small beside what the node lacks (or y'y = 1)?"""
    return primal - bound <= closeness * min(abs(cutoff - bound), 1.0) + 1e-13


@kernel
def descend(A, c, t, lo, hi, state, r, b, level, cutoff, closeness, max_sweeps):
    """Maximise h (theory eq. 3) for one node; b improves in place. Returns (level, work done).

    Coordinate descent on the primal relaxation (eq. 7) over a growing working set. The level
    s = sqrt(multiplier of sum z <= r) follows sum z towards r between sweeps. Nothing here needs
    to be exact: every b is a valid dual vector, `certify` decides what it proves.
    """
    p = c.shape[0]
    work = np.empty(p, np.int64)
    listed = np.zeros(p, np.bool_)
    size = 0
    n_free = 0
    for j in range(p):
        if state[j] == FREE:
            n_free += 1
        if state[j] == OUT or (r == 0 and state[j] == FREE):
            b[j] = 0.0
        elif state[j] == IN or b[j] != 0.0:
            work[size] = j
            listed[j] = True
            size += 1
    u = np.empty(p)
    _residual(A, c, t, b, u)
    phi = np.empty(n_free)
    limited = 0 < r < n_free
    if not limited:
        level = 0.0
    elif level <= 0.0:
        m = 0
        for j in range(p):
            if state[j] == FREE:
                phi[m] = _phi(u[j], t[j], lo[j], hi[j])
                m += 1
        level = 0.7 * math.sqrt(_sum_largest(phi, n_free, r) / r)

    best = -np.inf
    best_b = np.empty(p)
    best_level = level
    gathered = 0
    Q = np.empty((size, size))
    v, x, tw, root = np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    local = np.empty(p)
    converged = False
    primal = np.inf
    sweeps = 0
    work_done = 0.0
    while True:
        work_done += size * p
        # The bound of the current b, over all features.
        quadratic = 0.0
        forced = 0.0
        m = 0
        for j in range(p):
            quadratic += b[j] * (c[j] - u[j])
            if state[j] == IN:
                forced += _phi(u[j], t[j], lo[j], hi[j])
            elif state[j] == FREE:
                phi[m] = _phi(u[j], t[j], lo[j], hi[j])
                m += 1
        value = 1.0 - quadratic - forced - _sum_largest(phi, m, r)
        if value > best or best == -np.inf:
            best = value
            best_level = level
            for j in range(p):
                best_b[j] = b[j]
        # Those left out of the working set are zero: its primal value is one of the whole problem.
        if value >= cutoff or sweeps >= max_sweeps or _is_close(primal, value, cutoff, closeness):
            break
        # Features whose phi exceeds the level would leave zero: let the first of them in. Once
        # these have moved, most of the others would stay where they are.
        added = 0
        if r > 0:
            m = 0
            for j in range(p):
                if state[j] == FREE and not listed[j]:
                    phi[m] = _phi(u[j], t[j], lo[j], hi[j])
                    m += 1
            most = max(16, size // 8)
            entry = 0.0
            if m > most:
                _largest_first(phi, m, most)
                entry = np.min(phi[:most])
            for j in range(p):
                if state[j] == FREE and not listed[j]:
                    f = _phi(u[j], t[j], lo[j], hi[j])
                    if f <= level * level or f < entry:
                        continue
                    work[size] = j
                    listed[j] = True
                    size += 1
                    added += 1
        if converged and added == 0:
            break

        if size > Q.shape[0]:
            Q = np.empty((size + size // 4, size + size // 4))
            gathered = 0
        for i in range(size):
            row = A[work[i]]
            for k in range(gathered if i < gathered else 0, size):
                Q[i, k] = row[work[k]]
            if i >= gathered:
                Q[i, i] -= t[work[i]]
        gathered = size
        work_done += size * size

        for i in range(size):
            j = work[i]
            v[i], x[i], tw[i], root[i] = u[j], b[j], t[j], math.sqrt(t[j])
        converged = False
        primal = np.inf
        gain = 0.5
        above = True
        total = float(r)
        for sweep in range(AT_ONCE):
            sweeps += 1
            work_done += size * size
            total = 0.0
            for i in range(size):
                q = Q[i, i]
                a = v[i] + q * x[i]
                side = 1.0 if a > 0 else -1.0
                reach = hi[work[i]] if a > 0 else -lo[work[i]]
                a = abs(a)
                if level > 0.0 and state[work[i]] == FREE:
                    if reach * root[i] >= level:
                        knee = level / root[i]
                        threshold = root[i] * level
                    elif reach > 0.0:
                        knee = reach
                        threshold = 0.5 * (tw[i] * reach + level * level / reach)
                    else:
                        knee = 1.0
                        threshold = np.inf
                    if a <= threshold:
                        new = 0.0
                    elif a - threshold < q * knee:
                        new = (a - threshold) / q
                        total += new / knee
                    else:
                        new = min(max(a / (q + tw[i]), knee), reach)
                        total += 1.0
                else:
                    new = min(a / (q + tw[i]), reach)
                new *= side
                step = new - x[i]
                if step != 0.0:
                    x[i] = new
                    add_row(v, -step, Q, i, size)
            if level > 0.0:
                # Follow sum z towards r, more gently once that overshoots.
                if (total > r) != above:
                    above = not above
                    gain = max(0.7 * gain, 0.05)
                level *= min(max(total / r, 0.4), 2.5) ** gain
            if sweep % 4 == 3:
                # Primal value minus bound, both on the working set: how far from its optimum?
                linear = 0.0
                penalty = 0.0
                forced = 0.0
                quadratic = 0.0
                boxed = False
                m = 0
                for i in range(size):
                    j = work[i]
                    linear -= x[i] * (c[j] + v[i])
                    quadratic += x[i] * (c[j] - v[i])
                    f = _phi(v[i], tw[i], lo[j], hi[j])
                    if state[j] == IN or level == 0.0:
                        penalty += tw[i] * x[i] * x[i]
                        forced += f
                    else:
                        local[m] = f
                        m += 1
                        if x[i] != 0.0:
                            reach = hi[j] if x[i] > 0 else -lo[j]
                            knee = min(level / root[i], reach)
                            boxed = boxed or knee == reach
                            z = min(1.0, abs(x[i]) / knee)
                            penalty += tw[i] * x[i] * x[i] / z * max(1.0, total / r)
                # Scaling z down to sum to r is not possible where z is tied to a box.
                feasible = not boxed or total <= 1.002 * r
                primal = 1.0 + linear + penalty if feasible else np.inf
                dual = 1.0 - quadratic - forced - _sum_largest(local, m, r)
                if _is_close(primal, dual, cutoff, closeness):
                    converged = True
                    break
        for i in range(size):
            b[work[i]] = x[i]
        _residual(A, c, t, b, u)
        if limited and total < 0.98 * r:
            # Too few features to share r: lower the level until another one comes in.
            largest = 0.0
            for j in range(p):
                if state[j] == FREE and not listed[j]:
                    largest = max(largest, _phi(u[j], t[j], lo[j], hi[j]))
            level = min(level, 0.9 * math.sqrt(largest))
    for j in range(p):
        b[j] = best_b[j]
    return best_level, work_done


@kernel
def certify(A, c, t, lo, hi, state, r, g, eps, k, cutoff, fix, phi):
    """A lower bound that holds in floating point, and the fixings it implies (eqs. 3, 5, 6).

    Entries of A, c and of y'y = 1 are known up to eps. `state` is updated where `fix`;
    phi receives max(2 u v - t v^2) of every feature. Returns (bound, number of fixings).
    """
    p = c.shape[0]
    u = np.empty(p)
    _residual(A, c, t, g, u)
    nonzeros = 0
    g1 = 0.0
    quadratic = 0.0
    for j in range(p):
        if g[j] != 0.0:
            nonzeros += 1
            g1 += abs(g[j])
            quadratic += g[j] * (c[j] - u[j])
    # |c_j|, |A_ij| <= 1: a rounding bound on every u_j, then on g'Qg = g'(c - u). With eps, the
    # same comes out whoever sums up the data, and in whatever order.
    err_u = (nonzeros + 6) * UNIT_ROUNDOFF * (1.0 + 2.0 * g1) + eps * (1.0 + g1)
    err_q = g1 * (err_u + (nonzeros + 6) * UNIT_ROUNDOFF * (4.0 + 4.0 * g1))
    return _conclude(u, quadratic, err_u, err_q, t, lo, hi, state, r, eps, k, cutoff, fix, phi)


@kernel
def _conclude(u, quadratic, err_u, err_q, t, lo, hi, state, r, eps, k, cutoff, fix, phi):
    """What slopes u = c - Q g and g'Qg prove, both known up to their errors; see `certify`."""
    p = u.shape[0]
    n_free = 0
    forced = 0.0
    free_phi = np.empty(p)
    for j in range(p):
        # The data error eps (sum |b_j| + 1)^2 <= 2 eps + 2 eps k b'b is paid out of t.
        sign = 1.0 if u[j] > 0 else -1.0
        phi[j] = _phi(u[j] + sign * err_u, t[j] - 2.0 * eps * k, lo[j], hi[j])
        if u[j] == 0.0 or abs(u[j]) <= err_u:
            phi[j] = max(phi[j], _phi(-sign * err_u, t[j] - 2.0 * eps * k, lo[j], hi[j]))
        if state[j] == IN:
            forced += phi[j]
        elif state[j] == FREE:
            free_phi[n_free] = phi[j]
            n_free += 1
    largest = _sum_largest(free_phi, n_free, r)
    last, next_ = np.inf, 0.0
    for j in range(n_free):
        if j < r:
            last = min(last, free_phi[j])
        else:
            next_ = max(next_, free_phi[j])
    sums = forced + largest
    bound = 1.0 - quadratic - sums - err_q - 2.0 * eps - (k + 12) * UNIT_ROUNDOFF * (4.0 + sums)
    if not bound > -np.inf:
        return -np.inf, 0
    if bound >= cutoff or not fix or r == 0:
        return bound, 0
    fixed = 0
    slack = 8.0 * UNIT_ROUNDOFF * (1.0 + sums)
    for j in range(p):
        if state[j] == FREE:
            if r < n_free and phi[j] <= next_ and bound + last - phi[j] - slack >= cutoff:
                state[j] = OUT
                fixed += 1
            elif phi[j] > next_ and bound + phi[j] - next_ - slack >= cutoff:
                state[j] = IN
                fixed += 1
    return bound, fixed


@kernel
def descend_rows(
    A, c, t, lo, hi, states, remaining, duals, levels, cutoff, closeness, max_sweeps, work
):
    for i in range(states.shape[0]):
        levels[i], work[i] = descend(
            A, c, t, lo, hi, states[i], remaining[i], duals[i], levels[i], cutoff,
            closeness, max_sweeps,
        )  # fmt: skip


@kernel
def certify_rows(A, c, t, lo, hi, states, remaining, duals, eps, k, cutoff, fix, bounds):
    phi = np.empty(c.shape[0])
    for i in range(states.shape[0]):
        bounds[i], _ = certify(
            A, c, t, lo, hi, states[i], remaining[i], duals[i], eps, k, cutoff, fix, phi
        )


@kernel
def conclude_rows(
    U, quadratics, errors_u, errors_q, t, lo, hi, states, remaining, eps, k, cutoff, fix, bounds
):
    """`certify_rows` for slopes that are known."""
    phi = np.empty(U.shape[1])
    for i in range(states.shape[0]):
        bounds[i], _ = _conclude(
            U[i], quadratics[i], errors_u[i], errors_q[i], t, lo, hi, states[i], remaining[i],
            eps, k, cutoff, fix, phi,
        )  # fmt: skip


@kernel
def missing_rows(
    U, t, lo, hi, states, remaining, levels, listed, most, entrants, totals, missed, incomplete
):
    """Which features relaxations over the `listed` ones lack, given slopes U of all features.

    Free features whose phi exceeds the level would leave zero: up to `most` of them for each node
    are marked as `entrants`. totals[i] is the sum of phi that the bound of node i subtracts,
    missed[i] the part of it that a relaxation with all features could still save.
    """
    p = U.shape[1]
    phi, inner, outer = np.empty(p), np.empty(p), np.empty(p)
    for i in range(U.shape[0]):
        n_all, n_listed, n_outside = 0, 0, 0
        forced = 0.0
        for j in range(p):
            if states[i, j] == OUT:
                continue
            f = _phi(U[i, j], t[j], lo[j], hi[j])
            if states[i, j] == IN:
                forced += f
                continue
            phi[n_all] = f
            n_all += 1
            if listed[j]:
                inner[n_listed] = f
                n_listed += 1
            else:
                outer[n_outside] = f
                n_outside += 1
        r = remaining[i]
        largest = _sum_largest(phi, n_all, r)
        totals[i] = forced + largest
        missed[i] = largest - _sum_largest(inner, n_listed, r)
        incomplete[i] = False
        entry = levels[i] * levels[i]
        if n_outside > most:
            _largest_first(outer, n_outside, most)
            entry = max(entry, np.min(outer[:most]))
        for j in range(p if r > 0 else 0):
            if states[i, j] == FREE and not listed[j]:
                f = _phi(U[i, j], t[j], lo[j], hi[j])
                if f > 0.0 and f >= entry:
                    entrants[j] = True
                    incomplete[i] = True


@kernel
def _full_prox(x, t, reach, rho):
    """argmin over u >= 0 of phi(u) + (rho/2) (u - x)^2 for x >= 0, phi as in `_phi` with t >= 0."""
    if t > 0.0:
        full = x / (1.0 + 2.0 / (rho * t))
        if full <= t * reach:
            return full
    # Linear from t * reach on, where the other piece ends.
    return max(x - 2.0 * reach / rho, t * reach)


@kernel
def _where_phi_is(level, t, reach):
    """The u >= 0 at which phi(u) is `level`."""
    if level <= t * reach * reach:
        return math.sqrt(t * level)
    return 0.5 * (level / reach + t * reach)


@kernel
def _shares(level, rho, x, phi, t, reach, m):
    """Sum over entries of the multiplier in [0, 1] that moves x to where phi is `level`."""
    total = 0.0
    for i in range(m):
        if phi[i] > level:
            at = _where_phi_is(level, t[i], reach[i])
            slope = min(at / t[i], reach[i]) if t[i] > 0.0 else reach[i]
            total += min(1.0, rho * (x[i] - at) / (2.0 * slope)) if slope > 0.0 else 1.0
    return total


@kernel
def prox_rows(V, t, lo, hi, states, remaining, rho, out):
    """argmin over u of Phi(u) + (rho/2) ||u - v||^2, Phi = IN phi's + the r largest FREE ones.

    phi_j(u) = max over lo_j <= w <= hi_j of 2 u w - t_j w^2, t_j >= 0; with t_j = 0 the box is
    finite. Every FREE entry whose phi exceeds a level L is pulled towards its full prox, but not
    below L; L makes the multipliers sum to r (eq. 10).
    """
    p = V.shape[1]
    x, phi, charge, reach = np.empty(p), np.empty(p), np.empty(p), np.empty(p)
    which = np.empty(p, np.int64)
    ranked = np.empty(p)
    for row in range(V.shape[0]):
        v, state, r = V[row], states[row], remaining[row]
        m, n_free = 0, 0
        for j in range(p):
            out[row, j] = v[j]
            if state[j] == OUT:
                continue
            side = hi[j] if v[j] > 0 else -lo[j]
            if state[j] == IN:
                full = _full_prox(abs(v[j]), t[j], side, rho)
                out[row, j] = full if v[j] > 0 else -full
                continue
            n_free += 1
            f = _phi(v[j], t[j], lo[j], hi[j])
            if f > 0.0:
                which[m], x[m], phi[m], charge[m], reach[m] = j, abs(v[j]), f, t[j], side
                ranked[m] = f
                m += 1
        if r <= 0 or m == 0:
            continue
        level = 0.0
        if r < m:
            # With r entries above it, none of them with a larger share than one, a level is not too
            # low; from there down until the shares suffice, then between the two.
            _largest_first(ranked, m, r + 1)
            high = np.min(ranked[: r + 1])
            low, above = high, 0.0
            below = _shares(high, rho, x, phi, charge, reach, m) - r
            while above <= 0.0 and low > 1e-300:
                low *= 0.5
                above = _shares(low, rho, x, phi, charge, reach, m) - r
            for i in range(100):
                if high - low <= 1e-15 * high:
                    break
                # The shares fall steadily: secants, with bisection in between for safety.
                weight = above / (above - below) if i % 3 < 2 and above > below else 0.5
                level = low + min(max(weight, 0.01), 0.99) * (high - low)
                excess = _shares(level, rho, x, phi, charge, reach, m) - r
                if excess > 0.0:
                    low, above = level, excess
                else:
                    high, below = level, excess
            level = high
        for i in range(m):
            if phi[i] > level:
                full = _full_prox(x[i], charge[i], reach[i], rho)
                full = max(full, _where_phi_is(level, charge[i], reach[i]))
                out[row, which[i]] = full if v[which[i]] > 0 else -full
