"""bestk warmup and bestk demo: a program that was just installed."""

from typing import Annotated

import typer

from bestk.cli.options import (
    OUTPUT,
    Quiet,
    Threads,
    option,
)
from bestk.cli.outcome import (
    display,
    exit_code,
    helpful,
    waiting,
)
from bestk.show.console import (
    show_history,
    show_model,
    stdout,
)


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
