"""Rigorous lower bounds for single supports.

Around any approximate fit b, with h = M'(z - M b) and the least eigenvalue lambda of M'M,

    f(b + v) = f(b) - 2 h'v + |M v|^2 >= f(b) - sum of max over v_j of (2 h_j v_j - lambda v_j^2),

the maximum over what the bounds leave of v_j. Nothing here needs b to be good.
"""

from collections.abc import Callable

import numpy as np
from scipy.optimize import lsq_linear, nnls

from bestk.verification.evidence import Evidence
from bestk.verification.limits import limits
from bestk.verification.numerics.rounding import LONG, LONG_UNIT, UNIT, gamma, largest_gain
from bestk.verification.numerics.rows import Columns, reflected, short_sums, sum_length

# Residual columns shorter than this, times the root of the rows, count as dependent.
DEPENDENT = 1e-13


class Judge:
    """Bounds supports (rows of live positions) as well as it has to.

    ``enough`` is the value from which on nobody needs to know better.
    """

    def __init__(
        self,
        evidence: Evidence,
        enough: float,
        exactly: Callable[[np.ndarray], float | None] = lambda support: None,
    ) -> None:
        self.evidence, self.enough, self.exactly = evidence, enough, exactly

    def bounds(self, supports: np.ndarray) -> np.ndarray:
        """Lower bounds on f over each support; products first, rows where these do not suffice."""
        values = self.quick(supports)
        for i in np.flatnonzero(values < self.enough):
            values[i] = max(values[i], self.closer(supports[i]))
        return np.maximum(values, 0.0)

    def quick(self, supports: np.ndarray) -> np.ndarray:
        """What products alone prove of each support, bounds on coefficients aside."""
        step = max(1, limits().stacked_entries // (supports.shape[1] ** 2 + 1))
        parts = [self._by_products(supports[i : i + step]) for i in range(0, len(supports), step)]
        return np.concatenate([np.zeros(0), *parts])

    def closer(self, support: np.ndarray) -> float:
        """What is proven of one support by all means there are, as far as they are needed."""
        value = max(0.0, self._at_model(support))
        if value < self.enough and self.evidence.rows is None and not self.evidence.is_boxed:
            support = self._independent(support)
            value = max(value, float(self._by_products(support[None])[0]))
        if value < self.enough and self.evidence.is_boxed:
            value = max(value, self._boxed_by_products(support))
        if value < self.enough and self.evidence.rows is not None:
            value = max(value, self._by_rows(support))
        if value < self.enough:
            exact = self.exactly(support)
            value = value if exact is None else max(value, exact)
        return value

    def _by_products(self, supports: np.ndarray) -> np.ndarray:
        """f of the stationary point from A and c, minus what is unknown about both."""
        e = self.evidence
        A, c = e.A.blocks(supports), e.c[supports]
        least = least_eigenvalues(A) - e.eps * supports.shape[1]
        values = np.zeros(len(supports))
        fine = least > 0.0
        if fine.any():
            b = np.linalg.solve(A[fine], c[fine][:, :, None])[:, :, 0]
            lo, hi = np.full_like(b, -np.inf), np.full_like(b, np.inf)
            values[fine] = _around(A[fine], c[fine], e.eps, least[fine], b, lo, hi)
        return values

    def _boxed_by_products(self, support: np.ndarray) -> float:
        """The same around a fit within the bounds."""
        e = self.evidence
        A, c = e.A.block(support), e.c[support]
        least = float(least_eigenvalues(A[None])[0]) - e.eps * len(support)
        try:
            root = np.linalg.cholesky(A + 1e-12 * np.eye(len(A)))
        except np.linalg.LinAlgError:
            return 0.0
        lo, hi = e.lo[support], e.hi[support]
        b = boxed_fit(root.T, np.linalg.solve(root, c), lo, hi)

        def around(b: np.ndarray, least: float) -> float:
            stack = (A[None], c[None], e.eps, np.array([least]), b[None], lo[None], hi[None])
            return float(_around(*stack)[0])

        value = around(b, least)
        if value < self.enough and least <= 0.0:
            pushed = around(_pushed(A, c, e.eps, root, b, lo, hi), 0.0)
            if pushed > value and e.model is None:
                assume(e, "the given matrix is positive semidefinite, as matrices of products are")
            value = max(value, pushed)
        return value

    def _at_model(self, support: np.ndarray) -> float:
        """The same around the certificate's model, whose residuals were seen row by row."""
        e = self.evidence
        if e.model is None or not np.array_equal(np.sort(e.live[support]), e.model.features):
            return 0.0
        place = e.position[e.model.features]
        A = e.A.block(place)
        least = float(least_eigenvalues(A[None])[0]) - e.eps * len(place)
        # Units, and the coefficients in them, are rounded a few times.
        unit = e.to_form[place] * e.unit
        gradient, b = e.model.gradient / unit, e.form_coef[place]
        error = e.model.error / unit * 1.01 + 16 * UNIT * np.abs(gradient)
        box = ((e.lo[place] - b) - 16 * UNIT * np.abs(b), (e.hi[place] - b) + 16 * UNIT * np.abs(b))
        loss = largest_gain(gradient, error, least, *box).sum() if len(place) else 0.0
        return float(e.model.value / e.unit * (1.0 - 8 * UNIT) - loss * (1.0 + gamma(len(b) + 2)))

    def _independent(self, support: np.ndarray) -> np.ndarray:
        """The support without features that depend on others as far as products can tell."""
        e = self.evidence
        lost = 4 * len(e.c) * (e.eps + UNIT)
        A, kept = e.A.block(support), np.ones(len(support), dtype=bool)
        for i in range(len(support)):
            if A[i, i] <= lost:
                kept[i] = False
                assume(e, f"feature {e.live[support[i]]} depends on others as far as products tell")
            else:
                A[i + 1 :, i + 1 :] -= np.outer(A[i + 1 :, i] / A[i, i], A[i, i + 1 :])
        return support[kept]

    def _by_rows(self, support: np.ndarray) -> float:
        """The same from the rows, in extended precision."""
        e = self.evidence
        assert e.rows is not None
        if len(support) == 0:
            return 0.0
        columns = e.rows.columns(e.live[support])
        dependent = dependent_columns(columns)
        if dependent.any() and not e.is_boxed:
            assume_dependent(e, support[dependent])
            support = support[~dependent]
            columns = e.rows.columns(e.live[support])
        lo, hi = e.lo[support], e.hi[support]
        value, b = _around_rows(columns, np.full(len(lo), -np.inf), np.full(len(hi), np.inf))
        if value < self.enough and e.is_boxed and b is not None:
            value = max(value, _around_rows(columns, lo, hi)[0])
        return value


def assume_dependent(evidence: Evidence, positions: np.ndarray) -> None:
    """Say once which features were left out as dependent on others."""
    for j in evidence.live[positions]:
        assume(
            evidence, f"feature {j} is treated as dependent on others: they agree to {DEPENDENT:g}"
        )


def assume(evidence: Evidence, text: str) -> None:
    if text not in evidence.assumptions:
        evidence.assumptions.append(text)


def least_eigenvalues(stack: np.ndarray) -> np.ndarray:
    """Proven lower bounds on the eigenvalues of unit-diagonal matrices; 0 where there is none.

    A shifted Cholesky factorisation proves half of what an eigenvalue routine guesses (theory:
    definite).
    """
    k = stack.shape[1]
    if k == 0:
        return np.ones(len(stack))
    guess = 0.5 * np.linalg.eigvalsh(stack)[:, 0]
    shift = guess + (k + 4) * UNIT * 1.1 * (k + 1)
    proven = np.ones(len(stack), dtype=bool)
    L = stack.copy()
    L[:, range(k), range(k)] -= shift[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        for i in range(k):
            proven &= L[:, i, i] > 0.0
            factor = L[:, i, i + 1 :] / L[:, i, i, None]
            L[:, i + 1 :, i + 1 :] -= factor[:, :, None] * L[:, None, i, i + 1 :]
    return np.where(proven & (guess > 0.0), guess, 0.0)


def _around(A, c, eps, least, b, lo, hi) -> np.ndarray:
    """The bound of the module's formula for stacks of products known up to eps."""
    k = b.shape[1]
    size = 1.0 + np.abs(b).sum(axis=1)
    Ab = np.einsum("hij,hj->hi", A, b)
    value = 1.0 - 2.0 * np.einsum("hi,hi->h", c, b) + np.einsum("hi,hi->h", b, Ab)
    # All entries are at most one: sums of k + 1 products of numbers with total size^2.
    unknown = eps + gamma(2 * k + 8)
    error = unknown * size[:, None]
    loss = largest_gain(c - Ab, error, least[:, None], lo - b, hi - b).sum(axis=1)
    return value - unknown * size**2 - loss * (1.0 + gamma(k + 2))


def boxed_fit(M, z, lo, hi) -> np.ndarray:
    """Least squares within bounds, roughly; coefficients that cannot be fitted are zero."""
    try:
        b = lsq_linear(M, z, (lo, np.maximum(hi, lo + 1e-300)), method="bvls", tol=1e-14).x
    except (ValueError, np.linalg.LinAlgError):
        return np.zeros(len(lo))
    return np.clip(b, lo, hi)


def _pushed(A, c, eps, root, b, lo, hi) -> np.ndarray:
    """b moved so that f rises from it, for sure, wherever the bounds leave an endless way.

    Where features are dependent only |M v|^2 >= 0 is known, and rounding of h = c - A b must not
    have the wrong sign. With s, the point of least |M s| among s >= 0 with sum 1, A s >= |M s|^2 in
    every entry: a little of it is enough. (All that in the directions that are endless.)
    """
    endless = np.isinf(hi).astype(float) - np.isinf(lo)
    M = np.vstack([root.T * endless, np.abs(endless)])
    s = endless * nnls(M, np.append(np.zeros(len(b)), 1.0))[0]
    rise = (endless * (A @ s))[endless != 0.0].min(initial=np.inf)
    if not rise > 0.0:
        return b
    wrong = endless * (c - A @ b)
    margin = 8.0 * (eps + gamma(2 * len(b) + 8)) * (1.0 + np.abs(b).sum())
    return b + s * (max(0.0, wrong.max(initial=0.0)) + margin) / rise


def dependent_columns(columns: Columns) -> np.ndarray:
    """Mask of columns with next to nothing beyond those before them."""
    M = columns.M
    limit = DEPENDENT * np.sqrt(float(len(M)))
    kept: list[int] = []
    dependent = np.zeros(M.shape[1], dtype=bool)
    for j in range(M.shape[1]):
        C, _ = reflected(M[:, [*kept, j]].T, len(kept))
        rest = C[-1, len(kept) :]
        dependent[j] = len(rest) == 0 or np.sqrt((rest * rest).sum()) <= limit
        if not dependent[j]:
            kept.append(j)
    return dependent


def _around_rows(columns: Columns, lo, hi) -> tuple[float, np.ndarray | None]:
    """(bound, b) from columns in extended precision; (0, None) where they are too dependent."""
    M, z = columns.M, columns.z
    n, k = M.shape
    if k == 0:
        value = float(short_sums(z * z))
        return value * (1.0 - gamma(sum_length(n) + 2, LONG_UNIT) - 4 * columns.error), None
    least, R, q = least_singular_value(columns)
    if least <= 0.0:
        return 0.0, None
    if np.isinf(lo).all() and np.isinf(hi).all():
        b = back_substituted(R, q)
    else:
        b = boxed_fit(R.astype(np.float64), q.astype(np.float64), lo, hi).astype(LONG)
    residual = z - M @ b
    size = float(1.0 + np.abs(b).sum()) * (1.0 + 1e-12)
    off = (columns.error + gamma(k + 3, LONG_UNIT)) * size
    norm = float(np.sqrt(short_sums(residual * residual)))
    value = max(norm * (1.0 - gamma(sum_length(n) + 4, LONG_UNIT) - 4 * UNIT) - off, 0.0) ** 2
    gradient = short_sums(M.T * residual).astype(np.float64)
    unsure = off + (gamma(sum_length(n) + 2, LONG_UNIT) + columns.error) * norm * 1.01
    near = b.astype(np.float64)
    unknown = unsure + np.abs(gradient) * 2 * UNIT
    loss = largest_gain(gradient, unknown, least**2, lo - near, hi - near).sum()
    return float(value * (1.0 - 4 * UNIT) - loss * (1.0 + gamma(k + 2))), b


def least_singular_value(columns: Columns) -> tuple[float, np.ndarray, np.ndarray]:
    """(a proven lower bound, R, Q'z) of M = Q R."""
    M, z = columns.M, columns.z
    k = M.shape[1]
    if k > len(M):
        return 0.0, M, z
    C, error = reflected(np.vstack([M.T, z]), k)
    R, q = C[:k, :k].T, C[k, :k]
    if (R.diagonal() == 0).any():
        return 0.0, R, q
    inverse = np.column_stack([back_substituted(R, e) for e in np.eye(k, dtype=LONG)])
    norm = float(np.sqrt((inverse * inverse).sum()))
    # The inverse of a triangle is exact up to k u cond: a tenth at most, or nothing is said.
    if norm * k**2 * LONG_UNIT * float(np.sqrt((R * R).sum())) > 0.01:
        return 0.0, R, q
    return 0.9 / norm - 1.01 * np.sqrt(k) * (error + columns.error), R, q


def back_substituted(R, q) -> np.ndarray:
    b = np.zeros(len(q), dtype=LONG)
    for i in range(len(q) - 1, -1, -1):
        b[i] = (q[i] - R[i, i + 1 :] @ b[i + 1 :]) / R[i, i]
    return b
