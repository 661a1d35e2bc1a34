"""The command ``bestk discover``: equations of motion from trajectories."""

import warnings
from contextlib import nullcontext
from pathlib import Path as File
from typing import Annotated, Any

import typer

from bestk.cli.cluster import client_of
from bestk.cli.options import (
    MODEL,
    OUTPUT,
    Alphas,
    ChosenBy,
    Criterion,
    Device,
    Drop,
    GapTol,
    Json,
    Ks,
    MaxK,
    Quiet,
    Report,
    Scheduler,
    TimeLimit,
    Workers,
    option,
)
from bestk.cli.outcome import exit_code, helpful, require_places, write_files
from bestk.cli.question import penalties_of, sizes_of
from bestk.show.console import discovery_document, show_discovery, write_json


@helpful
def discover(
    files: Annotated[
        list[File], typer.Argument(metavar="FILES", help="Trajectories with named columns.")
    ],
    time: Annotated[str, option("--time", metavar="COLUMN", help="Times of the rows.")] = "t",
    states: Annotated[
        list[str] | None,
        option("--states", metavar="COLUMNS", help="Variables: a,b; all but the time by default."),
    ] = None,
    drop: Drop = None,
    degree: Annotated[
        int,
        option("--degree", panel=MODEL, metavar="COUNT", min=1, help="Largest degree of a term."),
    ] = 5,
    max_k: MaxK = 5,
    ks: Ks = None,
    alphas: Alphas = "1e-5,1e-3,1e-2,0.05,0.2",
    validation: Annotated[
        float,
        option(
            "--validation",
            panel=MODEL,
            metavar="SHARE",
            help="Share of the last rows, which choose k and alpha.",
            show_default="1/3",
        ),
    ] = 1 / 3,
    criterion: ChosenBy = Criterion.aicc,
    gap_tol: GapTol = 0.0,
    time_limit: TimeLimit = 30.0,
    device: Device = "cpu",
    workers: Workers = None,
    scheduler: Scheduler = None,
    as_json: Json = False,
    report: Report = None,
    plot: Annotated[
        File | None, option("--plot", panel=OUTPUT, metavar="PNG", help="Draw a picture.")
    ] = None,
    quiet: Quiet = False,
) -> int:
    """Find, and prove, the equations x' = f(x) of trajectories."""
    from bestk.readers.data import read_trajectory
    from bestk.readers.formats.source import naming
    from bestk.show.axes import require_picture
    from bestk.show.progress import Counter

    require_places(report=report, plot=plot)
    if plot is not None:
        require_picture("--plot", plot)
    sizes, penalties = sizes_of(ks, max_k, max_k), penalties_of(alphas)

    def read(file: File) -> Any:
        with naming(file) if len(files) > 1 else nullcontext():
            return read_trajectory(file, time=time, states=states or (), drop=drop or ())

    x, t = zip(*map(read, files), strict=True)
    for file, part in zip(files, x, strict=True):
        if part.columns != x[0].columns:
            raise ValueError(
                f"{file} has the states {', '.join(part.columns)}, but {files[0]} has "
                f"{', '.join(x[0].columns)}; all files need the same ones, see --states"
            )
    from bestk.sindy import discover as discover_equations  # slow to import

    total = len(x[0].columns) * len(sizes) * len(penalties)
    counter = Counter("proving", "models", total=total)
    with client_of(workers, scheduler, quiet) as client, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the search stopped")  # said at the end anyway
        with nullcontext(None) if quiet else counter as progress:
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
                device=device,
                client=client,
                progress=progress,
            )
    if as_json:
        write_json(discovery_document(found, validation))
    else:
        show_discovery(found)
    write_files((report, "report", found.to_html), (plot, "picture", found.plot))
    return exit_code(found.searches)
