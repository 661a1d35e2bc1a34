"""Near-optimal models as a list: what they have in common, and how far their numbers may go."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bestk.base.structure import Structure
from bestk.base.validation import (
    as_features,
    as_matrix,
    counted,
    names_of,
    pandas_for,
    require_count,
    require_same_names,
)
from bestk.problem.regression import Regression
from bestk.results import formula
from bestk.results.completeness import CompletenessCertificate
from bestk.results.gaps import percent
from bestk.results.interactive import as_printed
from bestk.results.result import Result, structure_lines
from bestk.results.status import Status
from bestk.rivals.ranges import Ellipsoid, ellipsoids
from bestk.search.solve import solve_problem
from bestk.structure.compose import NoModel, named_features


def why_incomplete(found: "NearOptimal") -> tuple[str, str]:
    """Why a list that is not complete has ended, and what to do."""
    if found.status in (Status.OPTIMAL, Status.CONDITIONAL):  # the search did not stop early
        return "more than max_models", "Raise max_models, or ask for less with within or below."
    return str(found.status), found.status.advice


@dataclass(frozen=True, kw_only=True, eq=False)
class NearModel:
    """One model of the list: the best coefficients on its support.

    ``values`` are the coefficients of the support, ``coef`` those of all features.
    ``is_borderline`` says that its objective equals the threshold up to rounding.
    """

    support: np.ndarray
    values: np.ndarray
    intercept: float
    objective: float
    is_borderline: bool
    all_names: tuple[str, ...] = field(repr=False)

    @property
    def size(self) -> int:
        return len(self.support)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.all_names[j] for j in self.support)

    @property
    def coef(self) -> np.ndarray:
        coef = np.zeros(len(self.all_names))
        coef[self.support] = self.values
        return coef

    def equation(self, digits: int = 4) -> str:
        """Such as ``y = 2.1 + 0.3 a - 1.2 b``."""
        terms = [f"{self.intercept:.{digits}g}"] if self.intercept != 0.0 or not self.size else []
        for value, name in zip(self.values, self.names, strict=True):
            sign = "-" if value < 0 else "+" if terms else ""
            terms.append(f"{sign} {abs(value):.{digits}g}{formula.factor(name)}".strip())
        return "y = " + " ".join(terms)

    def to_latex(self, target: str = "y", digits: int = 4) -> str:
        """The model for LaTeX (:meth:`bestk.Result.to_latex`)."""
        return formula.latex(target, self._terms, formula.Reader(self.all_names), digits)

    def to_sympy(self) -> Any:
        """The right-hand side as an expression of SymPy (:meth:`bestk.Result.to_sympy`)."""
        return formula.sympy_sum(self._terms, formula.Reader(self.all_names))

    @property
    def _terms(self) -> list[formula.Term]:
        terms: list[formula.Term] = [*zip(self.values, self.names, strict=True)]
        return [(self.intercept, None), *terms] if self.intercept != 0.0 else terms

    _repr_pretty_ = as_printed

    def __str__(self) -> str:
        return self.equation()


@dataclass(frozen=True, kw_only=True, eq=False)
class NearOptimal:
    """All near-optimal models, by those from which all others follow.

    An objective never rises when a feature is added. So the supports of at most k features with an
    objective of at most ``threshold`` are those that contain, up to this size, one of ``models``:
    the irreducible ones, which leave the set when any feature is dropped.

    Attributes
    ----------
    models : tuple of NearModel
        Best first.
    threshold : float
        The largest objective that counts as near-optimal.
    within : float or None
        The tolerance that was asked for, relative to the best objective.
    best : Result
        The best model of at most k features, with its own proof. It may be larger than any model of
        the list that it contains.
    complete : bool
        Whether it is proven that nothing is missing.
    complete_below : float
        Below this objective nothing is missing; the threshold if the list is complete.
    status : Status
        Why the search ended.
    copies : tuple of pairs (copy, original)
        Features that repeat another one up to a factor: each may stand for the other in any model,
        and only the original is listed.
    only_k : bool
        Whether the list has the best supports of exactly k features (``n_best``).
    certificate : CompletenessCertificate or None
        The proof that nothing is missing below ``complete_below``; None if a limit came.
    """

    k: int
    alpha: float
    threshold: float
    within: float | None
    best: Result
    models: tuple[NearModel, ...] = field(repr=False)
    complete: bool
    complete_below: float
    status: Status
    copies: tuple[tuple[int, int], ...]
    include: np.ndarray
    exclude: np.ndarray
    free: np.ndarray
    only_k: bool
    n_nodes: int
    seconds: float
    engine: str
    names: tuple[str, ...] = field(repr=False)
    problem: Regression = field(repr=False)
    certificate: CompletenessCertificate | None = field(repr=False)
    structure: Structure | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[NearModel]:
        return iter(self.models)

    def __getitem__(self, i: int) -> NearModel:
        return self.models[i]

    @property
    def n_features(self) -> int:
        return self.problem.n_features

    @property
    def n_samples(self) -> int | None:
        return self.problem.n_samples

    @property
    def yy(self) -> float:
        return self.problem.yy

    # What they have in common -------------------------------------------------------------------

    @cached_property
    def has(self) -> np.ndarray:
        """(models, p): which model has which feature?"""
        has = np.zeros((len(self), self.n_features), dtype=bool)
        for row, model in zip(has, self.models, strict=True):
            row[model.support] = True
        return has

    @cached_property
    def _shares(self) -> tuple[np.ndarray, np.ndarray]:
        """(features of every model, features of some): copies may stand for their originals."""
        every = np.array(self.has.all(axis=0) & (len(self) > 0))
        some = np.array(self.has.any(axis=0))
        for copy, original in self.copies:
            some[copy] |= some[original]
            every[original] = False
        return every, some

    @property
    def necessary(self) -> np.ndarray:
        """Features of every near-optimal model."""
        return np.flatnonzero(self._shares[0])

    @property
    def possible(self) -> np.ndarray:
        """Features of some listed model, or copies of them, but not of all."""
        every, some = self._shares
        return np.flatnonzero(some & ~every)

    @property
    def useless(self) -> np.ndarray:
        """Features of no listed model: no near-optimal model needs them."""
        return np.flatnonzero(~self._shares[1])

    def inclusion(self) -> np.ndarray:
        """Share of the listed models with each feature, (p,)."""
        return self.has.mean(axis=0) if len(self) else np.zeros(self.n_features)

    def contains(self, support: Any) -> bool:
        """Is the best model on these features, at most k of them, near-optimal?

        Features by name or number; copies count as what they repeat.
        """
        chosen = self._features("support", support)
        if self.structure is not None:
            return self._contains_choice(chosen)
        wanted = set(chosen.tolist())
        free = set(self.free.tolist())
        if len(wanted - free) > self.k:
            raise ValueError(
                f"support has {counted(len(wanted - free), 'feature')}, more than k = {self.k} of "
                "this list; name fewer, or make a list with a larger k"
            )
        original = dict(self.copies)
        wanted = {original.get(j, j) for j in wanted} | set(self.include.tolist()) | free
        if self.only_k:
            return any(wanted == set(model.support.tolist()) for model in self.models)
        return any(wanted.issuperset(model.support.tolist()) for model in self.models)

    def _features(self, word: str, value: Any) -> np.ndarray:
        """Features by name or number, also by names of groups where there are some."""
        names = self.problem.feature_names
        if self.structure is not None:
            return named_features(self.structure, word, value, names)
        return as_features(word, value, self.n_features, names)

    def count(self, model: NearModel) -> int:
        """How many features a model has, or groups where k counts groups."""
        if self.structure is None:
            return model.size
        return len(self.structure.groups_of(model.support))

    def _contains_choice(self, features: np.ndarray) -> bool:
        """The same for the groups of these features; a choice that breaks a rule is none."""
        structure = self.structure
        assert structure is not None
        free = structure.groups_of(self.free)
        groups = structure.groups_of(np.concatenate([features, self.include, self.free]))
        size = len(np.setdiff1d(groups, free))
        if size > self.k:
            raise ValueError(
                f"support has {counted(size, 'group')}, more than k = {self.k} of this list; name "
                "fewer, or make a list with a larger k"
            )
        if structure.broken(groups):
            return False
        wanted = set(structure.features_of(groups).tolist())
        return any(wanted.issuperset(model.support.tolist()) for model in self.models)

    def filter(
        self, include: Any = None, exclude: Any = None, max_size: int | None = None
    ) -> tuple[NearModel, ...]:
        """The listed models with all of some features and none of others, best first."""
        required, forbidden = self._features("include", include), self._features("exclude", exclude)
        keep = np.all(self.has[:, required], axis=1) & ~np.any(self.has[:, forbidden], axis=1)
        keep = np.asarray(keep)
        if max_size is not None:
            require_count("max_size", max_size, least=0)
            keep &= np.array([self.count(model) for model in self.models]) <= max_size
        return tuple(model for model, kept in zip(self.models, keep, strict=True) if kept)

    def replacements(self, feature: Any) -> tuple[NearModel, ...]:
        """The listed models without a feature, best first: what can stand in for it."""
        gone = self._features("feature", [feature] if np.ndim(feature) == 0 else feature)
        return self.filter(exclude=gone)

    # How far numbers may go ---------------------------------------------------------------------

    @cached_property
    def _ellipsoids(self) -> list[Ellipsoid]:
        if self.structure is not None and len(self.structure.matrix):
            raise ValueError(
                "ranges are not computed for models with linear constraints; use the coefficients "
                "of each model, or make a list without constraints"
            )
        supports = [model.support for model in self.models]
        objectives = [model.objective for model in self.models]
        coefs = [model.values for model in self.models]
        return ellipsoids(self.problem, supports, coefs, objectives, self.threshold)

    def model_ranges(self) -> list[np.ndarray]:
        """For each model (size, 2): the range of each coefficient on this support.

        Over all coefficients there with an objective of at most the threshold: an ellipsoid, cut
        off at the bounds where there are some.
        """
        return [ellipsoid.coordinate_ranges() for ellipsoid in self._ellipsoids]

    def coefficient_ranges(self) -> np.ndarray:
        """(p, 2): the range of each coefficient over all listed supports; 0 where it is absent."""
        if not len(self):
            return np.full((self.n_features, 2), np.nan)
        lowest, highest = np.full(self.n_features, np.inf), np.full(self.n_features, -np.inf)
        for model, own in zip(self.models, self.model_ranges(), strict=True):
            lowest[model.support] = np.minimum(lowest[model.support], own[:, 0])
            highest[model.support] = np.maximum(highest[model.support], own[:, 1])
        absent = ~self.has.all(axis=0)
        lowest[absent] = np.minimum(lowest[absent], 0.0)
        highest[absent] = np.maximum(highest[absent], 0.0)
        return np.column_stack([lowest, highest])

    def predictions(self, X: Any) -> np.ndarray:
        """(models, n, 3): lowest, fitted and highest prediction of each model for rows of X.

        Over all coefficients, the intercept among them, with an objective of at most the threshold.
        """
        way = "pass the columns of the fit, in their order"
        known = self.problem.feature_names
        require_same_names("X", names_of(X), known, "the data of the fit", way)
        X = np.asarray(as_matrix("X", X), dtype=np.float64)
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {counted(X.shape[1], 'column')}, but the models have "
                f"{counted(self.n_features, 'feature')}; {way}"
            )
        found = np.empty((len(self), len(X), 3))
        for own, model, ellipsoid in zip(found, self.models, self._ellipsoids, strict=True):
            own[:, 1] = model.intercept + X[:, model.support] @ model.values
            own[:, 0], own[:, 2] = ellipsoid.prediction_ranges(X).T
        return found

    def prediction_range(self, X: Any) -> np.ndarray:
        """(n, 2): the range of predictions for rows of X over all listed models."""
        found = self.predictions(X)
        if not len(self):
            return np.full((found.shape[1], 2), np.nan)
        return np.column_stack([found[:, :, 0].min(axis=0), found[:, :, 2].max(axis=0)])

    def importance(self, **options: Any) -> "dict[int, Result]":
        """For each feature of the best model, the best model of at most k features without it.

        Each is a Result with a proof of its own: how much worse does it get without the feature?
        Features that the best model lacks cost nothing. `options` are those of
        :func:`bestk.solve`.
        """
        found = {}
        for j in np.setdiff1d(self.best.support, [*self.include, *self.free]):
            choices = {
                "include": self.include,
                "exclude": [*self.exclude, j],
                "free": self.free,
                "structure": self.structure,
            }
            with suppress(NoModel):  # the rules ask for this feature
                found[int(j)] = solve_problem(self.problem, self.k, **choices, **options)
        return found

    # For people ---------------------------------------------------------------------------------

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each model, its objective, size and coefficients.

        The size is a number of features; where there are groups, ``groups`` is that of groups.
        """
        pd = pandas_for("to_frame")
        frame = pd.DataFrame([model.coef for model in self.models], columns=list(self.names))
        best = self.best.objective
        worse = [model.objective / best - 1.0 if best > 0 else 0.0 for model in self.models]
        facts = {
            "objective": [model.objective for model in self.models],
            "worse_by": worse,
            "size": [model.size for model in self.models],
            "borderline": [model.is_borderline for model in self.models],
        }
        if self.structure is not None and self.structure.has_groups:
            groups = [self.structure.groups_of(model.support) for model in self.models]
            facts["groups"] = [len(chosen) for chosen in groups]
        for place, (name, values) in enumerate(facts.items()):
            frame.insert(place, name, values, allow_duplicates=True)  # a feature may be called size
        return frame

    def _named(self, features: np.ndarray) -> list[str]:
        """Names of features, or of the groups that they make up."""
        structure = self.structure
        if structure is None or not structure.has_groups:
            return [self.names[j] for j in features]
        return [structure.group_names[g] for g in structure.groups_of(features)]

    def plot(self, ax: Any = None) -> Any:
        """Objectives and features of the best models; returns the Axes."""
        from bestk.show.near_optimal_plot import plot_near_optimal

        return plot_near_optimal(self, ax=ax)

    def to_html(self, path: Any, X: Any = None) -> None:
        """Write one self-contained page to explore the models; rows of X show their predictions."""
        from bestk.show.explorer import write_explorer

        write_explorer(self, path, X=X)

    _repr_pretty_ = as_printed

    def _repr_html_(self) -> str:
        from bestk.show.explorer import list_summary

        return list_summary(self)

    def __str__(self) -> str:
        kind = f"the {len(self)} best of exactly {self.k}"
        kind = kind if self.only_k else counted(len(self), "model")
        structure, unit, total = self.structure, "feature", counted(self.n_features, "feature")
        if structure is not None and structure.has_groups:
            unit, total = "group", f"{counted(structure.n_groups, 'group')} ({total})"
        lines = [f"bestk: {kind} of {total}"]
        share = "" if self.within is None else f"  ({percent(self.within)} above the best)"
        lines += [
            f"  status       {self.status}",
            f"  threshold    {self.threshold:.10g}{share}",
            f"  best         {self.best.objective:.10g}",
        ]
        if self.complete:
            lines.append("  complete     yes: no other model is below the threshold")
        else:
            why, _ = why_incomplete(self)
            lines.append(f"  complete     below {self.complete_below:.10g} only ({why})")
        # What models have in common is not known before all of them are.
        words = ("necessary", "possible") if self.complete else ("in all found", "in some")
        for word, features in zip(words, (self.necessary, self.possible), strict=True):
            some = self._named(features)
            shown = ", ".join(some[:12]) + (", ..." if len(some) > 12 else "")
            lines.append(f"  {word:<12} {shown or 'none'}")
        if self.complete:
            useless = len(self._named(self.useless))
            lines.append(f"  useless      {counted(useless, unit)}")
        copies = [(self.names[a], self.names[b]) for a, b in self.copies[:5]]
        lines += [f"  copies       {copy} repeats {original}" for copy, original in copies]
        lines += [] if structure is None else structure_lines(structure)
        for model in self.models[:8]:
            text = ", ".join(self._named(model.support)) or "no feature"
            mark = " (borderline)" if model.is_borderline else ""
            lines.append(f"  {model.objective:<12.7g} {text}{mark}")
        if len(self) > 8:
            lines.append(f"  ... and {len(self) - 8} more")
        return "\n".join(lines)
