"""Closing a node exactly: every remaining support is tried, none is fitted needlessly.

The gain of one, two or three more features follows from residual variances and moments, so the
last three levels are a scan (theory: pair-gain). The scan runs on A minus a small shift that covers
the error of the Gram matrix and of the elimination: what it passes over is *proven* not to be
better; what it lists ("hits") is fitted on the data. Nearly dependent beginnings, which a Gram
matrix cannot judge, are conditioned again through the QR factor of the data.
"""

from collections.abc import Callable, Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np
from scipy.linalg import qr, solve_triangular

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.devices.tasks import Device, Progress, Stopped, Task
from bestk.form.standard_form import StandardForm
from bestk.supports.margins import margins, rounding_of_gains
from bestk.supports.pieces import LimitReached, Pieces, Rest, Scans
from bestk.supports.prices import device_seconds, prices_of, scan_seconds
from bestk.supports.scan import (
    Conditions,
    condition,
    condition_all,
    gain_rows,
    residual_rows,
)

# What is left of y'y, below which the Gram matrix has lost the digits that tell models apart.
_NEARLY_PERFECT = 1e-6
# Residual norms below this (in units of the column) are rounding, even in the QR factor.
_RANK_TOLERANCE = 1e-13
# A residual column whose direction is less certain than this is not judged beside others.
_DOUBTFUL = 1e-4


class Shortlist(NamedTuple):
    """Every support that is not listed has an objective of at least ``floor``."""

    supports: list[np.ndarray]
    floor: float


def closing_cost(n_free: int, n_inside: int, r: int, *, device: bool = False) -> float:
    """Estimated seconds to close a node with `r` of `n_free` features to choose."""
    now = tuning()
    if r >= n_free or r == 0:
        return now.per_closing
    if n_free > now.most_free:
        last = now.per_last * n_free * (n_inside + 1)
        return now.per_closing + last if r == 1 else float("inf")
    seconds = scan_seconds(prices_of(now), n_free, n_inside, r)
    if device:
        seconds = min(seconds, device_seconds(prices_of(now), n_free, n_inside, r))
    return now.per_closing + seconds if seconds < 1e9 else float("inf")


def is_for_device(n_free: int, n_inside: int, r: int) -> bool:
    """Whether a device would try all supports of a node much sooner than a thread."""
    seconds = device_seconds(prices_of(tuning()), n_free, n_inside, r)
    return bool(r < n_free and np.isfinite(seconds))


class Remainder(NamedTuple):
    """What is left to choose at a node: r of the free features beside the inside ones."""

    inside: np.ndarray
    free: np.ndarray
    r: int


def hits(
    form: StandardForm,
    node: Remainder,
    value: float,
    workers: Workers,
    stop: Callable[[], bool] = lambda: False,
    *,
    most: int | None = None,
    copies_matter: bool = False,
) -> list[np.ndarray] | None:
    """Supports of a node that may have an objective below `value`; form indices.

    Every other support of the node is proven to be no better. None if there are more than `most`
    (tuning: ``most_hits``) hits, or if copies of a feature matter and there are some: the node must
    be branched instead.
    """
    if node.r == 1 and len(node.free) > tuning().most_free:
        return _hits_of_one(form, node.inside, node.free, value)
    search, here, names = _located(form, node, value, workers, stop, most, copies_matter)
    found = search.hits(*here)
    if found is not None and not most:
        found = search.screened(found)
    return found if found is None or names is None else [names[support] for support in found]


def hits_by_device(
    form: StandardForm,
    nodes: list[Remainder],
    value: float,
    device: Device,
    workers: Workers,
    stop: Callable[[], bool],
    progress: Progress,
    *,
    copies_matter: bool = False,
) -> list[list[np.ndarray] | None]:
    """The same for nodes that are cheap for a device. Raises DeviceFailed.

    None also where products cannot tell what is left of y. What is saved of the progress is that
    of the nodes that are in work: those before them are done anew.
    """
    found: list[list[np.ndarray] | None] = []
    for some in _of_bounded_size(nodes):
        located = [_located(form, node, value, workers, stop, None, copies_matter) for node in some]
        tasks = _tasks(located, workers)
        try:
            left = iter(device.remaining([task for task in tasks if task], stop, progress))
        except Stopped:
            raise LimitReached from None
        beginnings = [None if task is None else next(left) for task in tasks]

        def judged(one: tuple["_Located", np.ndarray | None]) -> list[np.ndarray] | None:
            (search, here, names), rows = one
            supports = None if rows is None else search.hits_behind(*here, rows)
            supports = None if supports is None else search.screened(supports)
            if supports is None or names is None:
                return supports
            return [names[support] for support in supports]

        found += workers.map(judged, list(zip(located, beginnings, strict=True)))
    return found


# Numbers that are sent to a device at a time.
_MOST_SENT = 2**26


def _of_bounded_size(nodes: list[Remainder]) -> Iterator[list[Remainder]]:
    part: list[Remainder] = []
    size = 0
    for node in nodes:
        size += len(node.free) ** 2
        if part and size > _MOST_SENT:
            yield part
            part, size = [], len(node.free) ** 2
        part.append(node)
    if part:
        yield part


def _tasks(located: list["_Located"], workers: Workers) -> list[Task | None]:
    """The questions for a device (theory: minor); None where there is no answer to them."""
    tasks: list[Task | None] = []
    for _, group in groupby(located, key=lambda one: id(one.search.form)):
        same = list(group)  # of wide data, every node has a form of its own
        pieces = [same[part] for part in workers.slices(len(same))]
        for some in workers.map(_tasks_of_one_form, pieces):
            tasks += some
    return tasks


def _tasks_of_one_form(located: list["_Located"]) -> list[Task | None]:
    """In one go: who prepares much for a device should not have to wait for others each time."""
    search = located[0].search
    form, nodes = search.form, [one.node for one in located]
    sizes = np.array([len(node.free) ** 2 for node in nodes])
    both = np.array([margins(form.eps, len(node.inside) + node.r) for node in nodes])
    inside, free = [node.inside for node in nodes], [node.free for node in nodes]
    conditions = Conditions(
        np.concatenate(inside), np.cumsum([len(one) for one in inside]),
        np.concatenate(free), np.cumsum([len(one) for one in free]),
        both[:, 0], _NEARLY_PERFECT if form.has_triangle else 0.0,
    )  # fmt: skip
    needed, matrices = 1.0 - search.value - both[:, 1], np.empty(sizes.sum())
    condition_all(form.A, form.c, conditions, needed, matrices)
    tasks: list[Task | None] = []
    for node, end, size, missing in zip(nodes, np.cumsum(sizes), sizes, needed, strict=True):
        M = matrices[end - size : end].reshape(len(node.free), -1)
        tasks.append(Task(M, node.r) if missing > 0.0 else None)
    return tasks


class _Located(NamedTuple):
    """The search at a node: in a form with a dense matrix, whose features have other `names`."""

    search: "Enumeration"
    node: Remainder
    names: np.ndarray | None


def _located(
    form: StandardForm,
    node: Remainder,
    value: float,
    workers: Workers,
    stop: Callable[[], bool],
    most: int | None = None,
    copies_matter: bool = False,
) -> _Located:
    features = np.concatenate([node.inside, node.free])
    here, places = form.around(features)
    # Within a box, copies of a feature add to each other.
    search = Enumeration(
        here, value, workers, stop, most or tuning().most_hits, copies_matter or form.is_boxed
    )
    size = len(node.inside)
    located = Remainder(places[:size], places[size:], node.r)
    return _Located(search, located, None if here is form else features)


def _hits_of_one(form, inside, free, value) -> list[np.ndarray] | None:
    """`hits` for one more feature: residual variances and moments, no other products."""
    k = len(inside) + 1
    shift, slack = margins(form.eps, k)
    try:
        factor = np.linalg.cholesky(form.matrix.submatrix(inside) - shift * np.eye(k - 1))
    except np.linalg.LinAlgError:
        return None
    rows = solve_triangular(factor, form.matrix.rows(inside)[:, free], lower=True)
    gains = solve_triangular(factor, form.c[inside], lower=True)
    variance = 1.0 - shift - (rows**2).sum(axis=0)
    moment = form.c[free] - gains @ rows
    needed = 1.0 - value - float(gains @ gains) - slack
    # A hit may be a false alarm; one too few would be a wrong proof.
    found = free[moment**2 >= (needed - slack) * np.maximum(variance, 0.0)]
    if len(found) > tuning().worth_fitting:
        return None
    return [np.append(inside, feature) for feature in found]


class Products(NamedTuple):
    """All that a scan needs of a form: plain data that can be sent anywhere."""

    A: np.ndarray
    c: np.ndarray
    eps: float
    value: float

    def conditioned(self, node: Remainder) -> tuple[float, Rest | None]:
        """What the inside features gain, and what is left to scan; None if products cannot tell."""
        inside, free, r = node
        if r == 0 or r >= len(free):
            return 0.0, None
        shift, slack = margins(self.eps, len(inside) + r)
        H, d = np.empty((len(free), len(free))), np.empty(len(free))
        gain = condition(self.A, self.c, inside, free, shift, H, d)
        needed = 1.0 - self.value - gain - slack
        return gain, None if gain < 0.0 else Rest(H, d, needed, r)


class Enumeration(NamedTuple):
    """The search for supports of a form below a value; what it does not change on its way down."""

    form: StandardForm
    value: float
    workers: Workers
    stop: Callable[[], bool]
    most: int
    copies_matter: bool

    def screened(self, supports: list[np.ndarray]) -> list[np.ndarray] | None:
        """The supports that a look at the data, instead of their products, does not rule out."""
        # The factor of the data costs as much as this many fits.
        few = max(tuning().few_hits, (self.form.p // max([1, *map(len, supports)])) ** 2)
        triangle = self.form.triangle if len(supports) > few else None
        if triangle is None:
            return supports if len(supports) <= tuning().worth_fitting else None
        R, z = triangle
        columns = np.ascontiguousarray(R.T)
        kept: list[np.ndarray] = []
        for rows in by_length(supports):
            values = np.empty(len(rows))
            residual_rows(columns, z, rows, values)
            kept += list(rows[values < self.value])
        return kept if len(kept) <= tuning().worth_fitting else None

    def hits(self, inside: np.ndarray, free: np.ndarray, r: int) -> list[np.ndarray] | None:
        gain, rest = self.products.conditioned(Remainder(inside, free, r))
        pieces = None if rest is None else Scans(self.workers, self.stop, self.most).pieces(rest)
        return self.hits_of_pieces(inside, free, r, gain, pieces)

    @property
    def products(self) -> "Products":
        return Products(self.form.A, self.form.c, self.form.eps, self.value)

    def hits_of_pieces(
        self, inside: np.ndarray, free: np.ndarray, r: int, gain: float, pieces: Pieces | None
    ) -> list[np.ndarray] | None:
        """Hits of a node whose inside features gain so much; pieces may be scanned elsewhere."""
        if r == 0 or r >= len(free):
            return [np.concatenate([inside, free[: min(r, len(free))]])]
        nearly_perfect = 1.0 - gain < _NEARLY_PERFECT and self.form.has_triangle
        if pieces is None or nearly_perfect:
            return self._hits_from_data(inside, free, r)
        return self._hits_of_scan(pieces, inside, free, r)

    def hits_behind(
        self, inside: np.ndarray, free: np.ndarray, r: int, beginnings: np.ndarray
    ) -> list[np.ndarray] | None:
        """Hits among the supports that begin so, as a device could not rule them out."""
        supports: list[np.ndarray] = []
        for row in beginnings:
            if self.stop():
                raise LimitReached
            chosen = row[row >= 0]
            extended = np.concatenate([inside, free[chosen]])
            found = self.hits(extended, free[chosen.max(initial=-1) + 1 :], r - len(chosen))
            if found is None or len(supports) + len(found) > self.most:
                return None
            supports += found
        return supports

    def _hits_of_scan(self, pieces: Pieces, inside, free, r) -> list[np.ndarray] | None:
        """Beginnings that a scan could not judge are looked at again with more accuracy."""
        supports: list[np.ndarray] = []
        for prefix, rows in pieces:
            if rows is None or len(supports) + len(rows) > self.most:
                return None
            for row in rows:
                chosen = [*prefix, *row[row >= 0]]
                extended = np.concatenate([inside, free[chosen]])
                missing = r - len(chosen)
                later = free[chosen[-1] + 1 :]
                if missing == 0:
                    supports.append(extended)
                elif missing <= len(later):
                    deeper = self._hits_from_data(extended, later, missing)
                    if deeper is None or len(supports) + len(deeper) > self.most:
                        return None
                    supports += deeper
        return supports

    def _hits_from_data(self, inside, free, r) -> list[np.ndarray] | None:
        """`hits` after conditioning on near-dependent features through the data, not the products.

        Residual columns are scaled to unit length again, so angles the Gram matrix has lost count
        fully. Features that depend on the inside ones up to rounding add nothing and are left out.
        """
        form = self.form
        R, z = form.triangle if form.triangle is not None else _root_of_gram(form)
        residual, error = _residuals(R[:, inside], np.column_stack([R[:, free], z]))
        residual, z = residual[:, :-1], residual[:, -1]
        norm, left = np.linalg.norm(residual, axis=0), float(z @ z)
        is_live = norm > _RANK_TOLERANCE * np.sqrt(len(R))
        form.dependent.update(form.features[free[~is_live]].tolist())
        live = np.flatnonzero(is_live)
        if self.copies_matter and len(live) < len(free):
            return None
        r = min(r, len(live))
        if r == len(live):
            return [np.concatenate([inside, free[live]])]
        # The least certain come first: what begins with one of them is looked at on its own.
        relative = error[live] / norm[live]
        order = np.argsort(-relative, kind="stable")
        free, relative, live = free[live[order]], relative[order], live[order]
        doubtful = relative > _DOUBTFUL
        k = len(inside) + r
        eps = (len(R) + 12) * UNIT_ROUNDOFF + 2.0 * relative[~doubtful].max(initial=0.0)
        columns = residual[:, live] / norm[live]
        H = columns.T @ columns
        H[np.diag_indices(len(H))] -= 2.0 * k * (eps + 4 * (k + 4) * UNIT_ROUNDOFF)
        H[doubtful, doubtful] = -1.0
        needed = left * (1.0 - 2.0 * eps - rounding_of_gains(k)) - self.value
        needed -= error[-1] * (2.0 * np.sqrt(left) + error[-1])
        rest = Rest(H, columns.T @ z, needed, r)
        pieces = Scans(self.workers, self.stop, self.most).pieces(rest)
        return self._hits_of_scan(pieces, inside, free, r)


def by_length(supports: list[np.ndarray]) -> list[np.ndarray]:
    """Supports as rows of arrays, one array for each number of features."""
    lengths = sorted({len(support) for support in supports})
    return [np.array([s for s in supports if len(s) == length]) for length in lengths]


def may_beat(form: StandardForm, supports: np.ndarray, value: float) -> np.ndarray:
    """Which supports (rows of form indices) are not proven to have an objective above `value`?"""
    shift, slack = margins(form.eps, supports.shape[1])
    gains = np.empty(len(supports))
    form, supports = form.around(supports)
    gain_rows(form.A, form.c, shift, supports, gains)
    return 1.0 - gains - slack < value


def _residuals(inside, columns):
    """What is left of columns beside the span of others, and how far rounding may have moved it.

    All columns are known to a few roundings. Where a column is a sum of large multiples of nearly
    dependent others, their errors come in with these multiples.
    """
    basis, triangle, _ = qr(inside, mode="economic", pivoting=True)
    size = np.abs(np.diag(triangle))
    rank = np.count_nonzero(size > _RANK_TOLERANCE * size.max(initial=0.0))  # dependent ones go
    basis, triangle = basis[:, :rank], triangle[:rank, :rank]
    first = basis.T @ columns
    residual = columns - basis @ first
    residual -= basis @ (basis.T @ residual)  # what rounding left of the first pass
    multiples = np.abs(solve_triangular(triangle, first)).sum(axis=0) if rank else 0.0
    error = (len(inside) + 12) * UNIT_ROUNDOFF * (1.0 + multiples)
    return residual, np.broadcast_to(error, residual.shape[1])


def _root_of_gram(form):
    """(R, z) like form.triangle from the Gram matrix alone: its numerical rank decides."""
    values, vectors = np.linalg.eigh(form.A)
    keep = values > 4 * form.p * (form.eps + UNIT_ROUNDOFF)
    root = np.sqrt(values[keep])
    z = (vectors[:, keep].T @ form.c) / root
    R = np.vstack([root[:, None] * vectors[:, keep].T, np.zeros(form.p)])
    return R, np.append(z, np.sqrt(max(0.0, 1.0 - z @ z)))
