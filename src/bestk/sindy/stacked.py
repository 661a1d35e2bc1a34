"""Equations that are solved as one problem, because constraints tie them together.

Coefficients stand one equation after the other, PySINDy's order "target": that of term j in
equation i is number i p + j.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.settings import Settings
from bestk.base.structure import Row, Structure
from bestk.base.validation import (
    as_features,
    as_matrix,
    as_vector,
    counted,
    require_choice,
    require_flag,
)
from bestk.results.result import Result, Snapshot
from bestk.selection.problem import Problem
from bestk.structure.asked import Asked
from bestk.structure.compose import structure_of

ORDERS = ("target", "feature")
# Numbers of a stacked matrix up to which rows are kept; products alone are enough beyond.
_MOST_ENTRIES = 2e7
# What is said of each equation, of which the proof of all together knows no more.
_TOGETHER = (
    "The other equations stay as they are, and gap_tol is a share of the objectives of all "
    "equations together."
)
# A share of an objective that is not told from rounding.
_ROUNDING = 1e-9


def cross_constraints(
    lhs: Any, rhs: Any, order: str, equality: bool, n_equations: int, n_terms: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(matrix, lower, upper) of constraints in PySINDy's format, in the order "target"."""
    if lhs is None:
        raise ValueError("constraint_rhs needs constraint_lhs, one row for each of its numbers")
    require_choice("constraint_order", order, ORDERS)
    require_flag("equality", equality)
    matrix = np.array(as_matrix("constraint_lhs", lhs), dtype=np.float64)
    wanted = n_equations * n_terms
    if matrix.shape[1] != wanted:
        raise ValueError(
            f"constraint_lhs has {counted(matrix.shape[1], 'column')}, but "
            f"{counted(n_equations, 'equation')} of {counted(n_terms, 'term')} have {wanted:,} "
            "coefficients; give it a column for each of them, in the order that constraint_order "
            "says"
        )
    if rhs is None:
        raise ValueError("constraint_lhs needs constraint_rhs, one number for each of its rows")
    values = as_vector("constraint_rhs", rhs, length=len(matrix), of="rows of constraint_lhs")
    if not (np.isfinite(matrix).all() and np.isfinite(values).all()):
        raise ValueError(
            "constraint_lhs or constraint_rhs contains NaN or infinite values; leave such rows out"
        )
    if order == "feature":
        matrix = matrix.reshape(-1, n_terms, n_equations).swapaxes(1, 2).reshape(len(matrix), -1)
    values = values.astype(np.float64)
    return matrix, values if equality else np.full(len(values), -np.inf), values


def stacked_problem(problems: Sequence[Problem]) -> Problem:
    """One problem whose objective is the sum of those of the equations."""
    alphas = {problem.alpha for problem in problems}
    if len(alphas) > 1:
        raise ValueError(
            "constraint_lhs ties equations together, so alpha must be the same for all of them; "
            "pass one number"
        )
    first, d = problems[0], len(problems)
    bounds = tuple(
        np.concatenate([getattr(problem, side) for problem in problems])
        for side in ("lower", "upper")
    )
    options: dict[str, Any] = {"alpha": first.alpha, "bounds": bounds}
    rows = first.rows
    if rows is not None and d**2 * rows.X.size <= _MOST_ENTRIES:
        X = np.kron(np.eye(d), np.asarray(rows.X, dtype=np.float64))
        y = np.concatenate([problem.rows.y for problem in problems if problem.rows is not None])
        weight = None if rows.weight is None else np.tile(rows.weight, d)
        return Problem.from_data(X, y, sample_weight=weight, **options)
    G = np.kron(np.eye(d), first.gram)
    c = np.concatenate([problem.moment for problem in problems])
    return Problem.from_gram(G, c, sum(problem.yy for problem in problems), **options)


def stacked_asked(
    asked: Sequence[Asked],
    sizes: Sequence[int],
    cross: tuple[np.ndarray, np.ndarray, np.ndarray],
    n_terms: int,
    names: tuple[str, ...] | None,
    correlations: Callable[[], np.ndarray],
) -> Asked:
    """What is asked of each equation, and of all together, in numbers of the stacked problem."""
    d, rows, words = len(asked), list[Row](), list[str]()
    matrix, lower, upper = [cross[0]], [cross[1]], [cross[2]]
    texts = [f"{counted(len(cross[0]), 'constraint')} across equations"]
    sides: dict[str, list[int]] = {"include": [], "exclude": [], "free": []}
    for i, one in enumerate(asked):
        shift = i * n_terms
        for word, chosen in sides.items():
            chosen += (shift + as_features(word, getattr(one, word), n_terms, names)).tolist()
        own = structure_of(
            n_terms, names, rules=one.rules or [], constraints=one.constraints,
            correlations=correlations,
        )  # fmt: skip
        assert own is not None
        rule = len(words)
        words += [f"equation {i}: {text}" for text in own.words]
        texts += [f"equation {i}: {text}" for text in own.constraint_words]
        rows += [
            Row(row.plus + shift, row.minus + shift, row.limit, row.rule + rule) for row in own.rows
        ]
        block = np.zeros((len(own.matrix), d * n_terms))
        block[:, shift : shift + n_terms] = own.matrix
        matrix, lower, upper = [*matrix, block], [*lower, own.lower], [*upper, own.upper]
        limited = np.setdiff1d(np.arange(shift, shift + n_terms), sides["free"])
        rows.append(Row(limited, np.zeros(0, dtype=np.intp), sizes[i], len(words)))
        words.append(f"equation {i}: at most {counted(sizes[i], 'term')}")
    called = names or tuple(f"x{j}" for j in range(n_terms))
    structure = Structure(
        groups=np.arange(d * n_terms),
        group_names=tuple(f"{name} of equation {i}" for i in range(d) for name in called),
        rows=tuple(rows),
        words=tuple(words),
        matrix=np.vstack(matrix),
        lower=np.concatenate(lower),
        upper=np.concatenate(upper),
        constraint_words=tuple(texts),
    )
    return Asked(structure=structure, **sides)


def split_up(result: Result, problems: Sequence[Problem]) -> list[Result]:
    """A result for each equation, whose bound is for models that leave the other equations alone.

    The proof is about all of them together: the certificate is that of the stacked result.
    """
    n_terms = problems[0].n_features
    coefs = result.coef.reshape(len(problems), n_terms)
    objectives = [problem.objective(coef) for problem, coef in zip(problems, coefs, strict=True)]
    found = []
    for i, (problem, coef, objective) in enumerate(zip(problems, coefs, objectives, strict=True)):
        others = sum(objectives[:i] + objectives[i + 1 :])
        rounding = 4.0 * UNIT_ROUNDOFF * len(problems) * sum(objectives)
        others += rounding if rounding > _ROUNDING * objective else 0.0
        end = Snapshot(
            seconds=result.seconds,
            n_nodes=result.n_nodes,
            n_open=0,
            objective=objective,
            lower_bound=max(0.0, min(result.lower_bound - others, objective)),
            yy=problem.yy,
        )
        own = result.support[result.support // n_terms == i] % n_terms
        found.append(
            replace(
                result,
                k=len(own),
                coef=coef,
                support=own,
                objective=objective,
                lower_bound=end.lower_bound,
                gap=end.gap,
                explained_gap=end.explained_gap,
                yy=problem.yy,
                n_samples=problem.n_samples,
                feature_names=problem.feature_names,
                assumptions=(*result.assumptions, _TOGETHER),
                at_bounds=(),
                certificate=None,
                structure=None,
                chosen=np.zeros(0, dtype=np.intp),
                multipliers=np.zeros(0),
            )
        )
    return found


def solve_stacked(
    problems: Sequence[Problem], asked: Asked, total_k: int, settings: Settings
) -> Result:
    """The best equations together, with one proof for all."""
    problem = stacked_problem(problems)
    return problem.solve(total_k, **asked.as_options(), **settings.as_options())
