"""Structure in words: what k counts, and the rules and constraints of a model."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bestk.base.structure import Structure
from bestk.base.words import counted
from bestk.results.result import active_constraints, uncounted
from bestk.show.html import Html, listed, named, number, section, table, tag

# Rules, constraints or groups, and features of a group, that a page lists.
_MOST_LISTED, _MOST_MEMBERS = 50, 30
# Rules and constraints that a notebook shows.
_FEW = 3


def structure_of(found: Any) -> Structure | None:
    return getattr(found, "structure", None)


def unit_of(structure: Structure | None) -> str:
    """What k counts, as a word."""
    return "group" if structure is not None and structure.has_groups else "feature"


def n_units(structure: Structure | None, p: int) -> int:
    """How many of these there are."""
    return p if structure is None else structure.n_groups


def names_of(result: Any) -> list[str]:
    """What a model consists of, in what k counts: names of groups or of features."""
    return result.group_names if unit_of(result.structure) == "group" else result.names


def k_label(results: Sequence[Any]) -> str:
    """How an axis with values of k is called."""
    unit = unit_of(structure_of(results[0])) if len(results) else "feature"
    return f"largest number of {unit}s k"


def label_units(
    structure: Structure | None, names: Sequence[str]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """(p,) what each feature belongs to of what k counts, and the names of that."""
    if unit_of(structure) == "feature":
        return np.arange(len(names)), tuple(map(str, names))
    assert structure is not None
    return structure.groups, structure.group_names


def rules_section(result: Any) -> Html:
    """Groups, rules, and constraints with their multipliers; nothing where nothing was asked."""
    structure = result.structure
    if structure is None:
        return Html()
    return _section(structure, result.name, result.chosen, _constraints(result))


def rules_in_short(found: Any) -> Html:
    """What admissible means, in a line for notebooks; nothing where nothing was asked."""
    structure = structure_of(found)
    words = () if structure is None else (*structure.words, *structure.constraint_words)
    if not words:
        return Html()
    more = f"; ... and {len(words) - _FEW} more" if len(words) > _FEW else ""
    return tag("p", f"Asked for: {'; '.join(words[:_FEW])}{more}.")


def rules_of_folds(results: Sequence[Any]) -> Html:
    """The same for fits to parts of the rows, which have different coefficients."""
    first = results[0].structure
    if first is None:
        return Html()
    note = ""
    if any(result.structure.words != first.words for result in results):
        note = "Numbers in brackets are those of the first fold."
    return _section(first, results[0].name, None, [_listed(first.constraint_words)], note)


def rules_of_list(found: Any) -> Html:
    """The same for a list of models."""
    structure = structure_of(found)
    if structure is None:
        return Html()

    def name(j):
        return str(found.names[j])

    return _section(structure, name, None, [_listed(structure.constraint_words)])


def _section(structure, name, chosen, constraints, note=""):
    parts = [*_groups(structure, name, chosen)]
    if structure.words:
        parts += [tag("h3", "On the choice"), _listed(structure.words)]
        parts += [tag("p", note)] if note else []
    if structure.constraint_words:
        parts += [tag("h3", "On coefficients"), *constraints]
    return section("Rules", *parts) if parts else Html()


def _groups(structure, name, chosen):
    """Groups of several features; the chosen ones first."""
    sizes = np.bincount(structure.groups, minlength=structure.n_groups)
    several = np.flatnonzero(sizes > 1)
    if not len(several):
        return
    text = (
        "Features of a group are chosen together or not at all, and k counts groups: there are "
        f"{structure.n_groups} groups of {len(structure.groups)} features, "
        f"{len(several)} of them with several features."
    )
    yield tag("p", text)
    if chosen is not None:
        several = several[np.argsort(~np.isin(several, chosen), kind="stable")]
    rows = []
    for g in several[:_MOST_LISTED].tolist():
        members = structure.members(g)
        names = listed(name(j) for j in members[:_MOST_MEMBERS])
        if len(members) > _MOST_MEMBERS:
            names = Html(f"{names} and {len(members) - _MOST_MEMBERS} more")
        mark = [] if chosen is None else ["yes" if g in chosen else "no"]
        rows.append([named(structure.group_names[g]), *mark, names])
    heads = ["group", *([] if chosen is None else ["chosen"]), "features"]
    yield table(heads, *rows)
    yield from _and_more(len(several), "group")


def _constraints(result):
    """A table of constraints; the active ones first."""
    structure, active = result.structure, active_constraints(result)
    values = structure.matrix[:, result.support] @ result.coef[result.support] + 0.0
    order = np.argsort(~active, kind="stable")[:_MOST_LISTED].tolist()
    rows = [
        [
            structure.constraint_words[i],
            number(values[i]),
            "yes" if active[i] else "no",
            number(result.multipliers[i]) if active[i] else "–",
        ]
        for i in order
    ]
    yield table(["constraint", "value", "active", "multiplier"], *rows)
    yield from _and_more(len(active), "constraint")
    yield tag(
        "p",
        "An active constraint holds with equality. Its multiplier tells how fast the objective "
        "falls if that side of the constraint is raised; where it is negative, lowering the side "
        "makes the objective fall. The coefficients are off the conditions of a constrained "
        "optimum by ",
        number(result.kkt_residual, 2),
        " (KKT residual, in units where columns, target and constraints have length one).",
    )


def _listed(texts):
    items = [tag("li", text) for text in texts[:_MOST_LISTED]]
    return Html(tag("ul", *items, class_="rules") + Html("".join(_and_more(len(texts), "rule"))))


def _and_more(total, one):
    if total > _MOST_LISTED:
        yield tag("p", f"... and {counted(total - _MOST_LISTED, f'more {one}')}.")


def free_groups(result: Any) -> int:
    """How many chosen groups, or features, k does not count, as far as that is known."""
    free = np.array(sorted(uncounted(result)), dtype=np.intp)
    return len(free) if result.structure is None else len(result.structure.groups_of(free))
