"""The open tree in a file, written while the search goes on, so that a killed run is not lost."""

import json
import os
import warnings
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bestk.base.settings import Advanced, Settings, settings_of
from bestk.bounds.clusters import block_bound
from bestk.bounds.ridge_box import Box
from bestk.bounds.split import Split, SplitAscent
from bestk.bounds.wide import Core, WideDescent
from bestk.form.presolve import Presolved
from bestk.results.certificate import arrays_in, cut, ends_of, joined, proof_arrays, proof_of
from bestk.search.frontier import Node

if TYPE_CHECKING:
    from bestk.search.tree import Tree

FORMAT, VERSION = "bestk checkpoint", 1
# Plain numbers of a tree and of its bounder that go into the file and come back as they were.
_OF_TREE = ("dropped", "proven", "root_bound", "root_number", "n_nodes")
_OF_BOUNDER = (
    "n_bounded", "bounding", "preparing", "next_split", "split_number", "may_narrow", "outside",
)  # fmt: skip
# Options that a resumed run takes over; limits start anew.
_OPTIONS = ("gap_tol", "search", "bound", "n_threads")


class Checkpoint(NamedTuple):
    """What a file holds: plain values and arrays."""

    header: dict[str, Any]
    arrays: dict[str, np.ndarray]

    @classmethod
    def read(cls, path: str | Path) -> "Checkpoint":
        try:
            arrays = arrays_in(path)
        except FileNotFoundError:
            raise FileNotFoundError(
                f"there is no checkpoint {path}: the run ended before its first one; solve again"
            ) from None
        header = json.loads(str(arrays["checkpoint"])) if "checkpoint" in arrays else {}
        if header.get("format") != FORMAT or header["version"] != VERSION:
            raise ValueError(f"{path} is no checkpoint that this bestk can read")
        return cls(header, arrays)

    def settings(self, options: dict[str, Any]) -> Settings:
        """Those of the run, with other options where given."""
        saved = self.header["options"] | {"advanced": Advanced(**self.header["advanced"])}
        settings = settings_of(saved | options)
        if settings.gap_tol < saved["gap_tol"]:
            raise ValueError(
                f"gap_tol cannot be smaller than that of the run, {saved['gap_tol']:g}: nodes "
                "within it have been given up; solve again"
            )
        return settings


class Writer:
    """Writes the tree of a run to one file, at most once per interval."""

    def __init__(self, path: str | Path, interval: float, question: dict[str, Any]) -> None:
        self.path, self.interval, self.question = Path(path), interval, question
        self.last = perf_counter()

    @classmethod
    def of(cls, settings: Settings, presolved: Presolved, k: int) -> "Writer | None":
        if settings.checkpoint is None:
            return None
        return cls(settings.checkpoint, settings.checkpoint_interval, _question(presolved, k))

    def write_if_due(self, tree: "Tree") -> None:
        if perf_counter() - self.last >= self.interval:
            self.write(tree)

    def write(self, tree: "Tree") -> None:
        """Replace the file in one step: whenever the process dies, a whole one is there."""
        draft = self.path.with_name(self.path.name + ".tmp")
        try:
            with open(draft, "wb") as file:
                np.savez(file, allow_pickle=False, **_arrays(tree, self.question))
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, self.path)
        except OSError as error:
            warnings.warn(f"no checkpoint was written: {error}", RuntimeWarning, stacklevel=2)
        finally:
            draft.unlink(missing_ok=True)
        self.last = perf_counter()


def require_same_question(checkpoint: Checkpoint, presolved: Presolved, k: int) -> None:
    saved = {"box": None} | checkpoint.header["question"]  # files before it have none
    if saved != _question(presolved, k):
        raise ValueError("the checkpoint is of a run on other data or another problem")


def _question(presolved: Presolved, k: int) -> dict[str, Any]:
    """What identifies the problem of a run, as plain values."""
    problem = presolved.problem
    return {
        "digest": problem.digest,
        "k": k,
        "alpha": problem.alpha,
        "fit_intercept": problem.fit_intercept,
        "include": presolved.include.tolist(),
        "exclude": presolved.exclude.tolist(),
        "bounds": [problem.lower.tolist(), problem.upper.tolist()],
        "box": problem.box,
    }


def _arrays(tree: "Tree", question: dict[str, Any]) -> dict[str, np.ndarray]:
    bounder, settings = tree.bounder, tree.settings
    # While the root is being prepared there is nothing below it: that part starts again.
    nodes = [*tree.frontier.nodes(), *tree.pending] if tree.is_open else []
    header = {
        "format": FORMAT,
        "version": VERSION,
        "question": question,
        "options": {name: getattr(settings, name) for name in _OPTIONS},
        "advanced": asdict(settings.advanced),
        "tree": {name: getattr(tree, name) for name in _OF_TREE},
        "bounder": {name: getattr(bounder, name) for name in _OF_BOUNDER} if tree.is_open else {},
        "is_open": tree.is_open,
        "seconds": perf_counter() - tree.started,
        "uses_blocks": bounder.blocks is not None,
        "blocked": None if tree.blocked is None else tree.blocked is tree.form,
    }
    arrays = {
        "checkpoint": np.array(json.dumps(header)),
        "features": tree.form.features,
        "inside": tree.inside,
        "root_state": tree.root_state,
        "support": tree.incumbent.support,
        "history": np.array(tree.history, dtype=np.float64).reshape(-1, 4),
        "rounded": np.frombuffer(b"".join(sorted(tree.improver.seen)), dtype=np.intp),
        **_node_arrays(nodes, tree.form.p),
    }
    if tree.is_open:
        splits = {"uniform": bounder.uniform, "split": bounder.split}
        splits["ascended"] = bounder.ascent.split
        arrays |= {name: split.t for name, split in splits.items()}
        if bounder.is_narrowed:
            arrays |= {"box.lo": bounder.form.lo, "box.hi": bounder.form.hi}
        if isinstance(bounder.method, WideDescent) and bounder.method.core is not None:
            arrays["core"] = bounder.method.core.features
    if tree.recorder.enabled:
        arrays |= proof_arrays(tree.recorder.tree(), tree.recorder.splits)
    return arrays


def _node_arrays(nodes: list[Node], p: int) -> dict[str, np.ndarray]:
    plain = [(node.bound, node.number, node.level, node.cost) for node in nodes]
    return {
        "nodes": np.array(plain, dtype=np.float64).reshape(-1, 4),
        "nodes.states": joined([node.state for node in nodes], np.int8).reshape(-1, p),
        "nodes.ends": ends_of([node.nonzeros for node in nodes]),
        "nodes.nonzeros": joined([node.nonzeros for node in nodes], np.int32),
        "nodes.values": joined([node.values for node in nodes], np.float64),
    }


def restore(tree: "Tree", checkpoint: Checkpoint) -> None:
    """Put a fresh tree into the saved state."""
    header, arrays = checkpoint
    for name, value in header["tree"].items():
        setattr(tree, name, value)
    form = tree.form
    if len(arrays["features"]) < form.p:
        form = form.restricted(np.searchsorted(form.features, arrays["features"]))
    tree.form, tree.inside, tree.root_state = form, arrays["inside"], arrays["root_state"]
    if header["blocked"] is not None:  # of this form, or of one before it
        tree.blocked = form if header["blocked"] else tree.presolved.form
    tree.incumbent.offer(arrays["support"])
    tree.history = [tuple(row) for row in arrays["history"].tolist()]
    tree.improver.seen = {row.tobytes() for row in arrays["rounded"].reshape(-1, tree.k)}
    tree.started -= header["seconds"]
    if "tree.parent" in arrays:
        tree.recorder.go_on(*proof_of(arrays))
    else:
        tree.recorder.stop()
    tree.is_open = header["is_open"]
    if tree.is_open:
        _restore_bounder(tree, checkpoint)
    for node in _nodes(arrays):
        tree.frontier.push(node)


def _restore_bounder(tree: "Tree", checkpoint: Checkpoint) -> None:
    header, arrays = checkpoint
    bounder, form = tree.bounder, tree.form
    uniform, split = Split(t=arrays["uniform"]), Split(t=arrays["split"])
    bounder.start(form, uniform)
    if "box.lo" in arrays:
        bounder.narrow(Box(arrays["box.lo"], arrays["box.hi"]))
    bounder.ascent = SplitAscent(bounder.form, Split(t=arrays["ascended"]), tree.workers)
    bounder.use(split)
    if "core" in arrays and isinstance(bounder.method, WideDescent):
        bounder.method.core = Core(form, arrays["core"])
    if header["uses_blocks"]:
        bounder.blocks = block_bound(form, uniform.smallest)
    for name, value in header["bounder"].items():
        setattr(bounder, name, value)


def _nodes(arrays: dict[str, np.ndarray]):
    ends = arrays["nodes.ends"]
    nonzeros, values = cut(arrays["nodes.nonzeros"], ends), cut(arrays["nodes.values"], ends)
    for i, (bound, number, level, cost) in enumerate(arrays["nodes"].tolist()):
        state = arrays["nodes.states"][i]
        yield Node(bound, int(number), state, nonzeros[i], values[i], level, cost)
