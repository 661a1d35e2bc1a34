"""The rows of the study: one test of PySINDy, as it is and with OKRidge in place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..harness import rows


@dataclass(frozen=True, kw_only=True)
class Row(rows.Row):
    """What became of one test; the columns of the file."""

    test: str
    """As PySINDy calls it."""
    uses: str
    """What OKRidge stands in for in this test: none or some of default, STLSQ and MIOSR."""
    before: str
    """As it is: passed, failed or skipped."""
    after: str
    """With OKRidge in place."""
    equations: int
    """Fits of OKRidge, counted by equation."""
    proven: int
    reason: str
    """First line of the error, with OKRidge in place if it fails there, or as it is."""

    @property
    def is_ours(self) -> bool:
        return bool(self.uses)

    @property
    def is_lost(self) -> bool:
        """Whether it passes as it is and not with OKRidge in place."""
        return self.before == "passed" and self.after != "passed"


def paired(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[Row]:
    """Rows of two runs, whose tests come in the same order.

    Names may differ in their parameters, as these can be named after an optimizer's class.
    """
    if [_function(test) for test in before] != [_function(test) for test in after]:
        raise ValueError("the two runs do not have the same tests")
    for first, second in zip(before, after, strict=True):
        yield Row(
            test=first["test"],
            uses=" ".join(second["uses"]),
            before=first["outcome"],
            after=second["outcome"],
            equations=second["equations"],
            proven=second["proven"],
            reason=second["reason"] or first["reason"],
        )


def _function(test: dict[str, Any]) -> str:
    return str(test["test"]).split("[")[0]
