"""How sure is the choice? All near-optimal models, complete and proven.

The supports of at most k features with an objective of at most a threshold are those that contain
an irreducible one. These are searched size by size: what contains a smaller one is known already
(theory: near-optimal).
"""

from time import perf_counter
from typing import Any

from bestk.base.cluster.client import client_for
from bestk.base.settings import settings_of
from bestk.base.validation import require_count, require_number
from bestk.choices.run import Prepared
from bestk.form.presolve import Presolved
from bestk.problem.regression import Regression
from bestk.results.progress import one_display
from bestk.rivals.models import NearOptimal
from bestk.rivals.searching import ListSearch
from bestk.rivals.structured import near_optimal_choices
from bestk.search.automatic_box import boxed
from bestk.search.run import small_blas
from bestk.structure.asked import Asked


def near_optimal(
    X: Any,
    y: Any,
    k: int,
    *,
    within: float = 0.02,
    below: float | None = None,
    n_best: int | None = None,
    max_models: int = 100_000,
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
    n_threads: int | None = None,
    device: str = "cpu",
    client: Any = None,
    **options: Any,
) -> NearOptimal:
    """All models of at most k features that are nearly as good as the best, and no others.

    Parameters
    ----------
    X, y, k, alpha, bounds, include, exclude, free, groups, rules, constraints, sample_weight, \
    fit_intercept
        As in :func:`bestk.solve`.
    within : float
        Near-optimal are objectives of at most (1 + within) times the best.
    below : float or None
        An objective to be used as the threshold instead.
    n_best : int or None
        Instead, the best supports of exactly k features, so many of them; ties with the last one
        may be left out.
    max_models : int
        If more models than this would be listed, the best ones are, and ``complete_below`` says
        below which objective none is missing.
    n_threads, device, client
        As in :func:`bestk.solve`.
    **options
        Limits and other options of :func:`bestk.solve`; the best model is proven with a gap of 0
        unless ``gap_tol`` is given. With `checkpoint`, the same call goes on from the file of a run
        that was killed or came to a limit.

    Returns
    -------
    NearOptimal

    Examples
    --------
    >>> import bestk
    >>> X, y, _ = bestk.datasets.make_synthetic(200, 20, k=3, rho=0.9)
    >>> found = bestk.near_optimal(X, y, k=3, within=0.05)
    >>> found.complete, found.models[0].support.tolist()
    (True, [0, 6, 12])
    """
    client = client_for(X, client)
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
    options |= {"n_threads": n_threads, "device": device, "client": client}
    return near_optimal_of(
        problem,
        k,
        within=within,
        below=below,
        n_best=n_best,
        max_models=max_models,
        include=include,
        exclude=exclude,
        free=free,
        groups=groups,
        rules=rules,
        constraints=constraints,
        **options,
    )


def near_optimal_of(
    problem: Regression,
    k: int,
    *,
    within: float = 0.02,
    below: float | None = None,
    n_best: int | None = None,
    max_models: int = 100_000,
    **options: Any,
) -> NearOptimal:
    """:func:`near_optimal` for a problem that is already there."""
    started = perf_counter()
    asked = Asked.taken_from(options)
    settings = settings_of({"gap_tol": 0.0} | options)
    k = require_count("k", k, least=0)
    require_number("within", within, least=0.0)
    require_count("max_models", max_models, least=1)
    if below is not None:
        require_number("below", below, least=0.0)
    if n_best is not None:
        require_count("n_best", n_best, least=1)
        if below is not None:
            raise ValueError("n_best and below ask for different lists; give one of them")
    with small_blas(problem, settings), one_display(settings) as settings:
        if asked.has_structure:
            if n_best is not None:
                raise ValueError(
                    "n_best cannot be used with groups, rules or constraints; use within or below"
                )
            prepared = Prepared.of(problem, asked)
            return near_optimal_choices(
                prepared, k, settings, started, within=within, below=below, max_models=max_models
            )
        presolved = Presolved.of(problem, asked.include, asked.exclude, asked.free)
        presolved, starts = boxed(presolved, k, [], settings)
        presolved.require_room(k)
        request = {"within": within, "below": below, "n_best": n_best, "max_models": max_models}
        search = ListSearch(presolved, k, starts, settings, started, request)
        if n_best is not None:
            return search.n_best(n_best)
        if below is not None:
            return search.below(float(below), max_models)
        return search.within(within, max_models)
