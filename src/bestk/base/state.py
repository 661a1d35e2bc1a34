"""The state of one part of a search, as a checkpoint keeps it."""

from typing import Any, NamedTuple

import numpy as np


class State(NamedTuple):
    """``plain`` values for a JSON text, ``arrays`` beside it.

    Each part has ``state()`` and ``restore(state)``; a checkpoint is made of these alone.
    """

    plain: dict[str, Any]
    arrays: dict[str, np.ndarray]

    def within(self, part: str) -> dict[str, np.ndarray]:
        """The arrays under names that begin with the name of a part."""
        return {f"{part}.{name}": array for name, array in self.arrays.items()}
