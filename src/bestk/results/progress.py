"""Who watches a run. The library itself never prints: the tree reports to one of these."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol

from bestk.base.settings import Settings
from bestk.results.result import Snapshot


class Progress(Protocol):
    """What ``progress=`` accepts: any object with these two methods.

    ``update(snapshot)`` is called by the thread that searches, after every batch of nodes and up to
    hundreds of times per second, with a :class:`bestk.Snapshot`; a slow update slows the search.
    ``close()`` is called once when the search ends, also when it ends with an exception. A path or
    a cross-validation passes the same object to all its searches, so an object may be updated again
    after it was closed.

    A progress object only watches. To stop a run use ``callback=``, a function of the same
    snapshots: the run ends, with its best model and a bound that holds, once it returns true.

    >>> import bestk
    >>> class Gaps(list):
    ...     def update(self, snapshot):
    ...         self.append(snapshot.gap)
    ...
    ...     def close(self):
    ...         pass
    >>> X, y, _ = bestk.datasets.make_synthetic(100, 20, k=3)
    >>> gaps = Gaps()
    >>> result = bestk.solve(X, y, k=3, progress=gaps)
    >>> gaps[-1] <= gaps[0] <= 1
    True
    """

    def update(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...


class Silent:
    """Shows nothing."""

    def update(self, snapshot: Snapshot) -> None:
        pass

    def close(self) -> None:
        pass


def make_progress(value: Any) -> Progress:
    """None or False: silent. True: a live display. Anything with update and close: itself."""
    if value is None or value is False:
        return Silent()
    if value is True:
        from bestk.show.progress import LiveDisplay

        return LiveDisplay().__enter__()
    if hasattr(value, "update") and hasattr(value, "close"):
        return value
    raise TypeError(
        f"progress must be True, False, None or an object with update() and close(), got {value!r}"
    )


@contextmanager
def one_display(settings: Settings, n_searches: int | None = None) -> Iterator[Settings]:
    """``progress=True`` shows one display for many searches; None: nobody knows how many."""
    if settings.progress is not True:
        yield settings
        return
    from bestk.show.progress import LiveDisplay

    with LiveDisplay(n_searches=n_searches or 1) as display:
        yield replace(settings, progress=_Kept(display) if n_searches is None else display)


class _Kept:
    """A display that stays when a search ends."""

    def __init__(self, display: Progress) -> None:
        self._display = display

    def update(self, snapshot: Snapshot) -> None:
        self._display.update(snapshot)

    def close(self) -> None:
        pass
