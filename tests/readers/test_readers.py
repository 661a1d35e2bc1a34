"""Files: all formats give the same numbers, in batches, and what is wrong is said in words."""

import gzip
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import bestk
from bestk.readers.data import DataError, open_data

N, P = 57, 6


@pytest.fixture(scope="module")
def frame():
    X, y, _ = bestk.datasets.make_synthetic(N, P, k=3, seed=3)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(P)])
    frame["f2"] = frame["f2"] > 0
    frame["f4"] = np.arange(N) % 5
    frame.insert(1, "y", y)
    return frame


def write(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=20)
    elif path.suffix == ".feather":
        frame.to_feather(path)
    elif path.name == "stream.arrow":
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    elif path.suffix == ".arrow":
        table = pa.Table.from_pandas(frame)
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    elif path.name == "columns.npz":
        np.savez(path, **{name: frame[name].to_numpy() for name in frame})
    elif path.suffix == ".npz":
        X = frame.drop(columns="y").astype(float)
        np.savez(path, X=X, y=frame["y"], feature_names=np.array(X.columns, dtype=str), seed=3)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")
    return path


def read(data):
    batches = list(data)
    X = np.concatenate([np.asarray(batch[0]) for batch in batches])
    return X, np.concatenate([batch[1] for batch in batches])


@pytest.fixture(params=["arrow", "plain"])
def any_csv_reader(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    return request.param


FILES = (
    "data.csv",
    "data.csv.gz",
    "data.tsv",
    "data.parquet",
    "data.arrow",
    "stream.arrow",
    "data.feather",
    "data.npz",
    "columns.npz",
)


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_numbers_in_small_batches(frame, tmp_path, name):
    data = open_data(write(frame, tmp_path / name), batch_rows=10)
    features = frame.drop(columns="y")
    assert data.features == tuple(features.columns)
    sizes = [len(y) for _, y in data]
    assert max(sizes) <= 10
    assert len(sizes) >= N / 10
    X, y = read(data)
    np.testing.assert_array_equal(X, features.astype(float))
    np.testing.assert_array_equal(y, frame["y"])


def test_csv_without_pyarrow_gives_the_same_numbers(frame, tmp_path, monkeypatch):
    path = write(frame, tmp_path / "data.csv")
    with_arrow = read(open_data(path, batch_rows=10))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    without = open_data(path, batch_rows=10)
    assert [len(y) for _, y in without] == [10] * 5 + [7]
    for ours, arrows in zip(read(without), with_arrow, strict=True):
        np.testing.assert_array_equal(ours, arrows)


def test_arrow_does_the_work_where_it_is_installed(frame, tmp_path, monkeypatch):
    def fail(*args):
        raise AssertionError("the plain reader was used")

    monkeypatch.setattr("bestk.readers.formats.text._plain_csv", fail)
    read(open_data(write(frame, tmp_path / "data.csv")))


def test_the_plain_reader_goes_on_where_arrow_gives_up(tmp_path, force):
    force.reading(text_bytes=64)
    rows = [f"{i},{i * i}" for i in range(40)] + ["true,1.5"] + [f"{i},7" for i in range(5)]
    (tmp_path / "late.csv").write_text("\n".join(["a,y", *rows]))
    X, y = read(open_data(tmp_path / "late.csv", batch_rows=4))
    np.testing.assert_array_equal(X[:, 0], [*range(40), 1, *range(5)])
    np.testing.assert_array_equal(y, [*(i * i for i in range(40)), 1.5, *[7] * 5])


def test_the_header_is_read_at_once_and_the_rows_when_asked_for(tmp_path):
    (tmp_path / "data.csv").write_text("a,y\n1,x\n")
    data = open_data(tmp_path / "data.csv")
    assert data.features == ("a",)
    with pytest.raises(DataError, match="'y' holds text"):
        next(iter(data))


@pytest.mark.parametrize(
    "text",
    [
        "a,b,y\n1,2,3\n4,5,6\n",
        "\ufeffa,b,y\r\n1,2,3\r\n4,5,6\r\n",
        "a;b;y\n1;2;3\n4;5;6",
        '"a", b ,y\n\n1,"2", 3\n4,5.0,6e0\n\n',
        "a,b,y\n1,2,3\n4.00,5,6\n",
    ],
    ids=["plain", "windows", "semicolons", "quotes and blanks", "decimals later"],
)
def test_csv_dialects(any_csv_reader, tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode())
    data = open_data(path)
    assert data.features == ("a", "b")
    X, y = read(data)
    np.testing.assert_array_equal(X, [[1, 2], [4, 5]])
    np.testing.assert_array_equal(y, [3, 6])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column names"),
        ("\n1,2\n", "no column names"),
        ("a,y\n", "no rows"),
        ("y\n1\n", "no columns besides 'y'"),
        ("a,y\n1,2\n3\n", r"row 2 .* has 1 value for 2 columns"),
        ("a,y\n1,2\n3,4,5\n", r"row 2 .* has 3 values"),
        ("a,a,y\n1,2,3\n", "more than one column named 'a'"),
        ("a,y\n1,2\nParis,4\n", r"'a' holds text \('Paris' in row 2\).*drop=\['a'\]"),
        ("a,y\n1,2\n2024-01-31,4\n", r"'a' holds text \('2024-01-31' in row 2\)"),
        ("a,y\n1,2\n3,\n", "'y' has a missing value in row 2"),
        ("a,y\n1,2\nNA,5\n", r"'a' has a missing value in row 2.*drop=\['a'\]"),
        ("a,y\n1,2\nnan,5\n", "'a' has a missing value in row 2"),
        ("a,y\n1,inf\n", "'y' has an infinite value in row 1"),
        (",a,y\n0,1,2\n", r"drop=\['unnamed_column_1'\]"),
        ("a,target\n1,2\n", "target: there is no column 'y'; there are 'a', 'target'"),
    ],
)
def test_what_is_wrong_with_a_text_file_is_said(any_csv_reader, tmp_path, text, message):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read(open_data(tmp_path / "data.csv"))


def test_trouble_in_a_later_batch_is_reported_with_its_row(any_csv_reader, tmp_path):
    rows = ["1,2"] * 30 + ["x,2"]
    (tmp_path / "data.csv").write_text("\n".join(["a,y", *rows]))
    with pytest.raises(DataError, match=r"'x' in row 31"):
        read(open_data(tmp_path / "data.csv", batch_rows=7))


@pytest.mark.parametrize("name", ["data.parquet", "data.arrow"])
def test_types_and_missing_values_of_arrow_files(tmp_path, name):
    frame = pd.DataFrame({"a": [1.0, np.nan, 3.0], "y": [1, 2, 3], "t": ["u", "v", "w"]})
    path = write(frame, tmp_path / name)
    with pytest.raises(DataError, match=r"'t' holds text \('u' in row 1\).*drop=\['t'\]"):
        read(open_data(path, numeric=["t"]))
    with pytest.raises(DataError, match="'a' has a missing value in row 2"):
        read(open_data(path, drop=["t"], batch_rows=1))
    dated = frame.assign(a=pd.Timestamp("2024-01-31")).drop(columns="t")
    with pytest.raises(DataError, match=r"'a' holds values of type timestamp.*drop=\['a'\]"):
        read(open_data(write(dated, path)))


def test_a_few_odd_files(frame, tmp_path, monkeypatch):
    def fails(name, message, content=None):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(DataError, match=message):
            read(open_data(path))

    fails("nothing.csv", "there is no file")
    fails("data.xlsx", "no ending that is known; .*.csv, .tsv", b"")
    fails("data.parquet.gz", "no ending", b"")
    fails("latin.csv", "not text in UTF-8; save it", "größe,y\n1,2\n".encode("latin-1"))
    fails("broken.parquet", "cannot read", b"PAR1 and then nothing")
    fails("broken.arrow", "cannot read", b"nonsense")
    fails("empty.arrow", "cannot read", b"")
    fails("broken.csv.gz", "cannot read", b"not gzip")
    fails("short.csv.gz", "cannot read", gzip.compress(b"a,y\n" + b"1,2\n" * 999)[:-9])
    fails("broken.npz", "is not an npz file", b"nonsense")
    np.savez(tmp_path / "objects.npz", X=np.eye(2), y=np.array([1, "a"], dtype=object))
    fails("objects.npz", "holds Python objects")
    np.savez(tmp_path / "names.npz", X=np.eye(2), y=np.ones(2), feature_names=["a"])
    fails("names.npz", "shape .1,., but X has 2 columns")
    np.savez(tmp_path / "lengths.npz", a=np.ones(2), y=np.ones(3))
    fails("lengths.npz", "different lengths")
    np.savez(tmp_path / "shape.npz", a=np.ones((2, 2)), y=np.ones(2))
    fails("shape.npz", "must be a vector of numbers")
    write(frame, tmp_path / "data.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    fails("data.parquet", r'pip install "bestk\[io\]"')


def test_dropped_columns_are_not_even_looked_at(any_csv_reader, tmp_path):
    (tmp_path / "data.csv").write_text('a,"b,c",d,y\n1,text,,2\n')
    X, _ = read(open_data(tmp_path / "data.csv", drop=["b,c", "d"]))
    np.testing.assert_array_equal(X, [[1]])
    with pytest.raises(DataError, match=r"no column 'aa'; did you mean 'a'\?"):
        open_data(tmp_path / "data.csv", drop=["d,aa"])


def test_weighted_batches_are_the_weighted_problem(frame, tmp_path):
    weight = np.linspace(0.0, 3.0, N)
    path = write(frame.assign(w=weight), tmp_path / "data.csv")
    data = open_data(path, weight="w", batch_rows=11)
    X, y = frame.drop(columns="y").astype(float), frame["y"]
    ours = bestk.Problem.from_batches(data, fit_intercept=True).solve(3)
    whole = bestk.solve(X, y, 3, sample_weight=weight, fit_intercept=True)
    plain = bestk.solve(X, y, 3, fit_intercept=True)
    assert ours.feature_names == tuple(X.columns)
    np.testing.assert_allclose(ours.coef, whole.coef, rtol=1e-10)
    assert ours.intercept == pytest.approx(whole.intercept, rel=1e-10)
    assert ours.objective == pytest.approx(whole.objective, rel=1e-10)
    assert abs(ours.objective - plain.objective) > 1e-3
