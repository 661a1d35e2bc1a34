"""OKRidge where PySINDy's tests name STLSQ or MIOSR, or no optimizer at all.

Runs in the environment of the tests, beside PySINDy. What stands in for a class is a function that
returns a plain OKRidge: parameters that both have keep their names and values, those that OKRidge
does not have are left out, and none is given that the test does not give.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pysindy
from pysindy import _core, optimizers

from bestk import Status
from bestk.sindy import OKRidge

from .told import LIMIT, TOLD

DEFAULT, STLSQ, MIOSR = "default", "STLSQ", "MIOSR"


class StandIns:
    """Puts OKRidge in the place of optimizers, and watches it: what was made and fitted, where."""

    def __init__(self) -> None:
        self.test = ""
        self.uses: set[str] = set()
        self.equations = self.proven = 0
        self._made: list[tuple[OKRidge, str]] = []
        self._functions: dict[str, Callable[..., OKRidge]] = {}

    def install(self) -> None:
        """Before the modules of tests are imported, for these import names."""
        _core.STLSQ = self._function(DEFAULT, optimizers.STLSQ)
        for name in (STLSQ, MIOSR):
            function = self._function(name, getattr(optimizers, name))
            for module in (pysindy, optimizers):
                setattr(module, name, function)
        self._watch_fits()

    def begin(self, test: str, parameters: Iterable[Any] = ()) -> None:
        """A test begins, whose parameters may be optimizers that were made before."""
        self.test, self.equations, self.proven = test, 0, 0
        self.uses = {label for value in parameters for label in self._labels(value)}

    def _function(self, label: str, original: type) -> Callable[..., OKRidge]:
        signature, known = inspect.signature(original), inspect.signature(OKRidge).parameters

        def make(*args: Any, **options: Any) -> OKRidge:
            given = signature.bind(*args, **options).arguments
            if label == MIOSR:  # its number is for all equations together
                given["k"] = given["total_k"] = given.get("target_sparsity", 5)
            shared = {name: value for name, value in given.items() if name in known}
            told = TOLD.get(self.test, {})
            optimizer = OKRidge(**{"time_limit": LIMIT} | shared | told)
            self.uses.add(label)
            self._made.append((optimizer, label))
            return optimizer

        make.__name__ = original.__name__  # parts of the names of tests
        self._functions[label] = make
        return make

    def _labels(self, value: Any) -> set[str]:
        """What a parameter of a test stands in for, if anything."""
        if isinstance(value, tuple | list):
            return {label for part in value for label in self._labels(part)}
        return {
            label
            for thing, label in (
                *self._made,
                *((function, label) for label, function in self._functions.items()),
            )
            if thing is value
        }

    def _watch_fits(self) -> None:
        fit = OKRidge.fit

        @wraps(fit)
        def watched(optimizer: OKRidge, *args: Any, **options: Any) -> OKRidge:
            fitted = fit(optimizer, *args, **options)
            self.equations += len(fitted.results_)
            self.proven += sum(result.status is Status.OPTIMAL for result in fitted.results_)
            return fitted

        OKRidge.fit = watched
