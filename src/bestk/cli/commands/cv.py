"""bestk cv: k and alpha by cross-validation."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated

from bestk.cli.cluster import client_of
from bestk.cli.options import (
    MODEL,
    Alphas,
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
    Ks,
    Lower,
    MaxK,
    Missing,
    NodeLimit,
    Nonnegative,
    Numeric,
    Quiet,
    Report,
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
    GAP_LEFT,
    display,
    exit_code,
    helpful,
    require_places,
    write_files,
)
from bestk.cli.question import (
    bounds,
    choices,
    chosen_by,
    cross_validated,
    limits,
    open_table,
    penalties_of,
    sizes_of,
)
from bestk.cli.structure import n_choices, searching
from bestk.show.console import (
    cv_document,
    data_document,
    show_data,
    show_model,
    show_structure,
    show_validation,
    write_json,
)


@helpful
def cv(
    file: Source,
    target: Target = "y",
    max_k: MaxK = 10,
    ks: Ks = None,
    weight: Weight = None,
    features: Features = None,
    drop: Drop = None,
    numeric: Numeric = None,
    text: Text = None,
    missing: Missing = Gaps.error,
    alphas: Alphas = "0",
    folds: Annotated[
        int,
        option("--folds", panel=MODEL, metavar="COUNT", min=2, help="Parts to divide rows into."),
    ] = 5,
    rule: Annotated[
        list[str] | None,
        option(
            "--rule",
            panel=MODEL,
            metavar="min|one-se|TEXT",
            help="Least error, or least k within one standard error of it; or as for fit.",
        ),
    ] = None,
    seed: Annotated[
        int,
        option(
            "--seed",
            panel=MODEL,
            metavar="COUNT",
            min=0,
            help="Decides which rows are in which part.",
        ),
    ] = 0,
    intercept: Intercept = True,
    include: Include = None,
    exclude: Exclude = None,
    free: Free = None,
    group: Group = None,
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
    quiet: Quiet = False,
) -> int:
    """Choose k and alpha by cross-validation, then fit all rows."""
    from bestk.show.progress import Counter

    require_places(report=report)
    data = open_table(file, target, weight, features, drop, numeric, text, missing, quiet)
    choosing, rules = chosen_by(rule)
    options = choices(data, include, exclude, free, group, rules, hierarchy, constraint)
    sizes, penalties = sizes_of(ks, max_k, n_choices(data, options)), penalties_of(alphas)
    options |= limits(gap_tol, time_limit, node_limit, threads, device)
    model = {"bounds": bounds(lower, upper, nonnegative, auto_bounds), "fit_intercept": intercept}
    total = len(sizes) * len(penalties) * folds
    counter = Counter("cross-validating", "fits", total=total)
    with client_of(workers, scheduler, quiet) as client:
        options |= {"client": searching(client, options)}
        with nullcontext(None) if quiet else counter as progress:
            validation, problem = cross_validated(
                data, client, quiet, sizes, penalties, n_folds=folds, seed=seed,
                progress=progress, **model, **options,
            )  # fmt: skip
        alpha, k = validation.best(choosing)
        with display(quiet) as progress:
            result = replace(problem, alpha=alpha).solve(k, progress=progress, **options)
    if as_json:
        document = cv_document(validation, result, choosing, seed)
        write_json(document | data_document(data))
    else:
        show_data(data, result)
        show_structure(data, result)
        show_validation(validation, choosing)
        show_model(result)
    write_files((report, "report", validation.to_html))
    code = exit_code([result])
    return code if validation.is_closed else code or GAP_LEFT
