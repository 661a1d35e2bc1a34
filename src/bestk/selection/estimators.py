"""scikit-learn estimators: the best k features, proven, with fit and predict."""

import warnings
from collections.abc import Iterable
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import (
    BaseEstimator,
    MultiOutputMixin,
    RegressorMixin,
    _clone_parametrized,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from bestk.base.cluster.client import client_for
from bestk.base.cluster.collections import is_collection
from bestk.base.settings import Advanced, Settings, settings_of
from bestk.base.validation import (
    as_real,
    as_weights,
    counted,
    names_of,
    require_choice,
    require_count,
    require_distinct,
    require_finite,
    require_flag,
    require_numeric_columns,
    require_same_names,
    require_some_weight,
    require_unmasked,
)
from bestk.problem.rows import Rows
from bestk.problem.table import Table
from bestk.results.progress import one_display
from bestk.results.result import Result
from bestk.rivals.models import NearOptimal
from bestk.rivals.near_optimal import near_optimal_of
from bestk.search.automatic_box import in_box
from bestk.selection.cross_validation import (
    RULES,
    CrossValidation,
    cross_validate,
    cross_validate_table,
    folds_of_data,
)
from bestk.selection.jobs import run_jobs
from bestk.selection.problem import Problem
from bestk.structure.asked import Asked


class _Asked(NamedTuple):
    """What a fit was asked about one target: its data, kept by reference, and its features."""

    problem: Problem
    target: np.ndarray | None  # another one than that of the problem
    options: dict[str, Any]

    def near_optimal(self, result: Result, **options: Any) -> NearOptimal:
        """In the box of the result, if it chose one: both are known for the same models."""
        problem = self.problem if self.target is None else self.problem.with_target(self.target)
        inside = in_box(problem, result.box) if problem.chooses_box else problem
        return near_optimal_of(inside, result.k, **self.options | options)


class _SparseLinearModel(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """What both estimators share: options of the solver, fitted attributes, predict."""

    def predict(self, X: Any) -> np.ndarray:
        """``intercept_ + X coef_`` for rows X (n, p); of a Dask collection, a Dask array."""
        check_is_fitted(self)
        if is_collection(X):
            self._require_columns(X)
            rows = X.to_dask_array() if hasattr(X, "to_dask_array") else X
            return rows @ self.coef_.T + self.intercept_
        try:
            X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        except ValueError:
            _require_finite("X", X)  # says more, if that is the reason
            raise
        return X @ self.coef_.T + self.intercept_

    def _require_columns(self, X: Any) -> None:
        """Of a Dask collection, what scikit-learn requires of an array."""
        way = "pass the columns of the fit, in their order"
        require_same_names("X", names_of(X), self._names(), "the data of the fit", way)
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {counted(X.shape[1], 'column')}, but the data of the fit have "
                f"{self.n_features_in_:,}; {way}"
            )

    def near_optimal(self, within: float = 0.02, **options: Any) -> NearOptimal | list[NearOptimal]:
        """All models that are nearly as good as the fitted one, for the data of the fit.

        How sure is the choice of features? See :func:`bestk.near_optimal`. The data are not part
        of a pickle: fit a model that was loaded again before you ask.

        Parameters
        ----------
        within : float
            Near-optimal are objectives of at most (1 + within) times the best.
        **options
            Others of :func:`bestk.near_optimal`, such as ``max_models``. Limits and methods are
            those of the estimator unless given, and the best model is proven with a gap of 0.

        Returns
        -------
        NearOptimal
            A list of them if y had several columns, one for each.
        """
        check_is_fitted(self)
        asked = getattr(self, "_asked", None)
        if asked is None:
            raise ValueError(
                "near_optimal needs the data of the fit, which copies and files of a model do not "
                "keep; call fit again, or use bestk.near_optimal(X, y, k)"
            )
        options = self._settings().as_options() | {"gap_tol": 0.0, "within": within} | options
        many = isinstance(self.result_, list)
        results = self.result_ if many else [self.result_]
        pairs = zip(asked, results, strict=True)
        lists = [one.near_optimal(result, **options) for one, result in pairs]
        return lists if many else lists[0]

    def __getstate__(self) -> dict[str, Any]:
        """Without the data of the fit: a file of a model should be small, and keep no rows."""
        return {name: value for name, value in super().__getstate__().items() if name != "_asked"}

    def _admissible(self) -> Asked:
        """What was asked of models besides their size."""
        return Asked(
            include=self.include,
            exclude=self.exclude,
            free=self.free,
            groups=self.groups,
            rules=self.rules,
            constraints=self.constraints,
        )

    def _settings(self) -> Settings:
        return settings_of(
            {
                "gap_tol": self.gap_tol,
                "time_limit": self.time_limit,
                "node_limit": self.node_limit,
                "search": self.search,
                "bound": self.bound,
                "device": self.device,
                "client": self.client,
                "progress": bool(self.verbose),
                "advanced": self.advanced,
            }
        )

    def _checked(self, X, y, sample_weight):
        return checked_rows(self, X, y, sample_weight, multi_output=True)

    def __sklearn_clone__(self) -> Self:
        return clone_with_client(self)

    def _remember_columns(self, X: Any) -> None:
        """Of a Dask collection, what scikit-learn remembers of an array."""
        self.n_features_in_ = int(X.shape[1])
        names = names_of(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(names)

    def _keep(self, results: list[Result], asked: list[_Asked], many: bool) -> None:
        """Set the fitted attributes, one entry per target if y had several columns."""
        self._asked = asked
        values: dict[str, Any] = {
            "coef_": np.array([result.coef for result in results]),
            "intercept_": np.array([result.intercept for result in results]),
            "objective_": np.array([result.objective for result in results]),
            "lower_bound_": np.array([result.lower_bound for result in results]),
            "gap_": np.array([result.gap for result in results]),
            "n_iter_": np.array([max(result.n_nodes, 1) for result in results]),
            "support_": [result.support for result in results],
            "status_": [result.status for result in results],
            "result_": results,
        }
        for name, value in values.items():
            setattr(self, name, value if many else _plain(value[0]))
        warn_of_open_gaps(results)


def checked_rows(
    model: Any, X: Any, y: Any, sample_weight: Any, *, multi_output: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """X, y and weights, checked by scikit-learn; an error in our words where its own say less."""
    require_distinct(names_of(X))
    for name, value in (("X", X), ("y", y), ("sample_weight", sample_weight)):
        require_unmasked(name, value)
    try:
        X, y = validate_data(
            model, X, y, dtype=[np.float64, np.float32], multi_output=multi_output, y_numeric=True
        )
    except (TypeError, ValueError):
        # These say more, if they are about the reason.
        require_numeric_columns("X", X)
        _require_finite("X", X)
        _require_finite("y", y)
        if y is not None and not np.iscomplexobj(y):
            as_real("y", y)
        raise
    weight = as_weights(sample_weight, len(X))
    if weight is not None:
        require_some_weight(weight.sum())
    return X, as_real("y", y), weight


def _require_finite(name: str, value: Any) -> None:
    """An error that names the first value that is NaN or infinite, if there are numbers at all."""
    try:
        array = as_real(name, value)
    except (TypeError, ValueError):
        return
    require_finite(name, array, names_of(value))


def warn_of_open_gaps(results: list[Result], of: str = "targets") -> None:
    """Tell the caller of the caller's caller, who called fit, how much is left to prove."""
    gaps = [result.gap for result in results if not result.is_closed]
    if gaps:
        which = f" for {len(gaps)} of {len(results)} {of}" if len(results) > 1 else ""
        warnings.warn(
            f"the search stopped with a gap of {max(gaps):.2%} left{which}: a model with at most k "
            "features could still be better by that much. Raise time_limit or node_limit, loosen "
            "gap_tol, or give alpha > 0 or bounds.",
            ConvergenceWarning,
            stacklevel=4,
        )


class SparseRidge(_SparseLinearModel):
    """``min ||y - b0 - X b||^2 + alpha ||b||^2`` with at most k nonzeros in b, and a proof.

    Parameters
    ----------
    k : int
        Largest number of features.
    alpha : float
        Ridge penalty on the coefficients (not on the intercept), in the units of X.
    fit_intercept : bool
        Fit a free intercept b0, neither penalised nor counted in k.
    bounds : pair (lower, upper), "auto" or None
        Scalars or (p,) arrays with lower <= 0 <= upper; ``(0, np.inf)`` for nonnegative
        coefficients. "auto" chooses a box for each target, see :func:`bestk.solve`.
    include, exclude : lists of column names or indices, or masks
        Features that must, or must not, be in the model.
    free, groups, rules, constraints
        Features that are not counted in k, features that enter together, which ones may be chosen
        together, and linear constraints on coefficients; see :func:`bestk.solve`.
    gap_tol : float
        Stop when ``(objective_ - lower_bound_) / objective_`` is at most this.
    time_limit, node_limit : float (seconds), int, or None
        Limits for each target. The best model so far is kept, with a warning that says how large
        the gap still is.
    search, bound, device, client, advanced
        As in :func:`bestk.solve`. With a client, targets and folds are shared out to its workers.
    n_jobs : int or None
        Targets solved in parallel if y has several columns; as in scikit-learn, None means one and
        -1 all cores. One target uses all cores anyway.
    verbose : bool or int
        Show live progress.

    Attributes
    ----------
    coef_ : (p,) or (n_targets, p) array
    intercept_ : float or (n_targets,) array
    support_ : int array, or list of them
        Sorted indices of the chosen features.
    objective_, lower_bound_, gap_ : float or (n_targets,) array
        What was found, what was proven, and the relative difference.
    status_, result_ : Status and Result, or lists of them
    n_iter_ : int or (n_targets,) array
        Nodes of the search tree.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from bestk import SparseRidge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SparseRidge(k=3).fit(X, y)
    >>> model.result_.names, model.status_.name
    (['bmi', 'bp', 's5'], 'OPTIMAL')
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "SparseRidge":
        """Find the best model of X (n, p) and y (n,) or (n, n_targets).

        Parameters
        ----------
        X, y : array-like or data frames, also of Dask (then with one target)
        sample_weight : (n,) array or None
            Nonnegative weights of the squared residuals.
        """
        settings = replace(self._settings(), client=client_for(X, self.client))
        require_count("k", self.k, least=0)
        options = self._admissible().as_options()
        if is_collection(X):
            self._remember_columns(X)
            problem = self._problem(X, y, sample_weight, settings)
            result = problem.solve(self.k, **options, **settings.as_options())
            self._keep([result], [_Asked(problem, None, options)], many=False)
            return self
        X, y, weight = self._checked(X, y, sample_weight)
        many = y.ndim == 2
        targets = list(y.T) if many else [y]
        first, k = self._problem(X, targets[0], weight, settings), self.k

        def solve(i: int, settings: Settings) -> Result:
            problem = first if i == 0 else first.with_target(targets[i])
            return problem.solve(k, **options, **settings.as_options())

        with one_display(settings, len(targets)) as watched:
            results = run_jobs(solve, range(len(targets)), watched, self.n_jobs)
        others = [_Asked(first, target, options) for target in targets[1:]]
        self._keep(results, [_Asked(first, None, options), *others], many)
        return self

    def _problem(self, X: Any, y: Any, weight: Any, settings: Settings) -> Problem:
        return Problem.from_data(
            X,
            y,
            alpha=self.alpha,
            bounds=self.bounds,
            sample_weight=weight,
            fit_intercept=self.fit_intercept,
            feature_names=self._names(),
            device=settings.device,
            client=settings.client,
        )


class SparseRidgeCV(_SparseLinearModel):
    """:class:`SparseRidge` with k and alpha chosen by cross-validation, every fit with a proof.

    The data are read once: rows outside a fold have the moments of all rows minus the fold's.

    Parameters
    ----------
    ks : iterable of int
        Sizes to try.
    alphas : float or iterable of float
        Ridge penalties to try.
    cv : int, splitter or iterable of (train, test)
        As in scikit-learn; None means 5 folds.
    scoring : str, callable or None
        As in scikit-learn; None means mean squared error.
    rule : {"min", "one-se"}
        Take the smallest mean error, or the smallest k within one standard error of it.
    fit_intercept, bounds, include, exclude, free, groups, rules, constraints, gap_tol, \
    time_limit, node_limit, search, bound, device, client, advanced
        As in :class:`SparseRidge`; limits hold for each single fit. ``bounds="auto"`` chooses one
        box for all sizes of a fold and an alpha.
    n_jobs : int or None
        Folds that run in parallel; None means one (which uses all cores itself), -1 all cores.
    verbose : bool or int
        Show live progress.

    Attributes
    ----------
    k_, alpha_ : int, float
        The choice.
    cross_validation_ : CrossValidation
        Errors of every fold, k and alpha, with the certified paths behind them; ``plot()``.
    coef_, intercept_, support_, objective_, lower_bound_, gap_, status_, result_, n_iter_
        Of the final fit on all rows, as in :class:`SparseRidge`. With several targets k and alpha
        are chosen for each, and these and the choices have one entry per target.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from bestk import SparseRidgeCV
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SparseRidgeCV(ks=range(1, 8), rule="one-se").fit(X, y)
    >>> model.k_, model.result_.names
    (5, ['sex', 'bmi', 'bp', 's3', 's5'])
    """

    def __init__(
        self,
        ks: Iterable[int] = tuple(range(1, 11)),
        alphas: Any = (0.0,),
        *,
        cv: Any = None,
        scoring: Any = None,
        rule: str = "min",
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
        self.ks = ks
        self.alphas = alphas
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> "SparseRidgeCV":
        """Cross-validate, then fit the chosen k and alpha on all rows.

        Parameters
        ----------
        X, y : array-like or data frames, (n, p) and (n,) or (n, n_targets)
            Dask collections have one target, and rows dealt out at random to `cv` folds.
        sample_weight : (n,) array or None
            Nonnegative weights, of the fits and of the held-out errors.
        **params
            Passed to the splitter (such as ``groups``) through metadata routing.
        """
        settings = replace(self._settings(), client=client_for(X, self.client))
        require_choice("rule", self.rule, RULES)
        if is_collection(X):
            many, asked = False, [self._cross_validate_table(X, y, sample_weight, settings)]
        else:
            X, y, weight = self._checked(X, y, sample_weight)
            splits = self._splits(X, y, params)
            many = y.ndim == 2
            targets = y.T if many else [y]
            asked = [self._cross_validate(X, t, weight, splits, settings) for t in targets]
        validations, results, questions = [], [], []
        options = self._admissible().as_options()
        for validation, problem in asked:
            alpha, k = validation.best(self.rule)
            validations.append(validation)
            problem = problem.with_alpha(alpha)
            results.append(problem.solve(k, **options, **settings.as_options()))
            questions.append(_Asked(problem, None, options))
        self.alpha_ = [r.alpha for r in results] if many else results[0].alpha
        self.k_ = [r.k for r in results] if many else results[0].k
        self.cross_validation_ = validations if many else validations[0]
        self._keep(results, questions, many)
        return self

    def _splits(self, X, y, params):
        cv = check_cv(5 if self.cv is None else self.cv)
        if _routing_enabled():
            params = process_routing(self, "fit", **params).splitter.split
        splits = list(cv.split(X, y, **params))
        if not splits:
            raise ValueError("cv has no folds; give a number of folds, such as 5")
        return splits

    def _cross_validate(self, X, y, weight, splits, settings) -> tuple[CrossValidation, Problem]:
        def squares(rows: np.ndarray, result: Result) -> float:
            residual = y[rows] - result.predict(X[rows])
            return float(np.average(residual**2, weights=None if weight is None else weight[rows]))

        def negative_score(rows: np.ndarray, result: Result) -> float:
            options = {} if weight is None else {"sample_weight": weight[rows]}
            return -float(scorer(_fitted(result), X[rows], y[rows], **options))

        error, measure = squares, "mean squared error"
        if self.scoring is not None:
            scorer = check_scoring(self, scoring=self.scoring)
            error, measure = negative_score, f"-{self.scoring}"
        require_flag("fit_intercept", self.fit_intercept)
        folds, moments = folds_of_data(X, y, weight, splits, self.fit_intercept, error)
        problem = Problem.from_moments(
            moments, bounds=self.bounds, feature_names=self._names(), rows=Rows(X, y, weight)
        )
        validation = cross_validate(
            folds,
            problem,
            self.ks,
            self.alphas,
            asked=self._admissible(),
            settings=settings,
            n_jobs=self.n_jobs,
            measure=measure,
        )
        return validation, problem

    def _cross_validate_table(self, X, y, weight, settings) -> tuple[CrossValidation, Problem]:
        """Of Dask collections: rows are dealt out to folds at random, and never gathered."""
        if self.scoring is not None:
            raise ValueError(
                "scoring must be None for Dask collections, because folds keep sums and not rows; "
                "leave scoring out, or pass X.compute() and y.compute()"
            )
        n_folds = 5 if self.cv is None else self.cv
        if not isinstance(n_folds, int):
            raise ValueError(
                f"cv must be a number of folds, such as 5, or None for Dask collections, "
                f"got {n_folds!r}"
            )
        self._remember_columns(X)
        table = Table.of_collections(X, y, weight, settings.client, self._names())
        return cross_validate_table(
            table,
            self.ks,
            self.alphas,
            n_folds=n_folds,
            fit_intercept=self.fit_intercept,
            bounds=self.bounds,
            n_jobs=self.n_jobs,
            **self._admissible().as_options(),
            **settings.as_options(),
        )

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of metadata: sample_weight to this estimator, the rest to the splitter."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                splitter=check_cv(5 if self.cv is None else self.cv),
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )


def clone_with_client(model: Any) -> Any:
    """A client is the way to a cluster: copies of an estimator share it."""
    bare = copy(model)
    bare.client = None
    twin = _clone_parametrized(bare)
    twin.client = model.client
    return twin


def _plain(value: Any) -> Any:
    """A NumPy scalar as a Python number."""
    return value.item() if isinstance(value, np.generic) else value


def _fitted(result: Result) -> SparseRidge:
    """A fitted estimator around a result, for scorers."""
    model = SparseRidge(k=result.k, alpha=result.alpha)
    model.coef_, model.intercept_ = result.coef, result.intercept
    model.n_features_in_ = len(result.coef)
    return model
