"""A run in a file: the model, what was proven about it, and the recorded tree."""

import json
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from bestk import certificate
from bestk.result import Result, Status

# Arrays of a Result have their own entries in the file; everything else is one JSON text.
_ARRAYS = ("coef", "support", "history")
_VALUES = tuple(f.name for f in fields(Result) if f.name not in (*_ARRAYS, "certificate"))

Pools = dict[str, list[np.ndarray]]


def save(result: Result, path: str | Path) -> None:
    """Write a Result to a compressed npz file; :func:`load` reads it back.

    The entry ``run`` is a JSON text with all plain values; coef, support and history are arrays.
    ``tree`` is a JSON text of the certificate, whose many small arrays lie end to end, by type, in
    ``arrays.f8`` and the like.
    """
    pools: Pools = {}
    run = {name: getattr(result, name) for name in _VALUES} | {"status": result.status.name}
    entries = {name: getattr(result, name) for name in _ARRAYS}
    entries["tree"] = np.array(json.dumps(_pack(result.certificate, pools)))
    for kind, arrays in pools.items():
        entries[f"arrays.{kind}"] = np.concatenate(arrays)
        entries[f"ends.{kind}"] = np.cumsum([len(array) for array in arrays])
    text = json.dumps(run, default=lambda number: number.item())
    with open(path, "wb") as file:  # savez would add to a file name it does not like
        np.savez_compressed(file, run=np.array(text), **entries)


def load(path: str | Path) -> Result:
    """The Result that :func:`save` wrote."""
    with np.load(path) as file:
        if "run" not in file:
            raise ValueError(f"{path} was not written by bestk.storage.save")
        run, tree = json.loads(str(file["run"])), json.loads(str(file["tree"]))
        arrays = {name: file[name] for name in _ARRAYS}
        pools: Pools = {
            name.removeprefix("ends."): np.split(file[name.replace("ends", "arrays")], file[name])
            for name in file.files
            if name.startswith("ends.")
        }
    names = run.pop("feature_names")
    return Result(
        **run | {"status": Status[run["status"]]},
        **arrays,
        feature_names=None if names is None else tuple(names),
        certificate=_unpack(tree, pools),
    )


def _pack(value: Any, pools: Pools) -> Any:
    """What JSON can hold: objects become {type: content}, arrays a place in a pool of their type.

    It knows nothing about the fields of a certificate, so these can change.
    """
    kind = type(value).__name__
    if isinstance(value, np.ndarray):
        pool = pools.setdefault(value.dtype.str[1:], [])
        pool.append(value.ravel())
        return {"array": [value.dtype.str[1:], len(pool) - 1, *value.shape]}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Enum):
        return {kind: value.name}
    if is_dataclass(value):
        return {kind: {f.name: _pack(getattr(value, f.name), pools) for f in fields(value)}}
    if hasattr(value, "_asdict"):
        return {kind: {name: _pack(item, pools) for name, item in value._asdict().items()}}
    if isinstance(value, dict):
        return {"dict": [[_pack(item, pools) for item in pair] for pair in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_pack(item, pools) for item in value]}
    return [_pack(item, pools) for item in value] if isinstance(value, list) else value


def _unpack(value: Any, pools: Pools) -> Any:
    if isinstance(value, list):
        return [_unpack(item, pools) for item in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "array":
        pool, place, *shape = content
        return pools[pool][place].reshape(shape)
    if kind == "dict":
        return dict(_unpack(content, pools))
    if kind == "tuple":
        return tuple(_unpack(content, pools))
    made = getattr(certificate, kind)
    if isinstance(content, str):
        return made[content]
    return made(**{name: _unpack(item, pools) for name, item in content.items()})
