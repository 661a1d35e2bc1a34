"""Live progress. The library itself never prints: the tree reports to one of these."""

import sys
from collections.abc import Callable
from threading import Event, Lock, Thread, Timer
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

from bestk.base.words import printable
from bestk.results.gaps import percent

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from bestk.results.result import Snapshot

# Runs that end within this many seconds show nothing: a display that flashes by is noise.
DELAY = 0.3
_PER_SECOND = 8
# A narrower window than this has no room for the counts of nodes.
_ROOMY = 72
_COMPILING = "compiling inner loops, once ..."


class LiveDisplay:
    """Incumbent, bound, gap and nodes of a search while it runs; gone when the search has ended.

    ``progress=True`` makes one. It appears on a terminal (on standard error) or in a notebook, and
    nowhere else. An update only keeps the snapshot; a thread of its own draws it a few times per
    second.

    Parameters
    ----------
    console : rich.console.Console or None
        Where to draw; None means standard error, or the notebook.
    n_searches : int
        The display stays up for so many searches, such as the sizes of a path.
    delay : float
        Seconds after which it appears.
    """

    def __init__(
        self, console: "Console | None" = None, *, n_searches: int = 1, delay: float = DELAY
    ) -> None:
        self._screen = _Screen(console, self.render, delay)
        self._n_searches, self._n_closed = n_searches, 0
        self._state: tuple[Snapshot | None, float] = None, perf_counter()

    def update(self, snapshot: "Snapshot") -> None:
        # One assignment of one tuple: the drawing thread never sees half of an update.
        self._state = snapshot, perf_counter()
        self._screen.open()

    def close(self) -> None:
        self._state = None, perf_counter()
        self._n_closed += 1
        if self._n_closed % self._n_searches == 0:
            self._screen.close()

    def __enter__(self) -> Self:
        """Open before the first update, which may take a while to come."""
        self._state = None, perf_counter()
        self._screen.open()
        return self

    def __exit__(self, *exc: object) -> None:
        self._screen.close()

    def render(self) -> "RenderableType":
        """Two lines, headings and values."""
        from rich.table import Table

        snapshot, since = self._state
        waited = perf_counter() - since
        cells: dict[str, tuple[str, int]] = {}
        if self._n_searches > 1:
            done = min(self._n_closed + 1, self._n_searches)
            cells["model"] = f"{done}/{self._n_searches}", 5
        if snapshot is None:
            cells |= {"elapsed": (f"{waited:.1f} s", 8), "": ("preparing the search ...", 0)}
        else:
            cells |= {
                "elapsed": (f"{snapshot.seconds + waited:.1f} s", 8),
                "best found": (f"{snapshot.objective:.7g}", 11),
                "proven bound": (f"{snapshot.lower_bound:.7g}", 12),
                "gap": (percent(snapshot.gap), 8),
            }
            if self._screen.width >= _ROOMY:
                rate = snapshot.n_nodes / snapshot.seconds if snapshot.seconds > 0 else 0.0
                cells |= {
                    "open": (f"{snapshot.n_open:,}", 7),
                    "nodes": (f"{snapshot.n_nodes:,}", 9),
                    "nodes/s": (f"{rate:,.0f}", 7),
                }
                if snapshot.n_supports:
                    cells["tried on device"] = f"{snapshot.n_supports:.2e}", 15
        table = Table.grid(padding=(0, 1))
        for _, width in cells.values():
            table.add_column(justify="right", min_width=width, no_wrap=True)
        table.add_row(*cells, style="dim")
        table.add_row(*(value for value, _ in cells.values()))
        return table


class Counter:
    """One line that counts, such as ``reading data.csv: 120,000 rows  1.3 s``.

    It is a progress object as well and then counts the searches that have ended, on however many
    threads they run.
    """

    def __init__(
        self,
        text: str,
        unit: str,
        *,
        total: int | None = None,
        console: "Console | None" = None,
        delay: float = DELAY,
    ) -> None:
        self._text, self._unit, self._total = printable(text), unit, total
        self._screen = _Screen(console, self.render, delay)
        self._lock = Lock()
        self._started: float | None = None
        self.count = 0

    def add(self, number: int) -> None:
        with self._lock:
            self._started = self._started or perf_counter()
            self.count += number
        self._screen.open()

    def update(self, snapshot: "Snapshot") -> None:
        self.add(0)

    def close(self) -> None:
        self.add(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._screen.close()

    def render(self) -> "RenderableType":
        from rich.text import Text

        total = "" if self._total is None else f" of {self._total:,}"
        seconds = perf_counter() - (self._started or perf_counter())
        return Text(f"{self._text}: {self.count:,}{total} {self._unit}  {seconds:.1f} s")


class Waiting:
    """One line with the seconds so far, such as ``starting 4 workers  1.3 s``."""

    def __init__(
        self, text: str, *, console: "Console | None" = None, delay: float = DELAY
    ) -> None:
        self._text, self._started = printable(text), perf_counter()
        self._screen = _Screen(console, self.render, delay)

    def __enter__(self) -> Self:
        self._started = perf_counter()
        self._screen.open()
        return self

    def __exit__(self, *exc: object) -> None:
        self._screen.close()

    def render(self) -> "RenderableType":
        from rich.text import Text

        return Text(f"{self._text}  {perf_counter() - self._started:.1f} s")


def is_compiling() -> bool:
    """Whether an inner loop is compiled just now, which explains a display that stands still.

    Nothing is imported to find out: a thread that draws must not wait for an import.
    """
    compilations = getattr(sys.modules.get("bestk.base.compiling"), "compilations", None)
    return compilations is not None and compilations.is_running


class _Screen:
    """Draws what `render` returns, from `delay` seconds after open() until close().

    It can be opened again. Where nobody can see it, it does nothing. While inner loops are
    compiled, a line below says so.
    """

    def __init__(
        self, console: "Console | None", render: "Callable[[], RenderableType]", delay: float
    ) -> None:
        from rich.console import Console

        # Colours may be forced upon a pipe; only a terminal can take back what was drawn.
        watched = console is not None or sys.stderr.isatty()
        self._console = console or Console(stderr=True)
        self._visible = self._console.is_jupyter or (watched and self._console.is_interactive)
        self._content, self._delay = render, delay
        self._lock = Lock()
        self._timer: Timer | None = None
        self._drawing: Any = None

    @property
    def width(self) -> int:
        return self._console.width

    def _render(self) -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        content = self._content()
        return Group(content, Text(_COMPILING, style="dim")) if is_compiling() else content

    def open(self) -> None:
        if self._visible and self._timer is None:
            self._timer = Timer(self._delay, self._start)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._drawing is not None:
                self._drawing.stop()
                self._drawing = None

    def _start(self) -> None:
        from rich.live import Live

        with self._lock:
            if self._timer is None:  # closed just now
                return
            if self._console.is_jupyter:
                self._drawing = _Cell(self._render)
            else:
                self._drawing = Live(
                    console=self._console,
                    get_renderable=self._render,
                    refresh_per_second=_PER_SECOND,
                    transient=True,
                )
            self._drawing.start(refresh=True)


class _Cell:
    """What rich's Live is for terminals, for a notebook cell; needs no widgets."""

    def __init__(self, render: "Callable[[], RenderableType]") -> None:
        self._render = render
        self._ended = Event()
        self._thread = Thread(target=self._draw, daemon=True)

    def start(self, refresh: bool = True) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._handle = display(HTML(self._page()), display_id=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()
        self._handle.update(self._html(""))

    def _draw(self) -> None:
        while not self._ended.wait(2 / _PER_SECOND):
            self._handle.update(self._html(self._page()))

    def _page(self) -> str:
        from html import escape
        from io import StringIO

        from rich.console import Console

        text = StringIO()
        # Kernels announce colours, which a page cannot show.
        plain = Console(file=text, width=100, force_jupyter=False, color_system=None)
        plain.print(self._render())
        # Some pages give <pre> the font of their text, and columns must stand below their heads.
        return f'<pre style="font-family: monospace">{escape(text.getvalue())}</pre>'
