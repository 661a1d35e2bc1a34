"""One search with structure: from a problem to a result with its certificate."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from bestk.base.constants import FREE, IN, OUT
from bestk.base.fingerprint import fingerprint
from bestk.base.question import Question
from bestk.base.settings import Settings
from bestk.base.structure import Structure
from bestk.base.threads import Workers
from bestk.base.validation import counted
from bestk.choices.form import ChoiceForm, choice_form
from bestk.choices.incumbent import ChoiceCollector, ChoiceIncumbent, Fits
from bestk.choices.kernels.propagation import POSSIBLE, propagate, rules_of
from bestk.choices.record import ChoiceRecord
from bestk.choices.tree import ChoiceTree
from bestk.problem.regression import Regression
from bestk.results.assumptions import DEPENDENCE, are_dependent
from bestk.results.certificate import Certificate
from bestk.results.progress import make_progress
from bestk.results.result import Result
from bestk.results.status import Status
from bestk.runs.checkpoint import Checkpoint, Writer
from bestk.runs.conclusion import result_of
from bestk.structure.asked import Asked
from bestk.structure.compose import NoModel, named_features, require_possible, structure_of


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """What is the same for every k: the form, decisions on groups, and fits.

    ``include``, ``exclude`` and ``free`` are features, and name whole groups.
    """

    problem: Regression = field(repr=False)
    structure: Structure
    include: np.ndarray
    exclude: np.ndarray
    free: np.ndarray
    form: ChoiceForm = field(repr=False)
    fits: Fits = field(repr=False)

    @classmethod
    def of(cls, problem: Regression, asked: Asked) -> "Prepared":
        if problem.chooses_box:
            raise ValueError(
                'bounds="auto" cannot be used with groups, rules or constraints; leave bounds out, '
                "or give a pair (lower, upper)"
            )
        names, structure = problem.feature_names, structure_asked(problem, asked)
        if problem.yy <= 0.0 and ((structure.lower > 0.0) | (structure.upper < 0.0)).any():
            raise ValueError(
                "y has no variation, and coefficients of zero do not satisfy the constraints, so "
                "there is nothing to measure models by; pass another y, or leave constraints out"
            )
        include, exclude, free = _sides(structure, asked, names)
        form = choice_form(problem, structure, exclude, structure.groups_of(free))
        return cls(
            problem=problem,
            structure=structure,
            include=include,
            exclude=exclude,
            free=free,
            form=form,
            fits=Fits(problem, structure),
        )

    def question(self, k: int) -> Question:
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
            structure=self.structure,
        )

    def root(self, k: int) -> np.ndarray:
        """What is decided before any search; an error where nothing is possible."""
        structure = self.structure
        sides = [structure.groups_of(f) for f in (self.include, self.exclude, self.free)]
        require_possible(structure, k, *sides)
        state = np.full(structure.n_groups, FREE, dtype=np.int8)
        state[sides[0]], state[sides[2]], state[sides[1]] = IN, IN, OUT
        if propagate(self.form.space.rules, k, state) != POSSIBLE:
            raise NoModel("no model satisfies all rules; leave some out, or raise k")
        return state

    def start(self, k: int, initial_support: Any) -> list[np.ndarray]:
        """The groups of a support to begin with."""
        problem = self.problem
        if initial_support is None:
            return []
        names = problem.feature_names
        support = named_features(self.structure, "initial_support", initial_support, names)
        chosen = self.structure.groups_of(np.concatenate([support, self.include, self.free]))
        size = len(np.setdiff1d(chosen, self.structure.groups_of(self.free)))
        if size > k:
            raise ValueError(
                f"initial_support has {counted(size, 'group')}, but k = {k}; name at most {k}, or "
                "raise k"
            )
        broken = self.structure.broken(chosen)
        if broken:
            words = self.structure.words[self.structure.rows[broken[0]].rule]
            raise ValueError(f"initial_support breaks a rule: {words}; name other features")
        if np.isin(support, self.exclude).any():
            raise ValueError(
                "initial_support contains excluded features; leave them out of it, or of exclude"
            )
        return [chosen]

    def without(self, choices: Sequence[np.ndarray]) -> "Prepared":
        """The same where nothing may contain all groups of one of these choices."""
        structure = self.structure.without(choices)
        rules = rules_of(structure, structure.groups_of(self.free))
        form = replace(self.form, structure=structure, space=self.form.space._replace(rules=rules))
        return replace(self, structure=structure, form=form)

    @cached_property
    def assumptions(self) -> tuple[str, ...]:
        form = self.form
        if len(form.dependent):
            return (
                "Some features repeat others of their group up to rounding (1e-13 of their "
                "length); what they add to those is taken to be nothing.",
            )
        return (DEPENDENCE,) if are_dependent(self.problem, form.features, form.space.A) else ()


def _sides(structure, asked, names) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(include, exclude, free) as features of whole groups."""
    include, exclude, free = (
        named_features(structure, word, getattr(asked, word), names)
        for word in ("include", "exclude", "free")
    )
    for word, chosen in (("include", include), ("free", free)):
        both = np.intersect1d(chosen, exclude)
        if len(both):
            group = structure.group_names[structure.groups[both[0]]]
            kind = (
                "group" if np.sum(structure.groups == structure.groups[both[0]]) > 1 else "feature"
            )
            raise ValueError(
                f"{kind} {group!r} is in both {word} and exclude; leave it out of one of them"
            )
    return np.setdiff1d(include, free), exclude, free


def correlations(problem: Regression) -> np.ndarray:
    """Of all pairs of features; of their products about zero where nothing else is known."""
    moments = problem.moments
    every = np.arange(problem.n_features)
    with np.errstate(invalid="ignore", divide="ignore"):
        if problem.rows is not None and not problem.rows.stand_in:
            M = problem.rows_of(every)
            M = M - M.mean(axis=0)
            M = M / np.linalg.norm(M, axis=0)
            return M.T @ M
        root = np.sqrt(moments.squares)
        return moments.gram / np.outer(root, root)


def solve_prepared(
    prepared: Prepared,
    k: int,
    starts: Sequence[np.ndarray],
    settings: Settings,
    started: float,
    *,
    saved: Checkpoint | None = None,
) -> Result:
    """One search; `starts` are choices of groups to begin with."""
    problem, structure = prepared.problem, prepared.structure
    require_supported(settings)
    root = prepared.root(k)
    incumbent = ChoiceIncumbent(prepared.fits)
    for chosen in starts:
        if not structure.broken(chosen):
            incumbent.offer(chosen)
    progress = make_progress(settings.progress)
    writer = None if settings.checkpoint is None else Writer(settings, prepared, k)
    try:
        with Workers(settings.n_threads) as pool:
            tree = ChoiceTree(
                prepared.form, k, root, incumbent, settings, pool, progress, started, writer
            )
            if saved is not None:
                saved.restore(tree)
            status = tree.run()
            engine = pool.words
    finally:
        progress.close()
    if incumbent.chosen is None:
        raise NoModel(_nothing_found(structure, tree))
    result = result_of(
        problem, k, incumbent, prepared.include, tree.lower_bound, status, tree.n_nodes,
        tree.watch.history, settings, tree.watch.started, engine, prepared.assumptions,
        structure=structure, chosen=incumbent.chosen, multipliers=incumbent.best.multipliers,
        kkt_residual=incumbent.best.kkt,
    )  # fmt: skip
    return replace(result, certificate=certificate_of(prepared, result, tree.record))


def structure_asked(problem: Regression, asked: Asked) -> Structure:
    """What is asked of groups, rules and constraints, read for the features of a problem."""
    found = asked.structure or structure_of(
        problem.n_features,
        problem.feature_names,
        groups=asked.groups,
        rules=asked.rules,
        constraints=asked.constraints,
        correlations=partial(correlations, problem),
    )
    assert found is not None, "nothing is asked of groups"
    return found


def possible_sizes(problem: Regression, asked: Asked, ks: list[int]) -> list[int]:
    """Sizes for which the rules allow a choice; an error where there is none."""
    prepared = Prepared.of(problem, asked)
    possible = []
    for k in ks:
        with suppress(NoModel):
            prepared.root(k)
            possible.append(k)
    if not possible:
        prepared.root(ks[-1])  # which says why
    return possible


class Collected(NamedTuple):
    """How a search for all models below a level has ended: nothing else lies below ``bound``."""

    status: Status
    bound: float
    tree: ChoiceTree

    @property
    def is_complete(self) -> bool:
        return self.status is Status.OPTIMAL


def collect_choices(
    prepared: Prepared, k: int, collector: ChoiceCollector, settings: Settings, started: float
) -> Collected:
    """Offer all choices below its level to the collector; NoModel where there is none at all."""
    root = prepared.root(k)
    progress = make_progress(settings.progress)
    settings = replace(settings, gap_tol=0.0)
    try:
        with Workers(settings.n_threads) as pool:
            tree = ChoiceTree(prepared.form, k, root, collector, settings, pool, progress, started)
            status = tree.run()
    finally:
        progress.close()
    bound = collector.level if status is Status.OPTIMAL else tree.proven * prepared.problem.yy
    return Collected(status, bound, tree)


def require_supported(settings: Settings) -> None:
    """Structure is searched by threads of this process."""
    for name, plain in (("device", "cpu"), ("client", None), ("bound", "descent")):
        if getattr(settings, name) != plain:
            raise ValueError(
                f"{name} cannot be used with groups, rules or constraints yet, because threads of "
                f"this process search them; leave {name} out"
            )


def _nothing_found(structure: Structure, tree: ChoiceTree) -> str:
    words = "; ".join(structure.constraint_words[:5])
    if len(tree.frontier):
        return (
            f"no model that satisfies the constraints ({words}) was found before a limit was "
            "reached; raise the limit, or loosen the constraints"
        )
    return (
        f"no model with k = {tree.k} satisfies the constraints ({words}); loosen them or bounds, "
        "exclude less, or raise k"
    )


def certificate_of(prepared: Prepared, result: Result, record: ChoiceRecord) -> Certificate | None:
    """The result with the proof of a search; None once that took too much room."""
    proof = record.proof(result.chosen)
    if proof is None:
        return None
    tree, splits, choices = proof
    question = prepared.question(result.k)
    return Certificate(
        **question.as_dict(),
        fingerprint=fingerprint(prepared.problem.digest, question),
        coef=result.coef,
        intercept=result.intercept,
        objective=result.objective,
        lower_bound=result.lower_bound,
        copies=np.zeros((0, 2), dtype=np.intp),
        splits=splits,
        tree=tree,
        choices=choices,
    )
