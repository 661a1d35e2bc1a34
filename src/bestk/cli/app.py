"""The command ``bestk``: fit, path, cv, discover and demo.

The numbers and words it writes are made in :mod:`bestk.show.console`.
"""

import functools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path as File
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bestk.show.console import (
    cv_document,
    discovery_document,
    model_document,
    path_document,
    show_data,
    show_discovery,
    show_history,
    show_model,
    show_path,
    show_validation,
    stdout,
    write_json,
)

# The solver takes a second to import: commands do so when they need it, --help does not.
if TYPE_CHECKING:
    from bestk.readers.data import Data
    from bestk.results.result import Result

BAD_INPUT, GAP_LEFT, NOT_VERIFIED, INTERRUPTED = 1, 3, 4, 130

_EPILOG = (
    "[bold]Files:[/] .csv, .tsv (also .gz), .parquet, .arrow, .feather, .npz. All columns but the "
    "target are features; leave others out with --drop. Rows are read in batches, never all at "
    "once.\n\n"
    "[bold]Exit codes:[/] 0 proven (with --auto-bounds: inside the box); 1 something is wrong with "
    "the data or a file; 2 wrong usage; 3 a limit was reached and a gap is left (the model is "
    "still printed); 4 a certificate was not verified; 130 interrupted (the best model so far is "
    "printed, if there is one)."
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


class Criterion(StrEnum):
    aicc = "aicc"
    bic = "bic"
    ebic = "ebic"


class Rule(StrEnum):
    min = "min"
    one_se = "one-se"


_MODEL, _RUN, _OUTPUT = "Model", "Run", "Output"


def _option(*names: str, help: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


Source = Annotated[File, typer.Argument(metavar="FILE", help="Data with named columns.")]
Target = Annotated[str, _option("--target", "-t", metavar="COLUMN", help="What to explain.")]
Weight = Annotated[
    str | None, _option("--weight", metavar="COLUMN", help="Weights of the squared residuals.")
]
Drop = Annotated[
    list[str] | None,
    _option("--drop", metavar="COLUMNS", help="Leave out: a,b or several times --drop."),
]
MaxK = Annotated[int, _option("--max-k", metavar="K", min=1, help="Sizes from 1 to this one.")]
Ks = Annotated[str | None, _option("--ks", metavar="LIST", help="Or these: 1,2,5 or 1-10.")]

Alpha = Annotated[
    float, _option("--alpha", panel=_MODEL, metavar="NUMBER", min=0.0, help="Ridge penalty.")
]
Intercept = Annotated[
    bool, _option("--intercept/--no-intercept", panel=_MODEL, help="Free constant term.")
]
Include = Annotated[
    list[str] | None,
    _option("--include", panel=_MODEL, metavar="COLUMNS", help="Features that must be in."),
]
Exclude = Annotated[
    list[str] | None,
    _option("--exclude", panel=_MODEL, metavar="COLUMNS", help="Features that must not."),
]
Lower = Annotated[
    float | None,
    _option("--lower", panel=_MODEL, metavar="NUMBER", help="Least coefficient, at most 0."),
]
Upper = Annotated[
    float | None,
    _option("--upper", panel=_MODEL, metavar="NUMBER", help="Largest coefficient, at least 0."),
]
Nonnegative = Annotated[bool, _option("--nonnegative", panel=_MODEL, help="Same as --lower 0.")]
AutoBounds = Annotated[
    bool,
    _option("--auto-bounds", panel=_MODEL, help="Choose a box; the proof holds inside it only."),
]

Choice = Annotated[Criterion, _option("--criterion", panel=_MODEL, help="What chooses k.")]

GapTol = Annotated[
    float,
    _option("--gap-tol", panel=_RUN, metavar="NUMBER", min=0.0, help="Relative gap to prove."),
]
TimeLimit = Annotated[
    float | None,
    _option("--time-limit", panel=_RUN, metavar="SECONDS", min=0.0, help="For each model."),
]
NodeLimit = Annotated[
    int | None,
    _option("--node-limit", panel=_RUN, metavar="COUNT", min=0, help="For each model."),
]
Threads = Annotated[
    int | None,
    _option("--threads", panel=_RUN, metavar="COUNT", min=1, help="All cores unless given."),
]
Alphas = Annotated[
    str, _option("--alphas", panel=_MODEL, metavar="LIST", help="Ridge penalties: 0,0.1,1.")
]
Json = Annotated[bool, _option("--json", panel=_OUTPUT, help="One JSON object on stdout.")]
Report = Annotated[
    File | None, _option("--report", panel=_OUTPUT, metavar="HTML", help="Write a report.")
]
Quiet = Annotated[bool, _option("--quiet", "-q", panel=_OUTPUT, help="No live display.")]


def _helpful(command: Callable[..., int]) -> Callable[..., None]:
    """Turn what a command returns or raises into an exit code, and errors into messages."""

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            code = command(*args, **options)
        except (ValueError, OSError, ImportError) as error:
            typer.secho(f"bestk: {error}", err=True, fg="red")
            code = BAD_INPUT
        except KeyboardInterrupt:
            typer.secho("bestk: interrupted before there was a model", err=True, fg="red")
            code = INTERRUPTED
        raise typer.Exit(code)

    return run


def _show_version(wanted: bool) -> None:
    if wanted:
        from bestk import __version__

        typer.echo(f"bestk {__version__}")
        raise typer.Exit()


@app.callback()
def _main(
    version: Annotated[
        bool, _option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command(epilog="[bold]Example:[/] bestk fit data.csv --target price -k 5 --time-limit 60")
@_helpful
def fit(
    file: Source,
    k: Annotated[int, _option("-k", metavar="K", min=0, help="Most features.")],
    target: Target = "y",
    weight: Weight = None,
    drop: Drop = None,
    alpha: Alpha = 0.0,
    intercept: Intercept = True,
    include: Include = None,
    exclude: Exclude = None,
    lower: Lower = None,
    upper: Upper = None,
    nonnegative: Nonnegative = False,
    auto_bounds: AutoBounds = False,
    gap_tol: GapTol = 1e-4,
    time_limit: TimeLimit = None,
    node_limit: NodeLimit = None,
    threads: Threads = None,
    as_json: Json = False,
    report: Report = None,
    save: Annotated[
        File | None,
        _option("--save", panel=_OUTPUT, metavar="NPZ", help="Keep the run and its proof."),
    ] = None,
    checkpoint: Annotated[
        File | None,
        _option(
            "--checkpoint",
            panel=_RUN,
            metavar="FILE",
            help="Write the open tree there every minute; if there is one, go on from it.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Find, and prove, the best model with at most k features."""
    from bestk import Problem, resume
    from bestk.readers.data import open_data
    from bestk.results import storage

    _require_folders(report, save, checkpoint)
    data = open_data(file, target=target, weight=weight, drop=drop or ())
    options = _choices(data, include, exclude)
    options |= _limits(gap_tol, time_limit, node_limit, threads)
    problem = Problem.from_batches(
        _batches(data, quiet),
        alpha=alpha,
        bounds=_bounds(lower, upper, nonnegative, auto_bounds),
        fit_intercept=intercept,
        n_threads=threads,
    )
    with _display(quiet) as progress:
        if checkpoint is not None and checkpoint.exists():
            result = resume(checkpoint, problem=problem, k=k, progress=progress, **options)
        else:
            result = problem.solve(k, progress=progress, checkpoint=checkpoint, **options)
    if as_json:
        write_json(model_document(result))
    else:
        show_data(data, result)
        show_model(result)
    _write(report, "report", result.to_html)
    _write(save, "run", functools.partial(storage.save, result))
    return _exit_code([result])


@app.command(epilog="[bold]Example:[/] bestk verify run.npz data.csv --target price")
@_helpful
def verify(
    certificate: Annotated[
        File, typer.Argument(metavar="CERTIFICATE", help="Written by bestk fit --save.")
    ],
    file: Source,
    target: Target = "y",
    weight: Weight = None,
    drop: Drop = None,
    exact: Annotated[
        bool, _option("--exact", panel=_RUN, help="In rational numbers; for small problems.")
    ] = False,
    threads: Threads = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Check the proof of a model on the data, with none of the code that made it."""
    from dataclasses import asdict

    import numpy as np

    from bestk.readers.data import open_data
    from bestk.results.certificate import Certificate
    from bestk.verification.verify import verify_batches

    proof = Certificate.load(certificate)
    batches = _batches(open_data(file, target=target, weight=weight, drop=drop or ()), quiet)
    if exact:
        X, y, *weights = map(np.concatenate, zip(*batches, strict=True))
        verification = proof.verify(X, y, *weights, exact=True)
    else:
        verification = verify_batches(proof, batches, n_threads=threads)
    if as_json:
        write_json(asdict(verification))
    else:
        typer.echo(verification)
    return 0 if verification else NOT_VERIFIED


@app.command(
    epilog="[bold]Example:[/] bestk path data.parquet --target price --max-k 8 --criterion bic"
)
@_helpful
def path(
    file: Source,
    target: Target = "y",
    max_k: MaxK = 10,
    ks: Ks = None,
    weight: Weight = None,
    drop: Drop = None,
    criterion: Choice = Criterion.aicc,
    alpha: Alpha = 0.0,
    intercept: Intercept = True,
    include: Include = None,
    exclude: Exclude = None,
    lower: Lower = None,
    upper: Upper = None,
    nonnegative: Nonnegative = False,
    auto_bounds: AutoBounds = False,
    gap_tol: GapTol = 1e-4,
    time_limit: TimeLimit = None,
    node_limit: NodeLimit = None,
    threads: Threads = None,
    as_json: Json = False,
    report: Report = None,
    quiet: Quiet = False,
) -> int:
    """The best model of every size, and the size that a criterion chooses."""
    from bestk import Problem
    from bestk.readers.data import open_data

    _require_folders(report)
    data = open_data(file, target=target, weight=weight, drop=drop or ())
    sizes = _sizes(ks, max_k, len(data.features))
    options = _choices(data, include, exclude)
    options |= _limits(gap_tol, time_limit, node_limit, threads)
    problem = Problem.from_batches(
        _batches(data, quiet),
        alpha=alpha,
        bounds=_bounds(lower, upper, nonnegative, auto_bounds),
        fit_intercept=intercept,
        n_threads=threads,
    )
    with _display(quiet, n_searches=len(sizes)) as progress:
        found = problem.solve_path(sizes, progress=progress, **options)
    chosen = found.best(criterion.value)
    if as_json:
        write_json(path_document(found, criterion.value))
    else:
        show_data(data, chosen)
        show_path(found, criterion.value)
        show_model(chosen)
    _write(report, "report", found.to_html)
    return _exit_code(found.results)


@app.command(
    epilog="[bold]Example:[/] bestk cv data.csv --target price --alphas 0,0.1,1 --rule one-se"
)
@_helpful
def cv(
    file: Source,
    target: Target = "y",
    max_k: MaxK = 10,
    ks: Ks = None,
    weight: Weight = None,
    drop: Drop = None,
    alphas: Alphas = "0",
    folds: Annotated[
        int, _option("--folds", panel=_MODEL, metavar="COUNT", min=2, help="Parts of the rows.")
    ] = 5,
    rule: Annotated[
        Rule, _option("--rule", panel=_MODEL, help="Least error, or least k within one s.e. of it.")
    ] = Rule.min,
    seed: Annotated[
        int, _option("--seed", panel=_MODEL, metavar="COUNT", min=0, help="Deals out the rows.")
    ] = 0,
    intercept: Intercept = True,
    include: Include = None,
    exclude: Exclude = None,
    lower: Lower = None,
    upper: Upper = None,
    nonnegative: Nonnegative = False,
    auto_bounds: AutoBounds = False,
    gap_tol: GapTol = 1e-4,
    time_limit: TimeLimit = None,
    node_limit: NodeLimit = None,
    threads: Threads = None,
    as_json: Json = False,
    report: Report = None,
    quiet: Quiet = False,
) -> int:
    """Choose k and alpha by cross-validation, then fit all rows."""
    from bestk.readers.data import open_data
    from bestk.selection.cross_validation import cross_validate_batches
    from bestk.show.progress import Counter

    _require_folders(report)
    data = open_data(file, target=target, weight=weight, drop=drop or ())
    sizes, penalties = _sizes(ks, max_k, len(data.features)), _penalties(alphas)
    options = _choices(data, include, exclude)
    options |= _limits(gap_tol, time_limit, node_limit, threads)
    total = len(sizes) * len(penalties) * folds
    counter = Counter("cross-validating", "fits", total=total)
    with nullcontext(None) if quiet else counter as progress:
        validation, problem = cross_validate_batches(
            _batches(data, quiet),
            sizes,
            penalties,
            n_folds=folds,
            seed=seed,
            fit_intercept=intercept,
            bounds=_bounds(lower, upper, nonnegative, auto_bounds),
            progress=progress,
            **options,
        )
    alpha, k = validation.best(rule.value)
    with _display(quiet) as progress:
        result = replace(problem, alpha=alpha).solve(k, progress=progress, **options)
    if as_json:
        document = cv_document(validation, result, rule.value, seed)
        write_json(document)
    else:
        show_data(data, result)
        show_validation(validation, rule.value)
        show_model(result)
    _write(report, "report", validation.to_html)
    code = _exit_code([result])
    return code if validation.is_closed else code or GAP_LEFT


@app.command(
    epilog="[bold]Example:[/] bestk discover trajectory.csv --time t --degree 3 --plot found.png"
)
@_helpful
def discover(
    files: Annotated[
        list[File], typer.Argument(metavar="FILES", help="Trajectories with named columns.")
    ],
    time: Annotated[str, _option("--time", metavar="COLUMN", help="Times of the rows.")] = "t",
    states: Annotated[
        list[str] | None,
        _option("--states", metavar="COLUMNS", help="All others unless given: a,b."),
    ] = None,
    drop: Drop = None,
    degree: Annotated[
        int, _option("--degree", panel=_MODEL, metavar="COUNT", min=1, help="Of the candidates.")
    ] = 5,
    max_k: MaxK = 5,
    ks: Ks = None,
    alphas: Alphas = "1e-5,1e-3,1e-2,0.05,0.2",
    validation: Annotated[
        float,
        _option(
            "--validation",
            panel=_MODEL,
            metavar="SHARE",
            help="Last rows, which choose k and alpha.",
            show_default="1/3",
        ),
    ] = 1 / 3,
    criterion: Choice = Criterion.aicc,
    gap_tol: GapTol = 0.0,
    time_limit: TimeLimit = 30.0,
    as_json: Json = False,
    report: Report = None,
    plot: Annotated[
        File | None, _option("--plot", panel=_OUTPUT, metavar="PNG", help="Draw a picture.")
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Find, and prove, the equations x' = f(x) of trajectories."""
    from bestk.readers.data import read_trajectory
    from bestk.show.plots import require_matplotlib
    from bestk.show.progress import Counter

    _require_folders(report, plot)
    if plot is not None:
        require_matplotlib()
    sizes, penalties = _sizes(ks, max_k, max_k), _penalties(alphas)
    read = functools.partial(read_trajectory, time=time, states=states or (), drop=drop or ())
    x, t = zip(*map(read, files), strict=True)
    from bestk.sindy import discover as discover_equations  # slow to import

    total = len(x[0].columns) * len(sizes) * len(penalties)
    counter = Counter("proving", "models", total=total)
    with nullcontext(None) if quiet else counter as progress, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the search stopped")  # said at the end anyway
        found = discover_equations(
            list(x) if len(files) > 1 else x[0],
            list(t) if len(files) > 1 else t[0],
            degree=degree,
            ks=sizes,
            alphas=penalties,
            validation=validation,
            criterion=criterion.value,
            gap_tol=gap_tol,
            time_limit=time_limit,
            progress=progress,
        )
    if as_json:
        write_json(discovery_document(found, validation))
    else:
        show_discovery(found)
    _write(report, "report", found.to_html)
    _write(plot, "picture", found.plot)
    return _exit_code(found.searches)


@app.command()
@_helpful
def demo(threads: Threads = None, quiet: Quiet = False) -> int:
    """A proof on made-up data: no file needed, a few seconds."""
    from bestk import datasets
    from bestk import solve as solve_arrays

    n, p, k = 1000, 600, 10
    console = stdout()
    console.print(
        f"{n:,} rows and {p} features, neighbours correlated 0.9. {k} of the features make y, "
        "and noise does the rest. Which ones? "
        "[dim](The very first run compiles for some ten seconds.)[/]"
    )
    X, y, truth = datasets.make_synthetic(n, p, k, rho=0.9, snr=5.0)
    with _display(quiet) as progress:
        result = solve_arrays(X, y, k, alpha=1e-3, n_threads=threads, progress=progress)
    show_history(result)
    show_model(result)
    found = sum(truth[result.support] != 0)
    console.print(f"{found} of the {k} features that make y are in the model.")
    console.print("Now with your data: [bold]bestk fit data.csv --target y -k 5[/]")
    return _exit_code([result])


# Input ----------------------------------------------------------------------------------------


def _choices(data: "Data", include: Any, exclude: Any) -> dict[str, Any]:
    """Checked before the rows are read, which may take long."""
    from bestk.readers.data import choose_columns

    return {
        "include": choose_columns("--include", include or (), data.features),
        "exclude": choose_columns("--exclude", exclude or (), data.features),
    }


def _limits(gap_tol: float, time_limit: Any, node_limit: Any, threads: Any) -> dict[str, Any]:
    return {
        "gap_tol": gap_tol,
        "time_limit": time_limit,
        "node_limit": node_limit,
        "n_threads": threads,
    }


def _bounds(lower: float | None, upper: float | None, nonnegative: bool, auto: bool) -> Any:
    if auto and (nonnegative or lower is not None or upper is not None):
        raise typer.BadParameter("--auto-bounds excludes --lower, --upper and --nonnegative")
    if auto:
        return "auto"
    if nonnegative and lower is not None:
        raise typer.BadParameter("--nonnegative and --lower exclude each other")
    if nonnegative:
        lower = 0.0
    if lower is None and upper is None:
        return None
    return (-math.inf if lower is None else lower, math.inf if upper is None else upper)


def _sizes(ks: str | None, max_k: int, n_features: int) -> list[int]:
    if ks is None:
        return list(range(1, min(max_k, n_features) + 1))
    sizes: set[int] = set()
    try:
        for part in ks.split(","):
            first, dash, last = part.partition("-")
            sizes |= set(range(int(first), int(last if dash else first) + 1))
    except ValueError:
        sizes = set()
    if not sizes:
        raise typer.BadParameter(f"{ks!r} is not a list of sizes such as 1,2,5 or 1-10")
    return sorted(sizes)


def _penalties(alphas: str) -> list[float]:
    try:
        values = [float(part) for part in alphas.split(",")]
    except ValueError:
        values = [math.nan]
    if not all(0 <= value < math.inf for value in values):
        raise typer.BadParameter(f"{alphas!r} is not a list of penalties such as 0,0.1,1")
    return sorted(set(values))


def _require_folders(*paths: File | None) -> None:
    """A long run should not end with a folder that is not there."""
    for path in paths:
        if path is not None and not path.parent.is_dir():
            raise ValueError(f"cannot write {path}: there is no folder {path.parent}")


def _batches(data: "Data", quiet: bool) -> Iterator[tuple[Any, ...]]:
    """The batches, counted on the screen."""
    from bestk.show.progress import Counter

    counter = Counter(f"reading {data.path.name}", "rows")
    with nullcontext() if quiet else counter:
        for batch in data:
            yield batch
            if not quiet:
                counter.add(len(batch[1]))


# Output ---------------------------------------------------------------------------------------


def _display(quiet: bool, n_searches: int = 1) -> AbstractContextManager[Any]:
    from bestk.show.progress import LiveDisplay

    return nullcontext(None) if quiet else LiveDisplay(n_searches=n_searches)


def _exit_code(results: "Iterable[Result]") -> int:
    from bestk.results.result import Status

    results = list(results)
    if any(result.status is Status.INTERRUPTED for result in results):
        return INTERRUPTED
    return 0 if all(result.is_closed for result in results) else GAP_LEFT


def _write(path: File | None, what: str, write: Callable[[File], Any]) -> None:
    if path is not None:
        write(path)
        typer.echo(f"{what} written to {path}", err=True)
