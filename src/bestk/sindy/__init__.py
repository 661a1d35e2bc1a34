"""Governing equations with a proof, on top of PySINDy (pip install "bestk[sindy]")."""

try:
    import pysindy  # noqa: F401
except ImportError as error:
    raise ImportError('bestk.sindy needs PySINDy: pip install "bestk[sindy]"') from error

from bestk.sindy.discovery import Discovery
from bestk.sindy.optimizer import OKRidge
from bestk.sindy.search import discover

__all__ = ["Discovery", "OKRidge", "discover"]
