"""What a page says about one model: equation, coefficients, numbers, proof and settings."""

from decimal import ROUND_FLOOR, Context

import numpy as np

from bestk.base.words import counted
from bestk.results.criteria import CRITERIA
from bestk.results.result import grouped_support, uncounted
from bestk.show.html import Html, named, number, table, tag
from bestk.show.plots import CRITERION_NAMES, percent
from bestk.show.structure import free_groups, unit_of
from bestk.structure.hierarchy import begins_with_digit


def equation(result, target="y", constant=None):
    """The model as a formula; a feature called `constant` is not written beside its coefficient."""
    names = {j: None if result.name(j) == constant else result.name(j) for j in result.support}
    terms = [(result.coef[j], name) for j, name in names.items()]
    if result.fit_intercept or not terms:
        terms.insert(0, (result.intercept, None))
    parts = []
    for i, (value, name) in enumerate(terms):
        sign = "−" if value < 0 else "+" if i else ""
        space = "\N{NO-BREAK SPACE}" if i else ""
        factor = [] if name is None else [_times(name), tag("var", named(name))]
        parts += [" ", tag("span", sign, space, number(abs(value), 4), *factor, class_="term")]
    return tag("p", tag("var", target), " =", *parts, class_="equation")


def _times(name):
    space = "\N{NO-BREAK SPACE}"
    return f"{space}\N{MIDDLE DOT}{space}" if begins_with_digit(name) else space


def terms(result):
    """Coefficients, those of a group under its name."""
    free, rows = uncounted(result), []
    if result.fit_intercept:
        rows.append((tag("em", "intercept"), number(result.intercept, 8)))
    for group, features in grouped_support(result):
        if group:
            rows.append((tag("strong", named(group)), Html()))
        for j in features:
            mark = [" ", tag("em", "(not counted)")] if j in free else []
            name = tag("span", named(result.name(j)), *mark, class_="member" if group else None)
            rows.append((name, number(result.coef[j] + 0.0, 8)))
    return table(["feature", "coefficient"], *rows) if rows else Html()


def numbers(result):
    """Pairs (name, value), the important ones first."""
    bound = result.lower_bound
    if bound < result.objective:
        # Rounded to nearest, the number shown could be above what is proven.
        bound = float(Context(prec=10, rounding=ROUND_FLOOR).create_decimal_from_float(bound))
    facts = [
        ("objective", number(result.objective, 10)),
        ("lower bound", number(bound, 10)),
        ("gap", percent(result.gap)),
        ("R²", number(result.r2)),
        *_sizes(result),
        ("n, rows", "not known" if result.n_samples is None else result.n_samples),
        ("alpha", number(result.alpha)),
        ("explained gap", percent(result.explained_gap)),
    ]
    if result.n_samples is not None:
        facts += [(CRITERION_NAMES[name], number(result.criterion(name), 7)) for name in CRITERIA]
    if result.structure is not None and len(result.structure.matrix):
        facts.append(("KKT residual", number(result.kkt_residual, 2)))
    return [*facts, ("nodes", result.n_nodes), ("seconds", number(result.seconds, 3))]


def _sizes(result):
    unit, free = unit_of(result.structure), free_groups(result)
    chosen = len(result.chosen) if unit == "group" else len(result.support)
    facts = [(f"{unit}s chosen", f"{chosen}, {free} not counted" if free else chosen)]
    facts.append((f"k, most {unit}s", result.k))
    if unit == "group":
        facts.append(("groups", result.structure.n_groups))
        facts.append(("features chosen", len(result.support)))
    return [*facts, ("p, features", len(result.coef))]


def proof(result):
    certificate = result.certificate
    if certificate is None:
        return "The tree was not kept, so there is no certificate to check; the bound still holds."
    if result.k == 0:
        return "There was nothing to search."
    tree = certificate.tree
    leaves = tree.is_leaf
    ruled_out = np.zeros(len(tree), dtype=bool)
    if certificate.choices is not None:
        ruled_out = leaves & (certificate.choices.broken != -1)
    tried = int(np.count_nonzero(leaves & tree.enumerated & ~ruled_out))
    bounded = int(np.count_nonzero(leaves & ~ruled_out)) - tried
    text = (
        f"The certificate holds a tree of {counted(len(tree), 'node')} with "
        f"{counted(int(np.count_nonzero(leaves)), 'leaf', 'leaves')}: {bounded} with a lower "
        f"bound, {tried} where every {'admissible ' * (result.structure is not None)}model left "
        "was tried"
    )
    text += f", {ruled_out.sum()} that the rules or k leave empty." if ruled_out.any() else "."
    if not result.is_closed:
        text += " The search ended early; what was left open is counted in the bound."
    chosen = {
        "Required": certificate.include, "Excluded": certificate.exclude,
        "Not counted": certificate.free,
    }  # fmt: skip
    for word, features in chosen.items():
        if len(features):
            text += f" {word}: {', '.join(_named(result, features))}."
    for assumption in result.assumptions:
        text += f" Assumed: {assumption}"
    return text


def _named(result, features):
    """Names of features, or of the groups that they make up."""
    if unit_of(result.structure) == "feature":
        return [result.name(j) for j in features]
    return [result.structure.group_names[g] for g in result.structure.groups_of(features)]


def settings(result):
    return table(
        ["setting", "value"],
        *((tag("code", name), tag("code", repr(value))) for name, value in result.settings.items()),
    )
