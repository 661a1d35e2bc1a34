"""Files summed up by workers, beside reading them alone: seconds, and memory of the workers."""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import bestk
from benchmarks.cluster.clusters import workers
from benchmarks.cluster.files import N_TRUE, Files
from benchmarks.harness.process import MIB, peak_memory
from benchmarks.harness.tables import Table, announced, met_or_missed
from bestk.problem.table import Table as Partitions
from bestk.readers import open_data
from bestk.selection.cross_validation import cross_validate_table

N_WORKERS = 2
RATIO = 1.3
"""Target: seconds of a pass over those of reading alone."""
FOLDS, SIZES, ALPHAS = 5, tuple(range(1, 11)), (0.1, 1.0, 10.0)


class Answer(NamedTuple):
    """Seconds of the pass over the files, and a model from what it gave."""

    seconds: float
    result: bestk.Result | None = None
    remarks: str = ""


class Run(NamedTuple):
    """An answer, the seconds of all that came after the pass, and memory of workers in MiB."""

    answer: Answer
    later: float
    before: float
    peaks: list[float]


class Timed(Partitions):
    """Partitions that remember how long it took to sum them up."""

    seconds = 0.0

    def sums_of_folds(self, *terms: Any) -> Any:
        start = time.perf_counter()
        found = super().sums_of_folds(*terms)
        self.seconds = time.perf_counter() - start
        return found


def partitions(files: Files, client: Any) -> Timed:
    data = open_data(files.pattern, target="y")
    return Timed(*Partitions.of_parts(data.parts(), data.features, client))


def n_rows_of(part: Any) -> int:
    """On a worker: read a part, and keep nothing of it."""
    return len(part.read()[1])


def n_bytes_of(path: Path) -> int:
    """On a worker: have the system read a file, block by block."""
    with open(path, "rb") as file:
        return sum(map(len, iter(lambda: file.read(2**20), b"")))


def reading(files: Files, client: Any) -> Answer:
    parts = open_data(files.pattern, target="y").parts()
    start = time.perf_counter()
    counts = client.gather(client.map(n_rows_of, parts, pure=False))
    seconds = time.perf_counter() - start
    assert sum(counts) == files.n_rows, "rows are missing"
    return Answer(seconds)


def summing(files: Files, client: Any) -> Answer:
    table = partitions(files, client)
    problem = bestk.Problem.from_table(table, alpha=1.0, fit_intercept=True)
    return Answer(table.seconds, problem.solve(N_TRUE, n_threads=1))


def validating(files: Files, client: Any) -> Answer:
    table, options = partitions(files, client), {"n_threads": 1, "client": client}
    found, problem = cross_validate_table(table, SIZES, ALPHAS, n_folds=FOLDS, **options)
    return Answer(table.seconds, problem.solve(N_TRUE, n_threads=1), found.claim)


WAYS: dict[str, Callable[[Files, Any], Answer]] = {
    "reading alone": reading,
    "sums of all rows": summing,
    f"sums of {FOLDS} folds": validating,
}
PLACES = ("disk", "cache") if hasattr(os, "posix_fadvise") else ("cache",)
"""Where the files are when a pass begins: large data are never in the system's cache."""
Runs = dict[tuple[str, str], list[Run]]


def sums(folder: Path | None, n_rows: int, rounds: int, quick: bool) -> Table:
    """Passes over the files in turn, with fresh workers each time."""
    with _folder(folder) as below:
        sizes = {"n_features": 20, "n_files": 4} if quick else {}
        files = Files(below, n_rows, **sizes)
        tiny = Files(below, 4000, files.n_features, 4)
        tiny.write()
        files.write()
        runs: Runs = defaultdict(list)
        order = [(place, name) for place in PLACES for name in WAYS]
        for number in announced(range(rounds)):
            for place, name in announced(order[::-1] if number % 2 else order):
                runs[place, name].append(_run(WAYS[name], files, tiny, place))
        return _table(files, runs)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """The folder that was asked for, with files that stay, or one that goes."""
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        yield Path(folder)


def _run(way: Callable[[Files, Any], Answer], files: Files, tiny: Files, place: str) -> Run:
    with workers(N_WORKERS, warm=False) as client:
        for _ in range(2):  # what workers load once is loaded
            way(tiny, client)
        before = max(client.run(peak_memory).values())
        if place == "disk":
            files.forget()
        else:
            client.gather(client.map(n_bytes_of, files.paths, pure=False))
        start = time.perf_counter()
        answer = way(files, client)
        later = time.perf_counter() - start - answer.seconds
        return Run(answer, later, before, sorted(client.run(peak_memory).values()))


def _table(files: Files, runs: Runs) -> Table:
    parts = open_data(files.pattern, target="y").parts()
    part = max(p.n_rows for p in parts) * 8 * (files.n_features + 1) / MIB
    products = 8 * files.n_features**2 / MIB
    columns = ["what", "from", "seconds", "over reading", "after it s", "workers MiB", "before MiB"]
    table = Table(name="sums", columns=[*columns, "in parts", "gap", "remarks"])
    last = {key: found[-1].answer for key, found in runs.items()}
    models = {key: answer.result for key, answer in last.items() if answer.result is not None}
    verdicts = dict(zip(models, files.judged(list(models.values())), strict=True))
    for (place, name), found in sorted(runs.items(), key=lambda item: PLACES.index(item[0][0])):
        seconds = median(run.answer.seconds for run in found)
        peaks, before = max(run.peaks for run in found), max(run.before for run in found)
        row = [name, place, f"{seconds:.2f}", "", "", ", ".join(f"{mib:.0f}" for mib in peaks)]
        row += [f"{before:.0f}", f"{(peaks[-1] - before) / part:.1f}", "", ""]
        if (place, name) in verdicts:
            alone = median(run.answer.seconds for run in runs[place, "reading alone"])
            ratio, (gap, complaint) = seconds / alone, verdicts[place, name]
            row[3] = f"{ratio:.2f} {met_or_missed(ratio <= RATIO)}"
            row[4] = f"{median(run.later for run in found):.2f}"
            row[-2:] = [f"{gap:.2e}", complaint or found[-1].answer.remarks]
        table.rows.append(row)
    rounds = len(next(iter(runs.values())))
    table.notes.append(
        f"{files.n_rows} rows, {files.n_features} features and y in {files.n_files} files of "
        f"Parquet, {files.nbytes / 1e9:.2f} GB as numbers, {len(parts)} parts of at most "
        f"{part:.3g} MiB; p x p products take {products:.3g} MiB, those of {FOLDS} folds "
        f"{FOLDS} times that; {N_WORKERS} workers with one thread, fresh each time, BLAS on one "
        f"thread; median of {rounds}, in turn; the system was asked to keep nothing of the files "
        "in its cache before a pass (disk), or had just read all of them (cache)"
    )
    table.notes.append(
        f"after it: a search for {N_TRUE} features, or those of {FOLDS} folds, {len(SIZES)} sizes "
        f"and {len(ALPHAS)} penalties by the workers; memory: the most a worker has held, and that "
        f"after a tiny table of the same kind; in parts: what it took more, in parts; target: "
        f"{RATIO} times reading; objectives of models with {N_TRUE} features are recomputed from "
        "the files"
    )
    return table
