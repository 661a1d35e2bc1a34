"""How long a verification will take, said beforehand where it is long."""

from math import comb

import numpy as np

from bestk.results.certificate import Certificate
from bestk.verification.limits import limits

# Supports that a core, and a large device, try a second.
_PER_CORE, _PER_DEVICE = 2.5e9, 5e11
# Seconds that nobody has to be told of.
_SHORT = 60.0


def n_supports(certificate: Certificate) -> int:
    """Supports that have to be tried one by one, about: copies of features are not known here."""
    tree = certificate.tree
    n_in, n_out = np.zeros(len(tree), dtype=np.int64), np.zeros(len(tree), dtype=np.int64)
    n_in[0], n_out[0] = len(certificate.given), len(certificate.exclude)
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
    free = len(certificate.coef) - n_in[tried] - n_out[tried]
    r = np.minimum(certificate.k + len(certificate.free) - n_in[tried], free)
    pairs, counts = np.unique(np.column_stack([free, r]), axis=0, return_counts=True)
    return sum(
        comb(m, size) * count
        for (m, size), count in zip(pairs.tolist(), counts.tolist(), strict=True)
        if 0 <= size <= m and comb(m, size) <= limits().supports  # more are refused at once
    )


def forecast(certificate: Certificate, n_threads: int) -> str | None:
    """What to expect without a device, in words; None if it takes no time to speak of."""
    supports = n_supports(certificate)
    seconds = supports / _PER_CORE / n_threads
    if seconds < _SHORT:
        return None
    threads = "1 thread" if n_threads == 1 else f"{n_threads} threads"
    return (
        f"{supports:.1e} supports have to be tried one by one: about {in_words(seconds)} on "
        f"{threads}, and {in_words(supports / _PER_DEVICE)} on a large GPU (device='cuda')"
    )


def in_words(seconds: float) -> str:
    for size, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(seconds, 1.0):.0f} seconds"
