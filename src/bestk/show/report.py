"""Results as HTML: one page that needs nothing else, and short summaries for notebooks.

Every piece of markup is made by :func:`tag`, which escapes all text that is not markup already, so
a feature called ``<b>`` stays text. Pictures are inline SVG; without matplotlib they are left out.
"""

import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import ROUND_FLOOR, Context
from functools import partial
from html import escape
from importlib.resources import files
from io import StringIO
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from bestk.base.validation import require_choice
from bestk.results.criteria import CRITERIA
from bestk.results.result import Status
from bestk.show import plots

# Stands for the page's own text colour while matplotlib draws, to be swapped for currentColor.
_INK = "#010203"
# Inches; small, so that ten-point text is still read on a phone.
_SIZE = (4.8, 3.2)
# What a proof inside a box leaves open.
_OUTSIDE = (
    "Models with larger coefficients were not looked at: give bounds that you can defend, or a "
    "larger box, to learn more."
)
# Cells of words; the style is for notebooks, which align to the right and lack our style sheet.
_TEXT = {"class_": "text", "style": "text-align: left"}


class Html(str):
    """Markup, as opposed to text that has yet to be escaped."""


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """``<name attributes>children</name>``; ``class_`` means class, None leaves one out."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{shown}>{_join(children)}</{name}>")


def write(html: str, path: Any = None) -> str:
    """The page itself, also written to a UTF-8 file if there is a path."""
    if path is not None:
        FilePath(path).write_text(html, encoding="utf-8")
    return html


def result_page(
    result: Any, *, title: str | None = None, target: str = "y", X: Any = None, y: Any = None
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

    Returns
    -------
    str
        HTML without references to anything outside it.
    """
    pictures = [("Best model and proven bound over time", lambda ax: plots.gap(result, ax))]
    pictures += _predictions(result, X, y)
    return _page(
        title or f"Best model with at most {result.k} of {len(result.coef)} features",
        _verdict(result),
        _section("Model", _equation(result, target), _terms(result)),
        _section("Numbers", _facts(_numbers(result))),
        _section("Pictures", _pictures(pictures)),
        _section("Proof", tag("p", _proof(result))),
        _section("Settings", _settings(result)),
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
    return _page(
        title or f"Best models for k = {path.ks[0]}" + f" to {path.ks[-1]}" * (len(path) > 1),
        _path_verdict(path),
        _section("Sizes", _sizes(path, chosen)),
        _section("Pictures", _pictures(pictures)),
        _section(
            f"Model with k = {chosen.k}" + (f", {why}" if why else ""),
            _verdict(chosen),
            _equation(chosen, target),
            _terms(chosen),
            _facts(_numbers(chosen)),
        ),
        _section("Settings", _settings(chosen)),
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
    return _page(
        title or f"Cross-validation over {cv.errors.shape[2]} folds",
        _cv_verdict(cv),
        _section("Choice", _choices(cv)),
        _section("Pictures", _pictures([picture])),
        _section(f"Errors: {cv.measure} ± standard error", _errors(cv)),
        _section("Features of the chosen models", *_chosen_features(cv)),
        _section("Settings", _settings(cv.paths[0][0].results[0])),
    )


def discovery_page(found: Any, *, title: str | None = None) -> str:
    """A page about found equations: what is proven, how they move, and how they were chosen.

    Parameters
    ----------
    found : Discovery
    title : str or None
        Heading of the page.

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
    return _page(
        title or f"Equations of {', '.join(found.states)}",
        _discovery_verdict(found),
        _section("Equations", *_system(found)),
        _section("Proof", _proofs(found)),
        _section("Simulation", _facts(_motions(found))),
        _section("Pictures", _pictures(pictures)),
        _section(
            f"{plots.CRITERION_NAMES[found.criterion]} on held-out rows, best of all alphas",
            _best_scores(found),
        ),
        _section("Settings", _settings(found.results[0])),
    )


def result_summary(result: Any) -> str:
    """A few lines for notebooks, in the notebook's own colours."""
    facts = [("k", result.k), *_numbers(result)[:4], ("seconds", _number(result.seconds, 3))]
    heads, values = zip(*facts, strict=True)
    return tag("div", _verdict(result), _equation(result), _table(heads, values))


def path_summary(path: Any) -> str:
    """A table of all sizes for notebooks, in the notebook's own colours."""
    chosen, _ = _choose(path, "aicc")
    return tag("div", _path_verdict(path), _sizes(path, chosen))


def cv_summary(cv: Any) -> str:
    """The choices for notebooks, in the notebook's own colours."""
    return tag("div", _cv_verdict(cv), _choices(cv))


def discovery_summary(found: Any) -> str:
    """Equations and proofs for notebooks, in the notebook's own colours."""
    return tag("div", _discovery_verdict(found), *_system(found), _proofs(found))


# Verdicts


def _verdict(result):
    """What is proven; gaps are rounded up, since the sentence must hold."""
    if result.status is Status.PERFECT_FIT:
        return _banner(
            True, "Perfect fit.", result.status.advice.removeprefix("The fit is perfect: ")
        )
    gap = plots.percent(result.gap)
    where = "inside the box " if result.is_conditional else ""
    text = f"No admissible model with at most {result.k} of {len(result.coef)} features {where}"
    text += f"is better by more than {gap}." if result.gap > 0 else "has a smaller objective."
    remark = f" {result.bound_remark}" if result.at_bounds else ""
    if result.is_proven:
        return _banner(True, "Proven optimal.", text + remark)
    if result.is_closed:
        return _banner(False, "Conditional.", f"{text} {_OUTSIDE}{remark}")
    head = f"Stopped early ({result.status}): the gap is {gap}."
    return _banner(False, head, f"{text} {result.status.advice}{remark}")


def _path_verdict(path):
    proven = sum(result.is_proven for result in path.results)
    if path.is_closed and not path.is_proven:
        text = f"Each model is the best of its size inside the box that was chosen. {_OUTSIDE}"
        return _banner(False, "Conditional.", text)
    head = "Every size is proven optimal." if path.is_proven else "Not every size is proven."
    text = f"{proven} of {len(path)} models are proven optimal"
    if not path.is_proven:
        advice = next(r.status.advice for r in path.results if not r.is_closed)
        text += f"; the largest gap is {plots.percent(path.gaps.max())}. {advice}"
    else:
        text += ", each with its own bound."
    return _banner(path.is_proven, head, text)


def _cv_verdict(cv):
    if cv.is_closed and not cv.is_proven:
        text = f"Each model is the best of its size inside the box chosen for it. {_OUTSIDE}"
        return _banner(False, "Conditional.", text)
    proven = [result.is_proven for folds in cv.paths for path in folds for result in path.results]
    head = "Every fit is proven optimal." if cv.is_proven else "Not every fit is proven."
    text = f"{sum(proven)} of {len(proven)} fits are proven optimal"
    text += f"; the largest gap is {plots.percent(cv.gaps.max())}."
    if not cv.is_proven:
        text += " Raise the limits, or read the errors as those of the best models found."
    return _banner(cv.is_proven, head, text)


def _discovery_verdict(found):
    return _banner(found.is_proven, *found.verdict)


def _banner(proven, head, text):
    return tag(
        "p", tag("strong", head), " ", text, class_="verdict proven" if proven else "verdict"
    )


# Parts of a page


def _choose(path, criterion):
    """(model to show, why): by criterion where it is defined, else the largest."""
    require_choice("criterion", criterion, CRITERIA)
    if _knows_rows(path) and np.isfinite(path.scores(criterion)).any():
        return path.best(criterion), f"smallest {plots.CRITERION_NAMES[criterion]}"
    return path.results[-1], ""


def _knows_rows(path):
    return all(result.n_samples is not None for result in path.results)


def _equation(result, target="y", constant=None):
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
        parts += [" ", tag("span", sign, space, _number(abs(value), 4), *factor, class_="term")]
    return tag("p", tag("var", target), " =", *parts, class_="equation")


def _terms(result):
    rows = [(result.name(j), _number(result.coef[j], 8)) for j in result.support]
    if result.fit_intercept:
        rows.insert(0, (tag("em", "intercept"), _number(result.intercept, 8)))
    return _table(["feature", "coefficient"], *rows) if rows else Html()


def _numbers(result):
    """Pairs (name, value), the important ones first."""
    bound = result.lower_bound
    if bound < result.objective:
        # Rounded to nearest, the number shown could be above what is proven.
        bound = float(Context(prec=10, rounding=ROUND_FLOOR).create_decimal_from_float(bound))
    facts = [
        ("objective", _number(result.objective, 10)),
        ("lower bound", _number(bound, 10)),
        ("gap", plots.percent(result.gap)),
        ("R²", _number(result.r2)),
        ("features chosen", len(result.support)),
        ("k, most features", result.k),
        ("p, features", len(result.coef)),
        ("n, rows", "not known" if result.n_samples is None else result.n_samples),
        ("alpha", _number(result.alpha)),
        ("explained gap", plots.percent(result.explained_gap)),
    ]
    if result.n_samples is not None:
        facts += [
            (plots.CRITERION_NAMES[name], _number(result.criterion(name), 7)) for name in CRITERIA
        ]
    return [*facts, ("nodes", result.n_nodes), ("seconds", _number(result.seconds, 3))]


def _proof(result):
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
        f"The certificate holds a tree of {_count(len(tree), 'node')} with "
        f"{_count(tried + bounded, 'leaf', 'leaves')}: {bounded} with a lower bound, {tried} where "
        "every model left was tried."
    )
    if not result.is_closed:
        text += " The search ended early; what was left open is counted in the bound."
    for word, features in (("Required", certificate.include), ("Excluded", certificate.exclude)):
        if len(features):
            text += f" {word}: {', '.join(result.name(j) for j in features)}."
    for assumption in result.assumptions:
        text += f" Assumed: {assumption}"
    return text


def _settings(result):
    return _table(
        ["setting", "value"],
        *((tag("code", name), tag("code", repr(value))) for name, value in result.settings.items()),
    )


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
            for score in [_fixed(result.criterion(name), 2)]
        ]
        rows.append(
            [
                result.k,
                _yes_or(proven, result.status),
                plots.percent(result.gap),
                _number(result.objective, 8),
                _fixed(result.r2, 4),
                *scores,
                ", ".join(result.names) or "none",
            ]
        )
    table = _table([*heads, "features"], *rows, chosen=path.results.index(chosen))
    note = tag("p", "★ marks the smallest value of a criterion.") if known else Html()
    return Html(table + note)


def _choices(cv):
    rules = [("smallest error", "min"), ("simplest within one standard error", "one-se")]
    rows = []
    for name, rule in rules:
        i, j = plots.position(cv, *cv.best(rule))
        error = _plus_minus(cv.mean[i, j], cv.standard_error[i, j])
        rows.append([name, int(cv.ks[j]), _number(cv.alphas[i]), error])
    return _table(["rule", "k", "alpha", cv.measure], *rows)


def _errors(cv):
    marks = {plots.position(cv, *cv.best("one-se")): "◆", plots.position(cv, *cv.best("min")): "★"}
    rows = []
    for j, k in enumerate(cv.ks):
        cells = []
        for i in range(len(cv.alphas)):
            cell = _plus_minus(cv.mean[i, j], cv.standard_error[i, j])
            cells.append(tag("strong", cell, " ", marks[i, j]) if (i, j) in marks else cell)
        rows.append([int(k), *cells])
    heads = ["k", *(Html(f"alpha = {_number(alpha, 4)}") for alpha in cv.alphas)]
    note = tag("p", "★ marks the smallest error, ◆ the simplest model within one standard error.")
    return Html(_table(heads, *rows) + note)


def _chosen_features(cv):
    """How often the folds agree: a feature that only some folds choose is not a safe finding."""
    i, j = plots.position(cv, *cv.best("min"))
    folds = [path.results[j] for path in cv.paths[i]]
    times = Counter(feature for result in folds for feature in result.support.tolist())
    rows = [
        (folds[0].name(feature), f"{number} of {len(folds)}")
        for feature, number in sorted(times.items(), key=lambda item: (-item[1], item[0]))
    ]
    text = f"How many folds choose each feature at the smallest error, k = {cv.ks[j]}:"
    return tag("p", text), _table(["feature", "folds"], *rows)


def _system(found):
    return [
        _equation(result, f"{state}\u2032", constant="1")
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
                _number(result.alpha, 3),
                _number(result.objective, 7),
                _fixed(result.r2, 4),
                worse,
                ", ".join(other.names) or "none" if other else "–",
            ]
        )
    note = "Next best: the best model of the same k that lacks at least one of the terms."
    return Html(_table(heads, *rows) + tag("p", note))


def _motions(found):
    """Pairs (name, value) about errors and simulations."""
    ends = zip(found.horizons, found.trajectories.t, strict=True)
    spans = [f"{horizon:.3g} of {t[-1] - t[0]:.3g}" for horizon, t in ends]
    facts = [("follows the data for", "; ".join(spans))]
    return facts + [
        (f"relative error of {state}\u2032", _number(error, 3))
        for state, error in zip(found.states, found.derivative_errors, strict=True)
    ]


def _best_scores(found):
    best = found.scores.min(axis=1)
    rows = []
    for j, k in enumerate(found.ks):
        cells = []
        for i, result in enumerate(found.results):
            cell = _fixed(best[i, j], 2)
            cells.append(tag("strong", cell, " ★") if result.k == k else cell)
        rows.append([int(k), *cells])
    heads = ["k", *(f"{state}\u2032" for state in found.states)]
    return Html(_table(heads, *rows) + tag("p", "★ marks the chosen size."))


# Building blocks


def _yes_or(proven, status):
    return tag("span", "yes" if proven else str(status), class_="yes" if proven else "no")


def _page(title, *sections):
    from bestk import __version__

    style = files("bestk.show").joinpath("_report.css").read_text(encoding="utf-8")
    head = tag(
        "head",
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        tag("title", title),
        tag("style", Html(style)),
    )
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    footer = tag("footer", f"Made by bestk {__version__} on {date}.")
    body = tag("body", tag("main", tag("h1", title), *sections), footer)
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _section(title, *parts):
    return tag("section", tag("h2", title), *parts)


def _facts(pairs):
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs))


def _table(heads: Sequence[Any], *rows: Sequence[Any], chosen: int | None = None) -> Html:
    """A table whose first column names the rows; lists of features are text, the rest numbers."""
    kinds = [_TEXT if head in ("features", "its terms") else {} for head in heads]
    head = [tag("th", h, scope="col", **kind) for h, kind in zip(heads, kinds, strict=True)]
    body = []
    for number, (first, *rest) in enumerate(rows):
        cells = [tag("td", cell, **kind) for cell, kind in zip(rest, kinds[1:], strict=True)]
        row = [tag("th", first, scope="row"), *cells]
        body.append(tag("tr", *row, class_="chosen" if number == chosen else None))
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
    return tag("div", table, class_="scroll", style="overflow-x: auto")


def _pictures(pictures):
    try:
        plots.require_matplotlib()
    except ImportError as error:
        return tag("p", f"This page has no pictures: {error}.")
    return tag(
        "div",
        *(
            tag("figure", _svg(draw, caption, f"picture{i}"), tag("figcaption", caption))
            for i, (caption, draw) in enumerate(pictures, start=1)
        ),
        class_="pictures",
    )


def _predictions(model, X, y):
    if (X is None) != (y is None):
        raise ValueError("predictions against observations need both X and y")
    if X is None:
        return []
    return [("Predictions against observations", lambda ax: plots.predicted(model, X, y, ax))]


def _svg(draw, label, prefix):
    """What draw(ax) draws, as SVG in the colour of the text around it.

    The style is set for this figure alone; the ids inside get a prefix of their own, since ids of
    two pictures on a page must differ.
    """
    from matplotlib import style
    from matplotlib.figure import Figure

    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    drawing = {"svg.fonttype": "none", "svg.hashsalt": "bestk", "axes.titlesize": "medium"}
    metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    file = StringIO()
    with style.context(["default", drawing | dict.fromkeys(ink, _INK)]), warnings.catch_warnings():
        # The browser picks a font for the text, so matplotlib need not have every glyph.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=_SIZE, layout="constrained")
        draw(figure.subplots())
        figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].strip().replace(_INK, "currentColor")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)
    # Without a size of its own the drawing takes the width of the page.
    opening = re.sub(r' (width|height)="[^"]*"', "", svg[: svg.index(">")])
    return Html(f'{opening} role="img" aria-label="{escape(label)}"{svg[svg.index(">") :]}')


def _join(parts: Iterable[Any]) -> Html:
    return Html("".join(p if isinstance(p, Html) else escape(str(p)) for p in parts))


def _number(value: float, digits: int = 5) -> Html:
    """A number as people write it: 1.2 × 10⁻⁵, a true minus sign."""
    if not np.isfinite(value):
        return Html("–" if np.isnan(value) else "∞" if value > 0 else "−∞")
    mantissa, _, exponent = f"{value:.{digits}g}".replace("-", "−").partition("e")
    if not exponent:
        return Html(mantissa)
    power = exponent.lstrip("+").replace("−0", "−").removeprefix("0")
    return Html(f"{mantissa} × 10{tag('sup', power)}")


def _fixed(value, places):
    """A number with so many decimals, for columns that are compared."""
    return Html(f"{value:.{places}f}".replace("-", "−")) if np.isfinite(value) else _number(value)


def _plus_minus(mean, error):
    """Mean and standard error, as many decimals as give the error two digits."""
    if not (error > 0 and 1e-4 <= abs(mean) < 1e7):
        return Html(f"{_number(mean)} ± {_number(error, 2)}")
    places = max(1 - int(np.floor(np.log10(error))), 0)
    return Html(f"{_fixed(mean, places)} ± {_fixed(error, places)}")


def _count(number, one, many=None):
    return f"{number} {one if number == 1 else many or one + 's'}"
