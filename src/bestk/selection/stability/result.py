"""What resampled rows say about a choice, in numbers, tables and words."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bestk.base.validation import as_real, counted, pandas_for, require_count, require_share
from bestk.results.gaps import percent
from bestk.results.interactive import as_printed
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.selection.stability.resampling import Resampling, weighted

# What a table of features and supports shows: more is in the arrays.
_ROWS, _SUPPORTS, _NAMES = 20, 5, 8
_QUANTILES = (0.05, 0.5, 0.95)
# How searches end, those that prove most first.
_FROM_BEST = (Status.PERFECT_FIT, *(each for each in Status if each is not Status.PERFECT_FIT))


@dataclass(frozen=True, kw_only=True, eq=False)
class ChosenSupport:
    """A set of features that some resamples chose.

    Attributes
    ----------
    support : tuple of int
        Indices of the features, ascending.
    names : tuple of str
    count, share : int, float
        How many of the resamples chose it, and which share of them.
    coef : (m,) array
        Mean of the coefficients on the support over these resamples.
    """

    support: tuple[int, ...]
    names: tuple[str, ...]
    count: int
    share: float
    coef: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class Stability:
    """The best models of resampled rows: how often is each feature, and each support, chosen?

    Arrays have one entry, or row, for each of the ``n_done`` resamples that were searched. All of
    them are, unless a limit, the callback or Ctrl-C came first.

    Attributes
    ----------
    k, alpha : int, float
        Largest number of features and ridge penalty that were asked for.
    n_resamples : int
        How many resamples were asked for.
    names : tuple of str
        Names of all features; x0, x1, ... where the data had none.
    model : Result
        The best model of all rows, not resampled, with its proof.
    numbers : (n_done,) int array
        Which resamples were searched: 0, 1, ... if none was left out.
    chosen : (n_done, p) bool array
        Whether a model has a feature.
    coefs, intercepts : (n_done, p) and (n_done,) arrays
        The models; coefficients are zero where a feature is not chosen.
    objectives, lower_bounds, gaps : (n_done,) arrays
        What was found, what was proven, and the relative difference.
    statuses : tuple of Status
        Why each search ended.
    seconds : float
        Wall-clock time of all searches together.
    resampling : Resampling
        How rows were drawn; :meth:`weights` are those of one resample.
    sample_weight : (n,) array or None
        Weights of the rows, as given.
    ended : Status or None
        Why resamples were left out; None if none was.
    """

    k: int
    alpha: float
    names: tuple[str, ...] = field(repr=False)
    model: Result = field(repr=False)
    numbers: np.ndarray = field(repr=False)
    chosen: np.ndarray = field(repr=False)
    coefs: np.ndarray = field(repr=False)
    intercepts: np.ndarray = field(repr=False)
    objectives: np.ndarray = field(repr=False)
    lower_bounds: np.ndarray = field(repr=False)
    gaps: np.ndarray = field(repr=False)
    statuses: tuple[Status, ...] = field(repr=False)
    seconds: float
    resampling: Resampling
    sample_weight: np.ndarray | None = field(default=None, repr=False)
    ended: Status | None = None

    @property
    def n_resamples(self) -> int:
        return len(self.resampling)

    @property
    def n_done(self) -> int:
        """How many resamples were searched."""
        return len(self.numbers)

    @property
    def frequencies(self) -> np.ndarray:
        """(p,) share of the searched resamples whose model has the feature."""
        return self.chosen.mean(axis=0)

    @property
    def supports(self) -> tuple[ChosenSupport, ...]:
        """The different supports, the most frequent first."""
        found: dict[tuple[int, ...], list[int]] = {}
        for i, row in enumerate(self.chosen):
            found.setdefault(tuple(np.flatnonzero(row).tolist()), []).append(i)
        listed = [
            ChosenSupport(
                support=support,
                names=tuple(self.names[j] for j in support),
                count=len(rows),
                share=len(rows) / self.n_done,
                coef=self.coefs[np.ix_(rows, support)].mean(axis=0),
            )
            for support, rows in found.items()
        ]
        return tuple(sorted(listed, key=lambda each: (-each.count, each.support)))

    @property
    def proven(self) -> int:
        """How many of the models are proven optimal."""
        return sum(status in (Status.OPTIMAL, Status.PERFECT_FIT) for status in self.statuses)

    @property
    def conditional(self) -> int:
        """How many are proven the best inside a box that was chosen, only."""
        return sum(status is Status.CONDITIONAL for status in self.statuses)

    @property
    def is_proven(self) -> bool:
        """Whether all resamples were searched, and every model is proven optimal."""
        return self.proven == self.n_resamples

    @property
    def is_closed(self) -> bool:
        """Whether all were searched to their end; see :attr:`Result.is_closed`."""
        return self.proven + self.conditional == self.n_resamples

    @property
    def status(self) -> Status:
        """Why resamples were left out, or else how the least proven of the searches ended."""
        if self.ended is not None:
            return self.ended
        return max(self.statuses, key=_FROM_BEST.index)

    @property
    def claim(self) -> str:
        """What is proven, such as ``100 of 100 resamples searched, 100 proven optimal``."""
        text = f"{self.n_done} of {counted(self.n_resamples, 'resample')} searched, {self.proven} "
        text += "proven optimal"
        if self.conditional:
            text += f", {self.conditional} the best inside a box that was chosen"
        still_open = self.n_done - self.proven - self.conditional
        if still_open:
            text += f", {still_open} with a gap of at most {percent(self.gaps.max())}"
        return text if self.ended is None else f"{text}; ended by: {self.ended}"

    @property
    def resampled_alpha(self) -> float:
        """The ridge penalty of the resamples: `alpha` times their share of the rows."""
        return self.alpha * self.resampling.share

    def weights(self, number: int) -> np.ndarray:
        """(n,) weights of the rows in one resample: its counts, times the weights given.

        With these and :attr:`resampled_alpha`, :func:`bestk.solve` repeats a search of
        :attr:`numbers`, say to keep its certificate.
        """
        number = require_count("number", number, least=0)
        if number >= self.n_resamples:
            raise ValueError(f"number must be below n_resamples = {self.n_resamples}, got {number}")
        return weighted(self.resampling.counts(number), self.sample_weight)

    def selected(self, threshold: float = 0.6) -> np.ndarray:
        """Indices, ascending, of the features that at least this share of the models has."""
        return np.flatnonzero(self.frequencies >= as_threshold(threshold))

    def coefficient_quantiles(self, q: Any = _QUANTILES) -> np.ndarray:
        """Quantiles of each coefficient over resamples; it is zero where a feature is not chosen.

        `q` is a number between 0 and 1, which gives (p,), or m of them, which give (m, p).
        """
        levels = as_real("q", q).astype(np.float64)
        if levels.ndim > 1 or not ((levels >= 0.0) & (levels <= 1.0)).all():
            raise ValueError(f"q must be a number between 0 and 1, or a list of them; got {q!r}")
        return np.quantile(self.coefs, levels, axis=0)

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each feature, the most frequent first.

        Columns are ``frequency``, ``in_model`` (has the model of all rows the feature?), ``coef``
        (mean of the coefficient where it is chosen, NaN if it never is) and quantiles of it over
        all resamples, ``q05``, ``median`` and ``q95``.
        """
        pd = pandas_for("to_frame")
        in_model = np.isin(np.arange(len(self.names)), self.model.support)
        columns = {
            "frequency": self.frequencies,
            "in_model": in_model,
            "coef": self._means_if_chosen(),
            **dict(zip(("q05", "median", "q95"), self.coefficient_quantiles(), strict=True)),
        }
        frame = pd.DataFrame(columns, index=pd.Index(self.names, name="feature"))
        return frame.iloc[self._ranked()]

    def _ranked(self) -> np.ndarray:
        """Features, the most frequent first, in their order where they tie."""
        return np.argsort(-self.frequencies, kind="stable")

    def _means_if_chosen(self) -> np.ndarray:
        counts = self.chosen.sum(axis=0)
        sums = np.where(self.chosen, self.coefs, 0.0).sum(axis=0)
        return np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)

    _repr_pretty_ = as_printed

    def _repr_html_(self) -> str:
        from bestk.show import report

        return report.stability_summary(self)

    def __str__(self) -> str:
        structure, total = self.model.structure, counted(len(self.names), "feature")
        if structure is not None and structure.has_groups:
            total = f"{counted(structure.n_groups, 'group')} ({total})"
        lines = [
            f"bestk: stability of the best {self.k} of {total}, "
            f"{counted(self.n_resamples, 'resample')} ({self.resampling.kind})",
            self.claim,
        ]
        lines += self._feature_lines() + self._support_lines()
        return "\n".join(lines)

    def _feature_lines(self) -> list[str]:
        ever = [j for j in self._ranked() if self.frequencies[j] > 0.0]
        if not ever:
            return ["no feature is ever chosen"]
        shown, means, quantiles = (
            ever[:_ROWS],
            self._means_if_chosen(),
            self.coefficient_quantiles(),
        )
        width = max(7, *(len(self.names[j]) for j in shown))
        heads = f"{'chosen':>8}{'if chosen':>13}{'5%':>13}{'median':>13}{'95%':>13}"
        lines = [f"  {'feature':<{width}}{heads}  (* in the model of all rows)"]
        for j in shown:
            values = "".join(f"{value:>13.5g}" for value in (means[j], *quantiles[:, j]))
            mark = "  *" if j in self.model.support else ""
            lines.append(f"  {self.names[j]:<{width}}{self.frequencies[j]:>8.1%}{values}{mark}")
        more = len(ever) - len(shown)
        return [*lines, f"  ... and {more} more"] if more else lines

    def _support_lines(self) -> list[str]:
        supports = self.supports
        lines = [counted(len(supports), "different support")]
        own = tuple(self.model.support.tolist())
        for each in supports[:_SUPPORTS]:
            names = ", ".join(each.names[:_NAMES]) or "no features"
            names += ", ..." if len(each.names) > _NAMES else ""
            lines.append(f"  {each.share:>6.1%}  {names}{'  *' if each.support == own else ''}")
        more = len(supports) - _SUPPORTS
        return [*lines, f"  ... and {more} more"] if more > 0 else lines


def as_threshold(value: Any) -> float:
    """A share of resamples, above 0 and at most 1."""
    return require_share("threshold", value, such_as=0.6, or_all=True)
