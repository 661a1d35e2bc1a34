"""The state of a part of the search, as plain values and arrays: what a checkpoint is made of."""

from typing import Any, NamedTuple

import numpy as np


class State(NamedTuple):
    """``plain`` goes into a JSON text, ``arrays`` beside it."""

    plain: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def within(self, part: str) -> dict[str, np.ndarray]:
        """The arrays under names that begin with the name of a part."""
        return {f"{part}.{name}": array for name, array in self.arrays.items()}
