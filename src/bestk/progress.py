"""Watching a run: the public name of what ``progress=`` accepts, and of the live display."""

from bestk.results.progress import Progress
from bestk.show.progress import LiveDisplay

__all__ = ["LiveDisplay", "Progress"]
