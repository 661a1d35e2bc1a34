"""What a run found and what it proved."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bestk.base.structure import Structure
from bestk.base.validation import as_matrix, counted, names_of, require_count, require_same_names
from bestk.results import formula
from bestk.results.certificate import Certificate
from bestk.results.criteria import information_criterion
from bestk.results.gaps import PERFECT_FIT, relative_gap
from bestk.results.interactive import as_printed
from bestk.results.status import Status

HISTORY = np.dtype([("seconds", "f8"), ("nodes", "i8"), ("incumbent", "f8"), ("bound", "f8")])


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The state of a run at one moment; passed to ``callback`` and ``progress``.

    ``n_supports`` counts the supports that a device has tried, about.
    """

    seconds: float
    n_nodes: int
    n_open: int
    objective: float
    lower_bound: float
    yy: float = field(repr=False)
    n_supports: int = 0

    @property
    def gap(self) -> float:
        return relative_gap(self.objective, self.lower_bound, self.yy)

    @property
    def explained_gap(self) -> float:
        """(objective - lower_bound) / (y'y - objective), the gap of the OKRidge paper."""
        difference = max(self.objective - self.lower_bound, 0.0)
        if difference == 0.0:
            return 0.0
        explained = self.yy - self.objective
        return difference / explained if explained > 0 else float("inf")


@dataclass(frozen=True, kw_only=True, eq=False)
class Result:
    """The best model found, with the bound that is proven for it.

    Attributes
    ----------
    k, alpha : int, float
        Largest number of features and ridge penalty that were asked for.
    coef : (p,) array
        Coefficients, at most k of them nonzero.
    intercept : float
        Constant term; 0 unless ``fit_intercept``.
    support : (m,) int array
        Sorted indices of the chosen features, m <= k.
    objective : float
        ``||y - intercept - X coef||^2 + alpha ||coef||^2``, y'y included.
    lower_bound : float
        Proven: no admissible coefficient vector has an objective below it; with a box that was
        chosen, none inside it.
    gap, explained_gap : float
        ``(objective - lower_bound)`` over the objective, and over ``y'y - objective``.
    status, message : Status, str
        Why the run ended, and what that means for the user.
    n_nodes, seconds : int, float
        Nodes bounded or enumerated, and wall-clock time.
    yy : float
        Objective of the model without features: y'y, of centred y if there is an intercept.
    n_samples, fit_intercept, feature_names, settings
        What the problem and the run were.
    engine : str
        What did the work, in words: "2 threads", "cuda:0 (NVIDIA H200) and 16 threads".
    assumptions : tuple of str
        What the bound rests on besides the data, in words; mostly empty.
    at_bounds : tuple of int
        Features whose coefficient is not zero and lies at a bound, given or chosen.
    box : float or None
        With ``bounds="auto"``, the box that was chosen: no ``|coef_j|`` times the length of its
        column exceeds ``box`` times the length of y (ridge included in the one, means taken off
        both if there is an intercept). None if there was nothing to choose.
    history : structured array (seconds, nodes, incumbent, bound)
        How incumbent and bound moved.
    certificate : Certificate or None
        The proof, for anyone to check; None once it grew too large to keep.
    structure : Structure or None
        Groups, rules and constraints that were asked for, if any; k counts groups then.
    chosen : (m,) int array
        Numbers of the chosen groups, where there is a structure. Rules are about these: a chosen
        feature may have coefficient zero.
    multipliers : (q,) array
        Of the linear constraints: how fast the objective falls if one is loosened.
    kkt_residual : float
        How far the model is from the conditions of a constrained optimum on its support, in units
        where columns, target and rows of constraints have length one; 0 without constraints.
    """

    k: int
    alpha: float
    coef: np.ndarray
    intercept: float
    support: np.ndarray
    objective: float
    lower_bound: float
    gap: float
    explained_gap: float
    status: Status
    n_nodes: int
    seconds: float
    yy: float
    n_samples: int | None
    fit_intercept: bool
    feature_names: tuple[str, ...] | None = field(default=None, repr=False)
    settings: dict[str, Any] = field(default_factory=dict, repr=False)
    engine: str = ""
    assumptions: tuple[str, ...] = ()
    at_bounds: tuple[int, ...] = ()
    box: float | None = None
    history: np.ndarray = field(repr=False)
    certificate: Certificate | None = field(default=None, repr=False)
    structure: Structure | None = field(default=None, repr=False)
    chosen: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp), repr=False)
    multipliers: np.ndarray = field(default_factory=lambda: np.zeros(0), repr=False)
    kkt_residual: float = 0.0

    @property
    def is_proven(self) -> bool:
        """Whether the search came to its end, and no box was chosen for it."""
        return self.status in (Status.OPTIMAL, Status.PERFECT_FIT)

    @property
    def is_closed(self) -> bool:
        """Whether the search came to its end: no limit or interruption left anything open."""
        return self.is_proven or self.status is Status.CONDITIONAL

    @property
    def is_conditional(self) -> bool:
        """Whether the bound holds only inside a box that was chosen (``bounds="auto"``)."""
        return self.box is not None

    @property
    def message(self) -> str:
        return " ".join([f"{str(self.status).capitalize()}.", self._advice, *self._remarks])

    @property
    def _advice(self) -> str:
        """What the status means; with a structure not every model with k features is admissible."""
        advice = self.status.advice
        if self.structure is None:
            return advice
        return advice.replace("no model with at most k features", "no admissible model")

    @property
    def _remarks(self) -> list[str]:
        """What else has to be said about the bound."""
        remarks = [self.bound_remark] if self.at_bounds else []
        if self.is_conditional and self.status is not Status.CONDITIONAL:
            remarks.append("The bound is proven only among models inside the box.")
        return remarks + [f"Assumed: {text}" for text in self.assumptions]

    @property
    def bound_remark(self) -> str:
        """Which coefficients lie at their bounds, in words; empty if none does."""
        if not self.at_bounds:
            return ""
        *names, last = [self.name(j) for j in self.at_bounds[:5]]
        if len(self.at_bounds) > 5:
            names, last = [*names, last], f"{len(self.at_bounds) - 5} more"
        which = f"{', '.join(names)} and {last} are at their bounds"
        if not names:
            which = f"{last} is at its bound"
        return f"{which}: a wider box may allow a better model."

    @property
    def rss(self) -> float:
        """Sum of (weighted) squared residuals, the objective without the ridge penalty."""
        shrunk = np.sqrt(self.alpha) * self.coef
        return max(self.objective - float(shrunk @ shrunk), 0.0)

    @property
    def r2(self) -> float:
        """Share of y'y that is explained; the usual R^2 if there is an intercept."""
        share = 1.0 - self.rss / self.yy if self.yy > 0 else 1.0
        return share if abs(share) > PERFECT_FIT else 0.0  # less is rounding, of either sign

    @property
    def group_names(self) -> list[str]:
        """Names of the chosen groups; of the chosen features where there are no groups."""
        if self.structure is None:
            return self.names
        return [self.structure.group_names[g] for g in self.chosen]

    @property
    def names(self) -> list[str]:
        """Names of the chosen features; x0, x1, ... where the data had none."""
        return [self.name(j) for j in self.support]

    @property
    def named_coef(self) -> dict[str, float]:
        """Coefficients of the chosen features by name; the intercept is not among them."""
        return {self.name(j): float(self.coef[j]) for j in self.support}

    def name(self, feature: int) -> str:
        return self.feature_names[feature] if self.feature_names else f"x{feature}"

    def predict(self, X: Any) -> np.ndarray:
        """``intercept + X coef`` for rows X (n, p) in the column order of the fit."""
        way = "pass X[list(result.feature_names)]"
        require_same_names("X", names_of(X), self.feature_names, "the data of the fit", way)
        X = as_matrix("X", X)
        if X.shape[1] != len(self.coef):
            raise ValueError(
                f"X has {counted(X.shape[1], 'column')}, but the model has {len(self.coef):,}; "
                "pass all columns of the fit, in their order"
            )
        return self.intercept + X[:, self.support] @ self.coef[self.support]

    def criterion(self, name: str = "aicc") -> float:
        """AICc, BIC or EBIC of this model (theory: criteria); smaller is better.

        A group costs as many parameters as it has features. An equation among the linear
        constraints saves one, as far as it does not follow from others on the chosen features.
        """
        chosen, among = len(self.support), len(self.coef)
        if self.structure is not None:
            chosen, among = len(self.chosen), self.structure.n_groups
        return information_criterion(
            name,
            rss=max(self.rss, PERFECT_FIT * self.yy),
            n=self.n_samples,
            size=len(self.support),
            extra=1 + self.fit_intercept - _n_equations(self),
            chosen=chosen,
            among=among,
        )

    def equation(self, target: str = "y", digits: int = 4) -> str:
        """The model as text, such as ``y = 152.1 + 5.7 bmi - 0.2 age``."""
        require_count("digits", digits, least=1)
        terms = [(self.coef[j], formula.factor(self.name(j))) for j in self.support]
        if self.fit_intercept:
            terms.insert(0, (self.intercept, ""))
        if not terms:
            return f"{target} = 0"
        text = "".join(
            f" {'-' if value < 0 else '+'} {abs(value):.{digits}g}{name}" for value, name in terms
        )
        return f"{target} = {text[3:] if text.startswith(' + ') else '-' + text[3:]}"

    def to_latex(self, target: str = "y", digits: int = 4) -> str:
        """The model for LaTeX, such as ``y = 152.1 + 5.7\\,a^{2}\\,b``, without dollars around it.

        Names such as ``"a b"``, ``"a:b"``, ``"a^2"`` and ``"sin(2 x0)"`` are read as products,
        powers and functions. Any other name is one symbol, and escaped. Needs the package amsmath
        where a name is text.
        """
        return formula.latex(target, self._terms, self._reader, digits)

    def to_sympy(self) -> Any:
        """The right-hand side as an expression of SymPy, names read as by :meth:`to_latex`.

        Coefficients are those of the model to the last bit. ``pip install sympy``.
        """
        return formula.sympy_sum(self._terms, self._reader)

    @property
    def _terms(self) -> list[formula.Term]:
        terms: list[formula.Term] = [(self.coef[j], self.name(j)) for j in self.support]
        return [(self.intercept, None), *terms] if self.fit_intercept else terms

    @property
    def _reader(self) -> formula.Reader:
        return formula.Reader(self.feature_names or self.names)

    def to_json(self, path: Any = None) -> str:
        """The model and what was proven as JSON text, written to path if given.

        :func:`bestk.storage.from_json` reads it back, and ``predict`` works again. The proof is not
        part of it: see :func:`bestk.storage.save`.
        """
        from bestk.results.model_json import to_json

        return to_json(self, path)

    def plot(self, ax: Any = None) -> Any:
        """The gap over time (:func:`bestk.plots.gap`); returns the matplotlib Axes."""
        from bestk.show import plots

        return plots.gap(self, ax=ax)

    def to_html(self, path: Any = None, **options: Any) -> str:
        """One self-contained page (:func:`bestk.report.result_page`), written to path if given."""
        from bestk.show import report

        return report.write(report.result_page(self, **options), path)

    _repr_pretty_ = as_printed

    def _repr_html_(self) -> str:
        from bestk.show import report

        return report.result_summary(self)

    def __str__(self) -> str:
        rows = [
            ("status", str(self.status)),
            ("objective", f"{self.objective:.10g}"),
            ("lower bound", f"{self.lower_bound:.10g}"),
            ("gap", f"{self.gap:.3g}  (explained gap {self.explained_gap:.3g})"),
            ("R²", f"{self.r2:.6g}"),
            ("nodes", f"{self.n_nodes}"),
            ("seconds", f"{self.seconds:.3g}"),
        ]
        if self.structure is not None and len(self.structure.matrix):
            rows.append(("KKT residual", f"{self.kkt_residual:.3g}"))
        lines = [f"bestk: {_size_in_words(self)}"]
        lines += [f"  {name:<12} {value}" for name, value in rows]
        if self.structure is not None:
            lines += structure_lines(self.structure, _constraint_lines(self))
        lines += _term_lines(self)
        return "\n".join([*lines, self._advice, *self._remarks])


# What is shown about a structure ----------------------------------------------------------------

# Features, and rules or constraints, that a printed result lists.
_MOST_FEATURES, _MOST_RULES = 20, 5
# What a row of the constraints may be off one of its sides, relative to the numbers in it.
_AT_ITS_SIDE = 1e-9


def uncounted(result: Result) -> set[int]:
    """Features that k does not count, as far as that is known: the certificate says so."""
    return set() if result.certificate is None else set(result.certificate.free.tolist())


def grouped_support(result: Result) -> list[tuple[str, list[int]]]:
    """(name, chosen features) of each chosen group; no name where the feature has the same."""
    if result.structure is None:
        return [("", [int(j)]) for j in result.support]
    found = []
    for g in result.chosen.tolist():
        name, members = result.structure.group_names[g], result.structure.members(g).tolist()
        own = len(members) == 1 and name == result.name(members[0])
        found.append(("" if own else name, members))
    return found


def active_constraints(result: Result) -> np.ndarray:
    """(q,) bool: which constraints on chosen features hold with equality, up to rounding?"""
    if result.structure is None:
        return np.zeros(0, dtype=bool)
    C, b = result.structure.matrix[:, result.support], result.coef[result.support]
    at, size = C @ b, np.abs(C) @ np.abs(b)
    active = np.zeros(len(C), dtype=bool)
    for side in (result.structure.lower, result.structure.upper):
        known = np.where(np.isfinite(side), side, 0.0)
        active |= np.isfinite(side) & (np.abs(at - known) <= _AT_ITS_SIDE * (size + np.abs(known)))
    if len(result.multipliers) == len(C):  # a coefficient may be rounding away from a side of zero
        active |= result.multipliers != 0.0
    return active & C.any(axis=1)


def _n_equations(result: Result) -> int:
    """How many independent equations the constraints impose on the chosen features."""
    if result.structure is None:
        return 0
    structure = result.structure
    C = structure.matrix[structure.lower == structure.upper][:, result.support]
    C = C[C.any(axis=1)]
    if not C.size:
        return 0
    return int(np.linalg.matrix_rank(C / np.abs(C).max(axis=1, keepdims=True)))


def structure_lines(structure: Structure, constraints: Sequence[str] = ()) -> list[str]:
    """Rules and constraints for a printed result, a few of each."""
    lines = []
    for title, texts in (
        ("rules", structure.words),
        ("constraints", constraints or structure.constraint_words),
    ):
        lines += [f"  {title}"] if texts else []
        lines += [f"    {text}" for text in texts[:_MOST_RULES]]
        if len(texts) > _MOST_RULES:
            lines.append(f"    ... and {len(texts) - _MOST_RULES} more")
    return lines


def _size_in_words(result: Result) -> str:
    features = f"{len(result.support)} of {counted(len(result.coef), 'feature')}"
    if result.structure is None or not result.structure.has_groups:
        return features
    groups = counted(result.structure.n_groups, "group")
    return f"{len(result.chosen)} of {groups} ({features})"


def _constraint_lines(result: Result) -> list[str]:
    """Constraints in words with their multipliers, active ones first."""
    assert result.structure is not None
    words, active = result.structure.constraint_words, active_constraints(result)
    return [
        f"{words[i]}  (active, multiplier {result.multipliers[i]:.4g})" if active[i] else words[i]
        for i in np.argsort(~active, kind="stable")
    ]


def _term_lines(result: Result) -> list[str]:
    """Names and coefficients, those of a group under its name."""
    free = uncounted(result)
    rows = [("intercept", f"{result.intercept:.8g}")] if result.fit_intercept else []
    left = _MOST_FEATURES
    for group, features in grouped_support(result):
        if group and left > 0:
            rows.append((group, ""))
        for j in features[:left]:
            name = f"  {result.name(j)}" if group else result.name(j)
            mark = "  (not counted)" if j in free else ""
            rows.append((name, f"{result.coef[j] + 0.0:.8g}{mark}"))
        left = max(left - len(features), 0)
    width = max([12, *(len(name) for name, _ in rows)])
    lines = [f"  {'feature':<{width}} coefficient"]
    lines += [f"  {name:<{width}} {value}".rstrip() for name, value in rows]
    if len(result.support) > _MOST_FEATURES:
        lines += [f"  ... and {len(result.support) - _MOST_FEATURES} more"]
    return lines
