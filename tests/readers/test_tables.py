"""Tables of many files: folders, patterns and remote paths are read as one file would be."""

import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import bestk
from bestk.readers import DataError, TablePart, open_data
from bestk.readers.data import read_trajectory

N, P = 101, 5
CUTS = (0, 30, 31, 60, 101)
NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def frame():
    X, y, _ = bestk.datasets.make_synthetic(N, P, k=3, seed=4)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(P)])
    frame.insert(2, "y", y)
    return frame.assign(w=np.linspace(0.5, 2.0, N))


def write(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=7)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    elif path.name.endswith("stream.arrow"):
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    elif path.suffix == ".arrow":
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=9)
    elif path.suffix == ".npz":
        np.savez(path, **{name: frame[name].to_numpy() for name in frame})
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def write_pieces(frame, folder, suffix, names=NAMES):
    """The frame in pieces, whose names are in the order of the rows."""
    pieces = zip(names, CUTS[:-1], CUTS[1:], strict=True)
    return [write(frame[i:j].reset_index(drop=True), folder / f"{n}{suffix}") for n, i, j in pieces]


def read(data):
    batches = list(data)
    X = np.concatenate([np.asarray(batch[0]) for batch in batches])
    return X, *(np.concatenate(column) for column in list(zip(*batches, strict=True))[1:])


def read_parts(parts):
    X, y, weight = zip(*(part.read() for part in parts), strict=True)
    joined = None if weight[0] is None else np.concatenate(weight)
    return np.concatenate(X), np.concatenate(y), joined


def assert_table(data, frame):
    assert data.features == tuple(f"f{j}" for j in range(P))
    X, y, weight = read(data)
    np.testing.assert_array_equal(X, frame[list(data.features)])
    np.testing.assert_array_equal(y, frame["y"])
    np.testing.assert_array_equal(weight, frame["w"])


@pytest.fixture
def memory():
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    yield system
    system.rm("/", recursive=True)


def upload(memory, folder, address):
    for file in Path(folder).rglob("*"):
        if file.is_file():
            memory.pipe(f"/{address}/{file.relative_to(folder).as_posix()}", file.read_bytes())


SUFFIXES = (
    ".csv",
    ".csv.gz",
    ".tsv",
    ".parquet",
    ".arrow",
    "stream.arrow",
    ".feather",
    ".npz",
)


# Which files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("how", ["folder", "pattern", "remote folder", "remote pattern"])
def test_many_files_are_one_table(frame, tmp_path, memory, suffix, how):
    write_pieces(frame, tmp_path / "data", suffix)
    upload(memory, tmp_path / "data", "data")
    path = {
        "folder": tmp_path / "data",
        "pattern": f"{tmp_path}/data/*{suffix}",
        "remote folder": "memory://data",
        "remote pattern": f"memory://data/*{suffix}",
    }[how]
    data = open_data(path, weight="w", batch_rows=10)
    assert_table(data, frame)
    assert max(len(batch[1]) for batch in data) <= 10
    assert len(data.files) == 4
    assert data.title == f"{path} (4 files)"
    assert data.name == f"{Path(path).name} (4 files)"


def test_files_are_in_the_order_of_their_paths(frame, tmp_path, memory):
    # Folders come part by part: as whole texts, "b-c" would come before "b/".
    names = ("a/z", "b/a", "b-c/a", "b-c/b")
    write_pieces(frame, tmp_path / "data", ".csv", names)
    upload(memory, tmp_path / "data", "data")
    for path in ("data", "data/**/*.csv", "data/*/*.csv"):
        assert_table(open_data(tmp_path / path, weight="w"), frame)
        assert_table(open_data(f"memory://{path}", weight="w"), frame)


def test_a_relative_folder_and_pattern(frame, tmp_path, monkeypatch):
    write_pieces(frame, tmp_path, ".csv")
    monkeypatch.chdir(tmp_path)
    for path in (".", "*.csv", "./*.csv", f"../{tmp_path.name}/[a-d].csv", Path("?.csv")):
        assert_table(open_data(path, weight="w"), frame)


@pytest.mark.parametrize("where", ["here", "remote"])
def test_hidden_and_other_files_are_passed_over(frame, tmp_path, memory, where):
    folder = tmp_path / "data"
    write_pieces(frame, folder, ".parquet")
    for name in (".a.parquet", "_b.parquet", "_old/c.parquet", ".x/d.parquet", "x/_y/e.parquet"):
        write(frame, folder / name)
    (folder / "_SUCCESS").touch()
    (folder / "README.md").write_text("about these files")
    write(frame, folder / "_notes.csv")
    upload(memory, folder, "data")
    start = "memory://data" if where == "remote" else str(folder)
    for path in (start, f"{start}/*", f"{start}/**/*.parquet"):
        assert_table(open_data(path, weight="w"), frame)
    asked_for = open_data(f"{start}/_*.parquet", weight="w")
    assert [file.name for file in asked_for.files] == ["_b.parquet"]
    assert open_data(f"{start}/_old", weight="w").name == "c.parquet"


def test_a_file_wins_over_the_pattern_that_its_name_looks_like(frame, tmp_path, memory):
    write_pieces(frame, tmp_path, ".csv")
    write(frame[:3], tmp_path / "[a-d].csv")
    upload(memory, tmp_path, "data")
    for path in (tmp_path / "[a-d].csv", "memory://data/[a-d].csv"):
        data = open_data(path)
        assert len(read(data)[1]) == 3
        assert data.name == "[a-d].csv"


def test_several_formats_are_told_apart_by_a_pattern(frame, tmp_path):
    write_pieces(frame, tmp_path / "data", ".csv")
    write(frame, tmp_path / "data" / "deep" / "all.parquet")
    with pytest.raises(DataError, match=r"several formats, \.csv, \.parquet") as caught:
        open_data(tmp_path / "data")
    proposed = str(caught.value).rpartition("such as ")[2].strip("'")
    assert proposed == f"{tmp_path}/data/**/*.csv"
    assert_table(open_data(proposed, weight="w"), frame)
    write(frame, tmp_path / "twice" / "a.csv")
    write(frame, tmp_path / "twice" / "a.csv.gz")
    with pytest.raises(DataError, match=r"\.csv, \.csv\.gz; .*'.*/twice/\*\.csv'"):
        open_data(tmp_path / "twice" / "*")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing", "there is no file .*nothing$"),
        ("nothing/*.csv", r"no file matches .*nothing/\*\.csv$"),
        ("data/*.csv", r"no file matches .*data/\*\.csv$"),
        ("data", r"data has no files that could be read; .*\.csv"),
        ("data/*", r"data/\* has no files that could be read"),
    ],
)
@pytest.mark.parametrize("where", ["here", "remote"])
def test_where_there_is_nothing_to_read(tmp_path, memory, where, path, message):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "notes.txt").write_text("nothing")
    upload(memory, tmp_path, "t")
    with pytest.raises(DataError, match=message):
        open_data(f"memory://t/{path}" if where == "remote" else tmp_path / path)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("s3://bucket/*.parquet", "reading s3://.* needs s3fs, .*: pip install s3fs"),
        ("nonsense://a.csv", "cannot read nonsense://a.csv: .*nonsense"),
    ],
)
def test_what_a_remote_path_needs_is_said(monkeypatch, address, message):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(DataError, match=message):
        open_data(address)


def test_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(DataError, match="needs fsspec, which is not installed: pip install fsspec"):
        open_data("memory://data/a.csv")


def test_what_goes_wrong_far_away_is_a_data_error(frame, tmp_path, memory, monkeypatch):
    class Broken(Exception):
        pass

    def fail(*args, **more):
        raise Broken("no credentials")

    upload(memory, write(frame, tmp_path / "data" / "a.csv").parent, "data")
    data = open_data("memory://data/a.csv", weight="w")
    monkeypatch.setattr(type(memory), "_open", fail)
    with pytest.raises(DataError, match=r"cannot read memory://.*a\.csv: no credentials"):
        read(data)
    monkeypatch.setattr(type(memory), "isfile", fail)
    with pytest.raises(DataError, match="cannot read memory://data: no credentials"):
        open_data("memory://data")


def test_local_files_need_no_fsspec_and_text_no_pyarrow(frame, tmp_path):
    write_pieces(frame, tmp_path, ".csv")
    code = (
        "import sys; from bestk.readers import open_data\n"
        "assert not {'pyarrow', 'fsspec'} & set(sys.modules)\n"
        f"parts = open_data({str(tmp_path / '*.csv')!r}).parts()\n"
        "assert not {'pyarrow', 'fsspec'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Columns and rows -------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_columns_may_be_in_another_order_and_of_another_type(frame, tmp_path, suffix):
    frame = frame.assign(f1=np.arange(N) % 3)
    pieces = write_pieces(frame, tmp_path, suffix)
    last = frame[CUTS[-2] :].reset_index(drop=True)
    write(last[last.columns[::-1]].astype({"f1": float}), pieces[-1])
    assert_table(open_data(tmp_path, weight="w"), frame)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_files_with_other_columns_are_errors(frame, tmp_path, suffix):
    pieces = write_pieces(frame, tmp_path, suffix)

    def fails(third, message, **options):
        write(third, pieces[2])
        with pytest.raises(DataError, match=message) as caught:
            open_data(tmp_path, **options)
        assert str(pieces[2]) in str(caught.value)

    third = frame[31:60].reset_index(drop=True)
    fails(third.drop(columns="f1"), "no column 'f1', as .* has; all files of a table need")
    fails(third.rename(columns={"f1": "F1"}), "no column 'f1', .*; did you mean 'F1'")
    fails(third.drop(columns="y"), "no column 'y'")
    fails(third.drop(columns="w"), "no column 'w'", weight="w")
    fails(
        third.assign(g=1.0), r"a column 'g' that .* does not have; leave it out with drop=\['g'\]"
    )


def test_dropped_columns_may_be_in_some_files_only(frame, tmp_path):
    pieces = write_pieces(frame, tmp_path, ".csv")
    third = frame[31:60]
    write(third.assign(g="text").drop(columns="f4"), pieces[2])
    data = open_data(tmp_path, drop=["f4,g", "w"])
    assert data.features == ("f0", "f1", "f2", "f3")
    np.testing.assert_array_equal(read(data)[0], frame[list(data.features)])
    with pytest.raises(DataError, match="drop: there is no column 'gg'"):
        open_data(tmp_path, drop=["gg"])


def test_the_first_file_says_which_target_there_is(frame, tmp_path):
    write_pieces(frame, tmp_path, ".csv")
    with pytest.raises(DataError, match="target: there is no column 'z'"):
        open_data(tmp_path, target="z")


@pytest.fixture(params=["batches", "parts"])
def read_all(request):
    return read if request.param == "batches" else lambda data: read_parts(data.parts())


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".arrow", ".npz"])
def test_files_without_rows_among_others(frame, tmp_path, suffix, read_all):
    for name in ("0", "bb", "e"):
        write(frame[:0], tmp_path / f"{name}{suffix}")
    write_pieces(frame, tmp_path, suffix)
    data = open_data(tmp_path, weight="w")
    assert len(data.files) == 7
    X, y, weight = read_all(data)
    np.testing.assert_array_equal(X, frame[list(data.features)])
    np.testing.assert_array_equal(y, frame["y"])
    np.testing.assert_array_equal(weight, frame["w"])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_files_without_any_rows(frame, tmp_path, suffix):
    for name in NAMES:
        write(frame[:0], tmp_path / f"{name}{suffix}")
    data = open_data(tmp_path)
    with pytest.raises(DataError, match=r"\(4 files\) has column names but no rows"):
        read(data)
    if suffix == ".csv":
        assert [part.count() for part in data.parts()] == [0] * 4
    else:
        with pytest.raises(DataError, match="no rows"):
            data.parts()


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".npz"])
@pytest.mark.parametrize(("value", "kind"), [(np.nan, "a missing"), (-np.inf, "an infinite")])
def test_missing_values_are_named_with_their_file(
    frame, tmp_path, force, suffix, value, kind, read_all
):
    force.parts(n_bytes=1, columns=2, block_bytes=8)
    spoilt = frame.copy()
    # The first row counts, not the first column: of Parquet, columns are read one after another.
    spoilt.loc[50, "f1"] = spoilt.loc[46, "w"] = spoilt.loc[80, "f0"] = value
    pieces = write_pieces(spoilt, tmp_path, suffix)
    with pytest.raises(DataError, match=f"column 'w' has {kind} value in row 16; ") as caught:
        read_all(open_data(tmp_path, weight="w"))
    assert str(caught.value).startswith(f"{pieces[2]}: ")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_text_is_named_with_its_file(frame, tmp_path, suffix, read_all):
    pieces = write_pieces(frame, tmp_path, suffix)
    write(frame[31:60].reset_index(drop=True).assign(f3="Paris"), pieces[2])
    with pytest.raises(DataError, match=r"column 'f3' holds .*drop=\['f3'\]") as caught:
        read_all(open_data(tmp_path, weight="w"))
    assert str(caught.value).startswith(f"{pieces[2]}: ")


def test_errors_of_a_single_file_do_not_repeat_its_name(tmp_path):
    (tmp_path / "data.csv").write_text("a,y\n1,2\n,3\n")
    with pytest.raises(DataError, match=r"^column 'a' has a missing value in row 2"):
        read(open_data(tmp_path / "data.csv"))


def test_damaged_files_are_named_once(frame, tmp_path, read_all):
    pieces = write_pieces(frame, tmp_path, ".csv")
    pieces[1].write_text(pieces[1].read_text() + "1,2\n")
    with pytest.raises(DataError, match=f"^row 2 of {pieces[1]} has 2 values"):
        read_all(open_data(tmp_path, weight="w"))
    pieces[1].write_bytes(b"PAR1")
    pieces[1].rename(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"^cannot read [^:]*b\.parquet: "):
        open_data(tmp_path / "*.parquet")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_problem_of_many_files_is_that_of_one(frame, tmp_path, suffix):
    whole = write(frame, tmp_path / f"whole{suffix}")
    write_pieces(frame, tmp_path / "data", suffix)
    one = bestk.Problem.from_batches(open_data(whole, weight="w"), fit_intercept=True)
    many = bestk.Problem.from_batches(
        open_data(tmp_path / "data" / f"*{suffix}", weight="w"), fit_intercept=True
    )
    assert many.digest == one.digest
    assert many.n_samples == N
    assert many.feature_names == one.feature_names
    np.testing.assert_allclose(many.gram, one.gram, rtol=1e-12, atol=1e-12)
    write_pieces(frame, tmp_path / "other", suffix, ("b", "a", "c", "d"))
    other = bestk.Problem.from_batches(open_data(tmp_path / "other", weight="w"))
    assert other.digest != one.digest


def test_a_trajectory_is_one_file(frame, tmp_path):
    pieces = write_pieces(frame.sort_values("y"), tmp_path, ".csv")
    assert len(read_trajectory(pieces[0], time="y")[1]) == CUTS[1]
    with pytest.raises(DataError, match=r"\(4 files\) is not one trajectory"):
        read_trajectory(tmp_path, time="y")


# Parts ------------------------------------------------------------------------------------------


def parts_of(frame, tmp_path, suffix, **options):
    write_pieces(frame, tmp_path, suffix)
    return open_data(tmp_path, **options).parts()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("where", ["here", "remote"])
def test_parts_are_the_rows_in_order(frame, tmp_path, memory, force, suffix, weight, where):
    force.parts(n_bytes=8 * (P + 2) * 17, columns=4, block_bytes=8 * 4 * 5)
    force.reading(batch_bytes=8 * P * 8)
    write_pieces(frame, tmp_path, suffix)
    upload(memory, tmp_path, "data")
    path = "memory://data" if where == "remote" else tmp_path
    data = open_data(path, weight=weight, drop=[] if weight else ["w"])
    parts = data.parts()
    assert [part.file for part in parts] == sorted(
        [part.file for part in parts], key=data.files.index
    )
    assert len(parts) == (8 if suffix == ".parquet" else 4)
    X, y, weights = read_parts(parts)
    np.testing.assert_array_equal(X, frame[list(data.features)])
    np.testing.assert_array_equal(y, frame["y"])
    assert (weights is None) == (weight is None)
    if weight:
        np.testing.assert_array_equal(weights, frame["w"])
    for array in parts[0].read()[: 3 if weight else 2]:
        assert array.dtype == np.float64
        assert array.flags.c_contiguous
        assert array.flags.owndata or array.base.nbytes <= 2 * array.nbytes


def test_row_groups_are_joined_up_to_a_size(frame, tmp_path, force):
    write(frame, tmp_path / "data.parquet")
    assert parquet.read_metadata(tmp_path / "data.parquet").num_row_groups == 15

    def sizes(rows):
        force.parts(n_bytes=8 * (P + 2) * rows, columns=3, block_bytes=64)
        parts = open_data(tmp_path / "data.parquet", weight="w").parts()
        assert [part.first_row for part in parts] == list(
            np.cumsum([0, *(part.n_rows for part in parts)])[:-1]
        )
        assert [group for part in parts for group in part.groups] == list(range(15))
        np.testing.assert_array_equal(read_parts(parts)[1], frame["y"])
        return [part.n_rows for part in parts]

    assert sizes(1) == [7] * 14 + [3]
    assert sizes(20) == [14] * 6 + [17]
    assert sizes(21) == [21] * 4 + [17]
    assert sizes(1000) == [N]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_counts(frame, tmp_path, suffix):
    parts = parts_of(frame, tmp_path, suffix)
    assert [part.count() for part in parts] == list(np.diff(CUTS))
    is_known = suffix in (".parquet", ".arrow", ".feather")
    assert [part.n_rows for part in parts] == (list(np.diff(CUTS)) if is_known else [None] * 4)


def test_rows_are_counted_without_pyarrow_and_other_columns(frame, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    parts = parts_of(frame.assign(t="text"), tmp_path, ".csv", numeric=["t"])
    assert [part.count() for part in parts] == list(np.diff(CUTS))
    with pytest.raises(DataError, match="'t' holds text"):
        parts[0].read()


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_part_is_read_without_the_other_files(frame, tmp_path, suffix):
    parts = parts_of(frame, tmp_path, suffix)
    for name in "abd":
        (tmp_path / f"{name}{suffix}").unlink()
    np.testing.assert_array_equal(parts[2].read()[1], frame["y"][31:60])
    assert parts[0].count() == 30
    with pytest.raises(DataError, match=r"cannot read .*a\."):
        parts[0].read()


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_files_that_have_changed_are_noticed(frame, tmp_path, suffix):
    parts = parts_of(frame, tmp_path, suffix)
    write(frame[:30].reset_index(drop=True), tmp_path / f"c{suffix}")
    with pytest.raises(DataError, match=r"c\.\w+ has changed since it was opened"):
        parts[2].read()


def test_parts_are_plain(frame, tmp_path, memory):
    parts = parts_of(frame, tmp_path, ".parquet")
    upload(memory, tmp_path, "data")
    for part in (parts[1], open_data("memory://data").parts()[1]):
        again = pickle.loads(pickle.dumps(part))
        assert again == part
        np.testing.assert_array_equal(again.read()[0], part.read()[0])
        with pytest.raises(AttributeError):
            part.n_rows = 3


def test_another_process_reads_parts(frame, tmp_path):
    """Errors come back as they are."""
    parts = parts_of(frame, tmp_path / "data", ".parquet")
    spoilt = parts_of(frame.assign(f0=np.nan), tmp_path / "spoilt", ".parquet")
    (tmp_path / "parts").write_bytes(pickle.dumps([parts[3], spoilt[3]]))
    code = (
        "import pickle, sys; from pathlib import Path\n"
        "fine, spoilt = pickle.loads(Path(sys.argv[1]).read_bytes())\n"
        "outcomes = [fine.read()]\n"
        "try: spoilt.read()\n"
        "except ValueError as error: outcomes.append(error)\n"
        "Path(sys.argv[2]).write_bytes(pickle.dumps(outcomes))\n"
    )
    program = [sys.executable, "-c", code, tmp_path / "parts", tmp_path / "outcomes"]
    subprocess.run(program, check=True)
    (X, _, weight), error = pickle.loads((tmp_path / "outcomes").read_bytes())
    np.testing.assert_array_equal(X, frame[60:].drop(columns="y"))
    assert weight is None
    assert type(error) is DataError
    assert str(error).startswith(f"{spoilt[3].file}: column 'f0' has a missing value in row 1;")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_no_threads_are_asked_for(frame, tmp_path, monkeypatch, suffix):
    from pyarrow import csv

    asked = []

    def watched(make):
        def made(*args, use_threads=True, **options):
            asked.append(use_threads)
            return make(*args, use_threads=use_threads, **options)

        return made

    def opened(*args, options, **more):
        asked.append(options.use_threads)
        return open_arrow(*args, options=options, **more)

    open_arrow = pa.ipc.open_stream
    monkeypatch.setattr(pa.ipc, "open_stream", opened)
    monkeypatch.setattr(csv, "ReadOptions", watched(csv.ReadOptions))
    monkeypatch.setattr(
        parquet.ParquetFile, "iter_batches", watched(parquet.ParquetFile.iter_batches)
    )
    data = open_data(write(frame, tmp_path / f"data{suffix}"))
    (part,) = data.parts()
    asked.clear()
    read(data)
    assert asked[-1] is True
    part.read()
    part.count()
    assert asked[-1] is False


def test_a_part_by_hand(frame, tmp_path):
    file = write(frame, tmp_path / "data.csv")
    part = TablePart(file=file, features=("f3", "f1"), target="w")
    X, y, _ = part.read()
    np.testing.assert_array_equal(X, frame[["f3", "f1"]])
    np.testing.assert_array_equal(y, frame["w"])
