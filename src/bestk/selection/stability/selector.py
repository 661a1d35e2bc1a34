"""A scikit-learn selector: features that the proven best models of many resamples agree on."""

import warnings
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from bestk.base.settings import Advanced
from bestk.selection.estimators import checked_rows
from bestk.selection.jobs import as_jobs
from bestk.selection.stability.result import Stability, as_threshold
from bestk.selection.stability.run import stability


class StabilitySelector(SelectorMixin, BaseEstimator):
    """Keeps the features that at least a share of proven best models of resampled rows has.

    See :func:`bestk.stability` for what is done, and for the parameters that are not explained
    here.

    Parameters
    ----------
    k : int
        Largest number of features of the model of a resample. More features than k may be kept, as
        models differ, or none.
    n_resamples : int
        How many resamples to draw.
    threshold : float
        Keep features that at least this share of the models has, above 0 and at most 1. Another
        threshold needs no new fit: set it, and ask again.
    resample, fraction, block_length
        How rows are drawn.
    alpha, fit_intercept, bounds, include, exclude, free, groups, rules, constraints
        As in :class:`bestk.SparseRidge`.
    gap_tol, node_limit, search, bound, device, advanced
        As in :class:`bestk.SparseRidge`, for each resample.
    time_limit : float (seconds) or None
        For all resamples together. A warning says how many were left out.
    random_state : int, numpy Generator or RandomState, or None
        The same number gives the same features.
    n_jobs : int or None
        Resamples that are searched side by side; as in scikit-learn, None means one and -1 all
        cores.
    verbose : bool or int
        Show live progress.

    Attributes
    ----------
    stability_ : Stability
        Frequencies of features and supports, and all models.
    frequencies_ : (p,) array
        Share of the models that has the feature.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from bestk import StabilitySelector
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> selector = StabilitySelector(k=4, n_resamples=50, random_state=0).fit(X, y)
    >>> selector.get_feature_names_out().tolist()
    ['bmi', 'bp', 's5']
    """

    def __init__(
        self,
        k: int = 10,
        n_resamples: int = 100,
        threshold: float = 0.6,
        *,
        resample: str = "bootstrap",
        fraction: float = 0.5,
        block_length: int | None = None,
        alpha: float = 0.0,
        fit_intercept: bool = True,
        bounds: Any = None,
        include: Any = None,
        exclude: Any = None,
        free: Any = None,
        groups: Any = None,
        rules: Any = None,
        constraints: Any = None,
        gap_tol: float = 1e-4,
        time_limit: float | None = None,
        node_limit: int | None = None,
        search: str = "best-first",
        bound: str = "descent",
        device: str = "cpu",
        advanced: Advanced | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.k = k
        self.n_resamples = n_resamples
        self.threshold = threshold
        self.resample = resample
        self.fraction = fraction
        self.block_length = block_length
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.bounds = bounds
        self.include = include
        self.exclude = exclude
        self.free = free
        self.groups = groups
        self.rules = rules
        self.constraints = constraints
        self.gap_tol = gap_tol
        self.time_limit = time_limit
        self.node_limit = node_limit
        self.search = search
        self.bound = bound
        self.device = device
        self.advanced = advanced
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "StabilitySelector":
        """Search the best model of every resample of X (n, p) and y (n,).

        Parameters
        ----------
        X, y : array-like or data frames
        sample_weight : (n,) array or None
            Nonnegative weights of the squared residuals.
        """
        as_threshold(self.threshold)
        X, y, sample_weight = checked_rows(self, X, y, sample_weight)
        names = getattr(self, "feature_names_in_", None)
        self.stability_ = stability(
            X,
            y,
            self.k,
            n_resamples=self.n_resamples,
            resample=self.resample,
            fraction=self.fraction,
            block_length=self.block_length,
            alpha=self.alpha,
            bounds=self.bounds,
            include=self.include,
            exclude=self.exclude,
            free=self.free,
            groups=self.groups,
            rules=self.rules,
            constraints=self.constraints,
            sample_weight=sample_weight,
            fit_intercept=self.fit_intercept,
            feature_names=None if names is None else tuple(names),
            random_state=self.random_state,
            n_threads=effective_n_jobs(as_jobs(self.n_jobs)),
            gap_tol=self.gap_tol,
            time_limit=self.time_limit,
            node_limit=self.node_limit,
            search=self.search,
            bound=self.bound,
            device=self.device,
            advanced=self.advanced,
            progress=bool(self.verbose),
        )
        _warn_of_what_is_open(self.stability_)
        return self

    @property
    def frequencies_(self) -> np.ndarray:
        check_is_fitted(self)
        return self.stability_.frequencies

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.stability_.frequencies >= as_threshold(self.threshold)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _warn_of_what_is_open(found: Stability) -> None:
    if not found.is_closed:
        warnings.warn(
            f"{found.claim}. Frequencies count the models that were found. Raise time_limit or "
            "node_limit, loosen gap_tol, or give alpha > 0 or bounds.",
            ConvergenceWarning,
            stacklevel=3,
        )
