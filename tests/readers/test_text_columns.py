"""Columns of text: indicators of their levels, the same whatever the format and the files."""

import pickle
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bestk
from bestk.readers import DataError, choose_columns, levels, open_data
from bestk.readers.data import read_trajectory

N = 61
FEATURES = ("a", "city=Oslo, Norway", "city=Rome", "flag", "sex=m", "b")
FILES = (
    "data.csv",
    "data.csv.gz",
    "data.tsv",
    "data.parquet",
    "data.arrow",
    "stream.arrow",
    "data.feather",
    "categories.feather",
    "data.npz",
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    city = np.array(["Bonn", "Oslo, Norway", "Rome"])[np.arange(N) % 3]
    return pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "city": city[::-1],
            "flag": rng.random(N) > 0.5,
            "sex": rng.choice(["f", "m"], N),
            "y": rng.normal(size=N),
            "b": rng.normal(size=N),
        }
    )


@pytest.fixture(scope="module")
def numbers(frame):
    """The features, made by hand."""
    columns = [
        frame[name] if name in frame else frame[name.partition("=")[0]] == name.partition("=")[2]
        for name in FEATURES
    ]
    return np.column_stack(columns).astype(float)


def write(frame, path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=7)
    elif path.name == "categories.feather":
        frame.astype({"city": "category", "sex": "category"}).to_feather(path)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    elif path.suffix == ".arrow":
        table = pa.Table.from_pandas(frame)
        make = pa.ipc.new_stream if path.name == "stream.arrow" else pa.ipc.new_file
        with make(path, table.schema) as file:
            file.write_table(table, max_chunksize=9)
    elif path.suffix == ".npz":
        texts = frame.select_dtypes(exclude=["number", "bool"]).columns
        arrays = {name: frame[name].to_numpy() for name in frame}
        np.savez(path, **arrays | {name: np.array(list(frame[name])) for name in texts})
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def write_pieces(frame, folder, suffix):
    """Neither the first piece nor the last has all levels."""
    cuts = zip("abc", (0, 2, 40), (2, 40, N), strict=True)
    return [write(frame[i:j].reset_index(drop=True), folder / f"{n}{suffix}") for n, i, j in cuts]


def read(data):
    batches = list(data)
    X = np.concatenate([np.asarray(batch[0]) for batch in batches])
    return X, np.concatenate([batch[1] for batch in batches])


def read_parts(data):
    X, y, _ = zip(*(part.read() for part in data.parts()), strict=True)
    return np.concatenate(X), np.concatenate(y)


@pytest.fixture(params=["batches", "parts"])
def read_all(request):
    return read if request.param == "batches" else read_parts


@pytest.fixture(params=["arrow", "plain"])
def any_csv_reader(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.fixture
def table(tmp_path):
    def written(text, name="data.csv"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return written


# The same numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_indicators(frame, numbers, tmp_path, force, name, read_all):
    force.parts(n_bytes=8 * 7 * 20, columns=2, block_bytes=8 * 2 * 5)
    data = open_data(write(frame, tmp_path / name), batch_rows=10)
    assert data.columns == ("a", "city", "flag", "sex", "b")
    assert data.features == FEATURES
    assert data.groups == {"city": ["city=Oslo, Norway", "city=Rome"], "sex": ["sex=m"]}
    assert data.baseline == {"city": "Bonn", "sex": "f"}
    X, y = read_all(data)
    np.testing.assert_array_equal(X, numbers)
    np.testing.assert_array_equal(y, frame["y"])
    assert max(len(batch[1]) for batch in data) <= 10
    assert next(iter(data))[0].columns == FEATURES


def test_without_pyarrow(frame, numbers, tmp_path, monkeypatch, read_all):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    data = open_data(write(frame, tmp_path / "data.csv"), batch_rows=10)
    assert data.features == FEATURES
    np.testing.assert_array_equal(read_all(data)[0], numbers)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".npz"])
@pytest.mark.parametrize("where", ["here", "remote"])
def test_levels_are_those_of_all_files(frame, numbers, tmp_path, suffix, where, read_all):
    pieces = write_pieces(frame, tmp_path / "data", suffix)
    path = tmp_path / "data"
    if where == "remote":
        fsspec = pytest.importorskip("fsspec")
        for piece in pieces:
            fsspec.filesystem("memory").pipe(f"/levels/{piece.name}", piece.read_bytes())
        path = "memory://levels"
    try:
        data = open_data(path)
        assert data.features == FEATURES
        np.testing.assert_array_equal(read_all(data)[0], numbers)
    finally:
        if where == "remote":
            fsspec.filesystem("memory").rm("/levels", recursive=True)


def test_digests_do_not_depend_on_formats_and_files(frame, tmp_path):
    paths = [write(frame, tmp_path / name) for name in FILES]
    paths.append(write_pieces(frame, tmp_path / "csv", ".csv")[0].parent)
    paths.append(write_pieces(frame, tmp_path / "parquet", ".parquet")[0].parent)
    problems = [bestk.Problem.from_batches(open_data(path)) for path in paths]
    assert len({problem.digest for problem in problems}) == 1
    assert all(problem.feature_names == FEATURES for problem in problems)


def test_parts_are_plain(frame, tmp_path):
    for part in open_data(write(frame, tmp_path / "data.parquet")).parts():
        again = pickle.loads(pickle.dumps(part))
        assert again == part
        np.testing.assert_array_equal(again.read()[0], part.read()[0])
        assert again.count() == part.n_rows


# What is text -------------------------------------------------------------------------------------


def test_the_first_row_of_text_files_tells(any_csv_reader, table):
    data = open_data(table('a,b,c,d,y\n\n1, x ,true,none,1\n2,3,FALSE,"some",2\n3,x,True,none,3\n'))
    assert data.features == ("a", "b=x", "c", "d=some")
    assert data.baseline == {"b": "3", "d": "none"}
    np.testing.assert_array_equal(read(data)[0], [[1, 1, 1, 0], [2, 0, 0, 1], [3, 1, 1, 0]])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_the_first_file_may_have_no_rows(frame, numbers, tmp_path, suffix, read_all):
    write_pieces(frame, tmp_path, suffix)
    write(frame[:0].astype({"city": object}), tmp_path / f"0{suffix}")
    data = open_data(tmp_path)
    assert data.features == FEATURES
    np.testing.assert_array_equal(read_all(data)[0], numbers)


def test_levels_may_have_digits(any_csv_reader, table):
    data = open_data(table("a,b,y\nu1,10-20,1\nu2,20-30,2\n7,5 kg,3\n"))
    assert data.features == ("a=u1", "a=u2", "b=20-30", "b=5 kg")


def test_a_level_everywhere_gives_no_feature(any_csv_reader, table):
    data = open_data(table("a,t,y\n1,u,2\n3,u,4\n"))
    assert data.features == ("a",)
    assert data.groups == {}
    assert data.baseline == {"t": "u"}
    np.testing.assert_array_equal(read(data)[0], [[1], [3]])
    with pytest.raises(DataError, match="'t' has one value in all rows, and there are no other"):
        open_data(table("t,y\nu,2\nu,4\n"))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".npz"])
def test_numbers_as_text_and_text_as_numbers(tmp_path, suffix, read_all):
    frame = pd.DataFrame({"code": [10, 2, 10], "size": ["1.5", " 2", "true"], "y": [1.0, 2.0, 3.0]})
    path = write(frame, tmp_path / f"data{suffix}")
    data = open_data(path, text=["code"], numeric=["size"])
    assert data.features == ("code=2", "size")
    np.testing.assert_array_equal(read_all(data)[0], [[0, 1.5], [1, 2], [0, 1]])
    with pytest.raises(DataError, match=r"numeric=\['size'\] and text=\['size'\] are one"):
        open_data(path, text=["code", "size"], numeric=["size"])
    for option in ("numeric", "text"):
        with pytest.raises(DataError, match=f"{option}: there is no column 'y'"):
            open_data(path, **{option: ["y"]})


def test_types_that_arrow_knows(tmp_path):
    table = pa.table(
        {
            "large": pa.array(["u", "v", "u"], pa.large_string()),
            "codes": pa.array(["p", "q", "q"]).dictionary_encode(),
            "y": [1, 2, 3],
            "when": pa.array([0, 0, 86400], pa.timestamp("s")),
            "list": [[1], [2], [3]],
        }
    )
    with pa.ipc.new_file(tmp_path / "data.arrow", table.schema) as file:
        file.write_table(table)
    path = tmp_path / "data.arrow"
    data = open_data(path, drop=["list"], text=["when"])
    assert data.features[:2] == ("large=v", "codes=q")
    np.testing.assert_array_equal(read(data)[0], [[0, 0, 0], [1, 1, 0], [0, 1, 1]])
    with pytest.raises(DataError, match=r"'when' holds values of type timestamp.*drop=\['when'\]"):
        read(open_data(path, drop=["list"]))
    for options in ({}, {"text": ["list"]}):
        with pytest.raises(DataError, match=r"'list' holds values of type list.*drop=\['list'\]"):
            read(open_data(path, drop=["when"], **options))


def test_trajectories_are_numbers(table):
    path = table("t,x,note\n0,1,u\n1,2,v\n")
    states, _ = read_trajectory(path, time="t", states=["x"])
    assert states.columns == ("x",)
    with pytest.raises(DataError, match=r"'note' holds text \('u' in row 1\); turn it .*drop="):
        read_trajectory(path, time="t")


# What is wrong ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,t,y\n1,u,2\n3,,4\n", r"'t' has a missing value in row 2; .*drop=\['t'\]"),
        ("a,t,y\n1,u,2\n3,n/a,4\n", "'t' has a missing value in row 2"),
        ("a,t,y\n1,NA,2\n3,v,4\n", "'t' .*row"),
        (
            "t,y\n7,2\n8,3\nnine,4\n",
            r"'t' holds text \('nine' in row 3\); .*text=\['t'\].*drop=\['t'\]",
        ),
        (
            "t,y\nnine,2\n8,3\n7,4\n",
            r"'t' holds numbers, but 'nine' cannot .*text=\['t'\]",
        ),
        ("t;y\n1,5;2\n-7;3\nx;4\n", "'t' holds numbers, but '1,5' cannot .* decimal point"),
        ("t;y\n$1,200;2\n12%;3\n", r"'t' holds numbers, but '\$1,200' cannot"),
        (
            "t,y\n2024-01-31,2\n2024-02-01 12:30,3\n",
            "'t' holds dates, such as '2024-01-31'; .*drop=",
        ),
        ("t,y\n31.1.2024,2\n1.2.2024,3\n", "'t' holds dates"),
        ("t,y,t=v\nu,2,1\nv,3,2\n", "'t=v' is the name of a column, and of a level of another"),
        ("a,y\n1,u\n2,v\n", r"'y' holds text \('u' in row 1\); it must hold numbers"),
    ],
)
def test_what_is_wrong_is_said_with_the_ways_out(any_csv_reader, table, text, message, read_all):
    with pytest.raises(DataError, match=message):
        read_all(open_data(table(text)))


def test_ways_out(any_csv_reader, table):
    path = table("t,d,y\nnine,1.2.2024,2\n8,2.2.2024,3\n7,2.2.2024,4\n")
    data = open_data(path, text=["t,d"])
    assert data.features == ("t=8", "t=nine", "d=2.2.2024")
    assert open_data(path, text=["t"], drop=["d"]).features == ("t=8", "t=nine")
    with pytest.raises(DataError, match=r"'t' holds text \('nine' in row 1\); turn .*drop=\['t'\]"):
        read(open_data(path, numeric=["t"], drop=["d"]))


def test_numbers_in_columns_of_type_string(tmp_path, read_all):
    frame = pd.DataFrame({"t": [str(i) for i in range(20)], "y": np.arange(20.0)})
    path = write(frame, tmp_path / "data.parquet")
    with pytest.raises(DataError, match=r"'t' holds numbers written as text; .*numeric=\['t'\]"):
        open_data(path)
    np.testing.assert_array_equal(read_all(open_data(path, numeric=["t"]))[0][:, 0], range(20))
    frame.loc[16, "t"] = "x"
    write(frame, path)
    with pytest.raises(DataError, match=r"'t' holds text \('x' in row 17\)"):
        read_all(open_data(path, numeric=["t"]))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_missing_levels_are_named_with_their_file(frame, tmp_path, suffix):
    spoilt = frame.copy()
    spoilt.loc[45, "sex"] = None
    pieces = write_pieces(spoilt, tmp_path, suffix)
    with pytest.raises(DataError, match="column 'sex' has a missing value in row 6; ") as caught:
        open_data(tmp_path)
    assert str(caught.value).startswith(f"{pieces[2]}: ")
    assert open_data(tmp_path, drop=["sex"]).groups.keys() == {"city"}


def test_too_many_levels(any_csv_reader, tmp_path, monkeypatch, table):
    rows = [f"id{i},{i}" for i in range(300)]
    message = r"'t' is text with 300 levels or more, such as 'id0' and 'id299', and at most 200 "
    with pytest.raises(DataError, match=rf"{message}.*drop=\['t'\], .*numeric=\['t'\]"):
        open_data(table("\n".join(["t,y", *rows])))
    (tmp_path / "data.csv").unlink()
    monkeypatch.setattr(levels, "MOST_LEVELS", 9)
    for i in range(3):
        table("\n".join(["t,y", *rows[5 * i : 5 * i + 5]]), f"{i}.csv")
    with pytest.raises(DataError, match="'t' is text with 10 levels or more"):
        open_data(tmp_path)


def test_levels_are_not_collected_for_ever(table, monkeypatch):
    monkeypatch.setattr(levels, "_ROWS", 50)
    path = table("\n".join(["t,y", *(f"id{i},{i}" for i in range(10_000))]))
    with pytest.raises(DataError, match="with 250 levels or more"):
        open_data(path)


def test_numbers_are_not_read_twice(frame, tmp_path, monkeypatch):
    def fail(file):
        raise AssertionError("a pass over the file")

    path = write(frame, tmp_path / "data.csv")
    monkeypatch.setattr(levels, "open_source", fail)
    open_data(path, drop=["city", "sex"])
    with pytest.raises(AssertionError):
        open_data(path)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_new_levels_are_noticed(frame, tmp_path, suffix, read_all):
    path = tmp_path / f"data{suffix}"
    data = open_data(write(frame, path))
    write(frame.assign(city=["Lima", *frame["city"][1:]]), path)
    with pytest.raises(DataError, match="'city' has a level 'Lima' that was not there when"):
        read_all(data)


def test_names_with_commas_are_found():
    known = ["a", "b", "a,b", "city=Oslo, Norway"]
    assert choose_columns("drop", ["b, city=Oslo, Norway,a"], known) == ["b", known[3], "a"]
    assert choose_columns("drop", ["a,b", "a"], known) == ["a,b", "a"]
    with pytest.raises(DataError, match="drop: there is no column 'c'"):
        choose_columns("drop", ["a,c,b"], known)
