"""What Python, IPython and notebooks show of a value that nothing prints."""

from typing import Any


def as_printed(shown: Any, printer: Any, cycle: bool) -> None:
    """``_repr_pretty_`` of a class: what ``print`` shows, instead of all its fields."""
    printer.text(str(shown))


class Page(str):
    """The text of a page, which is too long to be shown: where it is takes its place."""

    path: str | None = None

    @classmethod
    def written(cls, text: str, path: Any) -> "Page":
        page = cls(text)
        page.path = None if path is None else str(path)
        return page

    def __repr__(self) -> str:
        where = "give a path to write it" if self.path is None else f"written to {self.path}"
        return f"<page of {len(self):,} characters, {where}>"


class Latex(str):
    """LaTeX code, which notebooks show as a formula; ``print`` shows the code."""

    def _repr_latex_(self) -> str:
        return rf"$\displaystyle {self}$"
