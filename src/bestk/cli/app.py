"""The command ``bestk``: its commands, each with an example.

The numbers and words they write are made in :mod:`bestk.show.console`. The solver takes a second to
import: commands do so when they need it, --help does not.
"""

from typing import Annotated

import typer

from bestk.cli.commands.alternatives import alternatives
from bestk.cli.commands.cv import cv
from bestk.cli.commands.discover import discover
from bestk.cli.commands.doctor import doctor
from bestk.cli.commands.fit import fit
from bestk.cli.commands.path import path
from bestk.cli.commands.trying import demo, warmup
from bestk.cli.commands.verify import verify
from bestk.cli.options import option

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


for command, example in {
    fit: "fit data.csv --target price -k 5 --time-limit 60",
    alternatives: "alternatives data.csv --target price -k 5 --within 2%",
    verify: "verify run.npz data.csv --target price",
    path: "path data.parquet --target price --max-k 8 --criterion bic",
    cv: "cv data.csv --target price --alphas 0,0.1,1 --rule one-se",
    discover: "discover trajectory.csv --time t --degree 3 --plot found.png",
    warmup: "warmup --quiet",
    demo: "demo",
    doctor: "doctor --json > machine.json",
}.items():
    app.command(epilog=f"[bold]Example:[/] bestk {example}")(command)
