"""A scikit-learn selector: the features of the proven best model."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from bestk.base.settings import Advanced
from bestk.results.result import Result
from bestk.selection.estimators import SparseRidge, clone_with_client


class SparseSelector(SelectorMixin, BaseEstimator):
    """Keeps the features of the best model with at most k of them, and leaves the fit to others.

    It fits :class:`SparseRidge` and passes the chosen columns on, for pipelines whose next step is
    a model of another kind. If y has several columns, features are kept that one of the models has.

    Parameters
    ----------
    k : int
        Largest number of features.
    alpha, fit_intercept, bounds, include, exclude, free, groups, rules, constraints, gap_tol, \
    time_limit, node_limit, search, bound, device, client, advanced, n_jobs, verbose
        As in :class:`SparseRidge`.

    Attributes
    ----------
    estimator_ : SparseRidge
        The model whose features are kept, with its bounds and its ``near_optimal``.
    result_ : Result, or list of them
        What was found and proven, with its certificate.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from sklearn.pipeline import make_pipeline
    >>> from bestk import SparseSelector
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(SparseSelector(k=3), RandomForestRegressor()).fit(X, y)
    >>> model[0].get_feature_names_out().tolist(), model[0].result_.gap
    (['bmi', 'bp', 's5'], 0.0)
    """

    def __init__(
        self,
        k: int = 10,
        alpha: float = 0.0,
        *,
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
        client: Any = None,
        advanced: Advanced | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        self.k = k
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
        self.client = client
        self.advanced = advanced
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SparseSelector":
        """Find the best model of X (n, p) and y (n,) or (n, n_targets), as SparseRidge does.

        Parameters
        ----------
        X, y : array-like or data frames
        sample_weight : (n,) array or None
            Nonnegative weights of the squared residuals.
        """
        self.estimator_ = SparseRidge(**self.get_params(deep=False))
        self.estimator_.fit(X, y, sample_weight)
        self.n_features_in_ = self.estimator_.n_features_in_
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    @property
    def result_(self) -> Result | list[Result]:
        check_is_fitted(self)
        return self.estimator_.result_

    def _get_support_mask(self) -> np.ndarray:
        results = self.result_ if isinstance(self.result_, list) else [self.result_]
        mask = np.zeros(self.n_features_in_, dtype=bool)
        for result in results:
            mask[result.support] = True
        return mask

    def __sklearn_clone__(self) -> Self:
        return clone_with_client(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
