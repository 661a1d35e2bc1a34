"""Which terms are products of which: monomials, read from names.

A term is a monomial, a product of powers of main effects. Its parents are its largest divisors
among the other terms: x y and x^2 for x^2 y, and x and y where these two are not there.
"""

import re
from collections import Counter
from collections.abc import Iterable
from math import prod

# "a b" of scikit-learn and PySINDy, "a:b" of formulas, "a*b" and "a×b" of people.
_TIMES = re.compile(r"\s*(?:[:×]|\*(?!\*))\s*|\s+")
_POWER = re.compile(r"\s*(?:\^|\*\*)\s*(\d{1,2})(?!\d)")
_STOP = re.compile(r"\s*(?:\^|\*\*|[:×*])\s*|\s+")
_AS_IS = re.compile(r"I\((.*)\)")  # "I(a ** 2)" of formulas
# Longer names are nobody's products, and to read them would take long.
_MOST_PIECES = 100

# Main effects in order, each as often as its power says.
Monomial = tuple[str, ...]


def begins_with_digit(name: str) -> bool:
    """Whether a number in front of the name needs a sign between them, as for "1450 nm"."""
    return name[:1].isdecimal()


def parents_of(names: tuple[str, ...]) -> list[tuple[int, ...]]:
    """For each feature, its parents: its largest divisors among the features, by their names."""
    monomials = monomials_of(names)
    place: dict[Monomial, int] = {}
    for j, monomial in enumerate(monomials):
        place.setdefault(monomial, j)
    return [tuple(sorted(place[m] for m in _largest(term, place))) for term in monomials]


def monomials_of(names: tuple[str, ...]) -> list[Monomial]:
    """Each name as a product of others, shortest first; what is no product is a main effect."""
    known = readings_of(names)
    for name, readings in known.items():
        if len(readings) > 1:
            ways = " and as ".join(" × ".join(map(repr, way)) for way in sorted(readings))
            raise ValueError(
                f"hierarchy: the name {name!r} can be read as {ways}; rename it, or give parents="
            )
    return [next(iter(known[name])) for name in names]


def readings_of(names: Iterable[str], mains: Iterable[str] = ()) -> dict[str, set[Monomial]]:
    """All products that each name can stand for, of shorter names and of these main effects."""
    known: dict[str, set[Monomial]] = {}
    factors = set(mains)
    for name in sorted(set(names), key=lambda name: (len(name), name)):
        known[name] = _readings(name, factors)
        if not known[name]:
            factors.add(name)
            known[name] = {(name,)}
    return known


def _readings(name: str, mains: set[str]) -> set[Monomial]:
    """All products of main effects that a name can stand for.

    Names of main effects may contain whatever separates factors, so nothing is split: every way to
    write the name as main effects, powers and separators is tried.
    """
    stops = [*(match.start() for match in _STOP.finditer(name)), len(name)]
    if len(stops) + 5 * name.count("I(") > _MOST_PIECES:
        return set()
    suffixes: dict[int, set[Monomial]] = {}

    def after(start: int) -> set[Monomial]:
        """Products that the name from this place on stands for."""
        if start not in suffixes:
            suffixes[start] = {
                tuple(sorted(factor * power + rest))
                for end in stops
                if end > start
                for factor in meanings(name[start:end])
                for power, rests in endings(end)
                for rest in rests
            }
        return suffixes[start]

    def endings(end: int) -> list[tuple[int, set[Monomial]]]:
        """(power, products that follow) of a factor that ends here."""
        found: list[tuple[int, set[Monomial]]] = []
        raised = _POWER.match(name, end)
        for power, place in ((1, end), *(((int(raised[1]), raised.end()),) if raised else ())):
            if place == len(name):
                found.append((power, {()}))
            elif times := _TIMES.match(name, place):
                found.append((power, after(times.end())))
        return found

    def meanings(token: str) -> set[Monomial]:
        if token in mains:
            return {(token,)}
        inner = _AS_IS.fullmatch(token)
        return _readings(inner[1], mains) if inner else set()

    return after(0)


def _largest(term: Monomial, place: dict[Monomial, int]) -> list[Monomial]:
    """Divisors of a term that are features, but for those that divide another of them."""
    found: list[Monomial] = []
    for divisor in sorted(_divisors(term, place), key=lambda m: (-len(m), m)):
        if not any(_divides(divisor, other) for other in found):
            found.append(divisor)
    return found


def _divisors(term: Monomial, place: dict[Monomial, int]) -> list[Monomial]:
    """Those of a term that are features, without itself."""
    powers = Counter(term)
    if prod(power + 1 for power in powers.values()) > len(place):
        return [m for m in place if len(m) < len(term) and _divides(m, term)]
    parts: list[Monomial] = [()]
    for factor in sorted(powers):
        parts = [m + (factor,) * power for m in parts for power in range(powers[factor] + 1)]
    return [m for m in parts if m in place and m != term]


def _divides(small: Monomial, large: Monomial) -> bool:
    return Counter(small) <= Counter(large)
