"""What a page says about one model: equation, coefficients, numbers, proof and settings."""

from decimal import ROUND_FLOOR, Context

import numpy as np

from bestk.results.criteria import CRITERIA
from bestk.show.html import Html, count, number, table, tag
from bestk.show.plots import CRITERION_NAMES, percent


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
        factor = ["\N{NO-BREAK SPACE}", tag("var", name)] if name is not None else []
        parts += [" ", tag("span", sign, space, number(abs(value), 4), *factor, class_="term")]
    return tag("p", tag("var", target), " =", *parts, class_="equation")


def terms(result):
    rows = [(result.name(j), number(result.coef[j], 8)) for j in result.support]
    if result.fit_intercept:
        rows.insert(0, (tag("em", "intercept"), number(result.intercept, 8)))
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
        ("features chosen", len(result.support)),
        ("k, most features", result.k),
        ("p, features", len(result.coef)),
        ("n, rows", "not known" if result.n_samples is None else result.n_samples),
        ("alpha", number(result.alpha)),
        ("explained gap", percent(result.explained_gap)),
    ]
    if result.n_samples is not None:
        facts += [(CRITERION_NAMES[name], number(result.criterion(name), 7)) for name in CRITERIA]
    return [*facts, ("nodes", result.n_nodes), ("seconds", number(result.seconds, 3))]


def proof(result):
    certificate = result.certificate
    if certificate is None:
        return "The tree was not kept, so there is no certificate to check; the bound still holds."
    if result.k == 0:
        return "There was nothing to search."
    tree = certificate.tree
    leaves = tree.is_leaf
    tried = int(np.count_nonzero(leaves & tree.enumerated))
    bounded = int(np.count_nonzero(leaves)) - tried
    text = (
        f"The certificate holds a tree of {count(len(tree), 'node')} with "
        f"{count(tried + bounded, 'leaf', 'leaves')}: {bounded} with a lower bound, {tried} where "
        "every model left was tried."
    )
    if not result.is_closed:
        text += " The search ended early; what was left open is counted in the bound."
    chosen = {
        "Required": certificate.include, "Excluded": certificate.exclude,
        "Not counted": certificate.free,
    }  # fmt: skip
    for word, features in chosen.items():
        if len(features):
            text += f" {word}: {', '.join(result.name(j) for j in features)}."
    for assumption in result.assumptions:
        text += f" Assumed: {assumption}"
    return text


def settings(result):
    return table(
        ["setting", "value"],
        *((tag("code", name), tag("code", repr(value))) for name, value in result.settings.items()),
    )
