"""Pictures of results: the public name of :mod:`bestk.show.plots`."""

from bestk.show.plots import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    MARKERS,
    PINK,
    RED,
    coefficients,
    cross_validation,
    discovery,
    gap,
    path,
    predicted,
    scores,
    states,
)

__all__ = [
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "MARKERS",
    "PINK",
    "RED",
    "coefficients",
    "cross_validation",
    "discovery",
    "gap",
    "path",
    "predicted",
    "scores",
    "states",
]
