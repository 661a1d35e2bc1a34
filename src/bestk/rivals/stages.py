"""The state of a search for a list of models, in the file of the tree that is in work."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.settings import Settings
from bestk.base.state import State
from bestk.form.presolve import Presolved
from bestk.results.status import Status
from bestk.runs.checkpoint import LIST, Checkpoint, Writer
from bestk.search.collecting import Collected
from bestk.subtrees.covers import as_rows
from bestk.subtrees.recorder import Recorder


@dataclass(kw_only=True)
class Stage:
    """Where a search for a list has come to.

    ``name`` says which supports are searched, of ``size`` features and up to ``level``; ``found``
    are those of smaller sizes, whose trees are in ``collected``, ``members`` those that the tree in
    work has found so far. ``first`` is the best support known.
    """

    name: str = ""
    size: int = 0
    level: float = 0.0
    first: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    found: list[np.ndarray] = field(default_factory=list)
    members: Callable[[], list[np.ndarray]] = list
    collected: dict[int, Collected] = field(default_factory=dict)

    def state(self) -> State:
        plain = {
            "name": self.name, "size": self.size, "level": self.level,
            "sizes": list(self.collected),
            "bounds": [one.bound for one in self.collected.values()],
            "nodes": [one.n_nodes for one in self.collected.values()],
            "engines": [one.engine for one in self.collected.values()],
        }  # fmt: skip
        arrays = {
            "first": self.first, "found": as_rows(self.found), "members": as_rows(self.members()),
        }  # fmt: skip
        for size, one in self.collected.items():
            arrays |= {f"{size}/{name}": a for name, a in one.recorder.state().arrays.items()}
        return State(plain, arrays)

    @classmethod
    def of(cls, state: State, settings: Settings) -> "Stage":
        plain, arrays = state
        collected = {}
        rows = zip(plain["sizes"], plain["bounds"], plain["nodes"], plain["engines"], strict=True)
        for size, bound, n_nodes, engine in rows:
            recorder, prefix = Recorder(settings.record_limit), f"{size}/"
            own = {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}
            recorder.restore(State({}, own))
            collected[size] = Collected(Status.OPTIMAL, bound, n_nodes, recorder, engine)
        members = _supports(arrays["members"])
        return cls(
            name=plain["name"], size=plain["size"], level=plain["level"], first=arrays["first"],
            found=_supports(arrays["found"]), members=lambda: members, collected=collected,
        )  # fmt: skip


class ListWriter(Writer):
    """Writes the tree in work together with the stage of the list."""

    def __init__(
        self, settings: Settings, presolved: Presolved, k: int, request: dict[str, Any]
    ) -> None:
        super().__init__(settings, presolved, k)
        self.header[LIST] = request
        self.stage = Stage()

    def write(self, parts: dict[str, State]) -> None:
        super().write(parts | {LIST: self.stage.state()})


def stage_in(
    path: str | Path, presolved: Presolved, k: int, request: dict[str, Any], settings: Settings
) -> tuple[Stage, dict[str, State]] | None:
    """(where a run before this one was, the state of its tree); None if there is no such file."""
    if not Path(path).exists():
        return None
    saved = Checkpoint.read(path)
    if saved.header.get(LIST) != request:
        raise ValueError(
            f"checkpoint: {path} is of another run; remove the file, or choose another name"
        )
    saved.require_same_question(presolved, k)
    parts = dict(saved.parts)
    return Stage.of(parts.pop(LIST), settings), parts


def _supports(rows: np.ndarray) -> list[np.ndarray]:
    return [row[row >= 0].astype(np.intp) for row in rows]
