"""From options as they are typed to what the solver is asked: columns, rows, bounds and sizes."""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import typer

from bestk.cli.options import Rule
from bestk.cli.outcome import waiting
from bestk.cli.structure import features_in, groups_of, not_a_rule, structure_in

# Slow to import and not needed for --help.
if TYPE_CHECKING:
    from bestk.problem.table import Table
    from bestk.readers.data import Data
    from bestk.selection.cross_validation import CrossValidation
    from bestk.selection.problem import Problem


# A longer list of sizes is a slip of the hand.
_MOST_SIZES = 10_000


def open_table(
    file: str,
    target: str,
    weight: str | None,
    features: Any,
    drop: Any,
    numeric: Any,
    text: Any,
    missing: Any,
    quiet: bool,
) -> "Data":
    """The table, of which columns of text are read now."""
    from bestk.readers.data import open_data

    columns: Any = {"features": features or (), "drop": drop or ()}
    columns |= {"numeric": numeric or (), "text": text or (), "missing": missing.value}
    with waiting(f"looking into {file}", quiet):
        return open_data(file, target=target, weight=weight, **columns)


def choices(
    data: "Data",
    include: Any,
    exclude: Any,
    free: Any,
    group: Any,
    rules: Any,
    hierarchy: Any,
    constraints: Any,
) -> dict[str, Any]:
    """Which models are allowed: checked before the rows are read, which may take long."""
    groups = groups_of(data, group)
    given = {"include": include, "exclude": exclude, "free": free}
    options: dict[str, Any] = {
        name: features_in(f"--{name}", texts, data, groups) for name, texts in given.items()
    }
    return options | structure_in(data, groups, rules, hierarchy, constraints)


def limits(
    gap_tol: float, time_limit: Any, node_limit: Any, threads: Any, device: str
) -> dict[str, Any]:
    return {
        "gap_tol": gap_tol,
        "time_limit": time_limit,
        "node_limit": node_limit,
        "n_threads": threads,
        "device": device,
    }


def bounds(lower: float | None, upper: float | None, nonnegative: bool, auto: bool) -> Any:
    if auto and (nonnegative or lower is not None or upper is not None):
        raise typer.BadParameter(
            "--auto-bounds excludes --lower, --upper and --nonnegative; use one of these ways"
        )
    if auto:
        return "auto"
    if nonnegative and lower is not None:
        raise typer.BadParameter("--nonnegative and --lower exclude each other; use one of them")
    if nonnegative:
        lower = 0.0
    if lower is not None and not lower <= 0.0:
        raise ValueError(f"--lower must be at most 0, got {lower:g}: any coefficient may be 0")
    if upper is not None and not upper >= 0.0:
        raise ValueError(f"--upper must be at least 0, got {upper:g}: any coefficient may be 0")
    if lower is None and upper is None:
        return None
    return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def chosen_by(texts: list[str] | None) -> tuple[str, list[str]]:
    """What chooses k and alpha, and rules on features: ``--rule`` of ``cv`` takes both."""
    choosing: list[str] = [Rule.min.value]
    rules: list[str] = []
    for text in texts or ():
        if text not in list(Rule) and " " not in text:
            raise not_a_rule(text, f", and not {' or '.join(Rule)}")
        (choosing if text in list(Rule) else rules).append(text)
    return choosing[-1], rules


def sizes_of(ks: str | None, max_k: int, n_features: int) -> list[int]:
    if ks is None:
        most = min(max_k, n_features)
        if most >= _MOST_SIZES:
            text = f"{max_k} is too large: it asks for the best model of each of {most:,} sizes"
            raise typer.BadParameter(text, param_hint="--max-k")
        return list(range(1, most + 1))
    sizes: set[int] = set()
    try:
        for part in ks.split(","):
            first, dash, last = part.partition("-")
            several = range(int(first), int(last if dash else first) + 1)
            sizes |= set(several[:_MOST_SIZES])
    except ValueError:
        sizes = set()
    if not 0 < len(sizes) < _MOST_SIZES:
        text = f"{ks!r} is not a list of sizes such as 1,2,5 or 1-10"
        raise typer.BadParameter(text, param_hint="--ks")
    return sorted(sizes)


def penalties_of(alphas: str) -> list[float]:
    try:
        values = [float(part) for part in alphas.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(0 <= value < math.inf for value in values):
        text = f"{alphas!r} is not a list of penalties such as 0,0.1,1"
        raise typer.BadParameter(text, param_hint="--alphas")
    return sorted(set(values))


def what_is_near(within: str | None, below: float | None, n_best: int | None) -> dict[str, Any]:
    """Which of three lists of models is asked for: one of them, or those within 2%."""
    given = {"--within": within, "--below": below, "--n-best": n_best}
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise typer.BadParameter(f"{names[0]} and {names[1]} exclude each other; use one of them")
    if below is not None:
        return {"below": below}
    return {"within": share_of("--within", "2%" if within is None else within), "n_best": n_best}


def share_of(name: str, text: str) -> float:
    """0.02 of ``2%`` or ``0.02``."""
    number = text.strip()
    try:
        share = float(number.removesuffix("%")) / (100 if number.endswith("%") else 1)
    except ValueError:
        share = math.nan
    if not 0 <= share < math.inf:
        raise typer.BadParameter(f"{text!r} is not a share such as 2% or 0.02", param_hint=name)
    return share


def batches_of(data: "Data", quiet: bool) -> Iterator[tuple[Any, ...]]:
    """The batches, counted on the screen."""
    from bestk.show.progress import Counter

    counter = Counter(f"reading {data.name}", "rows", total=data.n_file_rows)
    n_kept = 0
    with nullcontext() if quiet else counter:
        for batch in data:
            yield batch
            if not quiet:
                n_kept += len(batch[1])
                counter.add(n_kept + (data.left_out.n_rows or 0) - counter.count)


def problem_of(
    data: "Data", client: Any, quiet: bool, *, threads: int | None, device: str, **model: Any
) -> "Problem":
    """The rows, summed up: batch by batch here, or part by part by the workers of a cluster."""
    from bestk import Problem

    if client is None:
        batches = batches_of(data, quiet)
        return Problem.from_batches(batches, **model, n_threads=threads, device=device)
    with waiting(f"workers read {data.name}", quiet):
        return Problem.from_table(_table_of(data, client), **model)


def cross_validated(
    data: "Data", reader: Any, quiet: bool, *grid: Any, progress: Any, **options: Any
) -> "tuple[CrossValidation, Problem]":
    """Cross-validation of rows that are read here, or by the workers of a client."""
    from bestk.selection.cross_validation import cross_validate_batches, cross_validate_table

    if reader is None:
        batches = batches_of(data, quiet)
        return cross_validate_batches(batches, *grid, progress=progress, **options)
    if progress is not None:
        progress.add(0)  # to be seen while workers read
    table = _table_of(data, reader)
    return cross_validate_table(table, *grid, progress=progress, **options)


def _table_of(data: "Data", client: Any) -> "Table":
    from bestk.problem.table import Table

    return Table.of_parts(data.parts(), data.features, client)
