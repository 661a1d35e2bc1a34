"""What the command ``bestk`` writes: tables for people, or JSON.

With ``--json`` exactly one JSON object goes to standard output, all messages to standard error.

``bestk fit`` writes a model:
    k, alpha : as asked for
    support : names of the chosen features
    coef : {name: value} of the chosen features
    intercept, objective, lower_bound, gap, explained_gap, r2 : numbers
    status : why the run ended
    proven : whether the gap is closed, without a box that was chosen
    conditional : whether the bound holds only inside a box that was chosen
    at_bounds : names of features whose coefficient lies at a bound
    n_samples, n_features, n_nodes, seconds : size and cost
    criteria : {"aicc", "bic", "ebic"}; smaller is better
    version : of bestk
where groups, rules or constraints were asked for also
    groups : names of the chosen groups, which k counts; a feature on its own is a group, too
    n_groups : how many groups there are
    rules : a list of the rules on the choice, in words
    constraints : a list of {"words", "value", "active", "multiplier"}, one for each linear
        constraint: its sum, whether that equals a side, and how fast the objective falls if this
        side is raised
    kkt_residual : how far the coefficients are from the conditions of a constrained optimum; 0
        without constraints

``bestk alternatives`` writes
    k, alpha : as asked for
    threshold, within, exactly_k : the largest objective that counts as near-optimal; the share that
        was asked for, or null; whether the list has the best models of exactly k features
    complete, complete_below : whether it is proven that no model is missing; below which objective
        none is
    conditional : whether that holds only inside a box that was chosen
    status : why the search ended
    best : the best model, with the keys of a model
    models : a list of {"support", "coef", "intercept", "objective", "worse_by", "borderline"}, best
        first; worse_by is relative to the best objective
    necessary, possible, useless : names of features of all, some, none of these models
    copies : a list of pairs of names: the first repeats the second, and only the second is listed
    n_samples, n_features, n_nodes, seconds, version
where groups, rules or constraints were asked for also
    rules, constraints : in words, as lists
    "groups" of each model : their names

``bestk path`` writes
    criterion, chosen : its name and the model it chooses
    proven, conditional, version
    results : models in ascending k

``bestk cv`` writes
    chosen : {"alpha", "k"} by the rule
    rule, measure, folds, seed
    table : a list of {"alpha", "k", "mean", "standard_error"}, errors on held-out rows
    share_proven : share of the fits in folds that are proven
    model : fitted to all rows with the chosen alpha and k
    proven, conditional, version

``bestk discover`` writes
    equations : a list with, for each state, its name "state", the text "equation", the keys of a
        model, and "runner_up": null or {"support", "objective", "lower_bound", "margin", "proven"}
    states, n_terms, n_trajectories : names and sizes
    validation, criterion : share of the rows that chose k and alpha, and by what
    table : a list of {"state", "alpha", "k", "score"}, its values on these rows
    share_proven : share of the fits behind the table that are proven
    horizon : list of times for which the simulation follows each trajectory
    proven, version

``bestk doctor`` writes
    version, python, platform
    packages, optional : {name: version}, null for what is not installed
    threads : {"default", "cores"}: those that a search uses unless told, and those of the machine
    blas : a list of {"internal_api", "version", "num_threads", "threading_layer", "architecture"}
    variables : {name: text} of the environment, as far as they steer threads and compiled code
    compile_cache : {"folder", "bytes", "writable", "problem"}; a problem is a text, empty if none
    devices : {"names", "problem"}
    self_test : a list of {"name", "passed", "problem", "seconds"}, empty if not asked for
    healthy : whether all of them passed

A number that is not finite is null.
"""

import json
import math
from decimal import ROUND_FLOOR, Context
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# Slow to import and not needed for --help.
from bestk.results.gaps import percent, relative_gap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bestk.base.structure import Structure
    from bestk.readers.data import Data
    from bestk.results.completeness import CompletenessCertificate
    from bestk.results.result import Result
    from bestk.rivals.models import NearModel, NearOptimal
    from bestk.selection.cross_validation import CrossValidation
    from bestk.selection.path import Path
    from bestk.sindy import Discovery


# More models, or names of features, than this are counted on the console instead of shown.
_MOST_MODELS, _MOST_NAMES = 20, 20


def stdout() -> Console:
    return Console(highlight=False)


def _table() -> Table:
    return Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")


def write_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """What JSON can hold: NumPy's numbers become Python's, and those that are not finite null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def model_document(result: "Result") -> dict[str, Any]:
    """A model as JSON; see the top of this module."""
    from bestk import __version__
    from bestk.results.criteria import CRITERIA

    return {
        "k": result.k,
        "alpha": result.alpha,
        "support": result.names,
        "coef": {result.name(j): result.coef[j] for j in result.support},
        "intercept": result.intercept,
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "explained_gap": result.explained_gap,
        "status": str(result.status),
        "proven": result.is_proven,
        "conditional": result.is_conditional,
        "at_bounds": [result.name(j) for j in result.at_bounds],
        "assumptions": result.assumptions,
        "r2": result.r2,
        "n_samples": result.n_samples,
        "n_features": len(result.coef),
        "n_nodes": result.n_nodes,
        "seconds": result.seconds,
        "criteria": {name: result.criterion(name) for name in CRITERIA},
        "version": __version__,
        **_structure_document(result),
    }


def _structure_document(result: "Result") -> dict[str, Any]:
    from bestk.results.result import active_constraints

    structure = result.structure
    if structure is None:
        return {}
    parts = zip(
        structure.constraint_words,
        (structure.matrix @ result.coef).tolist(),
        active_constraints(result).tolist(),
        result.multipliers.tolist(),
        strict=True,
    )
    keys = ("words", "value", "active", "multiplier")
    return {
        "groups": result.group_names,
        "n_groups": structure.n_groups,
        "rules": list(structure.words),
        "constraints": [dict(zip(keys, part, strict=True)) for part in parts],
        "kkt_residual": result.kkt_residual,
    }


def list_document(found: "NearOptimal") -> dict[str, Any]:
    """Near-optimal models as JSON; see the top of this module."""
    from bestk import __version__

    best = model_document(found.best)
    del best["version"]
    names, structure = found.names, found.structure
    asked = {}
    if structure is not None:
        asked = {"rules": list(structure.words), "constraints": list(structure.constraint_words)}
    return {
        "k": found.k,
        "alpha": found.alpha,
        "threshold": found.threshold,
        "within": found.within,
        "exactly_k": found.only_k,
        "complete": found.complete,
        "complete_below": found.complete_below,
        "conditional": found.best.is_conditional,
        "status": str(found.status),
        "best": best,
        "models": [
            {
                "support": list(model.names),
                "coef": dict(zip(model.names, model.values.tolist(), strict=True)),
                "intercept": model.intercept,
                "objective": model.objective,
                "worse_by": _worse_by(found, model),
                "borderline": model.is_borderline,
                **_groups_of(found, model),
            }
            for model in found.models
        ],
        "necessary": [names[j] for j in found.necessary],
        "possible": [names[j] for j in found.possible],
        "useless": [names[j] for j in found.useless],
        "copies": [[names[a], names[b]] for a, b in found.copies],
        "n_samples": found.n_samples,
        "n_features": found.n_features,
        "n_nodes": found.n_nodes,
        "seconds": found.seconds,
        "version": __version__,
        **asked,
    }


def _groups_of(found: "NearOptimal", model: "NearModel") -> dict[str, list[str]]:
    structure = found.structure
    if structure is None:
        return {}
    return {"groups": [structure.group_names[g] for g in structure.groups_of(model.support)]}


def _worse_by(found: "NearOptimal", model: "NearModel") -> float:
    """Relative to the best objective; of a perfect fit nothing is."""
    best = found.best.objective
    return max(model.objective / best - 1.0, 0.0) if best > 0 else math.nan


def path_document(path: "Path", criterion: str) -> dict[str, Any]:
    from bestk import __version__

    return {
        "criterion": criterion,
        "chosen": model_document(path.best(criterion)),
        "proven": path.is_proven,
        "conditional": path.is_conditional,
        "results": [model_document(result) for result in path.results],
        "version": __version__,
    }


def cv_document(
    validation: "CrossValidation", result: "Result", rule: str, seed: int
) -> dict[str, Any]:
    from bestk import __version__

    model = model_document(result)
    table = [
        {"alpha": alpha, "k": k, "mean": mean, "standard_error": error}
        for alpha, means, errors in zip(
            validation.alphas, validation.mean, validation.standard_error, strict=True
        )
        for k, mean, error in zip(validation.ks, means, errors, strict=True)
    ]
    return {
        "chosen": {"alpha": result.alpha, "k": result.k},
        "rule": rule,
        "measure": validation.measure,
        "folds": validation.errors.shape[2],
        "seed": seed,
        "table": table,
        "share_proven": validation.share_proven,
        "model": model,
        "proven": validation.is_proven and model["proven"],
        "conditional": validation.is_conditional or model["conditional"],
        "version": __version__,
    }


def discovery_document(found: "Discovery", validation: float) -> dict[str, Any]:
    from bestk import __version__

    equations = []
    for i, (result, other) in enumerate(zip(found.results, found.runners_up, strict=True)):
        model = model_document(result)
        del model["version"]
        runner_up = None
        if other is not None:
            runner_up = {
                "support": other.names,
                "objective": other.objective,
                "lower_bound": other.lower_bound,
                "margin": found.margins[i],
                "proven": other.is_proven,
            }
        names = {"state": found.states[i], "equation": found.equations[i]}
        equations.append(names | model | {"runner_up": runner_up})
    table = [
        {"state": state, "alpha": alpha, "k": k, "score": score}
        for state, rows in zip(found.states, found.scores, strict=True)
        for alpha, row in zip(found.alphas, rows, strict=True)
        for k, score in zip(found.ks, row, strict=True)
    ]
    return {
        "equations": equations,
        "states": list(found.states),
        "n_terms": len(found.terms),
        "n_trajectories": len(found.trajectories.x),
        "validation": validation,
        "criterion": found.criterion,
        "table": table,
        "share_proven": found.share_proven,
        "horizon": found.horizons,
        "proven": found.is_proven and found.is_grid_proven,
        "version": __version__,
    }


def show_data(data: "Data", result: "Result") -> None:
    stdout().print(
        f"[dim]{escape(data.title)}: {result.n_samples:,} rows, {len(result.coef):,} features, "
        f"target {escape(data.target)}[/]"
    )


def show_model(result: "Result") -> None:
    """Terms and coefficients, what was proven, and what to do where something was not."""
    from bestk.results.result import grouped_support, uncounted

    console, free = stdout(), uncounted(result)
    terms = _table()
    terms.add_column("term")
    terms.add_column("coefficient", justify="right")
    if result.fit_intercept:
        terms.add_row("[italic]intercept[/]", f"{result.intercept:.6g}")
    for group, features in grouped_support(result):
        if group:
            terms.add_row(escape(group), "")
        for j in features:
            mark = " [dim](not counted)[/]" if j in free else ""
            name = f"{'  ' if group else ''}{escape(result.name(j))}{mark}"
            terms.add_row(name, f"{result.coef[j] + 0.0:.6g}")
    facts = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    for name, value in _facts(result).items():
        facts.add_row(f"[dim]{name}[/]", value)
    assumed = [f"[dim]Assumed:[/] {escape(text)}" for text in result.assumptions]
    bounded = [f"[yellow]{escape(result.bound_remark)}[/]"] if result.at_bounds else []
    active = _active(result)
    for part in ("", terms, *active, "", facts, "", _verdict(result), *bounded, *assumed):
        console.print(part)


def _active(result: "Result") -> list[Any]:
    """Constraints that hold with equality, with their multipliers."""
    from bestk.results.result import active_constraints

    active = active_constraints(result).nonzero()[0].tolist()
    if result.structure is None or not active:
        return []
    table = _table()
    table.add_column("active constraint", overflow="fold")
    table.add_column("multiplier", justify="right", no_wrap=True)
    for i in active[:_MOST_NAMES]:
        words = escape(result.structure.constraint_words[i])
        table.add_row(words, f"{result.multipliers[i]:.4g}")
    left = len(active) - _MOST_NAMES
    return ["", table, *([f"[dim]... and {left:,} more[/]"] if left > 0 else [])]


def _facts(result: "Result") -> dict[str, str]:
    constrained = result.structure is not None and len(result.structure.matrix)
    return {
        "objective": f"{result.objective:.10g}",
        "lower bound": f"{result.lower_bound:.10g}",
        "gap": percent(result.gap),
        "R²": f"{result.r2:.6g}",
        "AICc, BIC": f"{result.criterion('aicc'):.6g}, {result.criterion('bic'):.6g}",
        **({"KKT residual": f"{result.kkt_residual:.2g}"} if constrained else {}),
        "nodes": f"{result.n_nodes:,}",
        "seconds": f"{result.seconds:.3g}",
    }


def _verdict(result: "Result") -> str:
    from bestk.results.status import Status

    features = f"at most {_units(result.k, result.structure)}"
    kind, one = ("model", "a model")
    if result.structure is not None:
        kind, one = ("admissible model", "an admissible model")
    if result.status is Status.PERFECT_FIT:
        return f"[bold green]Proven:[/] {result.status.advice}"
    better = f" by more than {percent(result.gap)}" if result.gap > 0 else ""
    if result.is_proven:
        return f"[bold green]Proven:[/] no {kind} with {features} is better{better}."
    if result.is_closed:
        return (
            f"[bold yellow]Conditional:[/] no model with {features} inside the box is "
            f"better{better}; models with larger coefficients were not looked at. Give --lower and "
            "--upper that you can defend, or a larger box, to learn more."
        )
    advice = "raise the limit, loosen --gap-tol, or try --alpha above 0 or bounds"
    if result.status is Status.INTERRUPTED:
        advice = "give it more time, or loosen --gap-tol"
    elif result.status is Status.NUMERICAL_LIMIT:
        advice = "try --alpha above 0 or bounds; what is left of it is rounding"
    where = " inside the box" if result.is_conditional else ""
    return (
        f"[bold yellow]Not proven ({result.status}):[/] {one} with {features}{where} may be "
        f"better, but by {percent(result.gap)} at most. To close the gap, {advice}."
    )


def show_list(found: "NearOptimal") -> None:
    """The best of the models, what they have in common, and whether one may be missing."""
    console = stdout()
    for part in ("", _models(found), *_more(found), "", _common(found), "", *_list_verdict(found)):
        console.print(part)


def _models(found: "NearOptimal") -> Table:
    table = _table()
    for head in ("objective", "worse by", "size"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column(_many(found.structure), overflow="fold")
    for model in found.models[:_MOST_MODELS]:
        names = _named(found, model.support)
        share = _worse_by(found, model)
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
        "in none": f"{len(_named(found, found.useless)):,} of {total:,} {_many(found.structure)}",
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
    left = len(names) - _MOST_NAMES
    more = [f"and {left:,} more"] if left > 0 else []
    return ", ".join(names[:_MOST_NAMES] + more) or "none"


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
    units = _units(k, structure)
    if only_k:
        return f"no other model with exactly {units}{where} is better than the last of these"
    every = "every model" if structure is None else "every admissible model"
    return (
        f"{every} with at most {units}{where} up to the threshold is one of these, or "
        f"one of these with {_many(structure)} added"
    )


def _units(k: int, structure: "Structure | None") -> str:
    """k in words, such as "3 groups"."""
    return f"{k} {_many(structure)}" if k != 1 else f"1 {_many(structure)[:-1]}"


def _many(structure: "Structure | None") -> str:
    """What k counts."""
    from bestk.show.structure import unit_of

    return f"{unit_of(structure)}s"


def _named(found: "NearOptimal", features: Any) -> list[str]:
    """Names of features, or of the groups that they make up."""
    structure = found.structure
    if structure is None or not structure.has_groups:
        return [found.names[j] for j in features]
    return [structure.group_names[g] for g in structure.groups_of(features)]


def _incomplete(found: "NearOptimal", where: str) -> str:
    from bestk.results.status import Status

    why, advice = str(found.status), "raise the limit, or try --alpha above 0 or bounds"
    if found.status in (Status.OPTIMAL, Status.CONDITIONAL):
        why, advice = "--max-models", "raise --max-models, or ask for less with --within"
    elif found.status is Status.INTERRUPTED:
        advice = "give it more time"
    elif found.status in (Status.PERFECT_FIT, Status.NUMERICAL_LIMIT):
        advice = "try --alpha above 0 or bounds; rounding hides which models are better"
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
        f"A list of {n:,} model{'s' if n != 1 else ''}, which claims that "
        f"{_claim(proof.k, proof.only_k, structure=proof.structure)}."
    )
    typer.echo(verification)


def show_path(path: "Path", criterion: str) -> None:
    from bestk.show.structure import names_of

    chosen = path.best(criterion).k
    table = _table()
    for head in ("k", "objective", "gap", "R²", criterion):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column(_many(path.results[0].structure), overflow="fold")
    for result in path.results:
        open_or_not = "conditional" if result.is_closed else "not proven"
        mark = "" if result.is_proven else f" [yellow]({open_or_not})[/]"
        table.add_row(
            str(result.k),
            f"{result.objective:.7g}",
            percent(result.gap),
            f"{result.r2:.4f}",
            f"{result.criterion(criterion):.2f}",
            escape(", ".join(names_of(result))) + mark,
            style="bold" if result.k == chosen else None,
        )
    console = stdout()
    console.print()
    console.print(table)
    console.print(f"\n{criterion} chooses k = {chosen}:")


def show_validation(validation: "CrossValidation", rule: str) -> None:
    alpha, k = validation.best(rule)
    table = _table()
    table.add_column("k", justify="right")
    for value in validation.alphas:
        table.add_column(f"alpha {value:g}", justify="right")
    for j, size in enumerate(validation.ks):
        cells = []
        for i, value in enumerate(validation.alphas):
            cell = f"{validation.mean[i, j]:.5g} ± {validation.standard_error[i, j]:.4g}"
            cells.append(f"[bold]{cell}[/]" if (value, size) == (alpha, k) else cell)
        table.add_row(str(size), *cells)
    console = stdout()
    console.print(f"\n[dim]{validation.measure} on held-out rows, ± standard error[/]")
    console.print(table)
    console.print(f"\n{validation.claim}.")
    console.print(f"The rule {rule} chooses k = {k}, alpha = {alpha:g}; fitted to all rows:")


def show_discovery(found: "Discovery") -> None:
    """Equations, what is proven about each, and how far a simulation follows the data."""
    data = found.trajectories
    table = _table()
    table.add_column("equation")
    for head in ("k", "alpha", "objective", "gap", "R²"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("next best", overflow="fold")
    for i, (result, other) in enumerate(zip(found.results, found.runners_up, strict=True)):
        terms = f": {', '.join(other.names)}" if other and len(other.support) else ""
        table.add_row(
            escape(found.states[i]) + "'",
            str(result.k),
            f"{result.alpha:.3g}",
            f"{result.objective:.7g}",
            percent(result.gap),
            f"{result.r2:.4f}",
            escape(found.distances[i] + terms),
        )
    rows = sum(len(t) for t in data.t)
    count = f" in {len(data.t)} trajectories" if len(data.t) > 1 else ""
    console = stdout()
    console.print(
        f"[dim]{rows:,} rows{count}, {len(found.states)} states, {len(found.terms)} candidate "
        f"terms[/]\n"
    )
    for equation in found.equations:
        console.print(f"[bold]{escape(equation)}[/]")
    console.print()
    console.print(table)
    spans = ", ".join(
        f"{horizon:.4g} of {t[-1] - t[0]:.4g}"
        for horizon, t in zip(found.horizons, data.t, strict=True)
    )
    console.print(f"\nA simulation from the first row follows the data for {spans} time units.")
    head, text = found.verdict
    console.print(f"[bold {'green' if found.is_proven else 'yellow'}]{head}[/] {text}")


def show_history(result: "Result", rows: int = 6) -> None:
    """How the gap closed, at a few moments of the run."""
    from bestk.results.gaps import percent

    table = _table()
    for head in ("seconds", "nodes", "best found", "proven bound", "gap"):
        table.add_column(head, justify="right")
    last = len(result.history) - 1
    for i in sorted({round(last * step / (rows - 1)) for step in range(rows)}):
        seconds, nodes, incumbent, bound = result.history[i]
        gap = percent(relative_gap(incumbent, bound, result.yy))
        table.add_row(f"{seconds:.2f}", f"{nodes:,}", f"{incumbent:.7g}", f"{bound:.7g}", gap)
    console = stdout()
    console.print()
    console.print(table)


def doctor_document(machine: dict[str, Any], checks: "Iterable[Any]") -> dict[str, Any]:
    """A machine and its self-test as JSON; see the top of this module."""
    test = [
        {
            "name": check.name,
            "passed": check.passed,
            "problem": check.problem,
            "seconds": check.seconds,
        }
        for check in checks
    ]
    return machine | {"self_test": test, "healthy": all(check["passed"] for check in test)}


def show_machine(machine: dict[str, Any]) -> None:
    """What `bestk doctor` finds, one line each."""
    packages = machine["packages"] | {k: v for k, v in machine["optional"].items() if v}
    missing = [name for name, version in machine["optional"].items() if not version]
    threads, cache, devices = machine["threads"], machine["compile_cache"], machine["devices"]
    rows = [
        ("bestk", machine["version"]),
        ("Python", f"{machine['python']}, {machine['platform']}"),
        *((name, version or "missing") for name, version in packages.items()),
        ("not installed", ", ".join(missing)),
        ("threads", f"{threads['default']} of {threads['cores']} cores"),
        *(("BLAS", _blas_words(library)) for library in machine["blas"]),
        *machine["variables"].items(),
        ("compiled loops", _cache_words(cache)),
        ("devices", ", ".join(devices["names"]) or "cpu only"),
        *(("problem", found["problem"]) for found in (cache, devices) if found["problem"]),
    ]
    width = max(len(name) for name, _ in rows) + 2
    for name, words in rows:
        if words:
            stdout().print(f"[dim]{escape(name):<{width}}[/]{escape(words)}", soft_wrap=True)


def _blas_words(library: dict[str, Any]) -> str:
    details = [library["threading_layer"], library["architecture"]]
    told = [f"{library['num_threads']} threads", *(word for word in details if word)]
    return f"{library['internal_api']} {library['version'] or ''}".rstrip() + f", {', '.join(told)}"


def _cache_words(cache: dict[str, Any]) -> str:
    writable = "writable" if cache["writable"] else "not writable"
    return f"{cache['folder'] or 'no folder'}, {cache['bytes'] / 1e6:.1f} MB, {writable}"


def show_check(check: Any) -> None:
    """One line for each part of the self-test."""
    verdict = "[green]passed[/]" if check.passed else f"[red]failed[/]: {escape(check.problem)}"
    told = f"self-test of {check.name}: {verdict} [dim]{check.seconds:.2f} s[/]"
    stdout().print(told, soft_wrap=True)
