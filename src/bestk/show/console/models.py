"""Tables about one model, models of all sizes, cross-validation and equations."""

from typing import TYPE_CHECKING, Any

from rich.table import Table

from bestk.base.words import counted
from bestk.results.gaps import percent, relative_gap
from bestk.show.console.as_typed import as_typed
from bestk.show.console.words import MOST_NAMES, escape, many, stdout, table_of_columns, units

if TYPE_CHECKING:
    from bestk.readers.data import Data
    from bestk.results.result import Result
    from bestk.selection.cross_validation import CrossValidation
    from bestk.selection.path import Path
    from bestk.sindy import Discovery


def show_data(data: "Data", result: "Result") -> None:
    console = stdout()
    console.print(
        f"[dim]{escape(data.title)}: {counted(result.n_samples or 0, 'row')}, "
        f"{counted(len(result.coef), 'feature')}, target {escape(data.target)}[/]"
    )
    if data.drops_missing:
        console.print(f"[dim]{escape(_left_out(data))}[/]")


def show_structure(data: "Data", result: "Result") -> None:
    """Columns of text with the level that has no feature, and the rules of the model."""
    lines = [f"{column}: compared with {level}" for column, level in data.baseline.items()]
    if result.structure is not None:
        from bestk.structure.compose import describe

        told = {f"{name}: {len(features)} features" for name, features in data.groups.items()}
        rules = [f"  {line}" for line in describe(result.structure) if line not in told]
        lines += ["rules", *rules] if rules else []
    for line in lines:
        stdout().print(f"[dim]{escape(line)}[/]")


def _left_out(data: "Data", most: int = 5) -> str:
    """How many rows are not in the sums, and which columns lack most values."""
    n_rows, counts = data.left_out.n_rows, data.left_out.values.most_common()
    if n_rows is None:
        return "rows with missing values are left out"
    if n_rows == 0:
        return "no row has missing values"
    where = ", ".join(f"{n:,} in {column}" for column, n in counts[:most])
    where += f", more in {counted(len(counts) - most, 'column')}" if len(counts) > most else ""
    return f"{counted(n_rows, 'row')} left out, where values are missing: {where}"


def show_model(result: "Result") -> None:
    """Terms and coefficients, what was proven, and what to do where something was not."""
    from bestk.results.result import grouped_support, uncounted

    console, free = stdout(), uncounted(result)
    terms = table_of_columns()
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
    table = table_of_columns()
    table.add_column("active constraint", overflow="fold")
    table.add_column("multiplier", justify="right", no_wrap=True)
    for i in active[:MOST_NAMES]:
        words = escape(result.structure.constraint_words[i])
        table.add_row(words, f"{result.multipliers[i]:.4g}")
    left = len(active) - MOST_NAMES
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

    features = f"at most {units(result.k, result.structure)}"
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
            "--upper that you trust, or a larger box, to learn more."
        )
    advice = "raise the limit, loosen --gap-tol, or try --alpha above 0, or --lower and --upper"
    if result.status is Status.INTERRUPTED:
        advice = "give it more time, or loosen --gap-tol"
    elif result.status is Status.NUMERICAL_LIMIT:
        advice = "try --alpha above 0, or --lower and --upper; the rest of it is rounding"
    where = " inside the box" if result.is_conditional else ""
    return (
        f"[bold yellow]Not proven ({result.status}):[/] {one} with {features}{where} may be "
        f"better, but by {percent(result.gap)} at most. To close the gap, {advice}."
    )


def show_path(path: "Path", criterion: str) -> None:
    from bestk.show.structure import names_of

    chosen = path.best(criterion).k
    table = table_of_columns()
    for head in ("k", "objective", "gap", "R²", criterion):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column(many(path.results[0].structure), overflow="fold")
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
    table = table_of_columns()
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
    table = table_of_columns()
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
        f"[dim]{counted(rows, 'row')}{count}, {counted(len(found.states), 'state')}, "
        f"{counted(len(found.terms), 'candidate term')}[/]\n"
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
    colour = "green" if found.is_proven else "yellow"
    console.print(f"[bold {colour}]{head}[/] {escape(as_typed(text))}")


def show_history(result: "Result", rows: int = 6) -> None:
    """How the gap closed, at a few moments of the run."""
    table = table_of_columns()
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
