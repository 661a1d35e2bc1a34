"""What is asked of the data: everything that defines a problem besides its rows."""

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from bestk.base.structure import Structure


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """``min ||y - X b||^2 + alpha ||b||^2`` over which b?

    Admissible are at most k nonzeros besides the ``free`` features, the included ones counted, none
    of them excluded, all within ``lower`` and ``upper``. ``is_box_assumed`` says that nobody gave
    this box: the run chose it (``bounds="auto"``). With a ``structure`` k counts groups, and what
    it allows is admissible; ``include``, ``exclude`` and ``free`` then name whole groups.
    """

    k: int
    alpha: float
    fit_intercept: bool
    include: np.ndarray
    exclude: np.ndarray
    lower: np.ndarray = field(repr=False)
    upper: np.ndarray = field(repr=False)
    is_box_assumed: bool = False
    free: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    structure: Structure | None = field(default=None, repr=False)

    @property
    def given(self) -> np.ndarray:
        """Features that every model may use: included or free."""
        return np.union1d(self.include, self.free).astype(np.intp)

    def as_dict(self) -> dict[str, Any]:
        """The parts of the question by name."""
        return {part.name: getattr(self, part.name) for part in fields(Question)}

    def plain(self) -> dict[str, Any]:
        """The same with lists in place of arrays, and what identifies a structure in its place."""
        plain = {
            name: part.tolist() if isinstance(part, np.ndarray) else part
            for name, part in self.as_dict().items()
        }
        structure = self.structure
        return plain | {"structure": None if structure is None else structure.identity()}
