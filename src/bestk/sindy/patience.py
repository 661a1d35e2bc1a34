"""After Ctrl-C the searches that are left give what they can at once."""

from collections.abc import Iterable
from dataclasses import replace

from bestk.base.settings import Settings
from bestk.results.result import Result
from bestk.results.status import Status


class Patience:
    """Time for a row of searches; none is left once one of them was interrupted."""

    def __init__(self) -> None:
        self.is_over = False

    def watch(self, results: Iterable[Result]) -> None:
        if any(result.status is Status.INTERRUPTED for result in results):
            self.is_over = True

    def limited(self, settings: Settings) -> Settings:
        """The settings, or those of a search that only takes its warm start."""
        return replace(settings, time_limit=0.0) if self.is_over else settings
