"""The function `stability`: draw, search, put together."""

from dataclasses import replace
from time import perf_counter, time
from typing import Any

import numpy as np

from bestk.base.cluster.collections import is_collection
from bestk.base.settings import settings_of
from bestk.base.validation import (
    as_matrix,
    as_vector,
    as_weights,
    names_of,
    require_count,
    require_number,
    require_some_weight,
)
from bestk.results.progress import one_display
from bestk.results.status import Status
from bestk.selection.stability.resampling import Resampling
from bestk.selection.stability.result import Stability
from bestk.selection.stability.search import ALL, ResampleSearch, on_cluster, on_threads


def stability(
    X: Any,
    y: Any,
    k: int,
    *,
    n_resamples: int = 100,
    resample: str = "bootstrap",
    fraction: float = 0.5,
    block_length: int | None = None,
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
    feature_names: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    **options: Any,
) -> Stability:
    """How often is each feature, and each support, in the best model of resampled rows?

    Every resample is a problem of its own, with counts as weights of the rows, and its best model
    with at most k features is proven to be that, as by :func:`bestk.solve`. So what varies is the
    data, never the luck of a search.

    Parameters
    ----------
    X, y, k, alpha, bounds, include, exclude, free, groups, rules, constraints, fit_intercept
        As in :func:`bestk.solve`; X and y are in memory. ``bounds="auto"`` chooses a box for each
        resample. Of columns that are copies of each other, rounding may decide which one a model
        has: their frequencies add up, so keep one of them.
    n_resamples : int
        How many resamples to draw.
    resample : {"bootstrap", "subsample", "block"}
        "bootstrap" draws n rows with replacement. "subsample" draws a `fraction` of the rows
        without replacement; ``alpha`` is multiplied by the same fraction, so that the penalty stays
        the same beside the data. "block" is for time series, whose rows come in order: the circular
        block bootstrap draws blocks of `block_length` consecutive rows, n rows in all, where the
        first row follows the last one.
    fraction : float
        Share of the rows for "subsample", between 0 and 1.
    block_length : int or None
        Rows of a block for "block"; by default the cube root of n, rounded.
    sample_weight : (n,) array or None
        Nonnegative weights of the squared residuals; counts are multiplied by them. Rows are
        equally likely to be drawn, whatever their weight.
    feature_names : p strings, or None
        Those of the data frame by default.
    random_state : int, numpy.random.Generator or None
        The same number gives the same resamples and the same answer, whatever the number of
        threads. None gives others each time.
    n_threads : int or None
        Resamples that are searched side by side, each on one thread; None means all cores.
    **options
        Any other option of :func:`bestk.solve`, except `checkpoint`. ``time_limit`` is for all
        resamples together: those that have not begun by then are left out, and those that are
        running keep the model they have and their gap. At least one is begun. Other limits hold for
        each search. A callback that returns true, or Ctrl-C, ends all searches alike. With a
        client, each resample is a call of a worker.

    Returns
    -------
    Stability
        Frequencies of features and supports, the models themselves, and how many are proven.

    Examples
    --------
    >>> import bestk
    >>> X, y, coef = bestk.datasets.make_synthetic(200, 30, k=3, rho=0.5)
    >>> found = bestk.stability(X, y, k=3, n_resamples=20, random_state=0)
    >>> found.proven, found.selected(0.9).tolist()
    (20, [0, 10, 20])
    """
    started, begun = perf_counter(), time()
    first = options.pop("initial_support", None)
    settings = settings_of({"n_threads": n_threads, **options}).for_many()
    k = require_count("k", k, least=0)
    if is_collection(X):
        raise TypeError(
            "X must be in memory, because its rows are drawn at random; pass X.compute() "
            "and y.compute()"
        )
    names = names_of(X) if feature_names is None else feature_names
    X = as_matrix("X", X)
    y = as_vector("y", y, length=X.shape[0], of="rows of X")
    weight = as_weights(sample_weight, X.shape[0])
    if len(y) == 0:
        raise ValueError("X has no rows to draw from; pass at least one")
    if weight is not None:
        require_some_weight(weight.sum())
    resampling = Resampling.of(
        len(y),
        n_resamples,
        resample=resample,
        fraction=fraction,
        block_length=block_length,
        random_state=random_state,
    )
    search = ResampleSearch(
        X=X,
        y=y,
        weight=weight,
        resampling=resampling,
        k=k,
        alpha=require_number("alpha", alpha, least=0.0),
        common={"bounds": bounds, "fit_intercept": fit_intercept, "feature_names": names},
        choices={
            "include": include,
            "exclude": exclude,
            "free": free,
            "groups": groups,
            "rules": rules,
            "constraints": constraints,
            "initial_support": first,
        },
        deadline=np.inf if settings.time_limit is None else begun + settings.time_limit,
    )
    # All searches start from the same support, whoever comes first: a seed decides everything.
    start = search.first_model(settings.on_one_thread())
    if start.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    search = replace(search, choices={**search.choices, "initial_support": start.support})
    numbers = [ALL, *range(len(resampling))]
    with one_display(settings, len(numbers)) as watched:
        if settings.client is None:
            found, ended = on_threads(search, numbers, watched)
        else:
            found, ended = on_cluster(search, numbers, watched)
    model = found.pop(ALL, start)
    results = [found[number] for number in sorted(found)]
    return Stability(
        k=k,
        alpha=search.alpha,
        names=tuple(model.name(j) for j in range(X.shape[1])),
        model=model,
        numbers=np.array(sorted(found)),
        chosen=np.array([np.isin(np.arange(X.shape[1]), r.support) for r in results]),
        coefs=np.array([r.coef for r in results]),
        intercepts=np.array([r.intercept for r in results]),
        objectives=np.array([r.objective for r in results]),
        lower_bounds=np.array([r.lower_bound for r in results]),
        gaps=np.array([r.gap for r in results]),
        statuses=tuple(r.status for r in results),
        seconds=perf_counter() - started,
        resampling=resampling,
        sample_weight=weight,
        ended=ended if len(results) < len(resampling) else None,
    )
