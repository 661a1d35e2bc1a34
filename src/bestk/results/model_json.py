"""A fitted model as plain JSON: for people, for other languages, and to predict again.

Numbers are written so that they come back to the last bit; those that JSON lacks are the texts
"inf", "-inf" and "nan".
"""

import json
import platform
import re
from errno import ENAMETOOLONG
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.archive import VARIABLE, TooLarge, most_bytes, require_file
from bestk.base.structure import Structure
from bestk.results.result import HISTORY, Result
from bestk.results.status import Status

FORMAT, VERSION = "bestk model", 1
_NUMBERS = (
    "alpha", "intercept", "objective", "lower_bound", "gap", "explained_gap", "yy", "seconds",
    "kkt_residual",
)  # fmt: skip
_COUNTS = ("k", "n_nodes")
_HALF = re.compile("[\ud800-\udfff]")
_ENLARGED = 32
"""Python's values take at most so many times the room of the text."""
_STRUCTURE_NUMBERS = ("matrix", "lower", "upper")


def to_json(result: Result, path: str | Path | None = None) -> str:
    """A Result without its proof as JSON text, written to a UTF-8 file if there is a path."""
    from bestk import __version__

    certificate = result.certificate
    content = {
        "format": FORMAT,
        "version": VERSION,
        "equation": result.equation(),
        "n_features": len(result.coef),
        "feature_names": None if result.feature_names is None else list(result.feature_names),
        "terms": [
            {"feature": int(j), "name": result.name(j), "coef": _number(result.coef[j])}
            for j in result.support
        ],
        "fit_intercept": bool(result.fit_intercept),
        **{name: _number(getattr(result, name)) for name in _NUMBERS},
        **{name: int(getattr(result, name)) for name in _COUNTS},
        "n_samples": None if result.n_samples is None else int(result.n_samples),
        "box": None if result.box is None else _number(result.box),
        "at_bounds": [int(j) for j in result.at_bounds],
        "status": result.status.name,
        "assumptions": list(result.assumptions),
        "engine": result.engine,
        "settings": _plain(result.settings),
        "structure": None if result.structure is None else _of_structure(result),
        "certificate": None if certificate is None else {"fingerprint": certificate.fingerprint},
        "versions": {
            "bestk": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }
    text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text


def from_json(source: str | Path) -> Result:
    """The Result in a file, or in a text, that :meth:`bestk.Result.to_json` wrote.

    It predicts as before. It has no certificate, and only the end of its history. Nothing can check
    the bound that it states: keep the certificate, too (:func:`bestk.storage.save`).

    Parameters
    ----------
    source : str or Path
        A file; or the text itself, which begins with a brace.
    """
    is_text = isinstance(source, str) and source.lstrip().startswith("{")
    where = "the text" if is_text else str(source)
    text = str(source) if is_text else _text_of(Path(source))
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{where} is not JSON ({error}); pass what Result.to_json wrote"
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{where} holds no model; pass what Result.to_json wrote")
    if content.get("version") != VERSION:
        raise ValueError(
            f"{where} has format version {content.get('version')}, this bestk reads {VERSION}; use "
            "the bestk that wrote it"
        )
    try:
        return _result(content)
    except KeyError as error:
        raise ValueError(f"{where} is a broken model: there is no {error}") from error
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ValueError(f"{where} is a broken model: {error}") from error


def _text_of(path: Path) -> str | bytes:
    try:
        require_file(path)
        size, most = path.stat().st_size, most_bytes() // _ENLARGED
        if size > most:
            raise TooLarge(
                f"{path} has {size:.3g} bytes, and {most:.3g} are allowed for a model; if you "
                f"trust the file, raise the environment variable {VARIABLE}"
            )
        return path.read_bytes()
    except OSError as error:
        if error.errno != ENAMETOOLONG:
            raise
        raise ValueError(
            "source is neither the name of a file nor what Result.to_json wrote"
        ) from error


def _result(content: dict[str, Any]) -> Result:
    p, names = content["n_features"], content["feature_names"]
    support = [term["feature"] for term in content["terms"]]
    values = [float(term["coef"]) for term in content["terms"]]
    at_bounds = content["at_bounds"]
    _require(_is_count(p), "n_features must be a number of features")
    _require(8 * p <= most_bytes(), f"n_features is {p}, more than memory is allowed for")
    _require(names is None or _are_texts(names), "feature_names must be texts")
    _require(names is None or len(names) == p, f"there must be {p} feature_names")
    features = [*support, *at_bounds]
    _require(all(_is_count(j) and j < p for j in features), "a feature is not there")
    _require(support == sorted(set(support)), "features of terms must increase")
    numbers: dict[str, Any] = {name: float(content[name]) for name in _NUMBERS}
    finite = [*values, numbers["intercept"], numbers["objective"]]
    _require(all(map(isfinite, finite)), "coefficients and the objective must be finite")
    _require(0.0 <= numbers["alpha"] < inf, "alpha must be a number from 0 on")
    _require(all(_is_count(content[name]) for name in _COUNTS), "k and n_nodes must be counts")
    _require(content["status"] in Status.__members__, f"no status is {content['status']!r}")
    _require(isinstance(content["fit_intercept"], bool), "fit_intercept must be true or false")
    _require(_are_texts(content["assumptions"]), "assumptions must be texts")
    n, box = content["n_samples"], content["box"]
    _require(n is None or _is_count(n), "n_samples must be a count, or null")
    coef = np.zeros(p)
    coef[support] = values
    end = (numbers["seconds"], content["n_nodes"], numbers["objective"], numbers["lower_bound"])
    return Result(
        **numbers,
        **{name: content[name] for name in _COUNTS},
        coef=coef,
        support=np.array(support, dtype=np.intp),
        status=Status[content["status"]],
        n_samples=n,
        fit_intercept=content["fit_intercept"],
        feature_names=None if names is None else tuple(names),
        settings=dict(content["settings"]),
        engine=str(content["engine"]),
        assumptions=tuple(content["assumptions"]),
        at_bounds=tuple(at_bounds),
        box=None if box is None else float(box),
        history=np.array([end], dtype=HISTORY),
        **_structure_of(content["structure"], p),
    )


def _of_structure(result: Result) -> dict[str, Any]:
    """Groups, rules and constraints in words, and in numbers."""
    structure = result.structure
    assert structure is not None
    arrays = {
        name.removeprefix("structure."): array for name, array in structure.to_arrays().items()
    }
    return {
        "rules_in_words": arrays.pop("words").tolist(),
        "constraints_in_words": arrays.pop("constraint_words").tolist(),
        "chosen": result.chosen.tolist(),
        "multipliers": _plain(result.multipliers.tolist()),
        **{name: _plain(array.tolist()) for name, array in arrays.items()},
    }


def _structure_of(content: dict[str, Any] | None, p: int) -> dict[str, Any]:
    """What a Result has beside others because of its structure."""
    if content is None:
        return {}
    texts = {"words": "rules_in_words", "constraint_words": "constraints_in_words"}
    named = texts | {"group_names": "group_names"}
    arrays: dict[str, Any] = {}
    for name, key in named.items():
        _require(_are_texts(content[key]), f"{key} must be texts")
        arrays[name] = np.array(content[key], dtype=np.str_)
    for name in ("groups", "ends", "sides", "limits", "rules"):
        arrays[name] = _integers(name, content[name])
    for name in _STRUCTURE_NUMBERS:
        arrays[name] = np.array(content[name], dtype=np.float64)
    if not arrays["matrix"].size:
        arrays["matrix"] = np.zeros((0, p))
    q, n_groups = len(arrays["lower"]), len(arrays["group_names"])
    chosen = _integers("chosen", content["chosen"])
    shapes = [arrays[name].shape for name in (*_STRUCTURE_NUMBERS, "constraint_words")]
    _require(shapes == [(q, p), (q,), (q,), (q,)], "the constraints are incomplete")
    multipliers = np.array(content["multipliers"], dtype=np.float64)
    _require(multipliers.shape in ((q,), (0,)), "there must be a multiplier for each constraint")
    for groups in (arrays["groups"], arrays["sides"], chosen):
        _require(((groups >= 0) & (groups < n_groups)).all(), "a group is not there")
    _require(len(arrays["groups"]) == p, f"there must be {p} groups")
    return {
        "structure": Structure.from_arrays({f"structure.{n}": a for n, a in arrays.items()}),
        "chosen": chosen.astype(np.intp),
        "multipliers": multipliers,
    }


# Plain values -----------------------------------------------------------------------------------


def _number(value: Any) -> float | str:
    return float(value) if isfinite(value) else str(float(value))


def _plain(value: Any) -> Any:
    """The same of lists, dictionaries and numbers that JSON has."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    return _number(value) if isinstance(value, float) else value


def _integers(name: str, values: Any) -> np.ndarray:
    _require(all(type(value) is int for value in values), f"{name} must be integers")
    return np.array(values, dtype=np.int64)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _are_texts(values: Any) -> bool:
    """Half of a pair of surrogates is no text: it could not be written to a file or a screen."""
    is_list = isinstance(values, list) and all(isinstance(value, str) for value in values)
    return is_list and not any(map(_HALF.search, values))


def _require(holds: Any, what: str) -> None:
    if not holds:
        raise ValueError(what)
