"""A run in a file: the model, what was proven about it, and the proof."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.structure import Structure
from bestk.results.certificate import Certificate, arrays_in
from bestk.results.result import Result
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
    run = {name: getattr(result, name) for name in _VALUES} | {"status": result.status.name}
    text = json.dumps(run, default=lambda number: number.item())
    entries = result.certificate.to_arrays() if result.certificate else {}
    entries |= {name: getattr(result, name) for name in _ARRAYS}
    if result.structure is not None:
        entries |= result.structure.to_arrays()
        entries |= {name: getattr(result, name) for name in _OF_STRUCTURE}
    with open(path, "wb") as file:  # savez would add to a file name it does not like
        np.savez_compressed(file, allow_pickle=False, run=np.array(text), **entries)


def load(path: str | Path) -> Result:
    """The Result that :func:`save` wrote."""
    entries = arrays_in(path)
    if "run" not in entries:
        raise ValueError(
            f"{path} was not written by bestk.storage.save; if it holds a certificate, read it "
            "with bestk.Certificate.load"
        )
    run = json.loads(str(entries["run"]))
    arrays: dict[str, Any] = {name: entries[name] for name in _ARRAYS}
    arrays |= {name: entries[name] for name in _OF_STRUCTURE if name in entries}
    certificate = Certificate.from_arrays(entries) if "certificate" in entries else None
    names = run.pop("feature_names")
    for name in ("assumptions", "at_bounds"):
        run[name] = tuple(run.get(name, ()))
    return Result(
        **run | {"status": Status[run["status"]]},
        **arrays,
        feature_names=None if names is None else tuple(names),
        certificate=certificate,
        structure=Structure.from_arrays(entries),
    )
