"""bestk verify: a proof from a file, on data from files."""

from collections.abc import Iterator
from pathlib import Path as File
from typing import Annotated, Any

import typer

from bestk.cli.options import (
    RUN,
    Device,
    Drop,
    Features,
    Gaps,
    Json,
    Missing,
    Numeric,
    Quiet,
    Source,
    Target,
    Text,
    Threads,
    Weight,
    option,
)
from bestk.cli.outcome import (
    NOT_VERIFIED,
    helpful,
)
from bestk.cli.question import (
    batches_of,
    open_table,
)
from bestk.show.console import (
    show_list_verification,
    write_json,
)


@helpful
def verify(
    certificate: Annotated[
        File,
        typer.Argument(metavar="CERTIFICATE", help="Written by --save of fit or alternatives."),
    ],
    file: Source,
    target: Target = "y",
    weight: Weight = None,
    features: Features = None,
    drop: Drop = None,
    numeric: Numeric = None,
    text: Text = None,
    missing: Missing = Gaps.error,
    exact: Annotated[
        bool, option("--exact", panel=RUN, help="In rational numbers; for small problems.")
    ] = False,
    max_seconds: Annotated[
        float | None,
        option(
            "--max-seconds",
            panel=RUN,
            metavar="SECONDS",
            min=0.0,
            help="Give up after this time, or at once if a longer time is forecast.",
        ),
    ] = None,
    allow_long: Annotated[
        bool,
        option("--allow-long", panel=RUN, help="Also if it takes more than an hour."),
    ] = False,
    threads: Threads = None,
    device: Device = "cpu",
    as_json: Json = False,
    quiet: Quiet = False,
) -> int:
    """Check the proof of a model, or of a list of models, with none of the code that made it."""
    from dataclasses import asdict

    from bestk.base.archive import arrays_in, naming
    from bestk.results.certificate import Certificate
    from bestk.results.completeness import CompletenessCertificate
    from bestk.verification.completeness import verify_list_batches
    from bestk.verification.verify import verify_batches

    arrays = arrays_in(certificate)
    kind = CompletenessCertificate if "list" in arrays else Certificate
    with naming(certificate):
        proof: Any = kind.from_arrays(arrays)
    if exact and kind is CompletenessCertificate:
        raise ValueError(
            f"--exact is for the proof of one model, and {certificate} holds a list; "
            "leave --exact out"
        )
    data = open_table(file, target, weight, features, drop, numeric, text, missing, quiet)
    batches = batches_of(data, quiet)
    how: Any = {"max_seconds": max_seconds, "allow_long": allow_long}
    if not exact:
        how |= {"n_threads": threads, "device": device}
    if exact:
        verification = proof.verify(*_joined(batches), exact=True, **how)
    elif kind is CompletenessCertificate:
        verification = verify_list_batches(proof, batches, **how)
    else:
        verification = verify_batches(proof, batches, **how)
    if as_json:
        write_json(asdict(verification))
    elif kind is CompletenessCertificate:
        show_list_verification(proof, verification)
    else:
        typer.echo(verification)
    return 0 if verification else NOT_VERIFIED


def _joined(batches: Iterator[tuple[Any, ...]]) -> list[Any]:
    """All rows at once: X, y and, if there are any, weights."""
    import numpy as np

    return [np.concatenate(parts) for parts in zip(*batches, strict=True)]
