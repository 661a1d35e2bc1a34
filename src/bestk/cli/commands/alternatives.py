"""The command ``bestk alternatives``: all models that are nearly as good as the best one."""

from pathlib import Path as File
from typing import Annotated, Any

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
    Nonnegative,
    Numeric,
    Quiet,
    Rules,
    Scheduler,
    Source,
    Target,
    Text,
    Threads,
    Upper,
    Weight,
    Workers,
    option,
)
from bestk.cli.outcome import (
    GAP_LEFT,
    display,
    helpful,
    list_exit_code,
    require_places,
    say,
    write_files,
)
from bestk.cli.question import bounds, choices, limits, open_table, problem_of, what_is_near
from bestk.cli.structure import searching
from bestk.show.console import (
    data_document,
    list_document,
    show_data,
    show_list,
    show_structure,
    write_json,
)


@helpful
def alternatives(
    file: Source,
    k: K,
    target: Target = "y",
    within: Annotated[
        str | None,
        option(
            "--within",
            metavar="SHARE",
            help="How much worse than the best: 2% or 0.02.",
            show_default="2%",
        ),
    ] = None,
    below: Annotated[
        float | None,
        option("--below", metavar="OBJECTIVE", min=0.0, help="Or all up to this objective."),
    ] = None,
    n_best: Annotated[
        int | None,
        option("--n-best", metavar="COUNT", min=1, help="Or so many with exactly K features."),
    ] = None,
    max_models: Annotated[
        int,
        option(
            "--max-models",
            metavar="COUNT",
            min=1,
            help="Most models; then the list ends.",
        ),
    ] = 100_000,
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
    gap_tol: GapTol = 0.0,
    time_limit: Annotated[
        float | None,
        option("--time-limit", panel=RUN, metavar="SECONDS", min=0.0, help="For the whole list."),
    ] = None,
    node_limit: Annotated[
        int | None,
        option("--node-limit", panel=RUN, metavar="COUNT", min=0, help="Limit for the whole list."),
    ] = None,
    threads: Threads = None,
    device: Device = "cpu",
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
    report: Annotated[
        File | None,
        option("--report", panel=OUTPUT, metavar="HTML", help="Write a page to explore them."),
    ] = None,
    save: Annotated[
        File | None,
        option("--save", panel=OUTPUT, metavar="NPZ", help="Keep the list and its proof."),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Find all models that are nearly as good as the best, and prove that none is missing."""

    require_places(report=report, save=save)
    near = what_is_near(within, below, n_best)
    data = open_table(file, target, weight, features, drop, numeric, text, missing, quiet)
    options = choices(data, include, exclude, free, group, rule, hierarchy, constraint)
    options |= near | {"max_models": max_models}
    options |= limits(gap_tol, time_limit, node_limit, threads, device)
    model = {"alpha": alpha, "bounds": bounds(lower, upper, nonnegative, auto_bounds)}
    model |= {"fit_intercept": intercept, "threads": threads, "device": device}
    with client_of(workers, scheduler, quiet) as client:
        problem = problem_of(data, client, quiet, **model)
        with display(quiet) as progress:
            options |= {"client": searching(client, options)}
            found = problem.near_optimal(k, progress=progress, **options)
    if as_json:
        write_json(list_document(found) | data_document(data))
    else:
        show_data(data, found.best)
        show_structure(data, found.best)
        show_list(found)
    files: list[Any] = [(report, "page", found.to_html)]
    code = list_exit_code(found)
    if found.certificate is not None:
        files.append((save, "list", found.certificate.save))
    elif save is not None:
        why = "its proof was too large to keep" if found.complete else "it is not complete"
        say(f"list not written to {save}: {why}")
        code = code or GAP_LEFT
    write_files(*files)
    return code
