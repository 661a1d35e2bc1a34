"""The command ``bestk``: fit, alternatives, verify, path, cv, discover, demo and doctor.

The numbers and words it writes are made in :mod:`bestk.show.console`. The solver takes a second to
import: commands do so when they need it, --help does not.
"""

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path as File
from typing import Annotated, Any

import typer

from bestk.cli.alternatives import alternatives
from bestk.cli.cluster import client_of
from bestk.cli.discovery import discover
from bestk.cli.doctor import doctor
from bestk.cli.options import (
    MODEL,
    OUTPUT,
    RUN,
    Alpha,
    Alphas,
    AutoBounds,
    Choice,
    Constraint,
    Criterion,
    Device,
    Drop,
    Exclude,
    Free,
    GapTol,
    Group,
    Hierarchy,
    Include,
    Intercept,
    Json,
    Ks,
    Lower,
    MaxK,
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
    GAP_LEFT,
    NOT_VERIFIED,
    display,
    exit_code,
    helpful,
    require_folders,
    waiting,
    write_file,
)
from bestk.cli.question import (
    batches_of,
    bounds,
    choices,
    chosen_by,
    cross_validated,
    limits,
    open_table,
    penalties_of,
    problem_of,
    sizes_of,
)
from bestk.cli.structure import baseline_document, n_choices, searching, show_structure
from bestk.show.console import (
    cv_document,
    model_document,
    path_document,
    show_data,
    show_history,
    show_list_verification,
    show_model,
    show_path,
    show_validation,
    stdout,
    write_json,
)

_EPILOG = (
    "[bold]Files:[/] .csv, .tsv (also .gz), .parquet, .arrow, .feather, .npz. A folder or a "
    "pattern, as 'data/*.parquet', is one table, and so is a remote one, as s3://bucket/data. "
    "All columns but the target are features; leave others out with --drop. Text becomes a group "
    "of indicators. Rows are read in batches, never all at once.\n\n"
    "[bold]Exit codes:[/] 0 proven (with --auto-bounds: inside the box); 1 something is wrong with "
    "the data, a file or a cluster, or the self-test of doctor failed; 2 wrong usage; 3 a limit "
    "was reached and a gap is left, or a list is not complete (what was found is still printed); 4 "
    "a certificate was not verified; 130 interrupted (the best model so far is printed, if there "
    "is one)."
)

app = typer.Typer(
    name="bestk",
    help="Find, and prove, the best linear model with at most k features.",
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from bestk import __version__

        typer.echo(f"bestk {__version__}")
        raise typer.Exit()


@app.callback()
def _main(
    version: Annotated[
        bool, option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(epilog="[bold]Example:[/] bestk fit data.csv --target price -k 5 --time-limit 60")
@helpful
def fit(
    file: Source,
    k: Annotated[int, option("-k", metavar="K", min=0, help="Most features.")],
    target: Target = "y",
    weight: Weight = None,
    drop: Drop = None,
    numeric: Numeric = None,
    text: Text = None,
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
            help="Write the open tree there every minute; if there is one, go on from it.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Find, and prove, the best model with at most k features."""
    from bestk import resume
    from bestk.results import storage

    require_folders(report, save, checkpoint)
    data = open_table(file, target, weight, drop, numeric, text, quiet)
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
        write_json(model_document(result) | baseline_document(data))
    else:
        show_data(data, result)
        show_structure(data, result)
        show_model(result)
    write_file(report, "report", result.to_html)
    write_file(save, "run", functools.partial(storage.save, result))
    return exit_code([result])


app.command(epilog="[bold]Example:[/] bestk alternatives data.csv --target price -k 5 --within 2%")(
    alternatives
)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Warnings as plain sentences, as soon as they are given."""

    def show(message: Any, *rest: Any, **more: Any) -> None:
        typer.echo(str(message).replace("device='cuda'", "--device cuda"), err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = show
        yield


def _joined(batches: Iterator[tuple[Any, ...]]) -> list[Any]:
    """All rows at once: X, y and, if there are any, weights."""
    import numpy as np

    return [np.concatenate(parts) for parts in zip(*batches, strict=True)]


@app.command(epilog="[bold]Example:[/] bestk verify run.npz data.csv --target price")
@helpful
def verify(
    certificate: Annotated[
        File,
        typer.Argument(metavar="CERTIFICATE", help="Written by --save of fit or alternatives."),
    ],
    file: Source,
    target: Target = "y",
    weight: Weight = None,
    drop: Drop = None,
    numeric: Numeric = None,
    text: Text = None,
    exact: Annotated[
        bool, option("--exact", panel=RUN, help="In rational numbers; for small problems.")
    ] = False,
    allow_long: Annotated[
        bool,
        option("--allow-long", panel=RUN, help="Also a proof that takes more than an hour."),
    ] = False,
    threads: Threads = None,
    device: Device = "cpu",
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Check the proof of a model, or of a list of models, with none of the code that made it."""
    from dataclasses import asdict

    from bestk.base.archive import arrays_in
    from bestk.results.certificate import Certificate
    from bestk.results.completeness import CompletenessCertificate
    from bestk.verification.verify import verify_batches

    arrays = arrays_in(certificate)
    kind = CompletenessCertificate if "list" in arrays else Certificate
    proof: Any = kind.from_arrays(arrays)
    if exact and kind is CompletenessCertificate:
        raise ValueError(
            f"--exact is for the proof of one model, and {certificate} holds a list; "
            "leave --exact out"
        )
    data = open_table(file, target, weight, drop, numeric, text, quiet)
    batches = batches_of(data, quiet)
    how: Any = {"n_threads": threads, "device": device, "allow_long": allow_long}
    with _plain_warnings():
        if exact:
            verification = proof.verify(*_joined(batches), exact=True)
        elif kind is CompletenessCertificate:
            rows = _joined(batches)
            verification = proof.verify(*rows, **how)
        else:
            verification = verify_batches(proof, batches, **how)
    if as_json:
        write_json(asdict(verification))
    elif kind is CompletenessCertificate:
        show_list_verification(proof, verification)
    else:
        typer.echo(verification)
    return 0 if verification else NOT_VERIFIED


@app.command(
    epilog="[bold]Example:[/] bestk path data.parquet --target price --max-k 8 --criterion bic"
)
@helpful
def path(
    file: Source,
    target: Target = "y",
    max_k: MaxK = 10,
    ks: Ks = None,
    weight: Weight = None,
    drop: Drop = None,
    numeric: Numeric = None,
    text: Text = None,
    criterion: Choice = Criterion.aicc,
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
    require_folders(report)
    data = open_table(file, target, weight, drop, numeric, text, quiet)
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
        write_json(path_document(found, criterion.value) | baseline_document(data))
    else:
        show_data(data, chosen)
        show_structure(data, chosen)
        show_path(found, criterion.value)
        show_model(chosen)
    write_file(report, "report", found.to_html)
    return exit_code(found.results)


@app.command(
    epilog="[bold]Example:[/] bestk cv data.csv --target price --alphas 0,0.1,1 --rule one-se"
)
@helpful
def cv(
    file: Source,
    target: Target = "y",
    max_k: MaxK = 10,
    ks: Ks = None,
    weight: Weight = None,
    drop: Drop = None,
    numeric: Numeric = None,
    text: Text = None,
    alphas: Alphas = "0",
    folds: Annotated[
        int, option("--folds", panel=MODEL, metavar="COUNT", min=2, help="Parts of the rows.")
    ] = 5,
    rule: Annotated[
        list[str] | None,
        option(
            "--rule",
            panel=MODEL,
            metavar="min|one-se|TEXT",
            help="Least error, or least k within one s.e. of it; or a rule, as that of fit.",
        ),
    ] = None,
    seed: Annotated[
        int, option("--seed", panel=MODEL, metavar="COUNT", min=0, help="Deals out the rows.")
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

    require_folders(report)
    data = open_table(file, target, weight, drop, numeric, text, quiet)
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
        write_json(document | baseline_document(data))
    else:
        show_data(data, result)
        show_structure(data, result)
        show_validation(validation, choosing)
        show_model(result)
    write_file(report, "report", validation.to_html)
    code = exit_code([result])
    return code if validation.is_closed else code or GAP_LEFT


app.command(
    epilog="[bold]Example:[/] bestk discover trajectory.csv --time t --degree 3 --plot found.png"
)(discover)


@app.command(epilog="[bold]Example:[/] bestk warmup --quiet")
@helpful
def warmup(
    quiet: Annotated[bool, option("--quiet", "-q", panel=OUTPUT, help="Print nothing.")] = False,
) -> int:
    """Compile the inner loops once, so that no later command has to; up to two minutes."""
    with waiting("warming up", quiet):
        from bestk.selection.warming import warmup as compile_all

        done = compile_all()
    if not quiet:
        typer.echo(done)
    return 0


@app.command()
@helpful
def demo(threads: Threads = None, quiet: Quiet = False) -> int:
    """A proof on made-up data: no file needed, a few seconds."""
    from bestk import datasets
    from bestk import solve as solve_arrays

    n, p, k = 1000, 600, 10
    console = stdout()
    console.print(
        f"{n:,} rows and {p} features, neighbours correlated 0.9. {k} of the features make y, "
        "and noise does the rest. Which ones? "
        "[dim](The very first run compiles inner loops, up to a minute; bestk warmup does that "
        "beforehand.)[/]"
    )
    X, y, truth = datasets.make_synthetic(n, p, k, rho=0.9, snr=5.0)
    with display(quiet) as progress:
        result = solve_arrays(X, y, k, alpha=1e-3, n_threads=threads, progress=progress)
    show_history(result)
    show_model(result)
    found = sum(truth[result.support] != 0)
    console.print(f"{found} of the {k} features that make y are in the model.")
    console.print("Now with your data: [bold]bestk fit data.csv --target y -k 5[/]")
    return exit_code([result])


app.command(epilog="[bold]Example:[/] bestk doctor --json > machine.json")(doctor)
