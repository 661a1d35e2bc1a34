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

from bestk.show.html import Html, count, fact_list, number, section, tag
from bestk.show.plots import percent

# More rows than this are not shown: predictions take 3 numbers for each model and row.
MAX_ROWS = 20
# Features that no model uses are named up to this number, and counted beyond it.
MAX_UNUSED = 300
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


def explorer_page(found: Any, X: Any = None) -> str:
    """The page as a string; see :func:`write_explorer`."""
    from bestk import __version__

    script = _resource("_explorer.js")
    data = explorer_data(found, X)
    most = "" if found.only_k else "at most "
    title = f"Near-optimal models with {most}{found.k} of {found.n_features} features"
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
        tag("main", tag("h1", title), *_introduction(found), *_places(X)),
        tag("footer", f"Made by bestk {__version__} on {date}."),
        tag("script", Html(_safe_json(data)), id="data", type="application/json"),
        tag("script", Html(script)),
    )
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def explorer_data(found: Any, X: Any = None) -> dict[str, Any]:
    """What the script needs, as flat lists; features are numbered anew, used ones first.

    Ranges are rounded outwards and the objectives are not rounded.
    """
    models = found.models
    flat = np.concatenate([[], *(np.asarray(m.support) for m in models)]).astype(np.int64)
    used = np.unique(np.concatenate([flat, np.asarray(found.include, dtype=np.int64)]))
    in_best = [int(np.searchsorted(used, j)) for j in found.best.support if j in used]
    unused = np.setdiff1d(np.arange(found.n_features), used)
    ranges = np.asarray(found.coefficient_ranges(), dtype=float)[used]
    limits = np.concatenate([np.empty((0, 2)), *found.model_ranges()])
    values = np.concatenate([[], *(np.asarray(m.values, dtype=float) for m in models)])
    return {
        "k": int(found.k),
        "onlyK": bool(found.only_k),
        "best": float(found.best.objective),
        "bestSupport": in_best,
        "bestUnlisted": [str(found.names[j]) for j in found.best.support if j not in used],
        "threshold": float(found.threshold),
        "scale": _scale(found),
        "complete": bool(found.complete),
        "completeBelow": _finite(found.complete_below),
        "names": [str(found.names[j]) for j in used],
        "include": np.searchsorted(used, found.include).tolist(),
        "rangeLow": _rounded(ranges[:, 0], _DIGITS, ROUND_FLOOR),
        "rangeHigh": _rounded(ranges[:, 1], _DIGITS, ROUND_CEILING),
        "unused": [str(found.names[j]) for j in unused[:MAX_UNUSED]],
        "unusedCount": len(unused),
        "copies": [[str(found.names[a]), str(found.names[b])] for a, b in found.copies],
        "objectives": [float(m.objective) for m in models],
        "intercepts": _rounded([m.intercept for m in models], _DIGITS),
        "borderline": [i for i, m in enumerate(models) if m.is_borderline],
        "sizes": [len(m.support) for m in models],
        "features": np.searchsorted(used, flat).tolist(),
        "values": _rounded(values, _DIGITS),
        "lows": _rounded(limits[:, 0], _DIGITS, ROUND_FLOOR),
        "highs": _rounded(limits[:, 1], _DIGITS, ROUND_CEILING),
        "rows": _predictions(found, X),
    }


def _predictions(found, X):
    """Ranges for the first rows of X: over all listed models, and flat for each model."""
    if X is None:
        return None
    rows = X[:MAX_ROWS]
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


# What the head says


def _introduction(found):
    yield _verdict(found)
    text = _only_k(found) if found.only_k else _irreducible(found)
    for word, some in (("has", found.include), ("lacks", found.exclude)):
        if len(some):
            text += f" As you asked, every model {word} {count(len(some), 'given feature')}."
    yield tag("p", text)
    yield tag(
        "p",
        tag("strong", "This is not a confidence set."),
        " It tells which models fit these data nearly equally well, not which of them are probably "
        "true, and its ranges are not confidence intervals. Other data would give another set.",
        class_="warning",
    )
    yield fact_list(_facts(found))
    borderline = sum(bool(model.is_borderline) for model in found.models)
    if borderline:
        equal = "equals the threshold" if borderline == 1 else "equal the threshold"
        text = f"{count(borderline, 'model')} {equal} up to rounding, so rounding decided that "
        yield tag("p", f"{text}{'it is' if borderline == 1 else 'they are'} listed. The mark is ≈.")
    yield tag("div", id="copies")
    yield tag("noscript", tag("p", "The rest of this page needs JavaScript.", class_="warning"))


def _irreducible(found):
    models = f"{len(found.models):,} {'model' if len(found.models) == 1 else 'models'}"
    worse = percent(_excess(found, found.threshold))
    text = (
        "Several models may fit nearly as well as the best one. This page shows the linear models "
        f"with at most {found.k} of {found.n_features} features whose objective is at most {worse} "
        f"{_above(found)}. The list has {models}. Each is as small as it can be: without "
        "any one of its features it is no longer in the set."
    )
    if any(len(model.support) < found.k for model in found.models):
        text += f" A listed model with more features, up to {found.k}, is near-optimal, too, and "
        text += "is not listed again."
    return text


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
        head = f"The list may be incomplete ({found.status})."
        below = found.complete_below
        if np.isfinite(below) and below > found.best.objective:
            where = _percent_down(_excess(found, below))
            text = f"Nothing is missing below the objective {number(below, 8)}, "
            text += f"which is {where} {_above(found)}; beyond it models may be missing. "
        else:
            text = "Models may be missing at every objective. "
        text = Html(text + tag("span", found.status.advice))
    kind = "verdict proven" if found.complete else "verdict"
    return tag("p", tag("strong", head), " ", text, class_=kind)


def _facts(found):
    within = _excess(found, found.threshold) if found.within is None else found.within
    sizes = sorted({len(model.support) for model in found.models})
    span = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else sizes[0] if sizes else "–"
    return [
        ("models in the list", f"{len(found.models):,}"),
        ("tolerance", percent(within)),
        ("best objective", number(found.best.objective, 8)),
        ("threshold", number(found.threshold, 8)),
        ("features in a model", span),
        ("k, most features", found.k),
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


def _places(X):
    """Where the script puts its parts."""
    yield tag("div", id="tolerance", class_="bar")
    yield section("Features", tag("div", id="features"))
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
