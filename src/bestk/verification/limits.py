"""How much memory and time a verification takes at a time: one place, a reason for each number.

None of them decides what is proven, except that a proof beyond a limit is refused. What the
rounding analysis rests on stands beside it.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The numbers in use; :func:`limits` returns them, :func:`limited` changes them for a while."""

    kept_bytes: int = 256 * 2**20
    """Rows that come in batches are kept up to this size; wide ones always, products being more."""
    one_thread_features: int = 200
    """Features up to which BLAS sums up batches on one thread: more would wait for each other."""
    fewest_wide: int = 200
    """Features from which on columns may be used instead of products."""
    wide_from: float = 1.5
    """Features per row of data from which on they are."""
    wide_entries: int = 1 << 20
    """Entries of wide data that are worked on at a time."""
    formed_features: int = 5000
    """Features for which products of wide data are formed: 200 MB."""
    formed_share: float = 4.0
    """They are also formed if they have at most this many times the numbers of the data."""
    gathered_entries: int = 1 << 20
    """Entries of columns that are gathered at a time."""
    gains_entries: int = 1 << 23
    """Gains of nodes that are in memory at a time."""
    gains_features: int = 2048
    """Features whose gains are computed at a time: in cache."""
    nodes: int = 1 << 15
    """Nodes whose bounds, and nodes whose enumerations, wait for their turn together, at most."""
    waiting_bytes: int = 1 << 26
    """Bytes of the cells of either."""
    tasks: int = 1024
    """Bounds of nodes of one split that are computed together: one product serves them all."""
    looped_features: int = 200
    """Features of a split, or of a cell, for which a compiled loop is faster than many calls."""
    part: int = 512
    """Nodes of small splits that one thread takes at a time: some milliseconds."""
    failures: int = 20
    """Reasons that are listed: a broken proof may have thousands."""
    stacked_entries: int = 1 << 21
    """Entries of small matrices that are factored together."""
    hits: int = 400_000
    """Supports that one enumeration may leave to be judged one by one."""
    supports: float = 1e15
    """Supports that are tried at all: a forged proof may ask for more."""
    forecast_seconds: float = 3600.0
    """Seconds that a proof may be forecast to take unless users allow more: most take minutes."""
    parts: int = 2_000_000
    """Parts of the largest models of a list that are looked at: sets of features in memory."""
    listed_choices: int = 200
    """Choices of a cell from which on single features are scanned instead of listed."""
    choices: int = 2_000_000
    """Choices of groups that all enumerations of one proof may list, a support each."""
    rule_entries: int = 1 << 29
    """Pairs of a rule and a group, 2 GB: forged proofs may have millions of rules."""
    choice_entries: int = 1 << 26
    """Groups, and features, of the choices that one enumeration lists: 512 MB of either."""
    steps_per_choice: int = 32
    """Steps for each of them that listing may take: rules may leave many that come to nothing."""
    factored_multiplies: float = 1e9
    """Work up to which all columns are factored, or projected, to judge nearly dependent ones."""
    listed_features: int = 2000
    """Of more free features the last one is found without the products among them."""
    device_supports: float = 1e8
    """Supports of a cell that is worth asking a device, if there is one."""
    thread_supports: float = 5e6
    """Supports of a cell that is worth all threads, and of smaller ones that share one."""
    exact_fit: float = 2e6
    """Products of entries for which one support is fitted in rational numbers: a second."""
    exact_fits: float = 1e8
    """The same for all such supports together: a minute."""
    exact_features: int = 40
    """Features of a verification in rational numbers."""
    exact_entries: int = 50_000
    """Entries of X of a verification in rational numbers."""
    exact_supports: int = 200_000
    """Supports that are tried in rational numbers."""
    exact_patterns: int = 4**7
    """Patterns of coefficients at their bounds that are tried for one support."""


_current = Limits()


def limits() -> Limits:
    """The limits in use."""
    return _current


@contextmanager
def limited(**changes: Any) -> Iterator[Limits]:
    """Other limits inside the block, for all threads: to force rare paths in tests."""
    global _current
    before = _current
    _current = replace(before, **changes)
    try:
        yield _current
    finally:
        _current = before


def count_of(m: int, r: int, most: float | None = None) -> int | float:
    """How many sets of r out of m; infinity for more than `most`, by default all that are tried.

    Of thousands of features such a number has thousands of digits, and forged proofs have many.
    """
    most, count = limits().supports if most is None else most, 1
    for i in range(min(r, m - r)):
        count = count * (m - i) // (i + 1)
        if count > most:
            return math.inf
    return count if 0 <= r <= m else 0
