"""Rules on the choice of features, as users make them, and the rows that they stand for."""

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bestk.base.validation import counted, require_choice, require_count, require_share
from bestk.structure.groups import Grouping
from bestk.structure.hierarchy import parents_of

Feature = str | int
Correlations = Callable[[], np.ndarray]


class Reading(NamedTuple):
    """What a rule says about certain groups: in words, and as (plus, minus, limit) of rows."""

    words: str
    rows: list[tuple[tuple[int, ...], tuple[int, ...], int]]


@dataclass(frozen=True)
class Rule:
    """A condition on which features are chosen together; functions of ``bestk.rules`` make them."""

    def read(self, where: str, groups: Grouping, correlations: Correlations | None) -> Reading:
        """The rule on these groups; ``where`` begins messages about it."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True, repr=False)
class AtMost(Rule):
    """#chosen among the features <= m."""

    m: int
    features: tuple[Feature, ...]

    def __repr__(self) -> str:
        return f"at_most({self.m}, {list(self.features)})"

    def read(self, where: str, groups: Grouping, correlations: Correlations | None) -> Reading:
        found = groups.find(where, self.features)
        words = f"at most {self.m} of {_listed(groups, found)}"
        return Reading(words, [(found, (), self.m)])


@dataclass(frozen=True, kw_only=True, repr=False)
class AtLeast(Rule):
    """#chosen among the features >= m."""

    m: int
    features: tuple[Feature, ...]

    def __repr__(self) -> str:
        return f"at_least({self.m}, {list(self.features)})"

    def read(self, where: str, groups: Grouping, correlations: Correlations | None) -> Reading:
        found = groups.find(where, self.features)
        if self.m > len(found):
            raise ValueError(
                f"{where}: at least {self.m} of {_listed(groups, found)} cannot be chosen, because "
                f"these are only {len(found)}; ask for fewer, or name more features"
            )
        words = f"at least {self.m} of {_listed(groups, found)}"
        return Reading(words, [((), found, -self.m)])


@dataclass(frozen=True, kw_only=True, repr=False)
class Implies(Rule):
    """A feature is chosen only with all of what it needs, or with any one of it."""

    feature: Feature
    needs: tuple[Feature, ...]
    any: bool = False

    def __repr__(self) -> str:
        end = ", any=True" if self.any else ""
        return f"implies({self.feature!r}, {list(self.needs)}{end})"

    def read(self, where: str, groups: Grouping, correlations: Correlations | None) -> Reading:
        (child,) = groups.find(where, (self.feature,))
        needs = groups.find(where, self.needs)
        listed = _listed(groups, needs, last="or" if self.any else "and")
        words = f"{groups.group_names[child]} only with {listed}"
        return Reading(words, list(_needing(child, needs, self.any)))


@dataclass(frozen=True, kw_only=True, repr=False)
class Hierarchy(Rule):
    """A product is chosen only with all (strong) or one (weak) of its parents."""

    kind: str
    parents: tuple[tuple[Feature, tuple[Feature, ...]], ...] | None = None

    def __repr__(self) -> str:
        if self.parents is None:
            return f"hierarchy({self.kind!r})"
        pairs = {child: list(parents) for child, parents in self.parents}
        return f"hierarchy({self.kind!r}, parents={pairs})"

    def read(self, where: str, groups: Grouping, correlations: Correlations | None) -> Reading:
        families = self._named(where, groups) if self.parents else self._from_names(where, groups)
        is_weak = self.kind == "weak"
        rows = dict.fromkeys(row for family in families for row in _needing(*family, is_weak))
        terms = len({plus for plus, _, _ in rows})
        children, others = ("terms", "parents") if self.parents else ("products", "factors")
        how_many = f"at least one of their {others}" if is_weak else f"all their {others}"
        words = f"{self.kind} hierarchy: {children} only with {how_many} ({counted(terms, 'term')})"
        return Reading(words, list(rows))

    def _named(self, where: str, groups: Grouping) -> Iterator[tuple[int, tuple[int, ...]]]:
        for child, parents in self.parents or ():
            (group,) = groups.find(where, (child,))
            yield group, groups.find(where, parents)

    def _from_names(self, where: str, groups: Grouping) -> list[tuple[int, tuple[int, ...]]]:
        if groups.names is None:
            raise ValueError(
                f"{where}: the features have no names to read products from; pass a data frame or "
                "feature_names, or give parents={child: [parents]}"
            )
        parents = parents_of(groups.names)
        if not any(parents):
            raise ValueError(
                f'{where}: no feature has the name of a product of others, such as "a b", "a^2" or '
                '"a:b"; give parents={child: [parents]}'
            )
        labels = groups.labels
        return [
            (int(labels[j]), tuple(sorted({int(labels[i]) for i in own})))
            for j, own in enumerate(parents)
            if own
        ]


@dataclass(frozen=True, kw_only=True, repr=False)
class MaxCorrelation(Rule):
    """No two chosen groups have features with |correlation| > limit."""

    limit: float

    def __repr__(self) -> str:
        return f"max_correlation({self.limit!r})"

    def read(self, where: str, groups: Grouping, correlations: Correlations | None) -> Reading:
        if correlations is None:
            raise ValueError(
                f"{where}: correlations are not known here; name the features, exclusive(...)"
            )
        size = np.abs(np.nan_to_num(correlations()))
        # Rounding may lift a correlation of one above a limit of one.
        i, j = np.nonzero(np.minimum(size, 1.0) > self.limit)
        m, labels = len(groups.group_names), groups.labels
        together = np.zeros((m, m), dtype=bool)
        together[labels[i], labels[j]] = True
        together |= together.T
        np.fill_diagonal(together, False)
        pairs = int(together.sum()) // 2
        words = f"no two features correlated above {self.limit:g} ({counted(pairs, 'pair')})"
        return Reading(words, [(clique, (), 1) for clique in _cliques(together)])


def _needing(
    child: int, needs: tuple[int, ...], is_any: bool
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], int]]:
    """Rows of "child only with needs"; what needs itself needs nothing more."""
    if not is_any:
        yield from (((child,), (need,), 0) for need in needs if need != child)
    elif child not in needs:
        yield (child,), needs, 0


def _cliques(adjacent: np.ndarray) -> Iterator[tuple[int, ...]]:
    """Sets of mutual neighbours that cover every edge: stronger rows than pairs, and fewer."""
    uncovered = np.triu(adjacent)
    for g in range(len(adjacent)):
        while uncovered[g].any():
            clique = [g, int(np.argmax(uncovered[g]))]
            common = adjacent[clique[0]] & adjacent[clique[1]]
            while common.any():
                clique.append(int(np.argmax(common)))
                common &= adjacent[clique[-1]]
            clique.sort()
            uncovered[np.ix_(clique, clique)] = False
            yield tuple(clique)


# Names that the words of a rule list.
_MOST_LISTED = 8


def _listed(groups: Grouping, found: tuple[int, ...], last: str | None = None) -> str:
    names = [groups.group_names[g] for g in found]
    if len(names) > _MOST_LISTED:
        return f"{', '.join(names[:_MOST_LISTED])}, ... ({len(names)})"
    if last and len(names) > 1:
        return f"{', '.join(names[:-1])} {last} {names[-1]}"
    return ", ".join(names)


def at_most(m: int, features: Any) -> AtMost:
    """At most m of these features are chosen.

    Parameters
    ----------
    m : int
        How many at most; 0 forbids all of them.
    features : list
        Column names, column indices or names of groups. A feature stands for its whole group, and
        groups are counted.

    Returns
    -------
    Rule
        One for the list `rules=`.

    Examples
    --------
    >>> from bestk import rules
    >>> rules.at_most(2, ["age", "height", "weight"])
    at_most(2, ['age', 'height', 'weight'])
    """
    return AtMost(m=require_count("at_most: m", m, least=0), features=_some("at_most", features))


def at_least(m: int, features: Any) -> AtLeast:
    """At least m of these features are chosen.

    Parameters
    ----------
    m : int
        How many at least.
    features : list
        Column names, column indices or names of groups. A feature stands for its whole group, and
        groups are counted.

    Returns
    -------
    Rule
        One for the list `rules=`.

    Examples
    --------
    >>> from bestk import rules
    >>> rules.at_least(1, ["height", "weight"])
    at_least(1, ['height', 'weight'])
    """
    return AtLeast(m=require_count("at_least: m", m, least=0), features=_some("at_least", features))


def exclusive(*features: Any) -> AtMost:
    """At most one of these features is chosen.

    Parameters
    ----------
    *features : str or int
        At least two column names, column indices or names of groups, or one list of them.

    Returns
    -------
    Rule
        One for the list `rules=`: ``at_most(1, features)``.

    Examples
    --------
    >>> from bestk import rules
    >>> rules.exclusive("height in cm", "height in inches")
    at_most(1, ['height in cm', 'height in inches'])
    """
    found = _some("exclusive", features[0] if len(features) == 1 else features)
    if len(found) < 2:
        raise ValueError(f"exclusive: {found[0]!r} alone excludes nothing; name at least two")
    return AtMost(m=1, features=found)


def implies(feature: Any, needs: Any, any: bool = False) -> Implies:
    """A feature is chosen only together with others.

    Parameters
    ----------
    feature : str or int
        A column name, a column index or the name of a group.
    needs : str, int or list
        What it needs, likewise.
    any : bool
        Whether any one of `needs` is enough. Without, all of them are needed.

    Returns
    -------
    Rule
        One for the list `rules=`.

    Examples
    --------
    >>> from bestk import rules
    >>> rules.implies("dose^2", "dose")
    implies('dose^2', ['dose'])
    >>> rules.implies("interest", ["loan", "mortgage"], any=True)
    implies('interest', ['loan', 'mortgage'], any=True)
    """
    if not isinstance(any, bool | np.bool):
        raise TypeError(
            f"implies: any must be True or False, got {any!r}; all that is needed is one list, "
            "needs=[...]"
        )
    child = _one("implies", "feature", feature)
    return Implies(feature=child, needs=_some("implies", needs, "needs"), any=bool(any))


def hierarchy(kind: str, parents: Any = None) -> Hierarchy:
    """Products are chosen only together with their factors.

    The parents of a product are the products with one factor less: ``x y`` and ``x^2`` for
    ``x^2 y``, and ``x`` for ``x^2``. Where these are not features, the largest of its divisors that
    are take their place.

    Parameters
    ----------
    kind : {"strong", "weak"}
        Whether a product needs all of its parents, or at least one.
    parents : dict or None
        {feature: its parents}, as column names, column indices or names of groups. By default they
        are read from the names of columns: ``a b``, ``a^2 b`` as scikit-learn's PolynomialFeatures
        and PySINDy write them, ``a:b``, ``C(x)[T.u]:b``, ``I(a ** 2)`` as formulas do. Only
        products of other columns count: without a column ``a``, ``a b`` is no product.

    Returns
    -------
    Rule
        One for the list `rules=`.

    Examples
    --------
    >>> from bestk import rules
    >>> rules.hierarchy("strong")
    hierarchy('strong')
    >>> rules.hierarchy("weak", parents={"area": ["length", "width"]})
    hierarchy('weak', parents={'area': ['length', 'width']})
    """
    require_choice("hierarchy: kind", kind, ("strong", "weak"))
    if parents is None:
        return Hierarchy(kind=kind)
    if not isinstance(parents, Mapping) or not parents:
        raise ValueError(
            f"hierarchy: parents must be {{feature: [its parents]}} with at least one feature, got "
            f"{parents!r}"
        )
    pairs = (
        (
            _one("hierarchy", "a key of parents", child),
            _some("hierarchy", own, f"parents[{child!r}]"),
        )
        for child, own in parents.items()
    )
    return Hierarchy(kind=kind, parents=tuple(pairs))


def max_correlation(limit: Any) -> MaxCorrelation:
    """No two chosen features are correlated by more than a limit.

    Parameters
    ----------
    limit : float
        Above 0 and at most 1. Two groups with a feature each whose correlation exceeds it, as an
        absolute value, are not chosen together. Features of the same group may be correlated.

    Returns
    -------
    Rule
        One for the list `rules=`.

    Examples
    --------
    >>> from bestk import rules
    >>> rules.max_correlation(0.8)
    max_correlation(0.8)
    """
    limit = require_share("max_correlation: limit", limit, such_as=0.8, or_all=True)
    return MaxCorrelation(limit=limit)


def _some(rule: str, features: Any, argument: str = "features") -> tuple[Feature, ...]:
    """One or many features, each once."""
    if isinstance(features, str | numbers.Number) or not isinstance(features, Iterable):
        features = [features]
    if isinstance(features, set | frozenset):  # in the same order in every process
        features = sorted(features, key=str)
    found = tuple(dict.fromkeys(_one(rule, argument, feature) for feature in features))
    if not found:
        raise ValueError(f"{rule}: {argument} is empty; name at least one feature")
    return found


def _one(rule: str, argument: str, feature: Any) -> Feature:
    if isinstance(feature, str):
        return str(feature)
    if isinstance(feature, bool | np.bool):
        raise TypeError(f"{rule}: {argument} is a mask; pass numpy.flatnonzero(mask) instead")
    if isinstance(feature, numbers.Integral):
        return int(feature)
    raise TypeError(
        f"{rule}: {argument} must name features, by column names, column indices or names of "
        f"groups, got {feature!r}"
    )
