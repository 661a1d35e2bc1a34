"""A page to explore near-optimal models: what can replace what, and at which price.

The page is one file. Python writes the head and the data, `_explorer.js` does the rest. Names of
features reach the page as JSON alone, and the script writes them as text, never as markup.
"""

import json
from base64 import b64encode
from datetime import datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from hashlib import sha256
from importlib.resources import files
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from bestk.base.words import counted
from bestk.rivals.models import why_incomplete
from bestk.show.html import Html, and_more, fact_list, listed, number, section, table, tag
from bestk.show.plots import percent
from bestk.show.structure import (
    label_units,
    n_units,
    rules_in_short,
    rules_of_list,
    structure_of,
    unit_of,
)

# More rows than this are not shown: predictions take 3 numbers for each model and row.
MAX_ROWS = 20
# Features that no model uses are named up to this number, and counted beyond it.
MAX_UNUSED = 300
# Models that a notebook shows.
MAX_MODELS = 10
# Digits of coefficients, and of predictions, of which there may be many. The page shows fewer.
_DIGITS, _PREDICTION_DIGITS = 8, 6


def write_explorer(found: Any, path: Any, X: Any = None) -> str:
    """Write a page that explores near-optimal models, and return it.

    Parameters
    ----------
    found : NearOptimal
    path : str, Path or None
        Where to write the page, if anywhere.
    X : array-like (n, p) or None
        Rows to predict. The first 20 are shown.

    Returns
    -------
    str
        HTML without references to anything outside it.
    """
    html = explorer_page(found, X)
    if path is not None:
        FilePath(path).write_text(html, encoding="utf-8")
    return html


def list_summary(found: Any) -> str:
    """The first models, and what all have in common, for notebooks, in their own colours."""
    unit = unit_of(structure_of(found))
    label, names = label_units(structure_of(found), found.names)

    def called(features):
        return [names[g] for g in np.unique(label[features])]

    models = [
        [i, number(model.objective, 8), percent(_excess(found, model.objective)), listed(shown)]
        for i, model in enumerate(found.models[:MAX_MODELS], start=1)
        for shown in [called(model.support) or [f"no {unit}"]]
    ]
    best = tag("p", "The best model found: ", listed(called(found.best.support), f"no {unit}"), ".")
    # What models have in common is not known before all of them are.
    known = "" if found.complete else " found"
    common = [[f"in every model{known}", listed(called(found.necessary))]]
    common += [[f"in some{known}", listed(called(found.possible))]]
    return tag(
        "div",
        _verdict(found),
        best,
        tag("p", _in_short(found)),
        table(["model", "objective", "above the best", f"{unit}s"], *models),
        *and_more(len(found.models) - len(models)),
        table(["", f"{unit}s"], *common),
        rules_in_short(found),
    )


def explorer_page(found: Any, X: Any = None) -> str:
    """The page as a string; see :func:`write_explorer`."""
    from bestk import __version__

    script = _resource("_explorer.js")
    data = explorer_data(found, X)
    most = "" if found.only_k else "at most "
    title = f"Near-optimal models with {most}{found.k} of {_total(found)}"
    head = tag(
        "head",
        Html('<meta charset="utf-8">'),
        Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        _policy(script),
        tag("title", title),
        tag("style", Html(_resource("_report.css") + _resource("_explorer.css"))),
    )
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z")
    body = tag(
        "body",
        tag("main", tag("h1", title), *_introduction(found), *_places(found, X)),
        tag("footer", f"Made by bestk {__version__} on {date}."),
        tag("script", Html(_safe_json(data)), id="data", type="application/json"),
        tag("script", Html(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def explorer_data(found: Any, X: Any = None) -> dict[str, Any]:
    """What the script needs, as flat lists; features are numbered anew, used ones first.

    Where k counts groups, these stand for features, and ``members`` has the features themselves:
    coefficients are theirs. Ranges are rounded outwards and the objectives are not rounded. There
    are no ranges under linear constraints.
    """
    models = found.models
    structure = structure_of(found)
    label, names = label_units(structure, found.names)
    supports = [np.asarray(m.support, dtype=np.int64) for m in models]
    own = [np.unique(label[support]) for support in supports]
    flat = np.concatenate([[], *own]).astype(np.int64)
    given = np.unique(label[np.asarray(found.include, dtype=np.int64)])
    free = np.unique(label[np.asarray(getattr(found, "free", ()), dtype=np.int64)])
    used = np.unique(np.concatenate([flat, given]))
    best = np.unique(label[np.asarray(found.best.support, dtype=np.int64)])
    in_best = [int(np.searchsorted(used, j)) for j in best if j in used]
    unused = np.setdiff1d(np.arange(len(names)), used)
    features = np.unique(np.concatenate([[], *supports])).astype(np.int64)
    is_grouped = unit_of(structure) == "group"
    values = np.concatenate([[], *(np.asarray(m.values, dtype=float) for m in models)])
    return {
        "k": int(found.k),
        "unit": unit_of(structure),
        "hasRules": structure is not None and bool(structure.rows),
        "onlyK": bool(found.only_k),
        "best": float(found.best.objective),
        "bestSupport": in_best,
        "bestUnlisted": [names[j] for j in best if j not in used],
        "threshold": float(found.threshold),
        "scale": _scale(found),
        "complete": bool(found.complete),
        "completeBelow": _finite(found.complete_below),
        "names": [names[j] for j in used],
        "include": np.searchsorted(used, given).tolist(),
        "unused": [names[j] for j in unused[:MAX_UNUSED]],
        "unusedCount": len(unused),
        "copies": [[str(found.names[a]), str(found.names[b])] for a, b in found.copies],
        "objectives": [float(m.objective) for m in models],
        "intercepts": _rounded([m.intercept for m in models], _DIGITS),
        "borderline": [i for i, m in enumerate(models) if m.is_borderline],
        "sizes": [len(one) for one in own],
        "features": np.searchsorted(used, flat).tolist(),
        "free": np.searchsorted(used, np.intersect1d(free, used)).tolist(),
        "members": _members(found, used, features, label, supports) if is_grouped else None,
        "values": _rounded(values, _DIGITS),
        **_ranges(found, features if is_grouped else used),
        "rows": _predictions(found, X),
    }


def _members(found, used, features, label, supports):
    """Features with the groups they belong to, as models have them."""
    flat = np.concatenate([[], *supports]).astype(np.int64)
    return {
        "names": [str(found.names[j]) for j in features],
        "groups": np.searchsorted(used, label[features]).tolist(),
        "sizes": [len(support) for support in supports],
        "features": np.searchsorted(features, flat).tolist(),
    }


def _has_ranges(found):
    structure = structure_of(found)
    return structure is None or not len(structure.matrix)


def _ranges(found, features):
    """Of coefficients: over all models, and flat for each model."""
    if not _has_ranges(found):
        return dict.fromkeys(("rangeLow", "rangeHigh", "lows", "highs"))
    ranges = np.asarray(found.coefficient_ranges(), dtype=float)[features]
    limits = np.concatenate([np.empty((0, 2)), *found.model_ranges()])
    return {
        "rangeLow": _rounded(ranges[:, 0], _DIGITS, ROUND_FLOOR),
        "rangeHigh": _rounded(ranges[:, 1], _DIGITS, ROUND_CEILING),
        "lows": _rounded(limits[:, 0], _DIGITS, ROUND_FLOOR),
        "highs": _rounded(limits[:, 1], _DIGITS, ROUND_CEILING),
    }


def _predictions(found, X):
    """Ranges for the first rows of X: over all listed models, and flat for each model."""
    if X is None:
        return None
    rows = X[:MAX_ROWS]
    if not _has_ranges(found):
        return _fitted(found, rows)
    whole = np.asarray(found.prediction_range(rows), dtype=float)
    each = np.asarray(found.predictions(rows), dtype=float)
    labels = rows.index if hasattr(rows, "iloc") else range(len(whole))
    return {
        "labels": [str(label) for label in labels],
        "allLow": _rounded(whole[:, 0], _PREDICTION_DIGITS, ROUND_FLOOR),
        "allHigh": _rounded(whole[:, 1], _PREDICTION_DIGITS, ROUND_CEILING),
        "low": _rounded(each[:, :, 0].ravel(), _PREDICTION_DIGITS, ROUND_FLOOR),
        "fitted": _rounded(each[:, :, 1].ravel(), _PREDICTION_DIGITS),
        "high": _rounded(each[:, :, 2].ravel(), _PREDICTION_DIGITS, ROUND_CEILING),
    }


def _fitted(found, rows):
    """The same without ranges of coefficients: models differ, and each has one prediction."""
    values = np.asarray(rows, dtype=float)
    each = [m.intercept + values[:, m.support] @ np.asarray(m.values) for m in found.models]
    fitted = np.reshape(each, (len(found.models), len(values)))
    labels = rows.index if hasattr(rows, "iloc") else range(len(values))
    some = fitted if len(fitted) else np.full((1, len(values)), np.nan)
    return {
        "labels": [str(label) for label in labels],
        "allLow": _rounded(some.min(axis=0), _PREDICTION_DIGITS, ROUND_FLOOR),
        "allHigh": _rounded(some.max(axis=0), _PREDICTION_DIGITS, ROUND_CEILING),
        "low": None,
        "fitted": _rounded(fitted.ravel(), _PREDICTION_DIGITS),
        "high": None,
    }


# What the head says


def _total(found):
    """Such as "12 groups": what k counts, and how many there are."""
    structure = structure_of(found)
    return counted(n_units(structure, found.n_features), unit_of(structure))


def _introduction(found):
    yield _verdict(found)
    text = _only_k(found) if found.only_k else _irreducible(found)
    structure = structure_of(found)
    label, _ = label_units(structure, found.names)
    for word, some in (("has", found.include), ("lacks", found.exclude)):
        if len(some):
            n = len(np.unique(label[np.asarray(some, dtype=np.int64)]))
            given = counted(n, f"given {unit_of(structure)}")
            text += f" As you asked, every model {word} {given}."
    yield tag("p", text)
    yield tag(
        "p",
        tag("strong", "This is not a confidence set."),
        " It tells which models fit these data nearly equally well, not which of them are probably "
        "true"
        + (", and its ranges are not confidence intervals" if _has_ranges(found) else "")
        + ". Other data would give another set.",
        class_="warning",
    )
    yield fact_list(_facts(found))
    yield rules_of_list(found)
    borderline = sum(bool(model.is_borderline) for model in found.models)
    if borderline:
        equal = "equals the threshold" if borderline == 1 else "equal the threshold"
        text = f"{counted(borderline, 'model')} {equal} up to rounding, so rounding decided that "
        yield tag("p", f"{text}{'it is' if borderline == 1 else 'they are'} listed. The mark is ≈.")
    yield tag("div", id="copies")
    yield tag("noscript", tag("p", "The rest of this page needs JavaScript.", class_="warning"))


def _in_short(found):
    worse = f"at most {percent(_excess(found, found.threshold))} {_above(found)}"
    if found.only_k:
        return f"The best models with exactly {found.k} of {_total(found)}, {worse}."
    smaller = (
        f"Models that only add {unit_of(structure_of(found))}s to one of these are not listed."
    )
    return f"Models with at most {found.k} of {_total(found)}, {worse}. {smaller}"


def _irreducible(found):
    models = counted(len(found.models), "model")
    worse = percent(_excess(found, found.threshold))
    structure = structure_of(found)
    unit, kind = unit_of(structure), "linear" if structure is None else "admissible linear"
    alone = f"without any one of its {unit}s it is no longer in the set"
    if structure is not None:  # a part of it may break a rule
        alone = f"no model with only a part of its {unit}s is in the set"
    text = (
        f"Several models may fit nearly as well as the best one. This page shows the {kind} models "
        f"with at most {found.k} of {_total(found)} whose objective is at most {worse} "
        f"{_above(found)}. The list has {models}. Each is as small as it can be: {alone}."
    )
    if min(_counted(found), default=found.k) < found.k:
        allowed = ", as far as the rules allow it," if structure is not None else ""
        text += f" A listed model with more {unit}s, up to {found.k},{allowed} is near-optimal, "
        text += "too, and is not listed again."
    return text


def _counted(found):
    """How many groups, or features, of each model k counts."""
    label, _ = label_units(structure_of(found), found.names)
    free = label[np.asarray(getattr(found, "free", ()), dtype=np.int64)]
    supports = (np.asarray(model.support, dtype=np.int64) for model in found.models)
    return [len(np.setdiff1d(label[support], free)) for support in supports]


def _only_k(found):
    return (
        "Several models may fit nearly as well as the best one. This page shows the "
        f"{len(found.models):,} best linear models with exactly {found.k} of {found.n_features} "
        f"features. Their objectives are at most {percent(_excess(found, found.threshold))} "
        f"{_above(found)}."
    )


def _verdict(found):
    if found.complete:
        head = "Proven complete."
        text = (
            "No better model is missing." if found.only_k else "No near-optimal model is missing."
        )
    else:
        why, advice = why_incomplete(found)
        head = f"The list may be incomplete ({why})."
        below = found.complete_below
        if np.isfinite(below) and below > found.best.objective:
            where = _percent_down(_excess(found, below))
            text = f"Nothing is missing below the objective {number(below, 8)}, "
            text += f"which is {where} {_above(found)}; beyond it models may be missing. "
        else:
            text = "Models may be missing at every objective. "
        text = Html(text + tag("span", advice))
    kind = "verdict proven" if found.complete else "verdict"
    return tag("p", tag("strong", head), " ", text, class_=kind)


def _facts(found):
    within = _excess(found, found.threshold) if found.within is None else found.within
    unit = unit_of(structure_of(found))
    label, names = label_units(structure_of(found), found.names)
    sizes = sorted({len(np.unique(label[np.asarray(m.support, int)])) for m in found.models})
    span = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else sizes[0] if sizes else "–"
    return [
        ("models in the list", f"{len(found.models):,}"),
        ("tolerance", percent(within)),
        ("best objective", number(found.best.objective, 8)),
        ("threshold", number(found.threshold, 8)),
        (f"{unit}s in a model", span),
        (f"k, most {unit}s", found.k),
        *([("groups", len(names))] if unit == "group" else []),
        ("p, features", found.n_features),
        ("n, rows", "not known" if found.n_samples is None else found.n_samples),
        ("alpha", number(found.alpha)),
    ]


def _scale(found):
    """What 100% is: the best objective, or y'y where the best fit is perfect."""
    return float(next((v for v in (found.best.objective, found.yy) if v > 0), 1.0))


def _above(found):
    return "above the best" if found.best.objective > 0 else "of y'y above the best"


def _excess(found, objective):
    return (objective - found.best.objective) / _scale(found)


def _percent_down(share):
    """A share in per cent with three digits, rounded down: less may be said than is proven."""
    digits = Context(prec=3, rounding=ROUND_FLOOR).create_decimal(f"{100 * share:.12g}")
    return f"{float(digits):.3g}%"


def _places(found, X):
    """Where the script puts its parts."""
    yield tag("div", id="tolerance", class_="bar")
    yield section(f"{unit_of(structure_of(found))}s".capitalize(), tag("div", id="features"))
    yield section("What replaces what", tag("div", id="replacements"))
    yield section("Models", tag("div", id="models"))
    if X is not None:
        yield section("Predictions", tag("div", id="predictions"))


# How it is written


def _resource(name):
    return files("bestk.show").joinpath(name).read_text(encoding="utf-8")


def _policy(script):
    """Browsers load nothing for this page, and run this script alone."""
    key = b64encode(sha256(script.encode()).digest()).decode()
    rules = (
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        f"script-src 'sha256-{key}'",
        "base-uri 'none'",
        "form-action 'none'",
    )
    content = "; ".join(rules)
    return Html(f'<meta http-equiv="Content-Security-Policy" content="{content}">')


def _safe_json(data):
    """JSON that cannot end the script around it: ASCII without <, > and &."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _finite(value):
    return float(value) if np.isfinite(value) else None


def _rounded(values, digits, rounding=None):
    """Short numbers; those of ranges are rounded outwards, or the range shown would not hold."""
    context = Context(prec=digits, rounding=rounding)
    numbers = np.asarray(values, dtype=float).tolist()
    return [
        _short(float(context.create_decimal_from_float(v))) if np.isfinite(v) else None
        for v in numbers
    ]


def _short(value):
    return int(value) if value.is_integer() and abs(value) < 1e15 else value
