"""bestk path: the best model of every size."""

from bestk.cli.cluster import client_of
from bestk.cli.options import (
    Alpha,
    AutoBounds,
    ChosenBy,
    Constraint,
    Criterion,
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
    sizes_of,
)
from bestk.cli.structure import n_choices, searching
from bestk.show.console import (
    data_document,
    path_document,
    show_data,
    show_model,
    show_path,
    show_structure,
    write_json,
)


@helpful
def path(
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
    criterion: ChosenBy = Criterion.aicc,
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
    quiet: Quiet = False,
) -> int:
    """The best model of every size, and the size that a criterion chooses."""
    require_places(report=report)
    data = open_table(file, target, weight, features, drop, numeric, text, missing, quiet)
    options = choices(data, include, exclude, free, group, rule, hierarchy, constraint)
    sizes = sizes_of(ks, max_k, n_choices(data, options))
    options |= limits(gap_tol, time_limit, node_limit, threads, device)
    model = {"alpha": alpha, "bounds": bounds(lower, upper, nonnegative, auto_bounds)}
    model |= {"fit_intercept": intercept, "threads": threads, "device": device}
    with client_of(workers, scheduler, quiet) as client:
        problem = problem_of(data, client, quiet, **model)
        with display(quiet, n_searches=len(sizes)) as progress:
            options |= {"client": searching(client, options)}
            found = problem.solve_path(sizes, progress=progress, **options)
    chosen = found.best(criterion.value)
    if as_json:
        write_json(path_document(found, criterion.value) | data_document(data))
    else:
        show_data(data, chosen)
        show_structure(data, chosen)
        show_path(found, criterion.value)
        show_model(chosen)
    write_files((report, "report", found.to_html))
    return exit_code(found.results)
