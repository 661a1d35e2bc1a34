"""The tables: public, and on disk with scikit-learn or statsmodels: no network is needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a table comes from."""

    package: str
    """The one that brings it: sklearn or statsmodels."""
    about: str
    """What the rows are, and what is to be predicted."""
    load: Callable[[], tuple[Any, Any]]
    """A frame of features and a column of the target, as they are."""

    @property
    def is_here(self) -> bool:
        return find_spec(self.package) is not None


def _sklearn(name: str) -> tuple[Any, Any]:
    table = getattr(import_module("sklearn.datasets"), f"load_{name}")(as_frame=True)
    return table.data, table.target


def _statsmodels(name: str, target: str, without: Sequence[str] = ()) -> tuple[Any, Any]:
    frame = import_module(f"statsmodels.datasets.{name}").load_pandas().data
    return frame.drop(columns=[target, *without]), frame[target]


def _star98() -> tuple[Any, Any]:
    """The target is a share of two columns."""
    frame = import_module("statsmodels.datasets.star98").load_pandas().data
    above, below = frame["NABOVE"], frame["NBELOW"]
    return frame.drop(columns=["NABOVE", "NBELOW"]), above / (above + below)


def _from_sklearn(name: str, about: str) -> Source:
    return Source(package="sklearn", about=about, load=partial(_sklearn, name))


def _from_statsmodels(name: str, about: str, target: str, *without: str) -> Source:
    load = partial(_statsmodels, name, target, without)
    return Source(package="statsmodels", about=about, load=load)


TABLES = {
    "diabetes": _from_sklearn(
        "diabetes", "442 patients; progression of the disease a year later (Efron et al. 2004)"
    ),
    "breast cancer": _from_sklearn(
        "breast_cancer", "569 tumours measured under the microscope; benign or not (UCI, Wisconsin)"
    ),
    "wine": _from_sklearn(
        "wine", "178 wines, chemical analysis; cultivar 0, 1 or 2, as a number (UCI)"
    ),
    "digits": _from_sklearn(
        "digits", "1797 handwritten digits of 8 x 8 pixels; the digit as a number (UCI)"
    ),
    "iris": _from_sklearn("iris", "150 flowers; species 0, 1 or 2, as a number (Fisher 1936)"),
    "fair": _from_statsmodels(
        "fair", "6366 answers to a magazine; time spent in affairs (Fair 1978)", "affairs"
    ),
    "randhie": _from_statsmodels(
        "randhie", "20190 person-years of the RAND experiment; visits to a doctor", "mdvis"
    ),
    "star98": Source(
        package="statsmodels",
        about="303 Californian school districts; share of pupils above the national median in "
        "mathematics (Gill 2000)",
        load=_star98,
    ),
    "anes96": _from_statsmodels(
        "anes96", "944 voters of 1996; party identification from 0 to 6 (ANES)", "PID", "vote"
    ),
    "modechoice": _from_statsmodels(
        "modechoice",
        "840 offers to 210 travellers; taken or not (Greene)",
        *("choice", "individual", "mode"),
    ),
    "macrodata": _from_statsmodels(
        "macrodata", "203 quarters of the US economy, 1959 to 2009; unemployment", "unemp"
    ),
    "elnino": _from_statsmodels(
        "elnino", "61 years of sea temperatures by month; December", "DEC", "YEAR"
    ),
    "statecrime": _from_statsmodels(
        "statecrime", "51 US states in 2009; murder rate", "murder"
    ),
    "scotland": _from_statsmodels(
        "scotland", "32 districts; votes for a parliament that may tax, 1997 (Gill 2000)", "YES"
    ),
}  # fmt: skip


def missing() -> list[str]:
    """Tables whose package is not installed."""
    return [name for name, source in TABLES.items() if not source.is_here]
