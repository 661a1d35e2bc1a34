"""Enumerations by the workers of a cluster: some nodes in a call, or a part of a long one."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from bestk.base.cluster.calls import Call
from bestk.base.threads import Workers
from bestk.base.tuning import tuning
from bestk.form.standard_form import StandardForm
from bestk.supports.enumeration import Enumeration, Products, Remainder, closing_cost, hits
from bestk.supports.pieces import LimitReached, Piece, Scans


def hits_on_cluster(
    form: StandardForm,
    nodes: list[Remainder],
    value: float,
    workers: Workers,
    stop: Callable[[], bool],
    *,
    copies_matter: bool = False,
) -> Iterator[list[np.ndarray] | None]:
    """`hits` of each node of a dense form. Only scans leave this process; the data do not."""
    assert workers.cluster is not None
    copies_matter = copies_matter or form.is_boxed
    search = Enumeration(form, value, workers, stop, tuning().most_hits, copies_matter)
    calls, shared = workers.cluster.calls("scan"), workers.cluster.share(search.products)
    groups, begun = _groups(nodes), deque[list[Remainder]]()
    try:
        while True:
            ahead = int(tuning().calls_per_thread * workers.cluster.n_threads) - len(calls)
            for group in islice(groups, max(ahead, 0)):
                begun.append(group)
                if not _is_long(group):
                    calls.put(Call(scan_nodes, group, search.most), shared)
            if not begun:
                return
            group = begun.popleft()
            if _is_long(group):
                yield hits(form, group[0], value, workers, stop, copies_matter=copies_matter)
                continue
            found = calls.get(stop)
            if found is None:
                raise LimitReached
            for node, (gain, pieces) in zip(group, found[0], strict=True):
                listed = None if pieces is None else iter(pieces)
                supports = search.hits_of_pieces(*node, gain, listed)
                yield None if supports is None else search.screened(supports)
    finally:
        calls.end()


def scan_nodes(
    products: Products, nodes: list[Remainder], most: int
) -> list[tuple[float, list[Piece] | None]]:
    """What the inside features of each node gain, and its pieces, on one thread: a pure function.

    None where products cannot tell what they gain.
    """
    scans, found = Scans(Workers(1), lambda: False, most), []
    for node in nodes:
        gain, rest = products.conditioned(node)
        found.append((gain, None if rest is None else list(scans.pieces(rest))))
    return found


def _groups(nodes: list[Remainder]) -> Iterator[list[Remainder]]:
    """Neighbours that take about a second together; whatever takes longer is alone."""
    group: list[Remainder] = []
    total = 0.0
    for node in nodes:
        seconds = _seconds(node)
        if group and total + seconds > tuning().call_seconds:
            yield group
            group, total = [], 0.0
        group.append(node)
        total += seconds
    if group:
        yield group


def _is_long(group: list[Remainder]) -> bool:
    """Whether this is a node that several workers scan, or none has to."""
    return len(group) == 1 and _seconds(group[0]) > tuning().cluster_scan


def _seconds(node: Remainder) -> float:
    return closing_cost(len(node.free), len(node.inside), node.r)
