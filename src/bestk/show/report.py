"""Results as HTML: what the pages say, and the short summaries for notebooks.

A page needs nothing else: its pictures are part of it.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path as FilePath
from typing import Any
from urllib.parse import quote

import numpy as np

from bestk.base.validation import counted, require_choice
from bestk.results.criteria import CRITERIA
from bestk.results.interactive import Page
from bestk.results.result import uncounted
from bestk.show import plots
from bestk.show.html import (
    Html,
    and_more,
    fact_list,
    fixed,
    listed,
    named,
    number,
    page,
    plus_minus,
    section,
    table,
    tag,
)
from bestk.show.inline_svg import figures
from bestk.show.one_model import equation, numbers, proof, settings, terms
from bestk.show.structure import (
    n_units,
    names_of,
    rules_in_short,
    rules_of_folds,
    rules_section,
    unit_of,
)
from bestk.show.verdicts import (
    cv_verdict,
    discovery_verdict,
    path_verdict,
    stability_verdict,
    verdict,
)

# Features and models that a notebook shows of a stability.
_MOST_ROWS, _MOST_SUPPORTS = 20, 5


def write(html: str, path: Any = None) -> Page:
    """The page itself, also written to a UTF-8 file if there is a path."""
    if path is not None:
        FilePath(path).write_text(html, encoding="utf-8")
    return Page.written(html, path)


def result_page(
    result: Any,
    *,
    title: str | None = None,
    target: str = "y",
    X: Any = None,
    y: Any = None,
    alternatives: Any = None,
) -> str:
    """A page about one run: model, verdict, numbers, proof, pictures and settings.

    Parameters
    ----------
    result : Result
    title : str or None
        Heading of the page; None names the numbers of features.
    target : str
        What the equation calls the predicted quantity.
    X, y : array-like or None
        Data, to add predictions against observations.
    alternatives : str, Path or None
        Where the page of near-optimal models is (``NearOptimal.to_html``), seen from the folder of
        this one: adds a link to it.

    Returns
    -------
    str
        HTML without references to anything outside it, but for this link.
    """
    pictures = [("Best model and proven bound over time", lambda ax: plots.gap(result, ax))]
    pictures += _predictions(result, X, y)
    return page(
        title or _title(result),
        verdict(result),
        *_link_to(alternatives),
        section("Model", equation(result, target), terms(result)),
        rules_section(result),
        section("Numbers", fact_list(numbers(result))),
        section("Pictures", figures(pictures)),
        section("Proof", tag("p", proof(result))),
        section("Settings", settings(result)),
    )


def path_page(
    path: Any,
    *,
    title: str | None = None,
    target: str = "y",
    criterion: str = "aicc",
    X: Any = None,
    y: Any = None,
) -> str:
    """A page about the best models of all sizes, and the one that a criterion chooses.

    Parameters
    ----------
    path : Path
    title, target : str
        Heading of the page, and what the equation calls the predicted quantity.
    criterion : {"aicc", "bic", "ebic"}
        Chooses the model that is shown; the largest is shown where the criterion is not defined.
    X, y : array-like or None
        Data, to add predictions of the chosen model against observations.

    Returns
    -------
    str
        HTML without references to anything outside it.
    """
    chosen, why = _choose(path, criterion)
    known = criterion if why else None
    pictures: list[tuple[str, Callable[[Any], Any]]] = [
        ("Objective and proven bound for each size", lambda ax: plots.path(path, ax, known)),
        ("Coefficients for each size", lambda ax: plots.coefficients(path, ax)),
    ]
    pictures += _predictions(chosen, X, y)
    return page(
        title or f"Best models for k = {path.ks[0]}" + f" to {path.ks[-1]}" * (len(path) > 1),
        path_verdict(path),
        section("Sizes", _sizes(path, chosen)),
        section("Pictures", figures(pictures)),
        section(
            f"Model with k = {chosen.k}" + (f", {why}" if why else ""),
            verdict(chosen),
            equation(chosen, target),
            terms(chosen),
            fact_list(numbers(chosen)),
        ),
        rules_section(chosen),
        section("Settings", settings(chosen)),
    )


def cv_page(cv: Any, *, title: str | None = None) -> str:
    """A page about a cross-validation: the choice, the errors, and how many fits are proven.

    Parameters
    ----------
    cv : CrossValidation
    title : str or None
        Heading of the page.

    Returns
    -------
    str
        HTML without references to anything outside it.
    """
    picture = ("Error against size", lambda ax: plots.cross_validation(cv, ax))
    return page(
        title or f"Cross-validation over {counted(cv.errors.shape[2], 'fold')}",
        cv_verdict(cv),
        section("Choice", _choices(cv)),
        section("Pictures", figures([picture])),
        section(f"Errors: {cv.measure} ± standard error", _errors(cv)),
        section(f"{_unit_of(cv).capitalize()}s of the chosen models", *_chosen_features(cv)),
        rules_of_folds([path.results[0] for path in cv.paths[0]]),
        section("Settings", settings(cv.paths[0][0].results[0])),
    )


def discovery_page(found: Any, *, title: str | None = None, within: float | None = None) -> str:
    """A page about found equations: what is proven, how they move, and how they were chosen.

    Parameters
    ----------
    found : Discovery
    title : str or None
        Heading of the page.
    within : float or None
        A tolerance, such as 0.02: adds which terms all models have that are at most so much worse
        than the equations (:meth:`bestk.sindy.Discovery.near_optimal`).

    Returns
    -------
    str
        HTML without references to anything outside it.
    """
    pictures: list[tuple[str, Callable[[Any], Any]]] = []
    for i, state in list(enumerate(found.states))[: plots.MAX_STATES]:
        pictures += [
            (f"{state}: data and simulation", partial(plots.states, found, i)),
            (f"{state}\u2032: score on held-out rows", partial(plots.scores, found, i)),
        ]
    return page(
        title or f"Equations of {', '.join(found.states)}",
        discovery_verdict(found),
        section("Equations", *_system(found)),
        section("Proof", _proofs(found)),
        *_certainty(found, within),
        section("Simulation", fact_list(_motions(found))),
        section("Pictures", figures(pictures)),
        section(
            f"{plots.CRITERION_NAMES[found.criterion]} on held-out rows, best of all alphas",
            _best_scores(found),
        ),
        section("Settings", settings(found.results[0])),
    )


def result_summary(result: Any) -> str:
    """A few lines for notebooks, in the notebook's own colours."""
    facts = [("k", result.k), *numbers(result)[:4], ("seconds", number(result.seconds, 3))]
    heads, values = zip(*facts, strict=True)
    free = [result.name(j) for j in sorted(uncounted(result))]
    notes = [tag("p", "Not counted in k: ", listed(free), ".")] if free else []
    notes.append(rules_in_short(result))
    return tag("div", verdict(result), equation(result), table(heads, values), *notes)


def path_summary(path: Any) -> str:
    """A table of all sizes for notebooks, in the notebook's own colours."""
    chosen, _ = _choose(path, "aicc")
    return tag("div", path_verdict(path), _sizes(path, chosen))


def cv_summary(cv: Any) -> str:
    """The choices for notebooks, in the notebook's own colours."""
    return tag("div", cv_verdict(cv), _choices(cv))


def discovery_summary(found: Any) -> str:
    """Equations and proofs for notebooks, in the notebook's own colours."""
    return tag("div", discovery_verdict(found), *_system(found), _proofs(found))


def stability_summary(found: Any) -> str:
    """How often features and supports are chosen, for notebooks, in the notebook's own colours."""
    ranked = np.argsort(-found.frequencies, kind="stable")
    ever = [j for j in ranked if found.frequencies[j] > 0.0]
    low, middle, high = found.coefficient_quantiles()
    rows = [
        [
            named(found.names[j]),
            f"{found.frequencies[j]:.1%}",
            "yes" if j in found.model.support else "no",
            *(number(values[j], 4) for values in (low, middle, high)),
        ]
        for j in ever[:_MOST_ROWS]
    ]
    heads = ["feature", "chosen", "in the model of all rows", "5%", "median", "95%"]
    supports = [[f"{s.share:.1%}", listed(s.names, "no feature")] for s in found.supports]
    return tag(
        "div",
        stability_verdict(found),
        table(heads, *rows),
        *and_more(len(ever) - len(rows)),
        tag("p", "Coefficients are 0 where a feature is not chosen. The most frequent models:"),
        table(["share", "features"], *supports[:_MOST_SUPPORTS]),
        *and_more(len(supports) - _MOST_SUPPORTS),
    )


# Parts of a page


def _title(result):
    total, unit = n_units(result.structure, len(result.coef)), unit_of(result.structure)
    return f"Best model with at most {result.k} of {total} {unit}s"


def _unit_of(cv):
    return unit_of(cv.paths[0][0].results[0].structure)


def _choose(path, criterion):
    """(model to show, why): by criterion where it is defined, else the largest."""
    require_choice("criterion", criterion, CRITERIA)
    if _knows_rows(path) and np.isfinite(path.scores(criterion)).any():
        return path.best(criterion), f"smallest {plots.CRITERION_NAMES[criterion]}"
    return path.results[-1], ""


def _knows_rows(path):
    return all(result.n_samples is not None for result in path.results)


def _sizes(path, chosen):
    known = CRITERIA if _knows_rows(path) else ()
    best = {name: path.best(name) for name in known}
    heads = ["k", "proven", "gap", "objective", "R²"]
    heads += [plots.CRITERION_NAMES[name] for name in known]
    rows = []
    for result in path.results:
        proven = result.is_proven
        scores = [
            tag("strong", score, " ★") if best[name] is result else score
            for name in known
            for score in [fixed(result.criterion(name), 2)]
        ]
        rows.append(
            [
                result.k,
                _yes_or(proven, result.status),
                plots.percent(result.gap),
                number(result.objective, 8),
                fixed(result.r2, 4),
                *scores,
                listed(names_of(result)),
            ]
        )
    unit = unit_of(chosen.structure)
    body = table([*heads, f"{unit}s"], *rows, chosen=path.results.index(chosen))
    note = tag("p", "★ marks the smallest value of a criterion.") if known else Html()
    return Html(body + note)


def _choices(cv):
    rules = [("smallest error", "min"), ("simplest within one standard error", "one-se")]
    rows = []
    for name, rule in rules:
        i, j = plots.position(cv, *cv.best(rule))
        error = plus_minus(cv.mean[i, j], cv.standard_error[i, j])
        rows.append([name, int(cv.ks[j]), number(cv.alphas[i]), error])
    return table(["rule", "k", "alpha", cv.measure], *rows)


def _errors(cv):
    marks = {plots.position(cv, *cv.best("one-se")): "◆", plots.position(cv, *cv.best("min")): "★"}
    rows = []
    for j, k in enumerate(cv.ks):
        cells = []
        for i in range(len(cv.alphas)):
            cell = plus_minus(cv.mean[i, j], cv.standard_error[i, j])
            cells.append(tag("strong", cell, " ", marks[i, j]) if (i, j) in marks else cell)
        rows.append([int(k), *cells])
    heads = ["k", *(Html(f"alpha = {number(alpha, 4)}") for alpha in cv.alphas)]
    note = tag("p", "★ marks the smallest error, ◆ the simplest model within one standard error.")
    return Html(table(heads, *rows) + note)


def _chosen_features(cv):
    """How often the folds agree: a feature that only some folds choose is not a safe finding."""
    i, j = plots.position(cv, *cv.best("min"))
    folds = [path.results[j] for path in cv.paths[i]]
    unit = _unit_of(cv)
    chosen = [(r.chosen if unit == "group" else r.support).tolist() for r in folds]
    called = folds[0].structure.group_names.__getitem__ if unit == "group" else folds[0].name
    times = Counter(one for result in chosen for one in result)
    rows = [
        (named(called(one)), f"{number} of {len(folds)}")
        for one, number in sorted(times.items(), key=lambda item: (-item[1], item[0]))
    ]
    text = f"How many folds choose each {unit} at the smallest error, k = {cv.ks[j]}:"
    return tag("p", text), table([unit, "folds"], *rows)


def _system(found):
    return [
        equation(result, f"{state}\u2032", constant="1")
        for state, result in zip(found.states, found.results, strict=True)
    ]


def _proofs(found):
    heads = ["equation", "proven", "gap", "k", "alpha", "objective", "R²", "next best", "its terms"]
    rows = []
    for state, result, other, worse in zip(
        found.states, found.results, found.runners_up, found.distances, strict=True
    ):
        proven = result.is_proven
        rows.append(
            [
                f"{state}\u2032",
                _yes_or(proven, result.status),
                plots.percent(result.gap),
                result.k,
                number(result.alpha, 3),
                number(result.objective, 7),
                fixed(result.r2, 4),
                worse,
                listed(other.names) if other else "–",
            ]
        )
    note = "Next best: the best model of the same k that lacks at least one of the terms."
    return Html(table(heads, *rows) + tag("p", note))


def _certainty(found, within):
    """What near-optimal models of each equation have in common; nothing without a tolerance."""
    if within is None:
        return
    share = f"{100 * within:.6g}%"
    text = (
        f"Models whose objective is at most {share} above the best of the same k. A certain term "
        "is in all of them, a possible one in some. Models that only add terms to others are not "
        "counted. This tells which models fit these data nearly equally well, not which of them "
        "are probably true."
    )
    parts = []
    for (state, near), result in zip(
        found.near_optimal(within).items(), found.results, strict=True
    ):
        parts += [tag("h3", f"{state}\u2032"), fact_list(_rivals(near, result))]
        if not near.complete:
            parts.append(tag("p", near.status.advice))
    yield section("Which terms are certain?", tag("p", text), *parts)


def _rivals(near, result):
    """Pairs (name, value) about models that are nearly as good as an equation."""

    def names(terms):
        return listed(near.names[j] for j in terms)

    rivals = sum(not np.array_equal(model.support, result.support) for model in near.models)
    repeats = ", ".join(f"{near.names[a]} repeats {near.names[b]}" for a, b in near.copies)
    more = [("either may stand for the other", repeats)] if repeats else []
    if not near.complete:
        found = np.flatnonzero(near.has.any(axis=0))
        return [
            ("certain terms", "not known"),
            ("terms of models found", names(found)),
            ("rival models", f"{rivals:,} or more"),
            ("complete", f"no ({near.status})"),
            *more,
        ]
    return [
        ("certain terms", names(near.necessary)),
        ("possible terms", names(near.possible)),
        ("rival models", f"{rivals:,}"),
        ("complete", "yes, proven"),
        *more,
    ]


def _motions(found):
    """Pairs (name, value) about errors and simulations."""
    ends = zip(found.horizons, found.trajectories.t, strict=True)
    spans = [f"{horizon:.3g} of {t[-1] - t[0]:.3g}" for horizon, t in ends]
    facts = [("follows the data for", "; ".join(spans))]
    return facts + [
        (f"relative error of {state}\u2032", number(error, 3))
        for state, error in zip(found.states, found.derivative_errors, strict=True)
    ]


def _best_scores(found):
    best = found.scores.min(axis=1)
    rows = []
    for j, k in enumerate(found.ks):
        cells = []
        for i, result in enumerate(found.results):
            cell = fixed(best[i, j], 2)
            cells.append(tag("strong", cell, " ★") if result.k == k else cell)
        rows.append([int(k), *cells])
    heads = ["k", *(f"{state}\u2032" for state in found.states)]
    return Html(table(heads, *rows) + tag("p", "★ marks the chosen size."))


def _yes_or(proven, status):
    return tag("span", "yes" if proven else str(status), class_="yes" if proven else "no")


def _link_to(alternatives):
    """One line with a link to the page of near-optimal models."""
    if alternatives is None:
        return
    place = FilePath(alternatives)
    if place.is_absolute():
        raise ValueError(
            "alternatives must be a path relative to the page, such as 'models.html', got "
            f"{str(alternatives)!r}"
        )
    # A colon would make the part before it a scheme; in quotes it is a letter of a file's name.
    link = tag("a", "all models that are nearly as good", href=quote(place.as_posix()))
    yield tag("p", "How sure is the choice? See ", link, ".")


def _predictions(model, X, y):
    if (X is None) != (y is None):
        raise ValueError(
            "predictions against observations need both X and y; give both, or neither"
        )
    if X is None:
        return []
    return [("Predictions against observations", lambda ax: plots.predicted(model, X, y, ax))]
