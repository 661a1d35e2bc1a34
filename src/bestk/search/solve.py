"""From arrays to a proven model: the functions users call."""

from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from bestk.base.cluster.client import client_for
from bestk.base.settings import Advanced, settings_of
from bestk.base.validation import as_features, counted, is_auto, require_count
from bestk.choices.run import Prepared, solve_prepared
from bestk.form.presolve import Presolved
from bestk.problem.regression import Regression
from bestk.results.result import Result
from bestk.runs.checkpoint import LIST, Checkpoint
from bestk.search.automatic_box import boxed
from bestk.search.run import small_blas, solve_presolved
from bestk.structure.asked import Asked


def solve(
    X: Any,
    y: Any,
    k: int,
    *,
    alpha: float = 0.0,
    bounds: Any = None,
    include: Any = None,
    exclude: Any = None,
    free: Any = None,
    groups: Any = None,
    rules: Any = None,
    constraints: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = False,
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
    device: str = "cpu",
    client: Any = None,
    checkpoint: Any = None,
    checkpoint_interval: float = 60.0,
    advanced: Advanced | None = None,
) -> Result:
    """Minimise ``||y - X b||^2 + alpha ||b||^2`` with at most k nonzeros in b, and prove it.

    Parameters
    ----------
    X, y : array-like, (n, p) and (n,)
        Finite real data; X may be a data frame, or a Dask array or data frame. X is neither copied
        nor changed.
    k : int
        Largest number of features, >= 0.
    alpha : float
        Ridge penalty, >= 0.
    bounds : pair (lower, upper), "auto" or None
        Scalars or (p,) arrays, lower <= 0 <= upper, as in scipy.optimize.lsq_linear. "auto" chooses
        a box from a first model: no coefficient, times the length of its column, may exceed 1.5
        times the largest of that model. Proofs get easier, but hold inside the box only: the status
        is then ``CONDITIONAL`` instead of ``OPTIMAL``, and ``result.box`` is the box.
    include, exclude : lists of column names or indices, or masks
        Features that must, or must not, be in the model. Included ones count in k.
    free : list of column names or indices, or mask
        Features that every model may use without being counted in k: a trend, controls.
    groups : p labels, or {name: columns}, or a function of the column names, or None
        Features that enter a model, or stay out of it, together: the levels of a factor. k then
        counts groups; a feature that is in no group is one of its own. See
        :func:`bestk.groups_of`. A function takes the tuple of all column names and returns one of
        the others; :func:`bestk.groups_by_source` makes one for pipelines.
    rules : list of rules, or None
        Which features, or groups, may be chosen together: functions of :mod:`bestk.rules`.
    constraints : scipy.optimize.LinearConstraint, or list of them or of strings, or None
        ``lb <= A b <= ub`` for the coefficients, such as ``"a + b = 1"``. Zero need not satisfy
        them.
    sample_weight : (n,) array or None
        Nonnegative weights of the squared residuals.
    fit_intercept : bool
        Give every model a free intercept, neither penalised nor counted in k.
    initial_support : list of names or indices, or None
        A model to start from, at most k features.
    gap_tol : float
        The run ends when ``(objective - lower_bound) / objective`` is at most this; less than 1.
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
    device : {"cpu", "cuda", "cuda:1", ...}
        A GPU that closes nodes by trying all their supports, a thousand times as many a second as
        a core, and sums up products of large data; needs ``bestk[gpu]``. ``result.engine`` says
        what was used.
    client : dask.distributed.Client or None
        Workers that explore the tree, on this machine or on others; needs ``bestk[dask]``. Tree,
        answer and certificate are the same, whatever the number of workers and whichever of them
        die. X and y may be Dask arrays or data frames: they stay where they are, and bring their
        client with them.
    checkpoint : file name or None
        Write the open tree there every `checkpoint_interval` seconds and at the end;
        :func:`resume` goes on from it, also after the process was killed.
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
    client = client_for(X, client)
    settings = settings_of(
        {
            "gap_tol": gap_tol,
            "time_limit": time_limit,
            "node_limit": node_limit,
            "memory_limit": memory_limit,
            "search": search,
            "bound": bound,
            "progress": progress,
            "callback": callback,
            "n_threads": n_threads,
            "device": device,
            "client": client,
            "checkpoint": checkpoint,
            "checkpoint_interval": checkpoint_interval,
            "advanced": advanced,
        }
    )
    k = require_count("k", k, least=0)
    problem = Regression.from_data(
        X,
        y,
        alpha=alpha,
        bounds=bounds,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
        n_threads=n_threads,
        device=device,
        client=client,
    )
    asked = Asked(
        include=include,
        exclude=exclude,
        free=free,
        groups=groups,
        rules=rules,
        constraints=constraints,
    )
    return _solve(problem, k, asked, initial_support, settings, started)


def solve_problem(
    problem: Regression,
    k: int,
    *,
    initial_support: Any = None,
    **options: Any,
) -> Result:
    """:func:`solve` for a problem that is already there."""
    started = perf_counter()
    asked = Asked.taken_from(options)
    settings = settings_of(options)
    k = require_count("k", k, least=0)
    return _solve(problem, k, asked, initial_support, settings, started)


def resume(
    checkpoint: Any,
    X: Any = None,
    y: Any = None,
    *,
    sample_weight: Any = None,
    problem: Regression | None = None,
    **options: Any,
) -> Result:
    """Go on with a run from the file that ``solve(..., checkpoint=...)`` wrote.

    Parameters
    ----------
    checkpoint : file name
        Also written on: the run can be interrupted and resumed any number of times.
    X, y, sample_weight
        The data of the run; other data are refused. Instead, a `problem` may be given.
    **options
        Options of :func:`solve` that are to change, such as `time_limit`. Limits of the first run
        are not taken over; `time_limit` counts from now, `node_limit` from the first beginning.
        `k`, `include`, `exclude`, `free`, `groups`, `rules` and `constraints` need not be repeated,
        and must be the same if they are.

    Returns
    -------
    Result
        Seconds, nodes and history of the whole run, and one certificate for all of it. What the
        checkpoint has proven is believed; the certificate can be verified on the data. After a
        kill the tree is the same as that of a run that was never stopped, of wide data up to
        rounding.
    """
    started = perf_counter()
    saved = Checkpoint.read(checkpoint)
    if LIST in saved.header:
        raise ValueError(
            f"{checkpoint} is the checkpoint of a list of models; to go on, call "
            f"bestk.near_optimal(..., checkpoint={str(checkpoint)!r}) as before"
        )
    question, box = saved.question, saved.box
    asked = {name: options.pop(name, question[name]) for name in ("k", *_CHOICES)}
    again = {name: options.pop(name) for name in _STRUCTURE if name in options}
    options["client"] = client_for(X, options.get("client"))
    settings = saved.settings({"checkpoint": checkpoint} | options)
    if problem is not None and not isinstance(problem, Regression):
        raise TypeError(
            f"problem must be a bestk.Problem, got one of type {type(problem).__name__}"
        )
    if (X is None or y is None) if problem is None else (X is not None or y is not None):
        raise TypeError("resume needs the data of the run: either X and y, or problem=")
    if problem is None:
        problem = Regression.from_data(
            X,
            y,
            alpha=question["alpha"],
            bounds=(question["lower"], question["upper"]),
            sample_weight=sample_weight,
            fit_intercept=question["fit_intercept"],
            n_threads=settings.n_threads,
            device=settings.device,
            client=settings.client,
        )
        problem = replace(problem, box=box)
    elif problem.chooses_box:  # which the run has done, unless there was nothing to choose
        bounds = None if box is None else (question["lower"], question["upper"])
        problem = replace(problem.with_bounds(bounds), box=box)
    k, structure = require_count("k", asked["k"], least=0), saved.structure
    if structure is not None and len(structure.groups) != problem.n_features:
        raise saved.of_other_run()
    with small_blas(problem, settings):
        if structure is not None or any(part is not None for part in again.values()):
            parts = again or {"structure": structure}
            same = Asked(**parts, **{name: asked[name] for name in _CHOICES})
            prepared = Prepared.of(problem, same)
            saved.require_same_question(prepared, k)
            return solve_prepared(prepared, k, [], settings, started, saved=saved)
        presolved = Presolved.of(problem, *(asked[name] for name in _CHOICES))
        saved.require_same_question(presolved, k)
        return solve_presolved(presolved, k, [], settings, started, saved=saved)


_CHOICES = ("include", "exclude", "free")
_STRUCTURE = ("groups", "rules", "constraints")


def _solve(problem, k, asked, initial_support, settings, started) -> Result:
    with small_blas(problem, settings):
        if asked.has_structure:
            prepared = Prepared.of(problem, asked)
            starts = prepared.start(k, initial_support)
            return solve_prepared(prepared, k, starts, settings, started)
        presolved = Presolved.of(problem, asked.include, asked.exclude, asked.free)
        start = _start(presolved, k, initial_support)
        presolved, found = boxed(presolved, k, [start], settings)
        return solve_presolved(presolved, k, [start, *found], settings, started)


def _start(presolved: Presolved, k: int, initial_support: Any) -> np.ndarray:
    p, names = presolved.problem.n_features, presolved.problem.feature_names
    start = as_features("initial_support", initial_support, p, names)
    if presolved.counted(start) > k:
        raise ValueError(
            f"initial_support has {counted(presolved.counted(start), 'feature')}, but k = {k}; "
            f"name at most {k}, or raise k"
        )
    if np.isin(start, presolved.exclude).any():
        raise ValueError(
            "initial_support contains excluded features; leave them out of it, or of exclude"
        )
    both = np.union1d(start, presolved.include)
    if presolved.counted(both) > max(k, len(presolved.include)):
        raise ValueError(
            f"initial_support and include together name more than {counted(k, 'feature')}; name "
            "fewer, or raise k"
        )
    return start


def beam_search(
    X: Any,
    y: Any,
    k: int,
    *,
    alpha: float = 0.0,
    bounds: Any = None,
    include: Any = None,
    exclude: Any = None,
    free: Any = None,
    groups: Any = None,
    rules: Any = None,
    constraints: Any = None,
    sample_weight: Any = None,
    fit_intercept: bool = False,
    width: int = 50,
    n_threads: int | None = None,
) -> Result:
    """The warm start alone: beam search and swaps, without any proof (lower_bound 0).

    Parameters are those of :func:`solve`; `width` supports are kept per size.
    """
    if is_auto(bounds):
        raise ValueError(
            'bounds="auto" chooses a box for a proof, and beam_search makes none; leave bounds '
            "out, or give a pair (lower, upper)"
        )
    options = Advanced(beam_width=require_count("width", width, least=1))
    problem = Regression.from_data(
        X,
        y,
        alpha=alpha,
        bounds=bounds,
        sample_weight=sample_weight,
        fit_intercept=fit_intercept,
        n_threads=n_threads,
    )
    return solve_problem(
        problem,
        k,
        include=include,
        exclude=exclude,
        free=free,
        groups=groups,
        rules=rules,
        constraints=constraints,
        node_limit=0,
        n_threads=n_threads,
        advanced=options,
    )
