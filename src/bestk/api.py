"""From arrays to a proven model: the functions users call."""

from time import perf_counter
from typing import Any

import numpy as np

from bestk.certificate import Recorder
from bestk.incumbent import Incumbent
from bestk.problem import Problem
from bestk.progress import make_progress
from bestk.result import Result, Snapshot, Status, relative_gap
from bestk.scaling import StandardForm
from bestk.settings import Advanced, Settings
from bestk.threads import Workers, blas_threads, default_threads
from bestk.tree import Tree
from bestk.validation import as_features, require_count

HISTORY = np.dtype([("seconds", "f8"), ("nodes", "i8"), ("incumbent", "f8"), ("bound", "f8")])
# Up to this size one BLAS thread is as fast as a pool, and far faster on a busy machine.
_SMALL = 1500


def solve(
    X: Any,
    y: Any,
    k: int,
    *,
    alpha: float = 0.0,
    bounds: Any = None,
    include: Any = None,
    exclude: Any = None,
    sample_weight: Any = None,
    initial_support: Any = None,
    gap_tol: float = 1e-4,
    time_limit: float | None = None,
    node_limit: int | None = None,
    memory_limit: float | None = None,
    search: str = "best-first",
    bound: str = "descent",
    progress: Any = None,
    callback: Any = None,
    n_threads: int | None = None,
    advanced: Advanced | None = None,
) -> Result:
    """Minimise ``||y - X b||^2 + alpha ||b||^2`` with at most k nonzeros in b, and prove it.

    Parameters
    ----------
    X, y : array-like, (n, p) and (n,)
        Finite real data. X is neither copied nor changed. There is no intercept: centre X and y, or
        add a column of ones and name it in `include`.
    k : int
        Largest number of features, >= 0.
    alpha : float
        Ridge penalty, >= 0.
    bounds : pair (lower, upper) or None
        Scalars or (p,) arrays, lower <= 0 <= upper, as in scipy.optimize.lsq_linear.
    include, exclude : index lists or masks
        Features that must, or must not, be in the model.
    sample_weight : (n,) array or None
        Nonnegative weights of the squared residuals.
    initial_support : index list or None
        A model to start from, at most k features.
    gap_tol : float
        The run ends when ``(objective - lower_bound) / objective`` is at most this.
    time_limit, node_limit, memory_limit : float (seconds), int, float (bytes of the tree), or None
        Limits stop a run; the best model and a bound that holds come back.
    search : {"best-first", "breadth-first", "depth-first"}
        Order in which nodes are taken; "breadth-first" is the paper's.
    bound : {"descent", "admm", "fast", "subgradient"}
        How the relaxation is solved; the last three are the paper's methods.
    progress : bool or object
        True shows a live line; an object gets update(snapshot) and close().
    callback : function of a Snapshot, or None
        Called after every batch of nodes; a true return value stops the run.
    n_threads : int or None
        Threads for our kernels and BLAS; None means all cores.
    advanced : Advanced or None
        Switches for studies, e.g. ``bestk.Advanced(fixing=False)``.

    Returns
    -------
    Result

    Examples
    --------
    >>> import bestk
    >>> X, y, coef = bestk.datasets.make_synthetic(200, 30, k=3, rho=0.5)
    >>> result = bestk.solve(X, y, k=3)
    >>> result.status.name, result.support.tolist()
    ('OPTIMAL', [0, 10, 20])
    """
    started = perf_counter()
    settings = Settings(
        gap_tol=gap_tol,
        time_limit=time_limit,
        node_limit=node_limit,
        memory_limit=memory_limit,
        search=search,
        bound=bound,
        progress=progress,
        callback=callback,
        n_threads=n_threads,
        advanced=advanced or Advanced(),
    )
    k = require_count("k", k, least=0)
    problem = Problem.from_data(
        X, y, alpha=alpha, bounds=bounds, sample_weight=sample_weight, n_threads=n_threads
    )
    return _run(problem, k, include, exclude, initial_support, settings, started)


def solve_problem(
    problem: Problem,
    k: int,
    *,
    include: Any = None,
    exclude: Any = None,
    initial_support: Any = None,
    **options: Any,
) -> Result:
    """:func:`solve` for a Problem that is already there."""
    unknown = set(options) - set(Settings.names())
    if unknown:
        known = ", ".join(("include", "exclude", "initial_support", *Settings.names()))
        raise TypeError(f"unknown option {sorted(unknown)[0]!r}; options are {known}")
    if options.get("advanced") is None:
        options.pop("advanced", None)
    settings = Settings(**options)
    k = require_count("k", k, least=0)
    return _run(problem, k, include, exclude, initial_support, settings, perf_counter())


def beam_search(
    X: Any,
    y: Any,
    k: int,
    *,
    alpha: float = 0.0,
    bounds: Any = None,
    include: Any = None,
    exclude: Any = None,
    sample_weight: Any = None,
    width: int = 50,
    n_threads: int | None = None,
) -> Result:
    """The warm start alone: beam search and swaps, without any proof (lower_bound 0).

    Parameters are those of :func:`solve`; `width` supports are kept per size.
    """
    options = Advanced(beam_width=width)
    problem = Problem.from_data(
        X, y, alpha=alpha, bounds=bounds, sample_weight=sample_weight, n_threads=n_threads
    )
    return problem.solve(
        k, include=include, exclude=exclude, node_limit=0, n_threads=n_threads, advanced=options
    )


def _run(problem, k, include, exclude, initial_support, settings, started) -> Result:
    p = problem.n_features
    include, exclude = as_features("include", include, p), as_features("exclude", exclude, p)
    start = as_features("initial_support", initial_support, p)
    _require_compatible(k, include, exclude, start)
    incumbent = Incumbent(problem)
    # Columns of zeros, features that are excluded or bounded to zero cannot enter a model.
    useful = (problem.gram.diagonal() > 0.0) & (problem.lower < problem.upper)
    useful &= np.isfinite(problem.ridge)
    useful[exclude] = False
    features = np.flatnonzero(useful)
    inside = np.flatnonzero(np.isin(features, include))
    # Useless features that must be included still count.
    k_left = min(k - int((~useful[include]).sum()), len(features))
    incumbent.offer(features[inside])
    if len(start):
        incumbent.offer(np.union1d(start, include)[:k] if len(start) < k else start)
    history: list[tuple[float, int, float, float]] = []
    if problem.yy == 0.0 or k_left <= 0 or len(features) == 0:
        bound, status, n_nodes = incumbent.objective, Status.OPTIMAL, 0
        certificate = Recorder(True).certificate(k, include, exclude)
    else:
        threads = settings.n_threads or default_threads()
        progress = make_progress(settings.progress)
        try:
            with blas_threads(1 if len(features) <= _SMALL else threads), Workers(threads) as pool:
                form = StandardForm.of(problem, features)
                if problem.alpha == 0.0 and not form.is_boxed:
                    form, inside = _without_copies(form, inside)
                    k_left = min(k_left, form.p)
                tree = Tree(form, inside, k_left, incumbent, settings, pool, progress, started)
                status = tree.run()
        finally:
            progress.close()
        bound, n_nodes, history = tree.lower_bound, tree.n_nodes, tree.history
        certificate = tree.recorder.certificate(k, include, exclude)
        if relative_gap(incumbent.objective, bound, problem.yy) <= settings.gap_tol:
            status = Status.OPTIMAL
    return _result(incumbent, include, bound, status, n_nodes, history, certificate, started)


def _without_copies(form: StandardForm, inside: np.ndarray) -> tuple[StandardForm, np.ndarray]:
    """Leave out features that repeat others; what must be included stays."""
    repeated = form.copies()
    repeated[inside] = False
    if not repeated.any():
        return form, inside
    keep = np.flatnonzero(~repeated)
    return form.restricted(keep), np.searchsorted(keep, inside)


def _require_compatible(k, include, exclude, start) -> None:
    both = np.intersect1d(include, exclude)
    if len(both):
        raise ValueError(f"feature {both[0]} is in both include and exclude")
    if len(include) > k:
        raise ValueError(f"include names {len(include)} features, but k = {k}; raise k")
    if len(start) > k:
        raise ValueError(f"initial_support has {len(start)} features, but k = {k}")
    if np.isin(start, exclude).any():
        raise ValueError("initial_support contains excluded features")
    if len(np.union1d(start, include)) > k:
        raise ValueError(f"initial_support and include together name more than k = {k} features")


def _result(incumbent, include, bound, status, n_nodes, history, certificate, started) -> Result:
    problem = incumbent.problem
    coef = np.zeros(problem.n_features)
    coef[incumbent.support] = incumbent.coef
    seconds = perf_counter() - started
    end = Snapshot(
        seconds=seconds,
        n_nodes=n_nodes,
        n_open=0,
        objective=incumbent.objective,
        lower_bound=min(bound, incumbent.objective),
        yy=problem.yy,
    )
    history = [*history, (seconds, n_nodes, end.objective, end.lower_bound)]
    return Result(
        coef=coef,
        support=np.union1d(incumbent.support, include),
        objective=end.objective,
        lower_bound=end.lower_bound,
        gap=end.gap,
        explained_gap=end.explained_gap,
        status=status,
        n_nodes=n_nodes,
        seconds=seconds,
        history=np.array(history, dtype=HISTORY),
        certificate=certificate,
    )
