"""The options that commands share: how each is written, and what --help says about it."""

from enum import StrEnum
from pathlib import Path as File
from typing import Annotated, Any

import typer

# Panels of --help.
MODEL, RUN, OUTPUT = "Model", "Run", "Output"


class Criterion(StrEnum):
    aicc = "aicc"
    bic = "bic"
    ebic = "ebic"


class Rule(StrEnum):
    min = "min"
    one_se = "one-se"


class Heredity(StrEnum):
    strong = "strong"
    weak = "weak"


class Gaps(StrEnum):
    error = "error"
    drop = "drop"


def option(*names: str, help: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


# A text, because a path would spoil addresses such as s3://bucket/data.
Source = Annotated[
    str,
    typer.Argument(metavar="FILE", help="Data with named columns: a file, a folder or a pattern."),
]
Target = Annotated[str, option("--target", "-t", metavar="COLUMN", help="What to explain.")]
Weight = Annotated[
    str | None, option("--weight", metavar="COLUMN", help="Weights of the squared residuals.")
]
Features = Annotated[
    list[str] | None,
    option("--features", metavar="COLUMNS", help="Only these: a,b or a pattern such as 'temp_*'."),
]
Drop = Annotated[
    list[str] | None,
    option("--drop", metavar="COLUMNS", help="Leave out: a,b, or --drop several times."),
]
Numeric = Annotated[
    list[str] | None,
    option("--numeric", metavar="COLUMNS", help="Read as numbers, though they look like text."),
]
Text = Annotated[
    list[str] | None,
    option("--text", metavar="COLUMNS", help="Take as text: a feature for each level."),
]
Missing = Annotated[
    Gaps, option("--missing", help="Rows with missing values: an error, or left out.")
]
K = Annotated[int, option("-k", metavar="K", min=0, help="Most features of a model.")]
MaxK = Annotated[int, option("--max-k", metavar="K", min=1, help="Sizes from 1 to this one.")]
Ks = Annotated[str | None, option("--ks", metavar="LIST", help="Or these sizes: 1,2,5 or 1-10.")]

Alpha = Annotated[
    float, option("--alpha", panel=MODEL, metavar="NUMBER", min=0.0, help="Ridge penalty.")
]
Intercept = Annotated[
    bool, option("--intercept/--no-intercept", panel=MODEL, help="Free constant term.")
]
Include = Annotated[
    list[str] | None,
    option("--include", panel=MODEL, metavar="COLUMNS", help="Features of every model."),
]
Exclude = Annotated[
    list[str] | None,
    option("--exclude", panel=MODEL, metavar="COLUMNS", help="Features of no model."),
]
Free = Annotated[
    list[str] | None,
    option("--free", panel=MODEL, metavar="COLUMNS", help="Features that do not count in k."),
]
Group = Annotated[
    list[str] | None,
    option("--group", panel=MODEL, metavar="NAME=COLUMNS", help="Chosen together: size=a,b."),
]
Rules = Annotated[
    list[str] | None,
    option("--rule", panel=MODEL, metavar="TEXT", help="Such as 'at most 2 of a, b, c'."),
]
Hierarchy = Annotated[
    Heredity | None,
    option("--hierarchy", panel=MODEL, help="Products a:b only with both a and b, or with one."),
]
Constraint = Annotated[
    list[str] | None,
    option("--constraint", panel=MODEL, metavar="TEXT", help="On coefficients: 'a + b = 1'."),
]
Lower = Annotated[
    float | None,
    option("--lower", panel=MODEL, metavar="NUMBER", help="Least coefficient, at most 0."),
]
Upper = Annotated[
    float | None,
    option("--upper", panel=MODEL, metavar="NUMBER", help="Largest coefficient, at least 0."),
]
Nonnegative = Annotated[bool, option("--nonnegative", panel=MODEL, help="Same as --lower 0.")]
AutoBounds = Annotated[
    bool,
    option("--auto-bounds", panel=MODEL, help="Choose a box; the proof holds inside it only."),
]

ChosenBy = Annotated[Criterion, option("--criterion", panel=MODEL, help="What chooses k.")]

GapTol = Annotated[
    float,
    option("--gap-tol", panel=RUN, metavar="NUMBER", min=0.0, help="Relative gap to prove."),
]
TimeLimit = Annotated[
    float | None,
    option("--time-limit", panel=RUN, metavar="SECONDS", min=0.0, help="Limit for each model."),
]
NodeLimit = Annotated[
    int | None,
    option("--node-limit", panel=RUN, metavar="COUNT", min=0, help="Limit for each model."),
]
Threads = Annotated[
    int | None,
    option("--threads", panel=RUN, metavar="COUNT", min=1, help="All cores unless given."),
]
Device = Annotated[
    str,
    option("--device", panel=RUN, metavar="NAME", help=r"cuda or cuda:1 for a GPU (bestk\[gpu])."),
]
Workers = Annotated[
    int | None,
    option("--workers", panel=RUN, metavar="COUNT", min=1, help="Processes that share the work."),
]
Scheduler = Annotated[
    str | None,
    option("--scheduler", panel=RUN, metavar="ADDRESS", help="A Dask cluster: tcp://host:8786."),
]
Alphas = Annotated[
    str, option("--alphas", panel=MODEL, metavar="LIST", help="Ridge penalties: 0,0.1,1.")
]
Json = Annotated[bool, option("--json", panel=OUTPUT, help="One JSON object on stdout.")]
Report = Annotated[
    File | None, option("--report", panel=OUTPUT, metavar="HTML", help="Write a report.")
]
Quiet = Annotated[bool, option("--quiet", "-q", panel=OUTPUT, help="No live display.")]
