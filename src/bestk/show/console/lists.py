"""Tables about a list of near-optimal models."""

import math
from decimal import ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from bestk.base.words import counted
from bestk.results.gaps import percent
from bestk.show.console.documents import worse_by
from bestk.show.console.words import MOST_NAMES, escape, many, stdout, table_of_columns, units

if TYPE_CHECKING:
    from bestk.base.structure import Structure
    from bestk.results.completeness import CompletenessCertificate
    from bestk.rivals.models import NearOptimal

# More models than this are counted instead of shown.
_MOST_MODELS = 20


def show_list(found: "NearOptimal") -> None:
    """The best of the models, what they have in common, and whether one may be missing."""
    console = stdout()
    for part in ("", _models(found), *_more(found), "", _common(found), "", *_list_verdict(found)):
        console.print(part)


def _models(found: "NearOptimal") -> Table:
    table = table_of_columns()
    for head in ("objective", "worse by", "size"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column(many(found.structure), overflow="fold")
    for model in found.models[:_MOST_MODELS]:
        names = _named(found, model.support)
        share = worse_by(found, model)
        is_doubtful = model.is_borderline and not found.only_k
        mark = " [yellow](at the threshold up to rounding)[/]" if is_doubtful else ""
        table.add_row(
            f"{model.objective:.7g}",
            percent(share) if math.isfinite(share) else "",
            str(len(names)),
            (escape(", ".join(names)) or "[italic]none[/]") + mark,
        )
    return table


def _more(found: "NearOptimal") -> list[str]:
    left = len(found) - _MOST_MODELS
    return [f"[dim]... and {left:,} more; --json and --report have all[/]"] if left > 0 else []


def _common(found: "NearOptimal") -> Table:
    from bestk.show.structure import n_units, names_of

    total = n_units(found.structure, found.n_features)
    facts = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    above = "" if found.within is None else f", {100 * found.within:.6g}% above the best"
    copies = [f"{found.names[a]} repeats {found.names[b]}" for a, b in found.copies]
    rows = {
        "models": f"{len(found):,}",
        "best": f"{found.best.objective:.10g} with {_some(names_of(found.best))}",
        "threshold": f"{found.threshold:.10g}{above}",
        "in all of these": _some(_named(found, found.necessary)),
        "in some": _some(_named(found, found.possible)),
        "in none": f"{len(_named(found, found.useless)):,} of {total:,} {many(found.structure)}",
        "copies": _some(copies),
        "nodes": f"{found.n_nodes:,}",
        "seconds": f"{found.seconds:.3g}",
    }
    for name, value in rows.items():
        if name != "copies" or copies:
            facts.add_row(f"[dim]{name}[/]", escape(value))
    return facts


def _some(names: list[str]) -> str:
    """Names up to a number that can be read."""
    left = len(names) - MOST_NAMES
    more = [f"and {left:,} more"] if left > 0 else []
    return ", ".join(names[:MOST_NAMES] + more) or "none"


def _list_verdict(found: "NearOptimal") -> list[str]:
    """Is the list complete? What would complete it?"""
    where = " inside the box" if found.best.is_conditional else ""
    lines = []
    if found.complete:
        colour = "yellow" if where else "green"
        head = f"[bold {colour}]Complete{where}:[/]"
        claim = _claim(found.k, found.only_k, where, found.structure)
        lines.append(f"{head} {claim}.")
    else:
        lines.append(_incomplete(found, where))
    if found.within is not None and not found.best.is_closed:
        gap = percent(found.best.gap)
        lines.append(
            f"[yellow]The best model is not proven ({found.best.status}):[/] one may be better by "
            f"{gap} at most, and the threshold is relative to the best that was found."
        )
    return lines


def _claim(k: int, only_k: bool, where: str = "", structure: "Structure | None" = None) -> str:
    size = units(k, structure)
    if only_k:
        return f"no other model with exactly {size}{where} is better than the last of these"
    every = "every model" if structure is None else "every admissible model"
    return (
        f"{every} with at most {size}{where} up to the threshold is one of these, or "
        f"one of these with {many(structure)} added"
    )


def _named(found: "NearOptimal", features: Any) -> list[str]:
    """Names of features, or of the groups that they make up."""
    structure = found.structure
    if structure is None or not structure.has_groups:
        return [found.names[j] for j in features]
    return [structure.group_names[g] for g in structure.groups_of(features)]


def _incomplete(found: "NearOptimal", where: str) -> str:
    from bestk.results.status import Status

    bounded = "--alpha above 0, or --lower and --upper"
    why, advice = str(found.status), f"raise the limit, or try {bounded}"
    if found.status in (Status.OPTIMAL, Status.CONDITIONAL):
        why, advice = "--max-models", "raise --max-models, or ask for less with --within"
    elif found.status is Status.INTERRUPTED:
        advice = "give it more time"
    elif found.status in (Status.PERFECT_FIT, Status.NUMERICAL_LIMIT):
        advice = f"try {bounded}; rounding hides which models are better"
    known = ""
    if found.complete_below > found.best.objective:
        known = f" Below the objective {_down(found.complete_below)} none is."
    head = f"[bold yellow]Not complete ({why}):[/] models may be missing{where}."
    return f"{head}{known} To complete the list, {advice}."


def _down(value: float) -> str:
    """Rounded down: no more than is proven."""
    return f"{float(Context(prec=8, rounding=ROUND_FLOOR).create_decimal_from_float(value)):.8g}"


def show_list_verification(proof: "CompletenessCertificate", verification: Any) -> None:
    """What a file claims about a list, and whether the data bear it out."""
    n = len(proof.models)
    stdout().print(
        f"A list of {counted(n, 'model')}, which claims that "
        f"{_claim(proof.k, proof.only_k, structure=proof.structure)}."
    )
    typer.echo(verification)
