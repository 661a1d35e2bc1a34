"""How a page is written: tags, tables and numbers.

Every piece of markup is made by :func:`tag`, which escapes all text that is not markup already, so
a feature called ``<b>`` stays text.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

# Cells of words and of numbers; styles are for notebooks, which lack our style sheet, align to the
# right and break lines anywhere.
_TEXT = {"class_": "text", "style": "text-align: left"}
_NUMBER = {"style": "white-space: nowrap"}


# "a^2" and "a**2"; a power follows a name or a bracket.
POWER = re.compile(r"(?<=[\w)\]])(?:\^|\s?\*\*\s?)(\d{1,2})(?!\w|\.\d)")


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


def _join(parts: Iterable[Any]) -> Html:
    return Html("".join(p if isinstance(p, Html) else escape(str(p)) for p in parts))


def named(name: Any) -> Html:
    """A name with its powers raised: sex² for ``sex^2`` and ``sex**2``."""
    *pieces, rest = POWER.split(str(name))
    pairs = zip(pieces[::2], pieces[1::2], strict=True)
    return _join([*(part for text, power in pairs for part in (text, tag("sup", power))), rest])


def listed(names: Iterable[Any], none: str = "none") -> Html:
    """Names with commas between them."""
    return Html(", ".join(map(named, names)) or escape(none))


def page(title, *sections):
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


def section(title, *parts):
    return tag("section", tag("h2", title), *parts)


def fact_list(pairs):
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs))


def table(heads: Sequence[Any], *rows: Sequence[Any], chosen: int | None = None) -> Html:
    """A table whose first column names the rows; lists of names are text, the rest numbers."""
    kinds = [_TEXT if head in ("features", "groups", "its terms") else _NUMBER for head in heads]
    columns = zip(heads, [_TEXT, *kinds[1:]], strict=True)
    head = [tag("th", h, scope="col", **kind) for h, kind in columns]
    body = []
    for number, (first, *rest) in enumerate(rows):
        cells = [tag("td", cell, **kind) for cell, kind in zip(rest, kinds[1:], strict=True)]
        row = [tag("th", first, scope="row", style="text-align: left"), *cells]
        body.append(tag("tr", *row, class_="chosen" if number == chosen else None))
    table = tag("table", tag("thead", tag("tr", *head)), tag("tbody", *body))
    return tag("div", table, class_="scroll", style="overflow-x: auto")


def and_more(rest: int) -> list[Html]:
    """A line on what a table leaves out, if it leaves out anything."""
    return [tag("p", f"... and {rest:,} more")] if rest > 0 else []


def number(value: float, digits: int = 5) -> Html:
    """A number as people write it: 1.2 × 10⁻⁵, a true minus sign."""
    if not np.isfinite(value):
        return Html("–" if np.isnan(value) else "∞" if value > 0 else "−∞")
    mantissa, _, exponent = f"{value:.{digits}g}".replace("-", "−").partition("e")
    if not exponent:
        return Html(mantissa)
    power = exponent.lstrip("+").replace("−0", "−").removeprefix("0")
    return Html(f"{mantissa} × 10{tag('sup', power)}")


def fixed(value, places):
    """A number with so many decimals, for columns that are compared."""
    return Html(f"{value:.{places}f}".replace("-", "−")) if np.isfinite(value) else number(value)


def plus_minus(mean, error):
    """Mean and standard error, as many decimals as give the error two digits."""
    if not (error > 0 and 1e-4 <= abs(mean) < 1e7):
        return Html(f"{number(mean)} ± {number(error, 2)}")
    places = max(1 - int(np.floor(np.log10(error))), 0)
    return Html(f"{fixed(mean, places)} ± {fixed(error, places)}")
