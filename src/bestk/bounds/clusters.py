"""A split with clusters: alike features are charged together (theory: cluster-charges).

Where features are strongly correlated a diagonal split has next to nothing to charge: each of them
is nearly explained by its neighbours. A cluster of neighbours as a whole is not. Taking T block
diagonal over such clusters and choosing inside each exactly gives bounds that are out of reach for
any diagonal.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import LinAlgError, block_diag, cho_factor, cho_solve, solve_triangular

from bestk.base.tuning import tuning
from bestk.form.definiteness import is_positive_semidefinite, smallest_eigenvalue
from bestk.form.standard_form import StandardForm
from bestk.supports.beam import beam_supports

# Charges smaller than this are not worth their rounding allowance.
_SMALLEST = 1e-4


@dataclass(frozen=True, kw_only=True, eq=False)
class ClusterSplit:
    """A proven split A = Q + T: Q positive semidefinite, T block diagonal.

    ``clusters`` are disjoint index arrays with their blocks of T; the features ``single`` have the
    charges ``t``. ``floor`` is a lower bound on the eigenvalues of T.
    """

    Q: np.ndarray = field(repr=False)
    clusters: list[np.ndarray]
    matrices: list[np.ndarray] = field(repr=False)
    single: np.ndarray = field(repr=False)
    t: float
    floor: float

    @property
    def charges(self) -> np.ndarray:
        """t for the single features, zero for members of clusters."""
        charges = np.zeros(len(self.Q))
        charges[self.single] = self.t
        return charges


def cluster_split(form: StandardForm, smallest: float) -> ClusterSplit | None:
    """Clusters around the most useful features and a proven split over them, or None.

    `smallest` is a proven lower bound on the eigenvalues of A.
    """
    if smallest <= 0.0:
        return None
    seeds = _seeds(form)
    if len(seeds) == 0:
        return None
    best, best_score = None, 0.0
    for width in tuning().cluster_widths:
        clusters = _clusters(form.A, seeds, width)
        charges = _charges(form.A, clusters, 0.5 * smallest)
        score = 0.0 if charges is None else float(np.mean([T[0, 0] for T in charges]))
        if score <= best_score:
            break
        best, best_score = (clusters, charges), score
    if best is None:
        return None
    return _proven(form.A, *best, 0.5 * smallest, form.eps)


def _seeds(form: StandardForm) -> np.ndarray:
    """Features that gain much in greedy selection."""
    order = beam_supports(form, np.zeros(0, dtype=np.intp), tuning().cluster_seeds, width=1)[0]
    A = form.matrix.submatrix(order) + 1e-10 * np.eye(len(order))
    gains = solve_triangular(np.linalg.cholesky(A), form.c[order], lower=True) ** 2
    return order[gains >= tuning().cluster_seed_gain * max(gains.max(), 1e-12)]


def _clusters(A: np.ndarray, seeds: np.ndarray, width: int) -> list[np.ndarray]:
    """Each seed with the features most like it; a feature goes to the seed it is most like."""
    likeness = np.abs(A[seeds])
    owner = np.argmax(likeness, axis=0)
    owner[seeds] = np.arange(len(seeds))
    clusters = []
    for i, seed in enumerate(seeds):
        mine = np.flatnonzero((owner == i) & (likeness[i] >= tuning().cluster_likeness))
        mine = mine[mine != seed]
        order = np.argsort(-likeness[i, mine], kind="stable")[:width]
        clusters.append(np.concatenate([[seed], mine[order]]))
    return clusters


def _charges(A: np.ndarray, clusters: list[np.ndarray], t: float) -> list[np.ndarray] | None:
    """Blocks T with A - T - t (on all others) positive semidefinite, large at the seeds.

    What the others leave of A on the clusters is a Schur complement M. In coordinates where its
    diagonal blocks are the identity, followers are charged a fixed share and seeds all the rest.
    """
    inside = np.concatenate(clusters)
    others = np.setdiff1d(np.arange(len(A)), inside)
    M = A[np.ix_(inside, inside)]
    try:
        if len(others):
            factor = cho_factor(A[np.ix_(others, others)] - t * np.eye(len(others)), lower=True)
            M = M - A[np.ix_(inside, others)] @ cho_solve(factor, A[np.ix_(others, inside)])
        ends = np.cumsum([len(cluster) for cluster in clusters])
        parts = [slice(end - len(c), end) for end, c in zip(ends, clusters, strict=True)]
        L = [np.linalg.cholesky(M[part, part]) for part in parts]
        inverse = block_diag(*[solve_triangular(x, np.eye(len(x)), lower=True) for x in L])
        N = inverse @ M @ inverse.T
        seeds = np.array([part.start for part in parts])
        rest = np.setdiff1d(np.arange(len(N)), seeds)
        D = np.empty(len(N))
        D[rest] = tuning().cluster_followers * smallest_eigenvalue(N)
        left = N[np.ix_(seeds, seeds)]
        if len(rest):
            factor = cho_factor(N[np.ix_(rest, rest)] - np.diag(D[rest]), lower=True)
            left = left - N[np.ix_(seeds, rest)] @ cho_solve(factor, N[np.ix_(rest, seeds)])
        D[seeds] = np.linalg.eigvalsh(left)[0]
    except (LinAlgError, np.linalg.LinAlgError):
        return None
    if D.min() <= 0.0:
        return None
    return [(x * D[part]) @ x.T for x, part in zip(L, parts, strict=True)]


def _proven(A, clusters, charges, t, error) -> ClusterSplit | None:
    single = np.setdiff1d(np.arange(len(A)), np.concatenate(clusters))
    for share in (0.999, 0.99, 0.9):
        matrices = [share * 0.5 * (T + T.T) for T in charges]
        Q = A.copy()
        for cluster, T in zip(clusters, matrices, strict=True):
            Q[np.ix_(cluster, cluster)] -= T
        Q[single, single] -= t
        if is_positive_semidefinite(Q, np.zeros(len(A)), error):
            break
    else:
        return None
    floor = min([t, *(np.linalg.eigvalsh(T)[0] for T in matrices)])
    # Rounding in the entries of Q and in the eigenvalues.
    floor -= 1e-13
    if floor < _SMALLEST:
        return None
    return ClusterSplit(
        Q=Q, clusters=clusters, matrices=matrices, single=single, t=t, floor=float(floor)
    )
