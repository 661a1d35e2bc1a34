"""Groups, rules and constraints together: one structure, in words, and whether it can be met."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from bestk.base.structure import Row, Structure
from bestk.base.validation import as_features, hint_for
from bestk.structure.constraints import as_constraints
from bestk.structure.groups import Grouping, as_groups
from bestk.structure.rules import Rule

# Groups that a report lists.
_MOST_LISTED = 20
# Steps of the search for one choice, and entries of rows that they look at: a second at most. Hard
# sets of rules stay undecided instead of taking minutes.
_STEP_LIMIT, _ENTRY_LIMIT = 2000, 2 * 10**7


def structure_of(
    p: int,
    names: tuple[str, ...] | None,
    *,
    groups: Any = None,
    rules: Any = None,
    constraints: Any = None,
    correlations: Callable[[], np.ndarray] | None = None,
) -> Structure | None:
    """What users say about groups, rules and constraints as plain data; None if they say nothing.

    ``correlations`` gives the (p, p) correlations of features, and is called if a rule needs them.
    """
    if groups is None and rules is None and constraints is None:
        return None
    labels, group_names = as_groups(groups, p, names)
    grouping = Grouping(labels, group_names, names)
    rows: list[Row] = []
    words = []
    for place, rule in enumerate(_as_rules(rules)):
        name = repr(rule).partition("(")[0]
        reading = rule.read(f"rules[{place}] ({name})", grouping, correlations)
        words.append(reading.words)
        rows += [Row(_array(plus), _array(minus), m, place) for plus, minus, m in reading.rows]
    matrix, lower, upper, constraint_words = as_constraints(
        [] if constraints is None else constraints, p, names
    )
    return Structure(
        groups=labels,
        group_names=group_names,
        rows=tuple(rows),
        words=tuple(words),
        matrix=matrix,
        lower=lower,
        upper=upper,
        constraint_words=constraint_words,
    )


def _as_rules(rules: Any) -> list[Rule]:
    if rules is None:
        return []
    is_one = isinstance(rules, Rule | str) or not isinstance(rules, Iterable)
    found: list[Any] = [rules] if is_one else list(rules)
    for place, rule in enumerate(found):
        if not isinstance(rule, Rule):
            raise TypeError(
                f"rules[{place}] must be a rule, got {rule!r}; functions of bestk.rules make them, "
                'such as bestk.rules.at_most(1, ["a", "b"])'
            )
    return found


def _array(groups: Iterable[int]) -> np.ndarray:
    return np.array(tuple(groups), dtype=np.intp)


def whole_groups(structure: Structure, features: np.ndarray) -> np.ndarray:
    """All features of the groups that these features belong to."""
    return structure.features_of(structure.groups_of(np.asarray(features, dtype=np.intp)))


def named_features(
    structure: Structure, word: str, value: Any, names: tuple[str, ...] | None
) -> np.ndarray:
    """Features of whole groups, given by names of features or groups, by numbers or a mask."""
    position = {name: g for g, name in enumerate(structure.group_names)}
    value = [value] if isinstance(value, str) else value
    given = [] if value is None or np.ndim(value) == 0 else list(value)
    for one in given:
        if isinstance(one, str) and one not in position and one not in (names or ()):
            known = list(dict.fromkeys((*(names or ()), *position)))
            hint = hint_for(one, known)
            raise ValueError(f"{word}: there is no feature or group {one!r}{hint}")
    groups = [position[one] for one in given if isinstance(one, str) and one in position]
    if groups:
        value = [one for one in given if not (isinstance(one, str) and one in position)]
    features = as_features(word, value, len(structure.groups), names)
    named = structure.features_of(np.array(groups, dtype=np.intp))
    return np.union1d(whole_groups(structure, features), named).astype(np.intp)


def describe(structure: Structure) -> list[str]:
    """Groups of several features, rules and constraints, a line each."""
    sizes = np.bincount(structure.groups, minlength=structure.n_groups)
    several = np.flatnonzero(sizes > 1)
    lines = [f"{structure.group_names[g]}: {sizes[g]} features" for g in several[:_MOST_LISTED]]
    if len(several) > _MOST_LISTED:
        lines.append(f"... and {len(several) - _MOST_LISTED} more groups")
    return [*lines, *structure.words, *structure.constraint_words]


class NoModel(ValueError):
    """No model satisfies what is asked for."""


class _Condition(NamedTuple):
    """A part of what is asked for: rows that must hold, groups in or out of every choice."""

    kind: str
    words: str
    rows: Sequence[Row] = ()
    required: tuple[int, ...] = ()
    forbidden: tuple[int, ...] = ()


def require_possible(
    structure: Structure, k: int, include: np.ndarray, exclude: np.ndarray, free: np.ndarray
) -> None:
    """Some choice of groups satisfies everything, or an error names what contradicts itself.

    ``include``, ``exclude`` and ``free`` are numbers of groups. Of what is named nothing can be
    left out: without any one of it, the rest can be met.
    """
    kept = _conditions(structure, k, include, exclude, free)
    if _can_be_met(structure, kept):
        return
    for condition in list(kept):
        rest = [other for other in kept if other is not condition]
        if not _can_be_met(structure, rest):
            kept = rest
    raise NoModel(f"no model satisfies: {_in_words(kept)}; leave out or change one of these")


def _conditions(
    structure: Structure, k: int, include: np.ndarray, exclude: np.ndarray, free: np.ndarray
) -> list[_Condition]:
    """Single groups first: those that play no part are dropped before rules are."""
    called = structure.group_names
    found = [_Condition("free", called[g], required=(int(g),)) for g in free]
    found += [_Condition("exclude", called[g], forbidden=(int(g),)) for g in exclude]
    found += [_Condition("include", called[g], required=(int(g),)) for g in include]
    of_rule: list[list[Row]] = [[] for _ in structure.words]
    for row in structure.rows:
        of_rule[row.rule].append(row)
    found += [_Condition("rule", *both) for both in zip(structure.words, of_rule, strict=True)]
    counted = np.setdiff1d(np.arange(structure.n_groups), free)
    return [*found, _Condition("k", str(k), [Row(counted, _array(()), k, -1)])]


def _can_be_met(structure: Structure, conditions: list[_Condition]) -> bool:
    return possible(
        [row for condition in conditions for row in condition.rows],
        structure.n_groups,
        [g for condition in conditions for g in condition.required],
        [g for condition in conditions for g in condition.forbidden],
    )


def _in_words(conditions: list[_Condition]) -> str:
    of_kind: dict[str, list[str]] = {}
    for condition in conditions:
        of_kind.setdefault(condition.kind, []).append(condition.words)
    parts = [f'"{words}"' for words in of_kind.get("rule", [])]
    parts += [f"k = {k}" for k in of_kind.get("k", [])]
    for kind in ("include", "exclude", "free"):
        if kind in of_kind:
            parts.append(f"{kind} {', '.join(of_kind[kind])}")
    return ", ".join(parts)


def possible(
    rows: Sequence[Row],
    n_groups: int,
    required: Iterable[int] = (),
    forbidden: Iterable[int] = (),
    step_limit: int | None = None,
) -> bool:
    """Is there a choice Z with #(Z & plus) - #(Z & minus) <= limit for all rows?

    Z contains ``required`` and nothing ``forbidden``. What is undecided after ``step_limit`` steps,
    by default about a second, counts as possible: False is proven, and True need not be.
    """
    required, forbidden = _array(required), _array(forbidden)
    if len(np.intersect1d(required, forbidden)):
        return False
    propagation = _Propagation(rows, n_groups)
    state = np.zeros(n_groups, dtype=np.int8)
    state[required], state[forbidden] = 1, -1
    stack = [state]
    if step_limit is None:
        step_limit = min(_STEP_LIMIT, 1 + _ENTRY_LIMIT // (1 + propagation.n_entries))
    while stack and step_limit > 0:
        step_limit -= 1
        decided = propagation.run(stack.pop())
        if decided is None:
            continue
        lacking = propagation.lacking(decided)
        if not len(lacking):
            return True
        if propagation.is_crowded(decided, lacking):
            continue
        group = propagation.undecided(decided, lacking[0])[0]
        for value in (-1, 1):  # in first: a stack
            child = decided.copy()
            child[group] = value
            stack.append(child)
    return bool(stack)


class _Propagation:
    """What rows decide, given groups that are in (1), out (-1) or undecided (0)."""

    def __init__(self, rows: Sequence[Row], n_groups: int) -> None:
        self.rows = rows
        self.limits = np.array([row.limit for row in rows], dtype=np.int64)
        self.plus = _incidence([row.plus for row in rows], n_groups)
        self.minus = _incidence([row.minus for row in rows], n_groups)
        self.n_entries = self.plus.nnz + self.minus.nnz

    def run(self, state: np.ndarray) -> np.ndarray | None:
        """All that follows; None if nothing satisfies the rows."""
        while True:
            least = self._least(state)
            if (least > self.limits).any():
                return None
            # A row that has no room left decides all of its undecided groups.
            tight = _count(least == self.limits)
            out = (state == 0) & (self.plus.T @ tight > 0)
            into = (state == 0) & (self.minus.T @ tight > 0)
            if not (out | into).any():
                return state
            state = np.where(out, -1, np.where(into, 1, state)).astype(np.int8)

    def lacking(self, state: np.ndarray) -> np.ndarray:
        """Rows that fail if all that is undecided stays out."""
        return np.flatnonzero(self._shortage(state) > 0)

    def undecided(self, state: np.ndarray, row: int) -> np.ndarray:
        """Groups that can help a row that is lacking."""
        minus = self.rows[row].minus
        return minus[state[minus] == 0]

    def is_crowded(self, state: np.ndarray, lacking: np.ndarray) -> bool:
        """Do rows need more groups, from disjoint sets of them, than another row has room for?

        Row i needs s_i of its undecided groups U_i, so at least s_i - #(U_i - plus) of those in the
        ``plus`` of the other, and these numbers add up. Without this, at least 10 of a thousand and
        at most 5 of them would take a search through all choices of 5.
        """
        own = {int(i): self.undecided(state, i) for i in lacking}
        taken = np.zeros(len(state), dtype=bool)
        disjoint = []
        for i in sorted(own, key=lambda i: len(own[i])):
            if not taken[own[i]].any():
                taken[own[i]] = True
                disjoint.append(i)
        sizes = np.array([len(own[i]) for i in disjoint])
        inside = (self.plus @ _incidence([own[i] for i in disjoint], len(state)).T).tocoo()
        needed = (self._shortage(state)[disjoint] - sizes)[inside.col] + inside.data
        total = np.bincount(inside.row, np.maximum(needed, 0), minlength=len(self.limits))
        return bool((total > self.limits - self._least(state)).any())

    def _least(self, state: np.ndarray) -> np.ndarray:
        """Left sides of rows with all undecided of ``plus`` out and all of ``minus`` in."""
        return self.plus @ _count(state > 0) - self.minus @ _count(state >= 0)

    def _shortage(self, state: np.ndarray) -> np.ndarray:
        """By how much left sides exceed limits if all that is undecided stays out."""
        chosen = _count(state > 0)
        return self.plus @ chosen - self.minus @ chosen - self.limits


def _incidence(sides: Sequence[np.ndarray], n_groups: int) -> Any:
    ends = np.concatenate([[0], np.cumsum([len(side) for side in sides], dtype=np.int64)])
    groups = np.concatenate([_array(()), *sides])
    ones = np.ones(len(groups), dtype=np.int64)
    return sparse.csr_array((ones, groups, ends), shape=(len(sides), n_groups))


def _count(mask: np.ndarray) -> np.ndarray:
    return mask.astype(np.int64)
