"""Tables and findings of the study of wide data, made from its rows alone."""

from __future__ import annotations

import numpy as np

from bestk.base.tuning import tuning

from ..harness.arena import HELD, Instance
from ..harness.contest import by_task, refuted, remarks
from ..harness.paper import GAP
from ..harness.tables import Table, percent
from .parts import CONTENDERS, FREE, GROWTH, PARTS, PEERS, ROOTS, ROWS
from .rows import Row

# Elsewhere, on other draws of such data and other machines. Liu et al. is the OKRidge paper (2023),
# an hour for each run, two for l0bnb; everybody but OKRidge and l0bnb starts from its beam search.
ELSEWHERE = {
    "500-3000-0.1-0.1": "Liu et al.: l0bnb 1835 s; after an hour OKRidge 20.5%, MOSEK 20.3%, "
    "Gurobi 20.5%",
    "500-3000-0.1-10": "Liu et al.: l0bnb 1483 s; after an hour OKRidge 21.1%, MOSEK 11.5%, "
    "Gurobi 13.2%",
    "200-3000-0.1-10": "Liu et al.: after an hour MOSEK 9.05%, Gurobi 11.8%, OKRidge 19.5%; l0bnb "
    "ends with one feature; the bound 0 gives 19.7%",
    "100-3000-0.1-10": "Liu et al.: after an hour MOSEK 10.1%, OKRidge 19.1%; l0bnb ends with one "
    "feature; the bound 0 gives 19.3%",
    "4000-4000-0.9-1": "arXiv 2605.22188, in this box: 16.6 s on one A100, Gurobi 9717 s",
}


# Findings ------------------------------------------------------------------------------------


def findings(rows: list[Row]) -> list[str]:
    """Sentences whose every number comes from the rows."""
    ours = [row for row in PARTS["rows"].chosen(rows) if row.contender == "bestk"]
    if not ours:
        return []
    return [
        *_closed_and_open(ours),
        *(sentence for peer in PEERS for sentence in _against(peer, rows)),
        *_worth_of_the_box(rows),
        *_growing(rows),
        *_held(rows),
        refuted(rows, label),
    ]


def _closed_and_open(ours: list[Row]) -> list[str]:
    closed = [row for row in ours if row.is_closed]
    text = f"In a box `bestk` closes {len(closed)} of {len(ours)} problems"
    if closed:
        slowest = max(closed, key=lambda row: row.seconds)
        text += f", the slowest ({label(slowest.instance)}) in {slowest.seconds:.3g} s"
    left = [
        f"{label(row.instance)} with {percent(row.gap)} after {row.seconds:.0f} s (the bound 0, "
        f"which takes no search, gives {percent(row.trivial_gap)}; {row.true_features} of {row.k} "
        "true features found)"
        for row in ours
        if not row.is_closed and not row.complaint
    ]
    return [text + (f"; open: {'; '.join(left)}." if left else ".")]


def _against(peer: str, rows: list[Row]) -> list[str]:
    """Who closes what, and how many times as fast, in the same box."""
    known = by_task(PARTS["rows"].chosen(rows))
    pairs = [
        (known[i, "bestk"], known[i, peer])
        for i in ROWS
        if (i, "bestk") in known and (i, peer) in known
    ]
    if not pairs:
        return []
    alone = sum(a.is_closed and not b.is_closed for a, b in pairs)
    theirs = sum(b.is_closed and not a.is_closed for a, b in pairs)
    ratios = [b.seconds / a.seconds for a, b in pairs if a.is_closed and b.is_closed]
    text = f"Of {len(pairs)} problems in the same box `bestk` alone closes {alone}, {peer} alone "
    text += f"{theirs}"
    if ratios:
        low, high = min(ratios), max(ratios)
        text += f", both {len(ratios)}, {peer} in {low:.3g} to {high:.3g} times the time"
    return [text + "."]


def _worth_of_the_box(rows: list[Row]) -> list[str]:
    known = by_task(rows)
    parts = [
        f"{label(i)}: {_outcome(known[i, 'bestk'])} in the box, "
        f"{_outcome(known[i, 'bestk' + FREE])} without"
        for i in ROWS
        if (i, "bestk") in known and (i, "bestk" + FREE) in known
    ]
    return [f"What the box is worth: {'; '.join(parts)}."] if parts else []


def _growing(rows: list[Row]) -> list[str]:
    ours = [
        row for row in PARTS["growth"].chosen(rows) if row.contender == "bestk" and row.is_closed
    ]
    if len(ours) < 2:
        return []
    a, b = ours[0], ours[-1]
    return [
        f"With 500 rows and from p = {a.p} to {b.p} features time goes from {a.seconds:.3g} to "
        f"{b.seconds:.3g} s, and peak memory of the process from {a.memory:.0f} to "
        f"{b.memory:.0f} MiB, where the data are {_data(a):.0f} and {_data(b):.0f} MiB and a p x p "
        f"matrix would be {a.p**2 / 2**17:.0f} and {b.p**2 / 2**17:.0f} MiB."
    ]


def _data(row: Row) -> float:
    """MiB of X in double precision."""
    return row.n * row.p / 2**17


def _held(rows: list[Row]) -> list[str]:
    boxed = [row for row in PARTS["rows"].chosen(rows) if row.is_boxed and not row.complaint]
    held = [row for row in boxed if row.largest >= HELD * row.M]
    if held:
        names = ", ".join(f"{row.contender} on {label(row.instance)}" for row in held)
        return [f"Models with a coefficient at its box, or beyond: {names}."]
    share = max((row.largest / row.M for row in boxed), default=np.nan)
    return [f"No model has a coefficient at its box; the largest is {percent(share)} of it."]


# Tables --------------------------------------------------------------------------------------


def tables(part: str, members: list[Row], rows: list[Row]) -> list[Table]:
    """The table of a part, and what went wrong in it."""
    table = {"rows": results, "growth": growth, "bounds": root_bounds}[part]
    wrong = Table(columns=["what went wrong", "n, p, rho, α", "reason"])
    return [table(members), *remarks(members, label, wrong)]


def results(rows: list[Row]) -> Table:
    """Instances against contenders; what others report in the last column."""
    instances = list(dict.fromkeys(row.instance for row in rows))
    names = [name for name in CONTENDERS if any(row.contender == name for row in rows)]
    known = by_task(rows)
    table = Table(columns=["n, p, rho, α", "box", *names, "bound 0", "elsewhere"])
    for i in instances:
        cells = [_with_memory(known[i, name]) if (i, name) in known else "-" for name in names]
        best = min((known[i, n] for n in names if (i, n) in known), key=_objective)
        # The bound 0 says nothing where nobody has a model.
        trivial = percent(best.trivial_gap) if np.isfinite(_objective(best)) else "-"
        elsewhere = ELSEWHERE.get(i.name, "")
        table.rows.append([label(i), f"{i.M:g}", *cells, trivial, elsewhere])
    limits = ", ".join(
        f"{name} {' to '.join(dict.fromkeys(f'{f(r.limit for r in own):g}' for f in (min, max)))} s"
        for name in names
        if (own := [row for row in rows if row.contender == name])
    )
    table.notes.extend(
        [
            f"seconds from (X, y) to the paper's gap of {GAP}, or that gap at the limit "
            f"({limits}), and the peak memory of the solver's process in MiB, interpreter, "
            "packages and X included; bound 0: the paper's gap of the best model with no search",
            "l0bnb and el0ps solve a penalised problem. They are told a price λ at which k "
            "features are worth having, and start from bestk's beam search, whose time is added; "
            "their bound L on the penalised objective bounds ours by L - λ k, since a model with "
            "at most k features pays no more than λ k",
            "elsewhere: figures reported for other draws of such data, on other machines and, "
            "unless it says so, without this box (l0bnb: in one of its own); Liu et al. is the "
            "OKRidge paper (NeurIPS 2023). Gaps compare loosely, as the bound 0 shows",
        ]
    )
    return table


def _objective(row: Row) -> float:
    return np.inf if row.complaint or np.isnan(row.objective) else row.objective


def growth(rows: list[Row]) -> Table:
    known = by_task(rows)
    table = Table(
        columns=["p", "bestk", "nodes", "MiB", "MiB of X", "MiB of p x p", "l0bnb", "MiB"],
    )
    for i in GROWTH:
        ours, theirs = known.get((i, "bestk")), known.get((i, "l0bnb"))
        if ours is None:
            continue
        cells = [_outcome(ours), str(ours.nodes), f"{ours.memory:.0f}", f"{_data(ours):.0f}"]
        peer = [_outcome(theirs), f"{theirs.memory:.0f}"] if theirs else ["-", "-"]
        table.rows.append([str(i.p), *cells, f"{i.p**2 / 2**17:.0f}", *peer])
    fit = [row for row in rows if row.contender == "bestk" and row.is_closed]
    if len(fit) > 2:
        log_p = np.log([row.p for row in fit])
        slopes = [
            np.polyfit(log_p, np.log([getattr(row, name) for row in fit]), 1)[0]
            for name in ("seconds", "memory")
        ]
        table.notes.append(
            f"over all p time grows like p^{slopes[0]:.2f}, memory like p^{slopes[1]:.2f}; "
            f"from {tuning().fewest_wide} features and {tuning().wide_from:g} times the rows on no "
            "p x p matrix is formed"
        )
    return table


def root_bounds(rows: list[Row]) -> Table:
    """Methods downwards; gap of the bound at the root and seconds for it, with box and without."""
    known = by_task(rows)
    heads = [(i, ending) for i in ROOTS for ending in ("", FREE)]
    columns = [f"{label(i)}{ending or ', box'}" for i, ending in heads]
    table = Table(columns=["method", *columns])
    names = dict.fromkeys(row.contender.removesuffix(FREE) for row in rows)
    for name in names:
        cells = [_root(known.get((i, name + ending))) for i, ending in heads]
        table.rows.append([name.removeprefix("root: "), *cells])
    table.notes.append(
        "the paper's gap between the model of the beam search and the bound, then the seconds of "
        "the bound alone; descent stops when it has come close enough to be useful to a tree, and "
        "“to the end” is what the relaxation is worth; fast, subgradient and ADMM are "
        "the paper's methods; ADMM without further words is bestk's, with a tenth of the paper's "
        "2/ρ on wide data"
    )
    return table


def _root(row: Row | None) -> str:
    if row is None:
        return "-"
    return row.failure or f"{percent(row.gap)}, {row.bound_seconds:.2g} s"


def _outcome(row: Row) -> str:
    if row.is_closed:
        return f"{row.seconds:.3g} s"
    return row.failure or f"{percent(row.gap)} after {row.seconds:.0f} s"


def _with_memory(row: Row) -> str:
    return _outcome(row) + (f", {row.memory:.0f} MiB" if np.isfinite(row.memory) else "")


def label(instance: Instance) -> str:
    return f"{instance.n}, {instance.p}, {instance.rho:g}, {instance.alpha:g}"
