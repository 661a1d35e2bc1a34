"""A run in a file: the model, what was proven about it, and the proof."""

import json
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.archive import Arrays, arrays_in, header_in, naming, value_in
from bestk.base.structure import Structure
from bestk.results.certificate import Certificate
from bestk.results.result import HISTORY, Result
from bestk.results.status import Status

# Arrays of a Result have their own entries in the file; everything else is one JSON text.
_ARRAYS = ("coef", "support", "history")
_OF_STRUCTURE = ("chosen", "multipliers")
_OTHERS = (*_ARRAYS, *_OF_STRUCTURE, "structure", "certificate")
_VALUES = tuple(f.name for f in fields(Result) if f.name not in _OTHERS)


def save(result: Result, path: str | Path) -> None:
    """Write a Result to a compressed npz file; :func:`load` reads it back.

    The entry ``run`` is a JSON text with all plain values; coef, support and history are arrays.
    The certificate's entries (see :meth:`bestk.certificate.Certificate.save`) lie beside them, so
    the file is also one that ``bestk verify`` reads.
    """
    if not isinstance(result, Result):
        raise TypeError(f"result must be a bestk.Result, got one of type {type(result).__name__}")
    run = {name: getattr(result, name) for name in _VALUES} | {"status": result.status.name}
    text = json.dumps(run, default=lambda number: number.item())
    entries = result.certificate.to_arrays() if result.certificate else {}
    entries |= {name: getattr(result, name) for name in _ARRAYS}
    if result.structure is not None:
        entries |= result.structure.to_arrays()
        entries |= {name: getattr(result, name) for name in _OF_STRUCTURE}
    with open(path, "wb") as file:  # savez would add to a file name it does not like
        np.savez_compressed(file, allow_pickle=False, run=np.array(text), **entries)


def load(path: str | Path, *, max_bytes: int | None = None) -> Result:
    """The Result that :func:`save` wrote.

    A file whose arrays take more than `max_bytes` is refused before it is unpacked; 4 GiB by
    default, or four times the size of a larger file.
    """
    entries = arrays_in(path, max_bytes)
    with naming(path):
        run = header_in(entries, "run")
    if not run:
        raise ValueError(
            f"{path} was not written by bestk.storage.save; pass a file that was, and read "
            "certificates with bestk.Certificate.load"
        )
    with naming(path):
        return _result(entries, run)


def _result(entries: Arrays, run: dict[str, Any]) -> Result:
    values = {f.name: _value(run, f) for f in fields(Result) if f.name in _VALUES}
    if values["status"] not in Status.__members__:
        raise ValueError(f"the file is broken: there is no status {values['status']!r}")
    arrays: dict[str, Any] = {name: entries[name] for name in _ARRAYS}
    arrays |= {name: entries[name] for name in _OF_STRUCTURE if name in entries}
    structure = Structure.from_arrays(entries)
    _require_consistent(arrays, structure)
    certificate = Certificate.from_arrays(entries) if "certificate" in entries else None
    for name in ("include", "exclude", "free") if certificate is not None else ():
        _require_numbers(name, getattr(certificate, name), len(arrays["coef"]))
    return Result(
        **values | {"status": Status[values["status"]]},
        **arrays,
        certificate=certificate,
        structure=structure,
    )


# Types of plain values by their names in the code; lists in the file are tuples of these.
_TYPES: dict[str, tuple[type, ...]] = {
    "k": (int,), "n_nodes": (int,), "n_samples": (int, type(None)), "fit_intercept": (bool,),
    "feature_names": (list, type(None)), "settings": (dict,), "engine": (str,), "status": (str,),
    "assumptions": (list,), "at_bounds": (list,), "box": (float, type(None)),
}  # fmt: skip
_ITEMS = {"feature_names": str, "assumptions": str, "at_bounds": int}


def _value(run: dict[str, Any], field: Any) -> Any:
    """A plain value of the run; its default if an older file has none."""
    name = field.name
    if name not in run and field.default is not MISSING:
        return field.default
    if name not in run and field.default_factory is not MISSING:
        return field.default_factory()
    value = value_in(run, name, *_TYPES.get(name, (float,)))
    if isinstance(value, list):
        return tuple(value_in({name: item}, name, _ITEMS[name]) for item in value)
    return value


def _require_consistent(arrays: dict[str, np.ndarray], structure: Structure | None) -> None:
    """Coefficients are numbers, and what refers to features or groups refers to some."""
    coef, history = arrays["coef"], arrays["history"]
    if coef.ndim != 1 or coef.dtype.kind != "f":
        raise ValueError("the file is broken: its coefficients are no vector of numbers")
    if history.ndim != 1 or history.dtype != HISTORY:
        raise ValueError("the file is broken: its history is no table of the run")
    _require_numbers("support", arrays["support"], len(coef))
    if structure is not None:
        if np.shape(structure.groups) != coef.shape:
            raise ValueError("the file is broken: not every feature has a group")
        matrix, sides = structure.matrix, (structure.lower, structure.upper)
        if matrix.ndim != 2 or matrix.shape[1] != len(coef) or matrix.dtype.kind != "f":
            raise ValueError("the file is broken: its constraints are not about its features")
        if any(side.shape != (len(matrix),) or side.dtype.kind != "f" for side in sides):
            raise ValueError("the file is broken: its constraints do not have two sides each")
        multipliers = arrays.get("multipliers", coef[:0])
        if multipliers.ndim != 1 or multipliers.dtype.kind != "f":
            raise ValueError("the file is broken: its multipliers are no vector of numbers")
        if len(structure.constraint_words) != len(matrix):
            raise ValueError("the file is broken: not every constraint is there in words")
        _require_numbers("groups", structure.groups, structure.n_groups)
        _require_numbers("chosen", arrays.get("chosen", arrays["support"][:0]), structure.n_groups)


def _require_numbers(name: str, array: np.ndarray, count: int) -> None:
    """A vector of whole numbers from 0 to count - 1."""
    is_fine = array.ndim == 1 and array.dtype.kind in "iu"
    if not is_fine or (array.size and not 0 <= array.min() <= array.max() < count):
        raise ValueError(f"the file is broken: {name} has numbers of nothing")
