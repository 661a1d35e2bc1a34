"""Live progress. The library itself never prints: the tree reports to one of these."""

from typing import Any, Protocol

from bestk.result import Snapshot


class Progress(Protocol):
    def update(self, snapshot: Snapshot) -> None: ...

    def close(self) -> None: ...


class Silent:
    """Shows nothing."""

    def update(self, snapshot: Snapshot) -> None:
        pass

    def close(self) -> None:
        pass


class LiveLine:
    """One line on the terminal, rewritten a few times per second."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(), refresh_per_second=4, transient=True)
        self._live.start()

    def update(self, snapshot: Snapshot) -> None:
        self._live.update(
            f"{snapshot.seconds:7.1f} s  nodes {snapshot.n_nodes:>8}  open {snapshot.n_open:>7}  "
            f"objective {snapshot.objective:.8g}  bound {snapshot.lower_bound:.8g}  "
            f"gap {snapshot.gap:.2e}"
        )

    def close(self) -> None:
        self._live.stop()


def make_progress(value: Any) -> Progress:
    """None or False: silent. True: a live line. Anything with update and close: itself."""
    if value is None or value is False:
        return Silent()
    if value is True:
        return LiveLine()
    if hasattr(value, "update") and hasattr(value, "close"):
        return value
    raise TypeError("progress must be True, False, None or an object with update() and close()")
