"""Groups, rules and constraints: as they are typed, and as they are shown."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

# Slow to import and not needed for --help.
if TYPE_CHECKING:
    from bestk.readers.data import Data
    from bestk.results.result import Result

_FORMS = (
    "at most 2 of a, b, c",
    "at least 1 of a, b",
    "not both a, b",
    "exclusive a, b, c",
    "a:b needs a, b",
    "x needs any of a, b",
    "max correlation 0.8",
)
_COUNT = re.compile(r"at\s+(most|least)\s+(\d+)\s+of\s+(.+)", re.IGNORECASE)
_EXCLUSIVE = re.compile(r"(?:not\s+both|exclusive)\s+(.+)", re.IGNORECASE)
_CORRELATION = re.compile(r"max\s+correlation\s+(\d*\.?\d+)", re.IGNORECASE)
_NEEDS = re.compile(r"(.+?)\s+needs\s+(any\s+of\s+)?(.+)", re.IGNORECASE)

Groups = dict[str, list[str]]


def groups_of(data: "Data", texts: Iterable[str] | None) -> Groups:
    """{name: features} of ``NAME=a,b`` and of columns of text that are in no such group."""
    found: Groups = {}
    for text in texts or ():
        name, _, columns = (part.strip() for part in text.partition("="))
        if not name or not columns:
            form = f"{text!r} is not like size=height,width"
            raise typer.BadParameter(form, param_hint="--group")
        if name in found:
            raise ValueError(f"--group: there are two groups named {name!r}; rename one of them")
        found[name] = features_in("--group", [columns], data, data.groups)
    taken = {feature for features in found.values() for feature in features}
    whole = {name: own for name, own in data.groups.items() if not taken.issuperset(own)}
    for name in found.keys() & whole.keys():
        raise ValueError(f"--group: {name!r} is a column of text already; choose another name")
    return whole | found


def features_in(
    option: str, texts: Iterable[str] | None, data: "Data", groups: Groups
) -> list[str]:
    """Features from texts with names of features and groups."""
    from bestk.readers.data import choose_columns

    names = choose_columns(option, texts or (), [*data.features, *groups])
    # A pattern may match a column of text and its features.
    chosen = [feature for name in names for feature in groups.get(name, [name])]
    return list(dict.fromkeys(chosen))


def structure_in(
    data: "Data", groups: Groups, rules: Any, hierarchy: str | None, constraints: Any
) -> dict[str, Any]:
    """Keywords of the solver, as far as something is asked for."""
    from bestk.rules import hierarchy as hierarchy_rule

    known = [*data.features, *groups]
    found = [rule for text in rules or () for rule in _rules(text, known)]
    if hierarchy is not None:
        found.append(hierarchy_rule(str(hierarchy)))
    asked: dict[str, Any] = {}
    # A column of two levels is a feature like any other, but rules may call it by its own name.
    if any(len(features) > 1 for features in groups.values()) or (groups and found):
        asked["groups"] = groups
    if found:
        asked["rules"] = found
    if constraints:
        asked["constraints"] = list(constraints)
    _check(data, asked)
    return asked


def _rules(text: str, known: list[str]) -> list[Any]:
    from bestk import rules
    from bestk.readers.data import choose_columns

    def named(names: str) -> list[str]:
        return choose_columns("--rule", [names], known)

    if match := _COUNT.fullmatch(text.strip()):
        most, count, names = match.groups()
        rule = rules.at_most if most.lower() == "most" else rules.at_least
        return [rule(int(count), named(names))]
    if match := _EXCLUSIVE.fullmatch(text.strip()):
        return [rules.exclusive(named(match[1]))]
    if match := _CORRELATION.fullmatch(text.strip()):
        return [rules.max_correlation(float(match[1]))]
    if match := _NEEDS.fullmatch(text.strip()):
        first, is_any, needs = match.groups()
        return [rules.implies(one, named(needs), any=bool(is_any)) for one in named(first)]
    raise not_a_rule(text)


def not_a_rule(text: str, nor: str = "") -> typer.BadParameter:
    forms = ", ".join(f'"{form}"' for form in _FORMS)
    words = f"{text!r} is not a rule{nor}; rules are like {forms}"
    return typer.BadParameter(words, param_hint="--rule")


def _check(data: "Data", asked: dict[str, Any]) -> None:
    """What can be checked before the rows are read, which may take long."""
    from bestk.structure.compose import structure_of

    names = data.features
    structure_of(len(names), names, groups=asked.get("groups"))
    structure_of(len(names), names, constraints=asked.get("constraints"))


def searching(client: Any, options: dict[str, Any]) -> Any:
    """The client that searches: this process looks for models with groups, rules or constraints."""
    return None if options.keys() & {"groups", "rules", "constraints"} else client


def n_choices(data: "Data", options: dict[str, Any]) -> int:
    """How many features there are, where those of a group are one."""
    groups: Groups = options.get("groups", {})
    return len(data.features) - sum(len(features) - 1 for features in groups.values())


def show_structure(data: "Data", result: "Result") -> None:
    """Columns of text with the level that has no feature, and the rules of the model."""
    from bestk.show.console import escape, stdout

    lines = [f"{column}: compared with {level}" for column, level in data.baseline.items()]
    structure = getattr(result, "structure", None)
    if structure is not None:
        from bestk.structure.compose import describe

        told = {f"{name}: {len(features)} features" for name, features in data.groups.items()}
        rules = [f"  {line}" for line in describe(structure) if line not in told]
        lines += ["rules", *rules] if rules else []
    for line in lines:
        stdout().print(f"[dim]{escape(line)}[/]")


def data_document(data: "Data") -> dict[str, Any]:
    """What JSON tells about text and missing values, if there are any."""
    document: dict[str, Any] = {"baseline": data.baseline} if data.baseline else {}
    if data.left_out.n_rows:
        left_out = {"rows": data.left_out.n_rows, "missing": dict(data.left_out.values)}
        document["left_out"] = left_out
    return document
