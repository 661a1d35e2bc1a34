"""Is a list of models complete, for these data? The three ways to ask."""

from collections.abc import Iterable
from typing import Any

from bestk.base.cluster.collections import blocks_of, is_collection
from bestk.results.completeness import CompletenessCertificate
from bestk.verification.allowance import Allowance
from bestk.verification.completeness.check import ListCheck, ListVerification
from bestk.verification.completeness.sources import Batches, Gram, Rows
from bestk.verification.evidence import checked_gram, checked_rows


def verify_list(
    certificate: CompletenessCertificate,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    n_threads: int | None = None,
    device: str = "cpu",
    max_seconds: float | None = None,
    allow_long: bool = False,
) -> ListVerification:
    """Does the claim of a list hold for these rows? Parameters as in `verify`."""
    if is_collection(X):
        rows = blocks_of(X, y, sample_weight).computed()
        return verify_list_batches(
            certificate, rows, n_threads=n_threads, device=device,
            max_seconds=max_seconds, allow_long=allow_long,
        )  # fmt: skip
    allowance = Allowance(max_seconds=max_seconds, allow_long=allow_long)
    source = Rows(*checked_rows(X, y, sample_weight))
    return ListCheck(certificate, source, allowance).run(n_threads, device)


def verify_list_batches(
    certificate: CompletenessCertificate,
    batches: Iterable[tuple[Any, ...]],
    *,
    n_threads: int | None = None,
    device: str = "cpu",
    max_seconds: float | None = None,
    allow_long: bool = False,
) -> ListVerification:
    """:func:`verify_list` for rows that come as blocks (X, y) or (X, y, weight), in one pass.

    Rows are kept as long as 256 MiB in double precision suffice, as in
    :func:`bestk.verification.verify_batches`.
    """
    allowance = Allowance(max_seconds=max_seconds, allow_long=allow_long)
    source = Batches(certificate, batches, allowance)
    return ListCheck(certificate, source, allowance).run(n_threads, device)


def verify_list_gram(
    certificate: CompletenessCertificate,
    G: Any,
    c: Any,
    yy: float,
    *,
    n_threads: int | None = None,
    device: str = "cpu",
    max_seconds: float | None = None,
    allow_long: bool = False,
) -> ListVerification:
    """:func:`verify_list` for a problem that was given as G = X'X, c = X'y and yy = y'y."""
    allowance = Allowance(max_seconds=max_seconds, allow_long=allow_long)
    source = Gram(*checked_gram(G, c, yy))
    return ListCheck(certificate, source, allowance).run(n_threads, device)
