"""Every choice of a cell, a support each: the least of what is proven for them.

f over a choice is no smaller than f over one that contains it, constraints or not, so only choices
that are part of no other choice of the cell are tried. Without constraints f of a support is a
bound with them, too; they are asked where it is not enough.

Where all free groups of a cell are single features, a scan lists the supports of full size that may
be below the target, as if there were no rules. Every choice below it is part of one of these.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bestk.verification.choices.constrained import ConstrainedFits, Exactly
from bestk.verification.choices.constraints import Constraints
from bestk.verification.choices.coordinates import Coordinates
from bestk.verification.choices.rules import Rules, close, list_choices
from bestk.verification.limits import count_of, limits
from bestk.verification.numerics.choice import FREE, IN, OUT
from bestk.verification.supports.enumeration import Enumeration, Unjudged
from bestk.verification.supports.single import Judge
from bestk.verification.threads import shared


class _Listed(NamedTuple):
    """Choices of some cells: ``cell`` of each, its support in a row that ends at ``ends``.

    ``lower`` and ``upper`` are the sides of the constraints.
    """

    cell: np.ndarray
    ends: np.ndarray
    places: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


class _Part(NamedTuple):
    """Supports of one size, rows of ascending columns of C; as many of them live in each."""

    which: np.ndarray
    supports: np.ndarray
    n_live: int


class ChoiceEnumeration:
    """Tries the choices of cells, all of which are closed under the rules."""

    def __init__(
        self,
        rules: Rules,
        coordinates: Coordinates,
        constraints: Constraints,
        judge: Judge,
        exactly: Exactly,
        target: float,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        self.target, self.owner = target, coordinates.owner
        self.scans = Enumeration(coordinates.evidence, target, judge, pool)
        self.rules, self.constraints, self.judge, self.pool = rules, constraints, judge, pool
        self.fits = ConstrainedFits(coordinates.evidence, constraints, judge.enough, exactly)
        n_groups, self.n_live = len(rules.effect), len(coordinates.kept)
        is_kept = np.append(coordinates.kept, np.ones(len(constraints.idle), dtype=bool))
        members = np.flatnonzero(is_kept)
        members = members[np.argsort(constraints.owner[members], kind="stable")]
        sizes = np.bincount(constraints.owner[members], minlength=n_groups)
        self.starts, self.members = np.concatenate([[0], np.cumsum(sizes)]), members
        self.n_supports = self.n_listed = self.n_steps = 0

    def values(self, cells: np.ndarray) -> list[Any]:
        """Lower bounds on f over each cell (row), inf without a choice; Unjudged beyond limits."""
        values: list[Any] = [np.inf] * len(cells)
        waiting: list[_Listed] = []
        for i, cell in enumerate(cells):
            try:
                free = self._scannable(cell)
                if free is None:
                    waiting.append(self._listed(i, cell))
                else:
                    values[i] = self.target
                    waiting += [self._listed(i, part) for part in self._parts_of(cell, free)]
            except Unjudged as reason:
                values[i] = reason
                continue
            count = sum(part.places.size for part in waiting)
            if count > limits().stacked_entries:
                self._take(waiting, values)
                waiting = []
        self._take(waiting, values)
        return values

    def _scannable(self, cell: np.ndarray) -> np.ndarray | None:
        """The free features of a cell with many choices, all of them groups of their own."""
        free = np.flatnonzero(cell == FREE)
        single = np.diff(self.starts)[free] == 1
        places = self.members[self.starts[free]] if single.all() else self.members[:0]
        r = self._room(cell)
        if self.target <= 0.0 or not 0 < r < len(places) or (places >= self.n_live).any():
            return None
        few = count_of(len(places), r, limits().listed_choices) < inf
        return None if few else np.sort(places)

    def _room(self, cell: np.ndarray) -> int:
        """How many more groups may be chosen."""
        counted = self.rules.effect[:, -1] > 0
        return int(self.rules.limits[-1]) - int(np.count_nonzero((cell == IN) & counted))

    def _parts_of(self, cell: np.ndarray, free: np.ndarray) -> list[np.ndarray]:
        """Smaller cells that have every choice below the target."""
        r, inside = self._room(cell), np.flatnonzero((cell == IN)[self.owner])
        inside = inside[np.isin(inside, self.members)]
        count = count_of(len(free), r)
        if count == inf:
            raise Unjudged(f"it has more than {limits().supports:.0e} supports, too many to try")
        self.n_supports += int(count)
        parts = []
        for support in self.scans.hits(inside, free, r):
            part = np.where(cell == FREE, OUT, cell).astype(np.int8)
            part[self.owner[np.setdiff1d(support, inside)]] = FREE
            if close(self.rules, part):
                parts.append(part)
        return parts

    def _listed(self, i: int, cell: np.ndarray) -> _Listed:
        self.scans.evidence.allowance.check()
        most = limits().choices
        left, steps_left = most - self.n_listed, most * limits().steps_per_choice - self.n_steps
        room = max(1, min(self._room(cell), int(np.count_nonzero(cell == FREE))))
        left = min(left, limits().choice_entries // room)
        chosen, count, steps = list_choices(self.rules, cell, left, steps_left)
        self.n_steps += steps
        if count < 0:
            raise self._too_many
        self.n_listed += count
        self.n_supports += count
        inside = np.flatnonzero(cell == IN)
        ranges = self.constraints.ranges(inside, chosen)
        chosen = chosen[ranges.feasible]
        ends = np.cumsum(_sizes(self.starts, inside, chosen))
        n_entries = int(ends[-1]) if len(ends) else 0
        if n_entries > limits().choice_entries:
            raise self._too_many
        places = np.empty(n_entries, dtype=np.int64)
        _fill(self.starts, self.members, inside, chosen, places)
        owner = np.full(len(chosen), i)
        sides = ranges.lower[ranges.feasible], ranges.upper[ranges.feasible]
        return _Listed(owner, ends, places, *sides)

    @property
    def _too_many(self) -> Unjudged:
        return Unjudged(
            f"all enumerations have more than {limits().choices} choices, or these have more "
            f"features than fit into memory"
        )

    def _take(self, waiting: list[_Listed], values: list[Any]) -> None:
        """Bound all that wait; supports of one size go together, whatever their cells."""
        if not waiting:
            return
        sizes = np.concatenate([np.diff(part.ends, prepend=0) for part in waiting])
        cell, places, lower, upper = (
            np.concatenate([getattr(part, name) for part in waiting])
            for name in ("cell", "places", "lower", "upper")
        )
        parts = self._parts(sizes, places)

        def one(part: _Part) -> np.ndarray:
            return self._bounds(part, lower[part.which], upper[part.which])

        for part, found in zip(parts, shared(self.pool, one, parts), strict=True):
            for i, value in zip(cell[part.which].tolist(), found.tolist(), strict=True):
                if not isinstance(values[i], Unjudged):
                    values[i] = min(values[i], value)

    def _parts(self, sizes: np.ndarray, places: np.ndarray) -> list[_Part]:
        parts, starts = [], np.cumsum(sizes) - sizes
        for size in np.unique(sizes).tolist():
            which = np.flatnonzero(sizes == size)
            supports = np.sort(places[starts[which][:, None] + np.arange(size)], axis=1)
            live = (supports < self.n_live).sum(axis=1)
            step = max(1, limits().stacked_entries // (8 * (size**2 + 1)))
            for n_live in np.unique(live).tolist():
                same = np.flatnonzero(live == n_live)
                for first, last in pairwise([*range(0, len(same), step), len(same)]):
                    own = same[first:last]
                    parts.append(_Part(which[own], supports[own], n_live))
        return parts

    def _bounds(self, part: _Part, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Lower bounds on f over each support: in bulk, one by one where that is too little."""
        live = part.supports[:, : part.n_live]
        supports = part.supports if self.constraints.are_charged else live
        enough, values = self.judge.enough, self.judge.quick(live)
        short = np.flatnonzero(values < enough)
        if len(self.constraints) and len(short):
            found = self.fits.quick(supports[short], lower[short], upper[short])
            values[short] = np.maximum(values[short], found)
        for i in np.flatnonzero(values < enough):
            if len(self.constraints):
                values[i] = max(values[i], self.fits.closer(supports[i], lower[i], upper[i]))
            if values[i] < enough:
                values[i] = max(values[i], self.judge.closer(live[i]))
            if values[i] < enough and len(self.constraints):
                values[i] = max(values[i], self.fits.exact(part.supports[i]))
        return np.maximum(values, 0.0)


@njit(cache=True, nogil=True)
def _sizes(starts, inside, chosen):
    """The number of live features of each choice."""
    shared_size = 0
    for g in inside:
        shared_size += starts[g + 1] - starts[g]
    sizes = np.full(len(chosen), shared_size, np.int64)
    for i in range(len(chosen)):
        for g in chosen[i]:
            if g >= 0:
                sizes[i] += starts[g + 1] - starts[g]
    return sizes


@njit(cache=True, nogil=True)
def _fill(starts, members, inside, chosen, places):
    """The live features of each choice, choices end to end."""
    at = 0
    for i in range(len(chosen)):
        for g in inside:
            for e in range(starts[g], starts[g + 1]):
                places[at] = members[e]
                at += 1
        for g in chosen[i]:
            if g >= 0:
                for e in range(starts[g], starts[g + 1]):
                    places[at] = members[e]
                    at += 1
