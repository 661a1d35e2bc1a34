"""Who watches a run. The library itself never prints: the tree reports to one of these."""

from typing import Any, Protocol

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
    raise TypeError("progress must be True, False, None or an object with update() and close()")
