"""bestk beside a certified peer: same data, from (X, y) to the paper's gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import geometric_mean

import numpy as np

from bestk.datasets import make_synthetic

from . import instances
from .environments import run_solver
from .instances import ALPHA, GAP, K, Row
from .objective import Verdict, judge, refitted
from .report import Table, announced, percent


def okridge(threads: int, quick: bool) -> Table:
    """The reference implementation of the paper."""
    rows = [(10_000, 100, 0.1), (120, 60, 0.5)] if quick else instances.OKRIDGE
    return against("okridge", rows, 10.0 if quick else 60.0, threads)


def gurobi(threads: int, quick: bool) -> Table:
    """Gurobi's best formulation, on rows that its built-in licence admits."""
    rows = [(120, 60, 0.5)] if quick else instances.GUROBI
    return against("gurobi", rows, 10.0 if quick else 30.0, threads)


def against(peer: str, rows: Sequence[Row], time_limit: float, threads: int) -> Table:
    table = Table(
        name=peer,
        columns=[
            *("n", "p", "rho", "bestk s", "nodes", "gap"),
            *(f"{peer} s", "nodes", "gap", "ratio", "remarks"),
        ],
    )
    ratios: list[float] = []
    versions: dict[str, str] = {}
    for row in announced(rows):
        ours, theirs, claim = compare(peer, row, time_limit, threads)
        versions |= claim.get("versions", {})
        ratio = theirs.seconds / ours.seconds
        if ours.closed(GAP) and theirs.closed(GAP):
            ratios.append(ratio)
        remarks = [claim.get("formulation", "")]
        remarks += [f"{peer} threads: {claim['threads']}"] if "threads" in claim else []
        remarks += [f"bestk: {ours.complaint}"] if ours.complaint else []
        remarks += [f"{peer}: {theirs.complaint}"] if theirs.complaint else []
        table.rows.append(
            [
                *map(str, row),
                *(f"{ours.seconds:.3f}", str(ours.nodes), percent(ours.explained_gap)),
                *(f"{theirs.seconds:.3f}", str(theirs.nodes), percent(theirs.explained_gap)),
                show_ratio(ratio, ours.closed(GAP), theirs.closed(GAP)),
                "; ".join(filter(None, remarks)),
            ]
        )
    table.notes.append(
        f"k = {K}, alpha = {ALPHA}, SNR 5; seconds from (X, y) to the paper's gap {GAP}, limit "
        f"{time_limit:.0f} s; calls under 2 s: the median of three; gap: the paper's, recomputed; "
        f"ratio: {peer} / bestk"
    )
    if ratios:
        table.notes.append(
            f"{len(ratios)} of {len(rows)} rows closed by both: geometric mean of ratios "
            f"{geometric_mean(ratios):.1f}, least {min(ratios):.1f}"
        )
    if peer == "okridge" and threads > 1:
        table.notes.append(f"okridge runs with 1 and with {threads} threads; the better run counts")
    table.notes.append(f"{peer} ran with " + ", ".join(" ".join(v) for v in versions.items()))
    return table


def compare(peer: str, row: Row, time_limit: float, threads: int) -> tuple[Verdict, Verdict, dict]:
    """Both verdicts on one row, and what the peer claimed."""
    n, p, rho = row
    X, y, coef = make_synthetic(n, p, K, rho=rho)
    settings = {"k": K, "alpha": ALPHA, "gap": GAP}
    ours = run_solver("bestk", X, y, **settings, time_limit=time_limit, threads=threads)
    theirs = run_solver(peer, X, y, **settings, time_limit=time_limit, threads=threads)
    if peer == "okridge" and threads > 1:
        # On small matrices a second BLAS thread may cost more than it saves: the better run counts.
        one = run_solver(peer, X, y, **settings, time_limit=time_limit, threads=1)
        theirs = min(theirs | {"threads": threads}, one | {"threads": 1}, key=standing)
    best_known = min(
        refitted(X, y, np.flatnonzero(coef), ALPHA),
        *(judge(X, y, k=K, alpha=ALPHA, claim=claim).objective for claim in (ours, theirs)),
    )
    judged = [
        judge(X, y, k=K, alpha=ALPHA, claim=claim, best_known=best_known)
        for claim in (ours, theirs)
    ]
    return judged[0], judged[1], theirs


def standing(claim: dict) -> tuple[bool, float]:
    """Sorts closed runs by time before open ones by gap."""
    gap = claim.get("explained_gap", math.inf)
    return (False, claim["seconds"]) if gap <= GAP else (True, gap)


def show_ratio(ratio: float, ours_closed: bool, theirs_closed: bool) -> str:
    """A row that the peer left open gives a lower limit; one that we left open gives nothing."""
    if not ours_closed or math.isnan(ratio):
        return "-"
    return f"{ratio:.1f}" if theirs_closed else f"> {ratio:.1f}"
