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

_NAMES = ("above", "sizes", "n best")


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
    def of(cls, state: State, presolved: Presolved, k: int, settings: Settings) -> "Stage":
        """What :meth:`state` made, in a search for models of at most k features."""
        p, most = presolved.problem.n_features, presolved.size(k)

        def supports(name: str) -> list[np.ndarray]:
            rows = state.integers(name, None, None, least=-1, below=p)
            found = [np.unique(row[row >= 0]).astype(np.intp) for row in rows]
            admitted = all(presolved.admits(support, most) for support in found)
            state.require(admitted, name, "must list models that the question admits")
            return found

        state.require(state.plain.get("name") in _NAMES, "name", f"must be one of {_NAMES}")
        first = state.distinct("first", p)
        state.require(presolved.admits(first, most), "first", "is none that the question admits")
        members = supports("members")
        return cls(
            name=state.plain["name"], size=state.count("size", below=k + 1),
            level=state.number("level", 0.0), first=first, found=supports("found"),
            members=lambda: members, collected=_collected_in(state, p, k, settings),
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
) -> tuple[Stage, Checkpoint] | None:
    """(where a run before this one was, with its tree); None if there is no such file."""
    if not Path(path).exists():
        return None
    saved = Checkpoint.read(path)
    if saved.header.get(LIST) != request:
        raise ValueError(
            f"checkpoint: {path} is of another run; remove the file, or choose another name"
        )
    saved.require_same_question(presolved, k)
    with saved.reading():
        return Stage.of(saved.parts[LIST], presolved, k, settings), saved


def _collected_in(state: State, p: int, k: int, settings: Settings) -> dict[int, Collected]:
    """The searches of smaller sizes, each with the record of its proof."""
    collected = {}
    columns = [state.plain.get(name) for name in ("sizes", "bounds", "nodes", "engines")]
    for row in zip(*columns, strict=True):
        one = state._replace(
            plain=dict(zip(("size", "bound", "nodes", "engine"), row, strict=True))
        )
        size, prefix = one.count("size", below=k + 1), f"{row[0]}/"
        own = {n.removeprefix(prefix): a for n, a in state.arrays.items() if n.startswith(prefix)}
        recorder = Recorder(settings.record_limit)
        recorder.restore(one._replace(arrays=own), p)
        bound, n_nodes = one.number("bound", finite=False), one.count("nodes")
        engine = str(one.plain["engine"])
        collected[size] = Collected(Status.OPTIMAL, bound, n_nodes, recorder, engine)
    return collected
