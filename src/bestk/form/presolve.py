"""What can be decided before any search, and is the same for every k."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from bestk.base.validation import as_features
from bestk.bounds.clusters import BlockBound, block_bound
from bestk.bounds.split import Split, first_split
from bestk.form.standard_form import StandardForm
from bestk.problem.regression import Problem
from bestk.supports.incumbent import Fits


@dataclass(frozen=True, kw_only=True, eq=False)
class Presolved:
    """A problem without the features that cannot enter any model.

    ``form`` is None where no feature can. ``required`` are the included features that can enter,
    ``inside`` the same in the form's numbering; the others add nothing but still count towards k.
    ``copies`` are pairs (copy, original) of features, of which the form has the originals.
    """

    problem: Problem = field(repr=False)
    include: np.ndarray
    exclude: np.ndarray
    form: StandardForm | None
    required: np.ndarray
    inside: np.ndarray
    copies: np.ndarray
    fits: Fits = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, problem: Problem, include: Any = None, exclude: Any = None) -> "Presolved":
        p, names = problem.n_features, problem.feature_names
        include = as_features("include", include, p, names)
        exclude = as_features("exclude", exclude, p, names)
        both = np.intersect1d(include, exclude)
        if len(both):
            name = repr(names[both[0]]) if names else both[0]
            raise ValueError(f"feature {name} is in both include and exclude")
        # Columns of zeros, features that are excluded or bounded to zero cannot enter a model.
        useful = (problem.squares > 0.0) & (problem.lower < problem.upper)
        useful &= np.isfinite(problem.ridge)
        useful[exclude] = False
        features = np.flatnonzero(useful)
        inside = np.flatnonzero(np.isin(features, include))
        form, copies = None, np.zeros((0, 2), dtype=np.intp)
        if len(features) and problem.yy > 0.0:
            form = StandardForm.of(problem, features)
            if problem.alpha == 0.0 and not (form.is_boxed or form.is_wide):
                form, inside, copies = _without_copies(form, inside)
        return cls(
            problem=problem,
            include=include,
            exclude=exclude,
            form=form,
            required=include[useful[include]],
            inside=inside,
            copies=copies,
        )

    def within(self, problem: Problem) -> "Presolved":
        """The same for a problem that differs in its bounds alone, none of them zero."""
        if self.form is None or len(self.copies):
            return Presolved.of(problem, self.include, self.exclude)
        return replace(self, problem=problem, form=self.form.within(problem), fits={})

    @cached_property
    def uniform(self) -> Split:
        """The uniform split of the form's matrix."""
        assert self.form is not None
        return first_split(self.form)

    @cached_property
    def blocks(self) -> BlockBound | None:
        """The bound by a block split of the form's matrix, if there is a useful one."""
        assert self.form is not None
        return block_bound(self.form, self.uniform.smallest)

    @property
    def blocks_helped(self) -> bool:
        """Did the block bound exclude features for another k?"""
        blocks = vars(self).get("blocks")
        return blocks is not None and blocks.helped

    def size(self, k: int) -> int:
        """How many features of the form a model with at most k features may have."""
        useless = len(self.include) - len(self.required)
        return 0 if self.form is None else min(k - useless, self.form.p)


def _without_copies(form: StandardForm, inside: np.ndarray):
    """Leave out features that repeat others; what must be included stays."""
    copies = form.copies()
    copies = copies[~np.isin(copies[:, 0], inside)]
    keep = np.setdiff1d(np.arange(form.p), copies[:, 0])
    pairs = form.features[copies]
    return form.restricted(keep) if len(copies) else form, np.searchsorted(keep, inside), pairs
