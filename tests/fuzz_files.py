"""Changed files of every kind: whatever is in them, there is an answer or a clear error.

    python tests/fuzz_files.py --seconds 60       # make fuzz calls it for a share of its time
    python tests/fuzz_files.py --seed 1234        # one change, to look at a finding
    python tests/fuzz_files.py --checkpoints      # checkpoints alone, also with --seed

A seed decides the kind of a file (certificate, run, list, checkpoint, model as JSON, table), a
valid one of it and what is done to it: bytes, the archive, headers, arrays. A few tables are small
files that unpack to a gigabyte. A finding is an exception that is no ValueError, OSError or
verdict, something that takes long or much memory, or a pickle that was opened. Runs go on from
changed checkpoints: a certificate that verifies and claims too much is a finding, too.
"""

import argparse
import gzip
import io
import json
import os
import pickle
import resource
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter
from unittest.mock import patch

import numpy as np

import bestk
from bestk import storage
from bestk.base.archive import VARIABLE
from bestk.base.fingerprint import fingerprint, rows_digest
from bestk.readers import open_data
from bestk.results.certificate import Certificate
from bestk.results.completeness import CompletenessCertificate
from bestk.runs.checkpoint import Checkpoint

# Clear errors: ValueError has DataError, TooLarge and TooLong among it.
EXPECTED = (ValueError, OSError)
LONGEST = 20.0
SLOW = bestk.Advanced(enumeration=False)
# Bytes by which a file may raise the most memory that was ever used.
LARGE = 600 << 20
MOST, UNPACKED = 256 << 20, 1 << 30
ARCHIVES = ("certificate", "groups", "run", "list", "list of groups", "checkpoint")
CHECKPOINTS = {
    "checkpoint of units": {"k": 5},
    "checkpoint of batches": {"k": 4, "bound": "admm"},
    "checkpoint in a box": {"k": 5, "bounds": (-1.5, 1.5)},
    "checkpoint of groups": {"k": 3, "groups": [f"g{j // 2}" for j in range(24)],
                             "rules": [bestk.rules.at_most(2, ["g0", "g1", "g2"])],
                             "constraints": ["x0 + x1 <= 1"]},
    "checkpoint of a list": {"k": 4, "within": 0.15},
    "checkpoint of the n best": {"k": 4, "n_best": 20},
}  # fmt: skip
MODEL = "model"
TABLES = ("csv", "csv.gz", "npz", "columns", "parquet", "feather")
BOMBS = ("csv.gz", "parquet", "feather")
OPENED = Path(tempfile.gettempdir()) / "bestk_fuzz_files_opened"


@dataclass(frozen=True)
class Finding:
    seed: int
    kind: str
    text: str


class Payload:
    """What runs when it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (OPENED,))


@cache
def data():
    X, y, _ = bestk.datasets.make_synthetic(40, 9, k=3, rho=0.7)
    return np.ascontiguousarray(X), y


@cache
def harder():
    """Data whose trees are large enough to be interrupted."""
    X, y, _ = bestk.datasets.make_synthetic(40, 24, k=5, rho=0.9)
    return np.ascontiguousarray(X), y


def asked(kind: str, **options):
    """The question of a checkpoint: a result, or a list of models."""
    ask = bestk.near_optimal if kind.endswith(("list", "n best")) else bestk.solve
    plain = {"alpha": 0.01, "gap_tol": 0.0, "n_threads": 1, "advanced": SLOW}
    if ask is bestk.near_optimal:
        del plain["gap_tol"]
    return ask(*harder(), **plain | CHECKPOINTS[kind] | options)


@cache
def optimum(kind: str) -> float:
    found = asked(kind)
    return getattr(found, "best", found).objective


def _write_checkpoint(kind: str, path: Path) -> None:
    """In the midst of a run."""
    written = []

    def interrupt(snapshot):
        written.append(path.exists())
        if sum(written) > 3 and snapshot.n_nodes > 30:
            raise KeyboardInterrupt

    asked(kind, checkpoint=path, checkpoint_interval=0.0, callback=interrupt)


@cache
def valid(kind: str) -> bytes:
    """A file of a kind."""
    X, y = data()
    exact = bestk.Advanced(enumeration=False)
    groups = [f"g{j // 2}" for j in range(9)]
    rules = [bestk.rules.at_most(2, ["g0", "g1", "g2"])]
    structure = {"groups": groups, "rules": rules, "constraints": ["x0 + x1 <= 1"]}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / f"file.{'npz' if kind == 'columns' else kind.replace(' ', '_')}"
        if kind == "certificate":
            bestk.solve(X, y, 3, alpha=0.1, advanced=exact).certificate.save(path)
        elif kind == "groups":
            bestk.solve(X, y, 2, alpha=0.1, advanced=exact, **structure).certificate.save(path)
        elif kind == MODEL:
            bestk.solve(X, y, 2, alpha=0.1, **structure).to_json(path)
        elif kind == "run":
            storage.save(bestk.solve(X, y, 2, alpha=0.1, **structure), path)
        elif kind == "list":
            bestk.near_optimal(X, y, 3, within=0.3).certificate.save(path)
        elif kind == "list of groups":
            found = bestk.near_optimal(X, y, 2, within=0.3, groups=groups, rules=rules)
            found.certificate.save(path)
        elif kind in CHECKPOINTS:
            _write_checkpoint(kind, path)
        elif kind == "checkpoint":
            bestk.solve(X, y, 3, alpha=0.1, advanced=exact, node_limit=2, checkpoint=path)
        else:
            _write_table(kind, path, X, y)
        return path.read_bytes()


def _write_table(kind: str, path: Path, X: np.ndarray, y: np.ndarray) -> None:
    columns = {f"x{j}": X[:, j] for j in range(4)} | {"y": y}
    columns["city"] = np.array(["Ulm", "Bonn"] * (len(y) // 2))
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values()))]  # noqa: B905
    if kind == "csv":
        path.write_text("\n".join(lines))
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
    elif kind == "npz":
        np.savez_compressed(path, X=X, y=y, feature_names=np.array(list("abcdefghi")))
    elif kind == "columns":
        np.savez(path, **columns)
    else:
        import pyarrow as pa
        from pyarrow import feather, parquet

        table = pa.table(columns)
        if kind == "parquet":
            parquet.write_table(table, path, row_group_size=10)
        else:
            feather.write_feather(table, str(path))


@cache
def bomb(kind: str) -> bytes:
    """A small table that unpacks to a gigabyte: as one line, or as one batch of zeros."""
    if kind == "csv.gz":
        return gzip.compress(b"a,y\n" + b"7" * UNPACKED, 1)
    import pyarrow as pa
    from pyarrow import feather, parquet

    file, zeros = io.BytesIO(), np.zeros(UNPACKED // 16)
    table = pa.table({"x": zeros, "y": zeros})
    if kind == "parquet":
        one = {"row_group_size": len(zeros), "data_page_size": UNPACKED, "use_dictionary": False}
        parquet.write_table(table, file, compression="zstd", **one)
    else:
        feather.write_feather(table, file, compression="zstd", chunksize=len(zeros))
    return file.getvalue()


# Changes --------------------------------------------------------------------------------------

ODD = [None, True, -1, 0, 2**40, 2**70, 10**400, 0.5, 1e308, float("nan"), float("inf"), "",
       "x" * 99, [], [1], {}, {"a": [1]}, [[[]]]]  # fmt: skip
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -1.0, 2.0**31, 2.0**62, 1e15, 0.0, 7.0]
DTYPES = ["?", "i1", "u1", "i2", "i4", "<i8", ">i8", "u8", "f2", "f4", ">f8", "c16", "U3", "S4",
          "M8[s]", "longdouble", "V8"]  # fmt: skip


def changed_bytes(rng, content: bytes) -> bytes:
    raw = bytearray(content)
    how = rng.integers(5)
    if how == 0:
        return bytes(raw[: rng.integers(len(raw))])
    if how == 1:
        at = int(rng.integers(len(raw)))
        return bytes(raw[:at] + rng.bytes(int(rng.integers(1, 40))) + raw[at:])
    if how == 2:
        first, last = np.sort(rng.integers(len(raw), size=2))
        return bytes(raw[:first] + raw[last:])
    # The end of the file has the directories of most formats.
    where = (0, len(raw)) if how == 3 else (max(0, len(raw) - 400), len(raw))
    for at in rng.integers(*where, size=int(rng.integers(1, 9))):
        raw[at] = rng.choice([0, 255, 128, raw[at] ^ (1 << int(rng.integers(8)))])
    return bytes(raw)


def entries_of(content: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(content)) as file:
        return dict(file)


def archive_of(entries: dict[str, object]) -> bytes:
    """An npz file; entries that are bytes go into it as they are."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in entries.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                archive.writestr(f"{name}.npy", array if isinstance(array, bytes) else _npy(array))
    return file.getvalue()


def _npy(array) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=True)
    return file.getvalue()


def _forged(rng, content: bytes) -> bytes:
    """With other numbers where numbers are, and nothing else."""
    entries: dict = entries_of(content)
    if rng.random() < 0.2:
        entries["checkpoint"] = _changed_header(rng, str(entries["checkpoint"]))
        return archive_of(entries)
    names = [n for n, a in entries.items() if a.size and a.dtype.kind in "biuf"]
    for name in rng.choice(names, int(rng.integers(1, 3))):
        array = _other_numbers(rng, entries[name])
        if rng.random() < 0.3:  # a whole row is the same
            array[rng.integers(len(array))] = rng.choice(entries[name].ravel())
        entries[name] = array
    return archive_of(entries)


def changed_arrays(rng, content: bytes) -> bytes:
    entries: dict = entries_of(content)
    for _ in range(int(rng.integers(1, 3))):
        name = str(rng.choice(list(entries)))
        if isinstance(entries[name], bytes):
            continue
        other = entries[
            str(rng.choice([n for n, a in entries.items() if not isinstance(a, bytes)]))
        ]
        entries |= {name: _changed(rng, entries[name], other)}
        if rng.random() < 0.1:
            del entries[name]
    return archive_of(entries)


def _changed(rng, array: np.ndarray, other: np.ndarray):
    """Another array, or other bytes, in its place."""
    if array.dtype.kind == "U" and array.ndim == 0 and rng.random() < 0.8:
        return _changed_header(rng, str(array))
    how = rng.integers(11)
    if how == 0:
        return other
    if how == 1:
        return np.resize(array, int(rng.integers(3 * array.size + 2)))
    if how == 2:
        with np.errstate(all="ignore"):
            try:
                return array.astype(str(rng.choice(DTYPES)))
            except (ValueError, TypeError):
                return other
    if how == 3:
        return array.reshape(1, -1) if rng.random() < 0.5 else np.resize(array, ())
    if how == 4:
        return np.array([Payload()] * max(1, array.size), dtype=object)
    if how == 5:  # what its header says is changed
        raw = _npy(array)
        shape = str(rng.choice(["(-1,)", "(99999999999,)", "(2**62,)", "(0, 9999999999999)", "()"]))
        return raw.replace(str(array.shape).encode(), shape.encode(), 1)
    if how == 6:
        return changed_bytes(rng, _npy(array))
    if how == 7:
        return pickle.dumps(Payload())
    if array.size == 0 or array.dtype.kind not in "biuf":
        return np.zeros(int(rng.integers(5)))
    return _other_numbers(rng, array)


def _other_numbers(rng, array: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array, flat = array.copy(), rng.integers(array.size, size=int(rng.integers(1, 4)))
        value = rng.choice(NUMBERS) if rng.random() < 0.7 else rng.choice(array.ravel())
        array.reshape(-1)[flat] = np.float64(value).astype(array.dtype)
    return array


def _changed_header(rng, text: str):
    if rng.random() < 0.1:
        deep = ["[" * 100_000, '{"a":' * 50_000, "1" * 10_000, "\x00", "null", "[]", '"text"', "{"]
        return np.array(str(rng.choice(deep)))
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):  # it was changed before
        return np.array(text)
    if not isinstance(header, dict):
        return np.array(text)
    inner = _objects_in(header)
    part = inner[int(rng.integers(len(inner)))] if rng.random() < 0.5 else header
    name = str(rng.choice(list(part) or ["new"]))
    if rng.random() < 0.2:
        part.pop(name, None)
    elif rng.random() < 0.2:
        part["unknown"] = 1
    else:
        part[name] = ODD[int(rng.integers(len(ODD)))]
    return np.array(json.dumps(header))


def _objects_in(header: dict) -> list[dict]:
    inner = [value for value in header.values() if isinstance(value, dict)]
    return [header, *(found for value in inner for found in _objects_in(value))]


def changed_text(rng, content: bytes) -> bytes:
    """Fields and lines of a table of text."""
    lines = [line.split(",") for line in content.decode().split("\n")]
    odd = [
        "",
        "nan",
        "1e999",
        "-inf",
        '"',
        "x" * 9999,
        "1" * 5000,
        "\x00",
        "﻿",
        "0x1",
        "١",
        "a\nb",
        ",,",
    ]
    for _ in range(int(rng.integers(1, 4))):
        line = lines[int(rng.integers(len(lines)))]
        line[int(rng.integers(len(line)))] = str(rng.choice(odd))
    if rng.random() < 0.2:
        del lines[0]
    return "\n".join(map(",".join, lines)).encode()


def _changed_model(rng, content: bytes) -> bytes:
    if rng.random() < 0.3:
        return changed_bytes(rng, content)
    return str(_changed_header(rng, content.decode())).encode()


def changed(seed: int, *, checkpoints: bool = False) -> tuple[str, bytes]:
    """(kind, content) of a file that a seed changes."""
    rng = np.random.default_rng([seed, 91])
    kinds = [*CHECKPOINTS] if checkpoints else [*ARCHIVES, *ARCHIVES, *TABLES]
    kind = str(rng.choice(kinds))
    if kind in BOMBS and np.random.default_rng([seed, 92]).random() < 0.05:
        return kind, bomb(kind)
    if not checkpoints and np.random.default_rng([seed, 94]).random() < 0.05:
        return MODEL, _changed_model(rng, valid(MODEL))
    content = valid(kind)
    if checkpoints:
        return kind, _forged(rng, content) if rng.random() < 0.8 else changed_arrays(rng, content)
    if kind.startswith("csv") and rng.random() < 0.6:
        text = gzip.decompress(content) if kind == "csv.gz" else content
        text = changed_text(rng, text)
        return kind, gzip.compress(text) if kind == "csv.gz" else text
    if (kind in ARCHIVES or kind in ("npz", "columns")) and rng.random() < 0.75:
        return kind, changed_arrays(rng, content)
    return kind, changed_bytes(rng, content)


# Checks ---------------------------------------------------------------------------------------


def use(kind: str, path: Path, *, patience: float = 1.0) -> str:
    """Do with a file what users do; what came of it. `patience` multiplies limits of time."""
    X, y = data()
    how = {"n_threads": 1, "max_seconds": 5.0 * patience}
    if kind in TABLES:
        rows = sum(len(batch[1]) for batch in open_data(path, target="y"))
        return "read" if rows else "empty"
    if kind == "run":
        result = storage.load(path)
        str(result)
        return "read" if result.certificate is None else _verdict(kind, result.certificate, how)
    if kind == MODEL:
        result = storage.from_json(path)
        result.predict(X)
        result.to_json()
        str(result)
        return "read"
    if kind == "checkpoint":
        saved = Checkpoint.read(path)
        saved.settings({})
        str(saved.structure)
        bestk.resume(path, X, y, node_limit=100, n_threads=1)
        return "read"
    if kind in CHECKPOINTS:
        return _gone_on(kind, path, patience)
    form = CompletenessCertificate if kind.startswith("list") else Certificate
    return _verdict(kind, form.load(path), how)


def _verdict(kind: str, certificate, how: dict) -> str:
    """As it is, and with the fingerprint of the data: whoever has these can forge it."""
    X, y = data()
    verdict = certificate.verify(X, y, **how)
    str(verdict)
    try:
        own = fingerprint(rows_digest(X, y, None), certificate)
    except Exception:  # of parts that do not fit together
        return str(bool(verdict))
    if own == certificate.fingerprint:
        return str(bool(verdict))
    forged = replace(certificate, fingerprint=own)
    found = forged.verify(X, y, **how)
    str(found)
    is_same = isinstance(forged, Certificate) and forged.plain() == original(kind).plain()
    if found and is_same and forged.lower_bound > original(kind).objective * (1 + 1e-9):
        raise AssertionError(f"a proof of {forged.lower_bound} is accepted, which is too much")
    return f"{bool(verdict)}, forged {bool(found)}"


@cache
def original(kind: str) -> Certificate:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file_name(kind)
        path.write_bytes(valid(kind))
        return Certificate.load(path)


def _gone_on(kind: str, path: Path, patience: float) -> str:
    """Go on with a run, and check what it then claims."""
    limits = {"time_limit": 3.0 * patience, "node_limit": 2000, "n_threads": 1}
    if kind.endswith(("list", "n best")):
        found = asked(kind, checkpoint=path, **limits)
        bound = found.best.lower_bound
    else:
        found = bestk.resume(path, *harder(), **limits)
        bound = found.lower_bound
    str(found)
    proof = found.certificate
    if proof is None or not proof.verify(*harder(), n_threads=1, max_seconds=5.0 * patience):
        return "not proven"
    k = CHECKPOINTS[kind]["k"]
    if proof.k == k and proof.alpha == 0.01 and bound > optimum(kind) * (1 + 1e-9):
        raise AssertionError(f"a proof of {bound} is accepted, and {optimum(kind)} is possible")
    return "proven"


@cache
def ready() -> None:
    """Loops are compiled, or loaded, by files that nobody changed: no clock runs meanwhile."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in (*ARCHIVES, *CHECKPOINTS, MODEL, *TABLES):
            path = Path(folder) / file_name(kind)
            path.write_bytes(valid(kind))
            use(kind, path, patience=200.0)


def file_name(kind: str) -> str:
    return f"file.{'npz' if kind == 'columns' else kind.replace(' ', '_')}"


def most_memory() -> int:
    """Bytes that this process has used at most, so far."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def check(seed: int, *, checkpoints: bool = False) -> tuple[str, list[Finding]]:
    """(what came of it, findings)"""
    ready()
    kind, content = changed(seed, checkpoints=checkpoints)
    started, memory = perf_counter(), most_memory()
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        patch.dict(os.environ, {VARIABLE: str(MOST)}),
    ):
        warnings.simplefilter("ignore")
        path = Path(folder) / file_name(kind)
        path.write_bytes(content)
        OPENED.unlink(missing_ok=True)
        findings = []
        try:
            outcome = use(kind, path)
        except EXPECTED as error:
            outcome = "refused"
            if not str(error).strip():
                findings.append(Finding(seed, "no message", f"{kind}: {error!r}"))
        except Exception:  # whatever it is, it is a finding
            outcome = "crash"
            findings.append(Finding(seed, "crash", f"{kind}: {traceback.format_exc()}"))
    if most_memory() - memory > LARGE:
        findings.append(Finding(seed, "memory", f"{kind}: {most_memory() - memory} bytes"))
    if OPENED.exists():
        findings.append(Finding(seed, "code was run", kind))
    if perf_counter() - started > LONGEST:
        findings.append(Finding(seed, "slow", f"{kind}: {perf_counter() - started:.1f} s"))
    return f"{kind}: {outcome}", findings


def check_many(seeds: range, *, checkpoints: bool = False) -> tuple[Counter, list[Finding]]:
    tried, findings = Counter(), []
    for seed in seeds:
        outcome, found = check(seed, checkpoints=checkpoints)
        tried[outcome] += 1
        findings += found
    return tried, findings


def fuzz_for(seconds: float, start: int = 0, *, checkpoints: bool = False) -> int:
    """Number of findings, which are printed; without `checkpoints` every fifth round is of them."""
    started, tried, count, seed = perf_counter(), Counter(), 0, start
    while perf_counter() - started < seconds:
        are_of_runs = checkpoints or seed // 50 % 5 == 4
        outcomes, found = check_many(range(seed, seed + 50), checkpoints=are_of_runs)
        tried += outcomes
        count += len(found)
        seed += 50
        for finding in found:
            print(f"seed {finding.seed}: {finding.kind}: {finding.text}", flush=True)
    print(f"{sum(tried.values())} changed files in {perf_counter() - started:.0f} s")
    print(", ".join(f"{name} {n}" for name, n in sorted(tried.items())))
    print(f"findings in files: {count}")
    return count


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--seconds", type=float, default=60.0)
    arguments.add_argument("--start", type=int, default=0, help="first seed")
    arguments.add_argument("--seed", type=int, help="only this one")
    arguments.add_argument("--checkpoints", action="store_true", help="of runs to go on with")
    chosen = arguments.parse_args()
    if chosen.seed is not None:
        print(*check(chosen.seed, checkpoints=chosen.checkpoints), sep="\n")
        return 0
    found = fuzz_for(chosen.seconds, chosen.start, checkpoints=chosen.checkpoints)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
