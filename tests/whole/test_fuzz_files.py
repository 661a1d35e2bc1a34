"""A short, seeded part of the fuzzing of files, files that unpack to gigabytes, and forged ones."""

import io
import subprocess
import sys
import zipfile

import fuzz_files
import numpy as np
import pytest

import bestk
from bestk import storage
from bestk.base.archive import TooLarge, arrays_in
from bestk.certificate import Certificate
from bestk.readers import DataError, open_data
from bestk.results.completeness import CompletenessCertificate


@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_no_findings(first):
    _, findings = fuzz_files.check_many(range(first, first + 250))
    assert not findings


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_no_findings_in_checkpoints(first):
    _, findings = fuzz_files.check_many(range(first, first + 100), checkpoints=True)
    assert not findings


# Offsets of Arrow that point anywhere; coefficients beyond all numbers; features that are floats,
# or no list.
EARLIER = [2438, 103, 556, 301, 1608, 100292, 100306, 104318, 304544, 1302199]


@pytest.mark.parametrize("seed", EARLIER)
def test_earlier_findings_are_gone(seed):
    assert not fuzz_files.check(seed)[1]


@pytest.mark.parametrize(
    "kind",
    [*fuzz_files.ARCHIVES, *fuzz_files.CHECKPOINTS, fuzz_files.MODEL, *fuzz_files.TABLES],
)
def test_unchanged_files_are_fine(kind, tmp_path):
    path = tmp_path / fuzz_files.file_name(kind)
    path.write_bytes(fuzz_files.valid(kind))
    assert fuzz_files.use(kind, path, patience=200.0) in ("True", "read", "proven")


def test_the_fuzzer_notices_what_it_should(monkeypatch):
    fuzz_files.ready()
    monkeypatch.setattr(fuzz_files, "use", lambda kind, path: 1 / 0)
    assert fuzz_files.check(3)[1][0].kind == "crash"
    monkeypatch.setattr(fuzz_files, "use", lambda kind, path: fuzz_files.OPENED.touch())
    assert fuzz_files.check(3)[1][0].kind == "code was run"
    fuzz_files.OPENED.unlink()
    monkeypatch.setattr(fuzz_files, "most_memory", iter([0, 1 << 40, 1 << 40]).__next__)
    monkeypatch.setattr(fuzz_files, "use", lambda kind, path: "read")
    assert fuzz_files.check(3)[1][0].kind == "memory"


def bomb(path, n_bytes, name="tree.dual_value", count=1):
    """A file whose arrays are zeros that take far more memory than the file."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "|i1", "fortran_order": False, "shape": (n_bytes,)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for i in range(count):
            with archive.open(f"{name}{i or ''}.npy", "w", force_zip64=True) as entry:
                entry.write(header.getvalue())
                for _ in range(n_bytes >> 20):
                    entry.write(bytes(1 << 20))


LIMITED = """
import resource, sys
from pathlib import Path
import bestk
from bestk import storage
from bestk.certificate import Certificate
from bestk.readers import open_data
from bestk.results.completeness import CompletenessCertificate
from bestk.runs.checkpoint import Checkpoint
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (256 << 20),) * 2)
certificates = Certificate.load, CompletenessCertificate.load
for load in (*certificates, storage.load, Checkpoint.read, open_data):
    try:
        load(sys.argv[1])
    except ValueError as error:
        assert "are allowed" in str(error), error
    else:
        raise AssertionError("it was read")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
@pytest.mark.parametrize("count", [1, 2])
def test_files_that_unpack_to_gigabytes_are_refused_in_little_memory(tmp_path, count):
    path = tmp_path / "bomb.npz"
    bomb(path, (1 << 30) // count, count=count)
    assert path.stat().st_size < 20 << 20
    environment = {"BESTK_MAX_BYTES": "5e8", "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, path], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr


LIMITED_TABLE = """
import resource, sys
from pathlib import Path
import pyarrow.parquet
from bestk.readers import open_data
path = sys.argv[1]
open_data(path.replace("bomb", "plain"))  # imports what reading needs
taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (512 << 20),) * 2)
try:
    next(iter(open_data(path)))
except ValueError as error:
    assert "are allowed" in str(error) or "is no table" in str(error), error
else:
    raise AssertionError("it was read")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are those of Linux")
@pytest.mark.parametrize("kind", fuzz_files.BOMBS)
def test_tables_that_unpack_to_gigabytes_are_refused_in_little_memory(tmp_path, kind):
    path = tmp_path / f"bomb.{kind}"
    path.write_bytes(fuzz_files.bomb(kind))
    assert path.stat().st_size < 20 << 20
    (tmp_path / f"plain.{kind}").write_bytes(fuzz_files.valid(kind))
    environment = {"BESTK_MAX_BYTES": "2e8", "PATH": "", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED_TABLE, path], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr


def test_the_limit_is_the_users(tmp_path, monkeypatch):
    (tmp_path / "proof.npz").write_bytes(fuzz_files.valid("certificate"))
    with pytest.raises(TooLarge, match="max_bytes="):
        Certificate.load(tmp_path / "proof.npz", max_bytes=1000)
    for load in (CompletenessCertificate.load, storage.load):
        with pytest.raises(TooLarge):
            load(tmp_path / "proof.npz", max_bytes=1000)
    assert Certificate.load(tmp_path / "proof.npz", max_bytes=10**6)
    np.savez_compressed(tmp_path / "data.npz", X=np.zeros((1000, 50)), y=np.zeros(1000))
    monkeypatch.setenv("BESTK_MAX_BYTES", "1e4")
    with pytest.raises(DataError, match="BESTK_MAX_BYTES"):
        open_data(tmp_path / "data.npz")
    monkeypatch.setenv("BESTK_MAX_BYTES", "many")
    with pytest.raises(ValueError, match="must be a number of bytes"):
        arrays_in(tmp_path / "data.npz")


def test_a_declared_size_that_is_false_is_noticed(tmp_path):
    """The directory says less, or more, than the header of the array."""
    for shape in ("(8,)", "(4000000,)", "(-1,)", "(0, 99999999999999)"):
        raw = fuzz_files._npy(np.zeros(9)).replace(b"(9,)", shape.encode())
        (tmp_path / "file.npz").write_bytes(fuzz_files.archive_of({"a": raw}))
        with pytest.raises(ValueError, match="broken"):
            arrays_in(tmp_path / "file.npz")


@pytest.mark.parametrize("header", ["1if 1else " * 5000, "-" * 60_000 + "1", "[" * 60_000])
def test_a_header_that_is_code_says_nothing(tmp_path, header, recwarn):
    """To parse it gives thousands of warnings."""
    text = header.encode() + b"\n"
    raw = b"\x93NUMPY\x01\0" + len(text).to_bytes(2, "little") + text
    (tmp_path / "file.npz").write_bytes(fuzz_files.archive_of({"a": raw}))
    with pytest.raises(ValueError, match=r"array 'a' of .* is broken"):
        arrays_in(tmp_path / "file.npz")
    assert not recwarn.list


def test_half_a_character_is_no_text(tmp_path):
    raw = fuzz_files._npy(np.array(["ab"])).replace(b"a\0\0\0", b"\0\xd8\0\0")
    (tmp_path / "file.npz").write_bytes(fuzz_files.archive_of({"X": np.eye(1), "names": raw}))
    with pytest.raises(ValueError, match="it is no text"):
        arrays_in(tmp_path / "file.npz")


def test_rows_of_all_proofs_of_a_list_have_one_limit(tmp_path, monkeypatch):
    """A megabyte of ends may stand for a gigabyte of arrays, and a list has many proofs."""
    (tmp_path / "list.npz").write_bytes(fuzz_files.valid("list"))
    arrays = arrays_in(tmp_path / "list.npz")
    for number in range(2):
        arrays[f"{number}.splits.ends"] = np.zeros(60, dtype=np.int64)
    monkeypatch.setattr("bestk.base.archive._MOST_ROWS", 100)
    with pytest.raises(TooLarge, match="rows that lie end to end, too many"):
        CompletenessCertificate.from_arrays(arrays)


def test_what_is_missing_is_named(tmp_path):
    X, y = fuzz_files.data()
    arrays = bestk.solve(X, y, 2).certificate.to_arrays()
    del arrays["tree.parent"]
    with pytest.raises(ValueError, match=r"no array 'tree\.parent'"):
        Certificate.from_arrays(arrays)


def test_python_objects_are_never_read(tmp_path):
    forged = np.array([fuzz_files.Payload()], dtype=object)
    (tmp_path / "file.npz").write_bytes(fuzz_files.archive_of({"certificate": forged}))
    with pytest.raises(ValueError, match="Python objects"):
        Certificate.load(tmp_path / "file.npz")
    assert not fuzz_files.OPENED.exists()
