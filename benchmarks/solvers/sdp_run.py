"""The relaxed optimal perspective, a semidefinite program, with an open solver through cvxpy.

    min <G, B> - 2 c'b   over B - bb' PSD,  b_j^2 <= B_jj z_j,  0 <= z <= 1,  sum z <= k,

G = X'X + alpha I and c = X'y, scaled to G_jj = 1 and y'y = 1 (which leaves z as it is). The solver
gets the dual, with 4p unknowns instead of p^2 / 2 and the same value:

    max -s - k m - sum v   over [[G - diag d, g - c], [(g - c)', s]] PSD,  g_j^2 <= d_j w_j,
                                w <= m + v,  v >= 0,  m >= 0;

b and z are its multipliers. The model is the ridge fit on the k largest z.

The lower bound is not the solver's word, which is wrong when it stops early, but a consequence of
its d: divided by the largest eigenvalue of diag d relative to G, any d > 0 leaves M = G - diag d
PSD, and then for every vector b

    y'y - b'Mb - (sum of the k largest (c - Mb)_j^2 / d_j)

is a bound. The b are those of the solver and of some steps that minimise b'Mb - 2c'b +
sum d_j b_j^2 / z_j over b and z in turn; the best counts. The solver's claim is in the notes.

A relaxation does not close a gap, so that question.gap is not used: tolerances are 1e-8 (Clarabel's
own) and 1e-6 (SCS). Options: ``solver``, "clarabel" (interior points, the default) or "scs" (first
order). An iteration of Clarabel factorises a dense matrix of order p^2 / 2, one of SCS decomposes a
matrix of order p. Both look at their clock only now and then, and overrun the limit where that is
long. An SCS that has hardly begun has some d, too; the bound then owes more to the steps above.
"""

import time
import warnings

import cvxpy as cp
import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from benchmarks.harness.answering import Answer, run

LARGEST = 120
"""Features up to which an iteration of Clarabel takes seconds; it grows with p^6."""
STEPS = 50


def solve(X, y, question):
    start = time.perf_counter()
    p, k = X.shape[1], min(question.k, X.shape[1])
    gram, moment, yy = X.T @ X, X.T @ y, y @ y
    gram[np.diag_indices(p)] += question.alpha
    norm = np.sqrt(gram.diagonal())
    G, c = gram / np.outer(norm, norm), moment / (norm * np.sqrt(yy))

    d, b, z, notes = relaxation(G, c, k, question, start)
    support, coef = np.argsort(-z)[:k], np.zeros(p)
    coef[support] = np.linalg.solve(gram[np.ix_(support, support)], moment[support])
    residual = y - X[:, support] @ coef[support]
    return Answer(
        coef=coef,
        objective=residual @ residual + question.alpha * coef @ coef,
        lower_bound=yy * bound(G, c, k, d, b, z),
        nodes=1,
        notes=notes | {"claimed_bound": float(yy * notes["claimed_bound"])},
    )


def relaxation(G, c, k, question, start):
    """d, b and z as far as the solver gets in the time that is left, and what it says."""
    p, name = len(c), question.options.get("solver", "clarabel")
    if name == "clarabel" and p > LARGEST:
        raise ValueError(f"p = {p} is beyond Clarabel, which factorises a matrix of order p^2 / 2")
    d, g, w, v = (cp.Variable(p) for _ in range(4))
    s, m = cp.Variable((1, 1)), cp.Variable(nonneg=True)
    column = cp.reshape(g - c, (p, 1), order="F")
    block = cp.bmat([[G - cp.diag(d), column], [column.T, s]]) >> 0
    chosen = w <= m + v
    perspective = cp.SOC(d + w, cp.vstack([2 * g, d - w]))
    value = 1 - s[0, 0] - k * m - cp.sum(v)
    problem = cp.Problem(cp.Maximize(value), [block, chosen, perspective, v >= 0])
    left = max(question.time_limit - (time.perf_counter() - start), 0.1)
    if name == "clarabel":
        options = {"time_limit": left, "max_threads": question.threads}
    else:
        options = {"time_limit_secs": left, "eps_abs": 1e-6, "eps_rel": 1e-6, "max_iters": 10**6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "may be inaccurate": the bound allows for it
        problem.solve(name.upper(), **options)
    if d.value is None:
        raise RuntimeError(f"{name} ends with {problem.status}, without a solution")
    B = block.dual_value
    notes = {
        "status": problem.status,
        "claimed_bound": problem.value,
        "iterations": problem.solver_stats.num_iters,
    }
    return d.value, B[:-1, -1] / B[-1, -1], chosen.dual_value, notes


def bound(G, c, k, d, b, z):
    """A bound that holds for any d, b and z; in units of y'y."""
    d = np.maximum(d, 1e-12)
    d *= (1.0 - 1e-7) / eigh(np.diag(d), G, eigvals_only=True)[-1]  # a little less: rounding
    M = G - np.diag(d)
    best = proven(M, c, k, d, b)
    for _ in range(STEPS):
        b = cho_solve(cho_factor(M + np.diag(d / np.clip(z, 1e-9, 1.0))), c)
        best = max(best, proven(M, c, k, d, b))
        z = weights(np.sqrt(d) * np.abs(b), k)
    return best


def proven(M, c, k, d, b):
    Mb = M @ b
    return 1.0 - b @ Mb - np.sort((c - Mb) ** 2 / d)[-k:].sum()


def weights(size, k):
    """min sum size_j^2 / z_j over 0 <= z <= 1, sum z = k: z = min(1, size / t)."""
    largest = np.sort(size)[::-1]
    t = largest[::-1].cumsum()[::-1][:k] / np.arange(k, 0, -1)  # if the first 0, 1, ... are at 1
    return size / t[np.argmax(largest[:k] <= t)]


if __name__ == "__main__":
    run(solve, "cvxpy", "clarabel", "scs")
