"""Runs in files: the public name of :mod:`bestk.results.storage`."""

from bestk.results.model_json import from_json, to_json
from bestk.results.storage import load, save

__all__ = ["from_json", "load", "save", "to_json"]
