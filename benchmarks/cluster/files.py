"""A table of many Parquet files, written once, and models judged by reading it again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bestk

N_FEATURES, N_FILES, N_TRUE = 200, 40, 10


class Files(NamedTuple):
    """Files with as many rows in all, in a folder of their own below the one that is given."""

    place: Path
    n_rows: int
    n_features: int = N_FEATURES
    n_files: int = N_FILES

    @property
    def nbytes(self) -> int:
        """As numbers in memory; files of random numbers take about as much."""
        return 8 * self.n_rows * (self.n_features + 1)

    @property
    def folder(self) -> Path:
        return self.place / f"rows-{self.n_rows}-{self.n_features}-{self.n_files}"

    @property
    def names(self) -> list[str]:
        return [f"x{j}" for j in range(self.n_features)]

    @property
    def paths(self) -> list[Path]:
        return [self.folder / f"{i:03}.parquet" for i in range(self.n_files)]

    @property
    def pattern(self) -> str:
        return str(self.folder / "*.parquet")

    def write(self) -> None:
        """Write what is not there yet."""
        missing = [i for i, path in enumerate(self.paths) if not path.exists()]
        if not missing:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self._require_space(len(missing) / self.n_files)
        print(f"writing {len(missing)} files", flush=True)
        for i in missing:
            self._write_file(i)

    def _require_space(self, share: float) -> None:
        needed, free = 1.1 * share * self.nbytes, shutil.disk_usage(self.folder).free
        there = f"{self.folder} has {free / 1e9:.1f} GB free, the table takes {needed / 1e9:.1f} GB"
        print(there, flush=True)
        if free < needed + 1e9:  # others need some, too
            raise SystemExit(f"{there}: choose another --folder, or fewer --rows")

    def _write_file(self, i: int) -> None:
        """Neighbours are correlated, and the first of every twenty explain y."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        edges = np.linspace(0, self.n_rows, self.n_files + 1).astype(int)
        rng = np.random.default_rng([i, self.n_features])
        X = rng.standard_normal((self.n_features, edges[i + 1] - edges[i]))
        X[1:] += 0.6 * X[:-1]
        true = np.arange(0, self.n_features, max(self.n_features // N_TRUE, 1))[:N_TRUE]
        y = 1.0 + X[true].sum(axis=0) + 3.0 * rng.standard_normal(X.shape[1])
        table = pa.table({**dict(zip(self.names, X, strict=True)), "y": y})
        part = self.paths[i].with_suffix(".part")
        pq.write_table(table, part)
        with open(part, "rb") as file:
            os.fsync(file.fileno())  # what is not on the disk yet cannot be forgotten
        part.rename(self.paths[i])

    def forget(self) -> None:
        """Ask the system to keep nothing of the files in its cache."""
        for path in self.paths:
            with open(path, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """(X, y) in blocks of rows, read without the package."""
        import pyarrow.parquet as pq

        for path in self.paths:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(20_000, use_threads=False):
                    columns = [batch.column(name).to_numpy() for name in (*self.names, "y")]
                    yield np.column_stack(columns[:-1]), columns[-1]

    def judged(self, models: list[bestk.Result]) -> list[tuple[float, str]]:
        """(gap, complaint) of each model, its objective recomputed: all of them in one reading."""
        squares, yy = np.zeros(len(models)), 0.0
        for X, y in self.blocks():
            yy += float(y @ y)
            for i, result in enumerate(models):
                residual = y - result.intercept - X[:, result.support] @ result.coef[result.support]
                squares[i] += residual @ residual
        found = []
        for result, square in zip(models, squares, strict=True):
            objective = float(square + result.alpha * (result.coef @ result.coef))
            complaints = []
            if np.count_nonzero(result.coef) > result.k:
                complaints.append(f"{np.count_nonzero(result.coef)} nonzeros")
            if abs(result.objective - objective) > 1e-9 * yy:
                complaints.append(f"claims objective {result.objective:.9g}, has {objective:.9g}")
            if result.lower_bound > objective + 1e-9 * yy:
                complaints.append(f"bound {result.lower_bound:.9g} is above the objective")
            gap = max(objective - result.lower_bound, 0.0) / objective
            found.append((gap, "; ".join(complaints)))
        return found
