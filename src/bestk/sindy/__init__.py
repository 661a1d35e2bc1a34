"""Governing equations with a proof, on top of PySINDy (pip install "bestk[sindy]")."""

try:
    import pysindy  # noqa: F401
except ImportError as error:
    raise ImportError('bestk.sindy needs PySINDy: pip install "bestk[sindy]"') from error

from bestk.sindy.discovery import Discovery, discover
from bestk.sindy.optimizer import OKRidge

__all__ = ["Discovery", "OKRidge", "discover"]
