"""How long a verification will take, said beforehand where it is long."""

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import numpy as np

from bestk.base.validation import counted
from bestk.results.certificate import Certificate
from bestk.verification.limits import count_of, limits

# Supports that a core, and a large device, try a second.
_PER_CORE, _PER_DEVICE = 2.5e9, 5e11
# Multiplications of a core, and nodes (over features, over groups) in a second.
_MULTIPLIES, _NODES, _GROUP_NODES = 2e9, 1e6, 1e4
# Seconds for each entry of the rules, at a node or a choice; for each row and free group there.
_PER_ENTRY, _PER_ROW = 1e-8, 1e-9
# Seconds that nobody has to be told of.
_SHORT = 60.0


class Work(NamedTuple):
    """What a proof asks for: supports to try, multiplications, and what is done one by one."""

    supports: float = 0.0
    multiplies: float = 0.0
    node_seconds: float = 0.0

    def joined(self, other: "Work") -> "Work":
        return Work(*(a + b for a, b in zip(self, other, strict=True)))

    def seconds(self, n_threads: int, has_device: bool = False) -> float:
        tried = self.supports / (_PER_DEVICE if has_device else _PER_CORE * n_threads)
        return tried + self.multiplies / _MULTIPLIES / n_threads + self.node_seconds

    def __str__(self) -> str:
        rest = f"{in_words(self.node_seconds)} for its nodes, rules and models"
        return f"{self.supports:.2g} supports, {self.multiplies:.2g} multiplications and {rest}"


def work_of(certificate: Certificate, n_rows: int | None = None) -> Work:
    """About; `n_rows` where the matrix is known by the columns of wide data."""
    tree, structure = certificate.tree, certificate.structure
    split = np.asarray(tree.split)
    used = np.bincount(split[split >= 0], minlength=len(certificate.splits)).astype(float)
    sizes = np.array([len(one.features) for one in certificate.splits], dtype=float)
    boxes = np.array([len(one.lower) > 0 for one in certificate.splits], dtype=float)
    other = sizes if n_rows is None else np.minimum(sizes, n_rows)
    proving = sizes * sizes * other if n_rows is None else sizes * other
    multiplies = float((used * sizes * other).sum())
    multiplies += float(((used > 0) * proving * (1.0 / 3.0 + 2.0 * boxes)).sum())
    if structure is not None:
        return _work_of_choices(certificate, multiplies, int(used.sum()))
    return Work(float(n_supports(certificate)), multiplies, len(tree) / _NODES)


def _work_of_choices(certificate: Certificate, multiplies: float, n_bounds: int) -> Work:
    """With a structure: rules are looked at in every node, and for every choice that is listed.

    Whole groups are listed, up to a limit; single features only where a scan is not worth it.
    """
    structure, p = certificate.structure, len(certificate.coef)
    assert structure is not None
    rows, is_listed = structure.rows, structure.has_groups or certificate.lower_bound <= 0.0
    entries = sum(len(row.plus) + len(row.minus) for row in rows) + len(rows) + structure.n_groups
    most = limits().choices if is_listed else limits().listed_choices
    listed, looked_at, tried = 0.0, 0.0, 0.0
    for free, count, n_cells in _cells_of(certificate):
        n_choices = n_cells * min(count, most)
        listed += n_choices
        looked_at += n_choices * (_PER_ENTRY * entries + _PER_ROW * free * len(rows))
        tried += 0.0 if structure.has_groups or count == inf else n_cells * count
    share = min(1.0, limits().choices / max(listed, 1.0))
    if structure.has_groups:  # a fit each
        chosen = certificate.k + len(structure.groups_of(certificate.given))
        size = min(p, chosen * p / structure.n_groups)
        multiplies += share * listed * (size**3 + 1e5)
    multiplies += float(n_bounds * len(structure.matrix) * p)
    nodes = len(certificate.tree) * (1.0 / _GROUP_NODES + _PER_ENTRY * entries)
    return Work(tried, multiplies, nodes + share * looked_at)


def n_supports(certificate: Certificate) -> int:
    """Supports that have to be tried one by one, about: copies of features are not known here.

    With a structure, choices of groups, as if there were no rules. Cells with too many are refused
    at once.
    """
    return sum(int(n) * n_cells for _, n, n_cells in _cells_of(certificate) if n < inf)


def _cells_of(certificate: Certificate) -> Iterator[tuple[int, int | float, int]]:
    """(features that are free, supports, how many such cells) of the cells that are tried."""
    tree, structure = certificate.tree, certificate.structure

    def count(features: np.ndarray) -> int:
        return len(features if structure is None else structure.groups_of(features))

    m = len(certificate.coef) if structure is None else structure.n_groups
    n_in, n_out = np.zeros(len(tree), dtype=np.int64), np.zeros(len(tree), dtype=np.int64)
    n_in[0], n_out[0] = count(certificate.given), count(certificate.exclude)
    more_in = np.diff(tree.in_ends, prepend=0)
    more_out = np.diff(tree.out_ends, prepend=0)
    for node, parent in enumerate(tree.parent.tolist()):
        if parent >= 0:
            branched, inside = tree.feature[node] >= 0, bool(tree.inside[node])
            n_in[node] = n_in[parent] + (branched and inside)
            n_out[node] = n_out[parent] + (branched and not inside)
        n_in[node] += more_in[node]
        n_out[node] += more_out[node]
    tried = np.flatnonzero(tree.enumerated)
    free = m - n_in[tried] - n_out[tried]
    r = np.minimum(certificate.k + count(certificate.free) - n_in[tried], free)
    pairs, counts = np.unique(np.column_stack([free, r]), axis=0, return_counts=True)
    for (size, r), n_cells in zip(pairs.tolist(), counts.tolist(), strict=True):
        yield size, count_of(size, r), n_cells


def forecast(certificate: Certificate, n_threads: int, n_rows: int | None = None) -> str | None:
    """What to expect without a device, in words; None if it takes no time to speak of."""
    work = work_of(certificate, n_rows)
    seconds = work.seconds(n_threads)
    if seconds < _SHORT:
        return None
    threads = counted(n_threads, "thread")
    if work.supports / _PER_CORE / n_threads < 0.5 * seconds:
        return f"this proof asks for {work}: about {in_words(seconds)} on {threads}"
    return (
        f"{work.supports:.1e} supports have to be tried one by one: about {in_words(seconds)} on "
        f"{threads}, and {in_words(work.seconds(n_threads, True))} on a large GPU (device='cuda')"
    )


def in_words(seconds: float) -> str:
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    if seconds < 0.95:
        return f"{seconds:.1g} seconds"
    return "1 second" if seconds < 1.5 else f"{seconds:.0f} seconds"
