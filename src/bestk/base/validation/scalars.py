"""Single numbers, choices, devices and files."""

import math
import numbers
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.validation.words import nearest, shown


def require_number(name: str, value: Any, *, least: float, finite: bool = True) -> float:
    value = _real(name, value)
    if math.isnan(value) or value < least or (finite and math.isinf(value)):
        kind = "finite number" if finite else "number"
        where = f" >= {least:g}" if least > -math.inf else ""
        raise ValueError(f"{name} must be a {kind}{where}, got {value!r}")
    return value


def _real(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    number: Any = value
    try:
        return float(number)
    except OverflowError:  # a whole number of hundreds of digits
        return math.inf if number > 0 else -math.inf


def require_share(name: str, value: Any, *, such_as: float, or_all: bool = False) -> float:
    """Above 0 and below 1, or at most 1 if it may be `or_all`."""
    share = _real(name, value)
    if not (0.0 < share < 1.0 or (or_all and share == 1.0)):
        where = "above 0 and at most 1" if or_all else "between 0 and 1"
        raise ValueError(f"{name} must be {where}, such as {such_as:g}; got {share:g}")
    return share


# Larger counts do not fit into arrays of whole numbers.
_MOST = int(np.iinfo(np.int64).max)


def require_count(name: str, value: Any, *, least: int, most: float = _MOST, way: str = "") -> int:
    """A whole number in range; `way` is added to the error if it is too small."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number (an int), got {shown(value)}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, got {shown(value)}{way}")
    if int(value) > most:
        raise ValueError(f"{name} must be at most {most}, got {shown(value)}")
    return int(value)


def require_threads(n_threads: Any) -> None:
    if n_threads is not None:
        require_count("n_threads", n_threads, least=1, way="; None uses all cores")


def require_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def require_device(device: object) -> str:
    """The name of a device, which need not be there."""
    if not (isinstance(device, str) and re.fullmatch(r"cpu|cuda(:\d{1,3})?", device)):
        raise ValueError(
            'device must be "cpu", "cuda", or "cuda:" and a number such as "cuda:1"; '
            f"got {shown(device)}"
        )
    return device


def require_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        hint = nearest(value, choices) if isinstance(value, str) else ""
        known = ", ".join(map(repr, choices))
        raise ValueError(f"{name} must be one of {known}, got {shown(value)}{hint}")
    return value


def require_writable(name: str, path: str | Path) -> None:
    """A long run should not end with a folder that is not there, or in place of the file."""
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{name}: {str(path)!r} is a folder; give the name of a file")
    if not file.parent.is_dir():
        raise ValueError(
            f"{name}: cannot write {path}, because there is no folder {file.parent}; make it first"
        )
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise ValueError(
            f"{name}: you have no permission to write {path}; give a file in another folder"
        )
