"""The command ``bestk``."""

from bestk.cli.app import app

__all__ = ["app"]
