"""The open tree in a file, written while the search goes on, so that a killed run is not lost."""

import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from bestk.base.archive import Arrays, arrays_in, header_in, value_in, version_in
from bestk.base.question import Question
from bestk.base.settings import Advanced, Settings, settings_of
from bestk.base.state import State
from bestk.base.structure import Structure
from bestk.problem.regression import Regression

FORMAT, VERSION = "bestk checkpoint", 7
# Options that a resumed run takes over; limits start anew.
_OPTIONS = ("gap_tol", "search", "bound", "n_threads", "device")


LIST = "list"
"""What the header of a list of models has beside those of a search for one."""
STRUCTURE = "structure"
"""The part of a run with structure that says which."""


class Restored(Protocol):
    """What goes on from a saved state."""

    def restore(self, parts: dict[str, State]) -> None: ...


class Searched(Protocol):
    """What a run is about: the data of a problem, and a question for every k."""

    @property
    def problem(self) -> Regression: ...

    def question(self, k: int) -> Question: ...


class Checkpoint(NamedTuple):
    """What a file holds: which question of which data, how it was asked, the state of each part."""

    header: dict[str, Any]
    parts: dict[str, State]
    path: Any

    @classmethod
    def read(cls, path: str | Path) -> "Checkpoint":
        try:
            arrays = arrays_in(path)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"there is no checkpoint {path}: the run ended before its first one; solve again"
            ) from None
        header = header_in(arrays, "checkpoint")
        if header.get("format") != FORMAT:
            raise ValueError(
                f"{path} is no checkpoint of bestk; pass the file that solve(checkpoint=...) "
                "wrote, or the name of a new one"
            )
        if version_in(header) != VERSION:
            raise ValueError(
                f"{path} is a checkpoint of format {header['version']}, this bestk reads {VERSION};"
                " resume it with the bestk that wrote it, or solve again"
            )
        try:
            del arrays["checkpoint"]
            plain = _checked(header)
            parts = {name: State(value_in(plain, name, dict), Arrays(), name) for name in plain}
            for name, array in arrays.items():
                part, _, own = name.partition(".")
                parts[part].arrays[own] = array
        except (KeyError, ValueError) as error:
            raise _broken(path, error) from error
        return cls(header, parts, path)

    @property
    def question(self) -> dict[str, Any]:
        """The question of the run, as plain values."""
        return self.header["question"]

    @property
    def structure(self) -> Structure | None:
        """That of the run, if it had one."""
        part = self.parts.get(STRUCTURE)
        if part is None:
            return None
        with self.reading():
            structure = Structure.from_arrays(part.arrays)
            if structure is None:
                part.refuse("groups", "is missing")
            structure.require_sound()
        return structure

    @property
    def box(self) -> float | None:
        """The size of the box that the run chose."""
        return self.header["box"]

    def restore(self, tree: Restored) -> None:
        """Put a fresh tree into the saved state."""
        with self.reading():
            tree.restore(self.parts)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Whatever is wrong with a state is an error that names the file."""
        try:
            yield
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            raise _broken(self.path, error) from error

    def settings(self, options: dict[str, Any]) -> Settings:
        """Those of the run, with other options where given."""
        with self.reading():
            saved = self.header["options"] | {"advanced": Advanced(**self.header["advanced"])}
            settings_of(saved)
        settings = settings_of(saved | options)
        if settings.gap_tol < saved["gap_tol"]:
            raise ValueError(
                f"gap_tol cannot be smaller than {saved['gap_tol']:g}, that of the run: what lies "
                "within it was given up; leave gap_tol out, or solve again"
            )
        return settings

    def require_same_question(self, searched: Searched, k: int) -> None:
        asked = _identity(searched, searched.question(k))
        if {name: self.header[name] for name in asked} != asked:
            raise self.of_other_run()

    def of_other_run(self) -> ValueError:
        return ValueError(
            f"{self.path} is a checkpoint of a run on other data or another problem; pass the data "
            "and options of that run, or solve again without this checkpoint"
        )


class Writer:
    """Writes the tree of a run to one file, at most once per interval."""

    def __init__(self, settings: Settings, searched: Searched, k: int) -> None:
        self.path, self.interval = Path(settings.checkpoint), settings.checkpoint_interval
        self.header = {
            "format": FORMAT,
            "version": VERSION,
            **_identity(searched, searched.question(k)),
            "options": {name: getattr(settings, name) for name in _OPTIONS},
            "advanced": asdict(settings.advanced),
        }
        self.last = perf_counter()

    @property
    def is_due(self) -> bool:
        return perf_counter() - self.last >= self.interval

    def write(self, parts: dict[str, State]) -> None:
        """Replace the file in one step: whenever the process dies, a whole one is there."""
        header = self.header | {"parts": {name: state.plain for name, state in parts.items()}}
        arrays = {"checkpoint": np.array(json.dumps(header))}
        for name, state in parts.items():
            arrays |= state.within(name)
        draft = self.path.with_name(self.path.name + ".tmp")
        try:
            with open(draft, "wb") as file:
                np.savez(file, allow_pickle=False, **arrays)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        except OSError as error:
            warnings.warn(
                f"no checkpoint was written to {self.path}: {error.strerror or error}; the run "
                "goes on, but would be lost if it were killed. Free space on the disk, or give "
                "the name of a file that can be written",
                RuntimeWarning,
                stacklevel=2,
            )
        finally:
            draft.unlink(missing_ok=True)
        self.last = perf_counter()


def _broken(path: Any, error: Exception) -> ValueError:
    why = str(error).removeprefix("the file is broken: ")
    if isinstance(error, KeyError):
        why = f"{error} is missing"
    return ValueError(f"{path} is a broken checkpoint: {why}; solve again without it")


def _identity(searched: Searched, question: Question) -> dict[str, Any]:
    """What identifies the problem of a run, as plain values."""
    problem = searched.problem
    return {"digest": problem.digest, "question": question.plain(), "box": problem.box}


def _checked(header: dict[str, Any]) -> dict[str, Any]:
    """The plain values of all parts, taken out of a header that has everything else it needs."""
    value_in(header, "digest", str)
    value_in(header, "box", float, type(None))
    options, advanced = (value_in(header, name, dict) for name in ("options", "advanced"))
    value_in(options, "gap_tol", float)
    if set(options) - set(_OPTIONS) or set(advanced) - {own.name for own in fields(Advanced)}:
        raise ValueError("the options of the run are unknown")
    question = value_in(header, "question", dict)
    if value_in(question, "k", int) < 0:
        raise ValueError("question.k must be at least 0")
    value_in(question, "alpha", float)
    for name in ("fit_intercept", "is_box_assumed"):
        value_in(question, name, bool)
    kinds = dict.fromkeys(("include", "exclude", "free"), (int,))
    for name, own in (kinds | dict.fromkeys(("lower", "upper"), (int, float))).items():
        if any(type(value) not in own for value in value_in(question, name, list)):
            raise ValueError(f"question.{name} must be a list of numbers")
    value_in(question, "structure", list, type(None))
    parts = value_in(header, "parts", dict)
    del header["parts"]
    return parts
