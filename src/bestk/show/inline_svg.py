"""Pictures inside a page: SVG in the colour of the text around it, left out without matplotlib."""

import re
import warnings
from html import escape
from io import StringIO

from bestk.show.axes import require_matplotlib
from bestk.show.html import Html, tag

# Stands for the page's own text colour while matplotlib draws, to be swapped for currentColor.
INK = "#010203"
# Inches; small, so that ten-point text is still read on a phone.
SIZE = (4.8, 3.2)


def figures(pictures):
    try:
        require_matplotlib()
    except ImportError as error:
        return tag("p", f"This page has no pictures: {error}.")
    return tag(
        "div",
        *(
            tag("figure", svg(draw, caption, f"picture{i}"), tag("figcaption", caption))
            for i, (caption, draw) in enumerate(pictures, start=1)
        ),
        class_="pictures",
    )


def svg(draw, label, prefix):
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
    with style.context(["default", drawing | dict.fromkeys(ink, INK)]), warnings.catch_warnings():
        # The browser picks a font for the text, so matplotlib need not have every glyph.
        warnings.filterwarnings("ignore", message="Glyph")
        figure = Figure(figsize=SIZE, layout="constrained")
        draw(figure.subplots())
        figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].strip().replace(INK, "currentColor")
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = re.sub(r'(url\(|href=")#', rf"\1#{prefix}-", svg)
    # Without a size of its own the drawing takes the width of the page.
    opening = re.sub(r' (width|height)="[^"]*"', "", svg[: svg.index(">")])
    return Html(f'{opening} role="img" aria-label="{escape(label)}"{svg[svg.index(">") :]}')
