"""What can be decided before any search, and is the same for every k."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from bestk.base.question import Question
from bestk.base.validation import as_features, counted
from bestk.form.standard_form import StandardForm
from bestk.problem.regression import Regression


@dataclass(frozen=True, kw_only=True, eq=False)
class Presolved:
    """A problem without the features that cannot enter any model.

    ``form`` is None where no feature can. ``required`` are the included and the free features that
    can enter, ``inside`` the same in the form's numbering. Other included ones add nothing but
    still count towards k, free ones never do.
    ``copies`` are pairs (copy, original) of features, of which the form has the originals.
    """

    problem: Regression = field(repr=False)
    include: np.ndarray
    exclude: np.ndarray
    free: np.ndarray
    form: StandardForm | None
    required: np.ndarray
    inside: np.ndarray
    copies: np.ndarray

    @classmethod
    def of(
        cls, problem: Regression, include: Any = None, exclude: Any = None, free: Any = None
    ) -> "Presolved":
        p, names = problem.n_features, problem.feature_names
        include = as_features("include", include, p, names)
        exclude = as_features("exclude", exclude, p, names)
        free = as_features("free", free, p, names)
        for word, chosen in (("include", include), ("free", free)):
            both = np.intersect1d(chosen, exclude)
            if len(both):
                name = repr(names[both[0]]) if names else both[0]
                raise ValueError(
                    f"feature {name} is in both {word} and exclude; leave it out of one of them"
                )
        include = np.setdiff1d(include, free)  # what is free is not counted
        given = np.union1d(include, free).astype(np.intp)
        # Columns of zeros, features that are excluded or bounded to zero cannot enter a model.
        useful = (problem.moments.squares > 0.0) & (problem.lower < problem.upper)
        useful &= np.isfinite(problem.ridge)
        useful[exclude] = False
        features = np.flatnonzero(useful)
        inside = np.flatnonzero(np.isin(features, given))
        form, copies = None, np.zeros((0, 2), dtype=np.intp)
        if len(features) and problem.yy > 0.0:
            form = StandardForm.of(problem, features)
            if problem.alpha == 0.0 and not form.is_boxed:
                form, inside, copies = _without_copies(form, inside)
        return cls(
            problem=problem,
            include=include,
            exclude=exclude,
            free=free,
            form=form,
            required=given[useful[given]],
            inside=inside,
            copies=copies,
        )

    def within(self, problem: Regression) -> "Presolved":
        """The same for a problem that differs in its box alone, none of it zero."""
        if self.form is None or len(self.copies):
            return Presolved.of(problem, self.include, self.exclude, self.free)
        return replace(self, problem=problem, form=self.form.within(problem))

    def question(self, k: int) -> Question:
        """What a search for at most k features answers."""
        problem = self.problem
        return Question(
            k=k,
            alpha=problem.alpha,
            fit_intercept=problem.fit_intercept,
            include=self.include,
            exclude=self.exclude,
            lower=problem.lower,
            upper=problem.upper,
            is_box_assumed=problem.box is not None,
            free=self.free,
        )

    def size(self, k: int) -> int:
        """How many features of the form a model with at most k features may have."""
        useless = len(self.include) - np.isin(self.include, self.required).sum()
        uncounted = np.isin(self.free, self.required).sum()
        return 0 if self.form is None else min(int(k - useless + uncounted), self.form.p)

    def admits(self, support: np.ndarray, size: int) -> bool:
        """Whether a model may have these features, `size` of them at most that can enter one.

        Those that every model has come on top: where they add nothing, a search may pass over them.
        """
        features = self.required if self.form is None else self.form.features
        useful = [*features, *self.copies[:, 0]]
        n_useful = int(np.isin(np.union1d(support, self.required), useful).sum())
        # Where all features may be in a model, so may copies of them: they add nothing.
        is_small = n_useful <= size or size == len(features)
        return bool(is_small and not np.isin(support, self.exclude).any())

    def require_room(self, k: int) -> None:
        """What must be in a model fits into one of k features."""
        if len(self.include) > k:
            raise ValueError(
                f"include names {counted(len(self.include), 'feature')}, but k = {k}; raise k, or "
                "include fewer"
            )

    def counted(self, support: np.ndarray) -> int:
        """How many features of a support count towards k."""
        return len(np.setdiff1d(support, self.free))


def _without_copies(form: StandardForm, inside: np.ndarray):
    """Leave out features that repeat others; what must be included stays."""
    copies = form.copies()
    copies = copies[~np.isin(copies[:, 0], inside)]
    keep = np.setdiff1d(np.arange(form.p), copies[:, 0])
    pairs = form.features[copies]
    return form.restricted(keep) if len(copies) else form, np.searchsorted(keep, inside), pairs
