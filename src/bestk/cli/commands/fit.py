"""bestk fit: the best model with at most k features."""

import functools
from pathlib import Path as File
from typing import Annotated

from bestk.cli.cluster import client_of
from bestk.cli.options import (
    OUTPUT,
    RUN,
    Alpha,
    AutoBounds,
    Constraint,
    Device,
    Drop,
    Exclude,
    Features,
    Free,
    Gaps,
    GapTol,
    Group,
    Hierarchy,
    Include,
    Intercept,
    Json,
    K,
    Lower,
    Missing,
    NodeLimit,
    Nonnegative,
    Numeric,
    Quiet,
    Report,
    Rules,
    Scheduler,
    Source,
    Target,
    Text,
    Threads,
    TimeLimit,
    Upper,
    Weight,
    Workers,
    option,
)
from bestk.cli.outcome import (
    display,
    exit_code,
    helpful,
    require_places,
    write_files,
)
from bestk.cli.question import (
    bounds,
    choices,
    limits,
    open_table,
    problem_of,
)
from bestk.cli.structure import searching
from bestk.show.console import (
    data_document,
    model_document,
    show_data,
    show_model,
    show_structure,
    write_json,
)


@helpful
def fit(
    file: Source,
    k: K,
    target: Target = "y",
    weight: Weight = None,
    features: Features = None,
    drop: Drop = None,
    numeric: Numeric = None,
    text: Text = None,
    missing: Missing = Gaps.error,
    alpha: Alpha = 0.0,
    intercept: Intercept = True,
    include: Include = None,
    exclude: Exclude = None,
    free: Free = None,
    group: Group = None,
    rule: Rules = None,
    hierarchy: Hierarchy = None,
    constraint: Constraint = None,
    lower: Lower = None,
    upper: Upper = None,
    nonnegative: Nonnegative = False,
    auto_bounds: AutoBounds = False,
    gap_tol: GapTol = 1e-4,
    time_limit: TimeLimit = None,
    node_limit: NodeLimit = None,
    threads: Threads = None,
    device: Device = "cpu",
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
    report: Report = None,
    save: Annotated[
        File | None,
        option("--save", panel=OUTPUT, metavar="NPZ", help="Keep the run and its proof."),
    ] = None,
    checkpoint: Annotated[
        File | None,
        option(
            "--checkpoint",
            panel=RUN,
            metavar="FILE",
            help="Write the open tree there every minute; if the file is there, go on from it.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Find, and prove, the best model with at most k features."""
    from bestk import resume
    from bestk.results import storage

    require_places(report=report, save=save, checkpoint=checkpoint)
    data = open_table(file, target, weight, features, drop, numeric, text, missing, quiet)
    options = choices(data, include, exclude, free, group, rule, hierarchy, constraint)
    options |= limits(gap_tol, time_limit, node_limit, threads, device)
    model = {"alpha": alpha, "bounds": bounds(lower, upper, nonnegative, auto_bounds)}
    model |= {"fit_intercept": intercept, "threads": threads, "device": device}
    with client_of(workers, scheduler, quiet) as client:
        problem = problem_of(data, client, quiet, **model)
        options |= {"client": searching(client, options)}
        with display(quiet) as progress:
            if checkpoint is not None and checkpoint.exists():
                result = resume(checkpoint, problem=problem, k=k, progress=progress, **options)
            else:
                result = problem.solve(k, progress=progress, checkpoint=checkpoint, **options)
    if as_json:
        write_json(model_document(result) | data_document(data))
    else:
        show_data(data, result)
        show_structure(data, result)
        show_model(result)
    keep = functools.partial(storage.save, result)
    write_files((save, "run", keep), (report, "report", result.to_html))
    return exit_code([result])
