"""Every knob of a run, checked once, where it enters."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from bestk.base.cluster.client import Cluster, require_client
from bestk.base.validation import (
    nearest,
    require_choice,
    require_count,
    require_device,
    require_flag,
    require_number,
    require_threads,
    require_writable,
)

SEARCHES = ("best-first", "breadth-first", "depth-first")
BOUNDS = ("descent", "admm", "fast", "subgradient")
SPLITS = ("optimised", "uniform")
BRANCHINGS = ("relaxation", "heuristic")


@dataclass(frozen=True, kw_only=True)
class Advanced:
    """Switches for studies and ablations; the defaults are what a user wants.

    Attributes
    ----------
    fixing : bool
        Put features in or out for a whole subtree where the bound allows it.
    enumeration : bool
        Close nodes with few supports left by trying them all.
    split : {"optimised", "uniform"}
        How the Gram matrix is split: a diagonal fitted to the open nodes, or blocks where they
        prove more; "uniform" is the paper's smallest eigenvalue, which the paper's bounds always
        use.
    branching : {"relaxation", "heuristic"}
        Branch on the largest relaxed coefficient, or by the paper's rule on the node's own
        beam-search solution.
    rebuild : bool
        Start again on the smaller problem once the root has excluded many features.
    batch_size : int or None
        Units of work in flight, or nodes of a batch where there are no units; None chooses.
    beam_width : int
        Supports kept per size by the beam search.
    record : bool
        Keep the tree and its dual vectors for ``Result.certificate``.
    record_limit : float
        Bytes that the record may take; a larger one is dropped, and the run goes on without. At
        most a quarter of ``memory_limit`` is used for it.
    """

    fixing: bool = True
    enumeration: bool = True
    split: str = "optimised"
    branching: str = "relaxation"
    rebuild: bool = True
    batch_size: int | None = None
    beam_width: int = 20
    record: bool = True
    record_limit: float = 128e6

    def __post_init__(self) -> None:
        for name in ("fixing", "enumeration", "rebuild", "record"):
            require_flag(name, getattr(self, name))
        require_choice("split", self.split, SPLITS)
        require_choice("branching", self.branching, BRANCHINGS)
        if self.batch_size is not None:
            require_count("batch_size", self.batch_size, least=1)
        require_count("beam_width", self.beam_width, least=1)
        require_number("record_limit", self.record_limit, least=0.0)

    @classmethod
    def paper(cls) -> "Advanced":
        """The OKRidge paper's configuration; use it with ``search="breadth-first"``."""
        return cls(
            fixing=False,
            enumeration=False,
            split="uniform",
            branching="heuristic",
            rebuild=False,
            batch_size=1,
        )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Limits and methods of one run; see :func:`bestk.solve` for their meaning and units."""

    gap_tol: float = 1e-4
    time_limit: float | None = None
    node_limit: int | None = None
    memory_limit: float | None = None
    search: str = "best-first"
    bound: str = "descent"
    progress: Any = None
    callback: Callable[..., Any] | None = None
    n_threads: int | None = None
    device: str = "cpu"
    client: Any = None
    checkpoint: Any = None
    checkpoint_interval: float = 60.0
    advanced: Advanced = Advanced()

    def __post_init__(self) -> None:
        gap_tol = require_number("gap_tol", self.gap_tol, least=0.0)
        if gap_tol >= 1.0:  # no model has a larger gap
            raise ValueError(f"gap_tol must be less than 1, got {gap_tol!r}; 0.01 stands for 1%")
        if self.time_limit is not None:
            require_number("time_limit", self.time_limit, least=0.0, finite=False)
        if self.node_limit is not None:
            require_count("node_limit", self.node_limit, least=0)
        if self.memory_limit is not None:
            require_number("memory_limit", self.memory_limit, least=0.0, finite=False)
        require_threads(self.n_threads)
        require_device(self.device)
        require_client(self.client)
        if self.checkpoint is not None and not isinstance(self.checkpoint, str | Path):
            raise TypeError(f"checkpoint must be the name of a file, got {self.checkpoint!r}")
        require_number("checkpoint_interval", self.checkpoint_interval, least=0.0)
        require_choice("search", self.search, SEARCHES)
        require_choice("bound", self.bound, BOUNDS)
        if self.callback is not None and not callable(self.callback):
            raise TypeError(
                f"callback must be a function of one bestk.Snapshot, or None, got {self.callback!r}"
            )
        if not isinstance(self.advanced, Advanced):
            raise TypeError(
                "advanced must be a bestk.Advanced, such as bestk.Advanced(fixing=False), "
                f"got {self.advanced!r}"
            )

    @property
    def record_limit(self) -> float:
        """Bytes for the record of the proof; none if it is not wanted."""
        most = np.inf if self.memory_limit is None else self.memory_limit / 4
        return min(self.advanced.record_limit, most) if self.advanced.record else 0.0

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(f.name for f in fields(cls))

    def as_options(self) -> dict[str, Any]:
        """The keyword arguments that give these settings."""
        return {name: getattr(self, name) for name in self.names()}

    def for_many(self) -> "Settings":
        """For several searches after each other."""
        if self.checkpoint is not None:
            raise ValueError(
                "checkpoint is for one search, and this call makes several; leave checkpoint out, "
                "or use bestk.solve or Problem.solve"
            )
        return self

    def on_one_thread(self) -> "Settings":
        """For runs that are themselves spread over threads."""
        return replace(self, n_threads=1)

    def cluster(self) -> Cluster | None:
        """The workers behind the client, if there is one."""
        return None if self.client is None else Cluster(self.client)

    def on_a_worker(self) -> "Settings":
        """For a run that is one of many on a cluster: it has one thread, and nobody watches it."""
        return replace(self, n_threads=1, client=None, progress=None, callback=None)

    def summary(self) -> dict[str, Any]:
        """The plain values: what a report shows and what can be stored."""
        hidden = ("progress", "callback", "client", "checkpoint", "checkpoint_interval", "advanced")
        plain = {name: getattr(self, name) for name in self.names() if name not in hidden}
        return plain | {f"advanced.{name}": value for name, value in self._changed()}

    def _changed(self):
        for item in fields(Advanced):
            value = getattr(self.advanced, item.name)
            if value != item.default:
                yield item.name, value


def settings_of(options: dict[str, Any]) -> Settings:
    """Settings of a run from keyword arguments; unknown names are an error."""
    unknown = set(options) - set(Settings.names())
    if unknown:
        raise _unknown(sorted(unknown)[0])
    if isinstance(options.get("checkpoint"), str | Path):
        require_writable("checkpoint", options["checkpoint"])
    if options.get("advanced") is None:
        options = {name: value for name, value in options.items() if name != "advanced"}
    return Settings(**options)


# Options of searches that are no settings, and arguments of what makes a problem.
_OF_MODELS = ("include", "exclude", "free", "groups", "rules", "constraints")
_OF_PROBLEMS = ("alpha", "bounds", "sample_weight", "fit_intercept", "feature_names")


def _unknown(name: str) -> TypeError:
    if name in _OF_PROBLEMS:
        return TypeError(
            f"unknown option {name!r}: it is part of the problem; give it where the problem is "
            "made, such as in Problem.from_data"
        )
    if name == "initial_support":
        return TypeError(
            f"unknown option {name!r}: this call makes several searches; leave it out, or use "
            "bestk.solve or Problem.solve"
        )
    known = (*_OF_MODELS, *Settings.names())
    return TypeError(
        f"unknown option {name!r}{nearest(name, known) or '.'} Options are {', '.join(known)}"
    )
