"""Writes the files that ``tests/results/test_formats.py`` reads.

``python tests/data/write_formats.py ARCHIVE``, only for a new version of a format, and into a new
archive: those of released versions stay as they are, so that a bestk that no longer reads them
fails its tests.
"""

import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import bestk
from bestk import rules, storage

NAMES = ["a", "b", "c", "a b", "b^2", "d", "e", "f", "g", "h", "i", "j"]
K, ALPHA = 4, 0.5
LIST_CHECKPOINT = "list-checkpoint-plain.npz"
SLOW = bestk.Advanced(enumeration=False, batch_size=1)


def data() -> tuple[pd.DataFrame, np.ndarray]:
    """Integers, so that every machine has the same sums; correlated, so that there is a tree."""
    rng = np.random.default_rng(7)
    X = rng.integers(-9, 10, size=(24, 12)) + rng.integers(-20, 21, size=(24, 1))
    y = rng.integers(-40, 41, size=24)
    return pd.DataFrame(X.astype(float), columns=NAMES), y.astype(float)


def structure() -> dict:
    return {
        "groups": {"last": ["e", "f"]},
        "rules": [rules.implies("a b", ["a", "b"]), rules.at_most(1, ["c", "d"])],
        "constraints": ["a + d <= 2"],
    }


QUESTIONS = {"plain": {}, "structure": structure()}


def write(folder: Path) -> None:
    X, y = data()
    for name, own in QUESTIONS.items():
        asked = {"alpha": ALPHA, "advanced": SLOW, **own}
        result = bestk.solve(X, y, K, fit_intercept=True, **asked)
        assert result.is_proven
        result.certificate.save(folder / f"certificate-{name}.npz")
        storage.save(result, folder / f"run-{name}.npz")
        result.to_json(folder / f"model-{name}.json")
        near = bestk.near_optimal(X, y, K, within=0.1, alpha=ALPHA, **own)
        assert near.complete
        near.certificate.save(folder / f"list-{name}.npz")
        file = folder / f"checkpoint-{name}.npz"
        assert not bestk.solve(X, y, K, **asked, node_limit=1, checkpoint=file).is_closed
    list_in(folder / LIST_CHECKPOINT, node_limit=1)


def list_in(file: Path, **limits) -> bestk.NearOptimal:
    """A list of models with a checkpoint, which a later call goes on from."""
    X, y = data()
    asked = {"alpha": ALPHA, "advanced": SLOW, "within": 0.1}
    return bestk.near_optimal(X, y, K, **asked, **limits, checkpoint=file)


if __name__ == "__main__":
    with TemporaryDirectory() as folder, tarfile.open(sys.argv[1], "w:xz") as archive:
        write(Path(folder))
        for path in sorted(Path(folder).iterdir()):
            archive.add(path, path.name)
