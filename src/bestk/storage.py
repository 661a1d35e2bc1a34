"""Runs in files: the public name of :mod:`bestk.results.storage`."""

from bestk.results.storage import load, save

__all__ = ["load", "save"]
