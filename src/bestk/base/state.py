"""The state of one part of a search, as a checkpoint keeps it; read back with checks.

What is read goes to compiled loops, which trust their indices. So nothing is taken from a file but
by the methods here: type, shape and range of everything are looked at first.
"""

from typing import Any, NamedTuple, NoReturn

import numpy as np

from bestk.base.archive import cut

_MOST = 2**62


class Broken(ValueError):
    """A saved state that no run has left; the message begins with the name of the field."""


class State(NamedTuple):
    """``plain`` values for a JSON text, ``arrays`` beside it; ``part`` names it in errors.

    Each part has ``state()`` and ``restore(state)``; a checkpoint is made of these alone.
    """

    plain: dict[str, Any]
    arrays: dict[str, np.ndarray]
    part: str = "state"

    def within(self, part: str) -> dict[str, np.ndarray]:
        """The arrays under names that begin with the name of a part."""
        return {f"{part}.{name}": array for name, array in self.arrays.items()}

    def refuse(self, name: str, what: str) -> NoReturn:
        raise Broken(f"{self.part}.{name} {what}")

    def require(self, is_right: Any, name: str, what: str) -> None:
        if not is_right:
            self.refuse(name, what)

    # Plain values ---------------------------------------------------------------------------

    def flag(self, name: str) -> bool:
        value = self.plain.get(name)
        if not isinstance(value, bool):
            self.refuse(name, "must be true or false")
        return value

    def count(self, name: str, least: int = 0, below: int = _MOST) -> int:
        value = self.plain.get(name)
        if type(value) is not int or not least <= value < below:
            self.refuse(name, f"must be a whole number from {least} to {below - 1}")
        return value

    def number(self, name: str, least: float = -np.inf, *, finite: bool = True) -> float:
        value: Any = self.plain.get(name)
        is_number = isinstance(value, float) or (type(value) is int and abs(value) < _MOST)
        if not is_number:
            self.refuse(name, "must be a number")
        is_right = abs(value) < np.inf if finite else not np.isnan(value)
        self.require(is_right and value >= least, name, f"must be {_words(least, finite)}")
        return float(value)

    # Arrays: `shape` has None for any length ------------------------------------------------

    def reals(
        self, name: str, *shape: int | None, least: float = -np.inf, finite: bool = True
    ) -> np.ndarray:
        array = self._shaped(name, shape, "fiu").astype(np.float64, copy=False)
        is_right = np.isfinite(array) if finite else ~np.isnan(array)
        is_right &= array >= least
        self.require(is_right.all(), name, f"must have entries that are {_words(least, finite)}")
        return array

    def integers(
        self, name: str, *shape: int | None, least: int = 0, below: int = _MOST
    ) -> np.ndarray:
        array = self._shaped(name, shape, "iu")
        is_right = ((array >= least) & (array < below)).all()
        self.require(is_right, name, f"must have whole numbers from {least} to {below - 1}")
        return array

    def distinct(self, name: str, below: int) -> np.ndarray:
        """Numbers of things, each once, in ascending order."""
        array = self.integers(name, None, below=below).astype(np.intp)
        self.require((np.diff(array) > 0).all(), name, "must list numbers in ascending order")
        return array

    def flags(self, name: str, *shape: int | None) -> np.ndarray:
        return self._shaped(name, shape, "b")

    def rows(self, ends: str, array: np.ndarray, count: int) -> list[np.ndarray]:
        """Rows of different lengths that lie end to end in one array."""
        stops = self.integers(ends, count)
        try:
            return cut(array, stops, most=count)
        except ValueError:
            self.refuse(ends, "must be where rows end")

    def _shaped(self, name: str, shape: tuple[int | None, ...], kinds: str) -> np.ndarray:
        array = self.arrays.get(name)
        if array is None:
            self.refuse(name, "is missing")
        pairs = zip(array.shape, shape, strict=False)
        if array.ndim != len(shape) or any(n not in (None, length) for length, n in pairs):
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            self.refuse(name, f"must have the shape ({wanted}), it has {array.shape}")
        if array.dtype.kind not in kinds and array.size:
            self.refuse(name, f"has the wrong type, {array.dtype}")
        return array if array.size else array.astype(_EMPTY[kinds[0]])


_EMPTY = {"f": np.float64, "i": np.int64, "b": np.bool_}


def _words(least: float, finite: bool) -> str:
    number = "finite numbers" if finite else "numbers"
    return number if least == -np.inf else f"{number} of at least {least:g}"
