"""A file cannot take much more memory than it should, and large tables are still read."""

import gzip
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from bestk.base.archive import VARIABLE
from bestk.base.tuning import tuned
from bestk.readers import DataError, open_data
from bestk.readers.formats import arrow
from bestk.readers.formats.packed import most_unpacked
from bestk.readers.formats.source import rows_at_a_time

ZEROS = 4_000_000  # 32 MB, which compress to some kilobytes


def read(data):
    return np.concatenate([np.asarray(X) for X, _ in data])


@pytest.fixture(params=[".csv", ".csv.gz"])
def write_text(request, tmp_path):
    def write(*pieces):
        path = tmp_path / f"data{request.param}"
        with (gzip.open if request.param == ".csv.gz" else open)(path, "wt", newline="") as file:
            file.writelines(pieces)
        return path

    return write


@pytest.fixture
def short_rows(monkeypatch):
    monkeypatch.setattr("bestk.readers.limits._MOST_TEXT", 1 << 16)


@pytest.mark.parametrize("has_arrow", [True, False])
@pytest.mark.parametrize(
    "pieces",
    [
        ["a,y" + "," * 100_000],
        ["a" * 100_000 + ",y\n1,2\n"],
        ["a,y\n", "1,2\n" * 9, "1," * 40_000],
        ["a,y\n", "1,2\n" * 9, '1,"2\n",' * 20_000],
        ["a,y\n", "7" * 9_000_000],
    ],
    ids=["commas", "name", "row", "lines", "number"],
)
def test_a_row_of_text_has_a_limit(write_text, short_rows, monkeypatch, pieces, has_arrow):
    if not has_arrow:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(DataError, match=r"a row of .* has more than 65,536 characters"):
        read(open_data(write_text(*pieces)))


def test_the_limit_is_for_a_row_and_not_for_a_table(write_text, short_rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    X = read(open_data(write_text("a,y\n", *(f"{i},{'1' * 300}\n" for i in range(2_000)))))
    np.testing.assert_array_equal(X[:, 0], range(2_000))


def test_long_rows_come_in_smaller_batches(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr("bestk.readers.formats.text._BATCH_TEXT", 1_000)
    (tmp_path / "data.csv").write_text("a,y\n" + "".join(f"{i},{'1' * 99}\n" for i in range(50)))
    batches = [X for X, _ in open_data(tmp_path / "data.csv")]
    assert len(batches) > 4
    np.testing.assert_array_equal(np.concatenate(batches)[:, 0], range(50))


def test_columns_have_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("bestk.readers.formats.text.MOST_COLUMNS", 100)
    (tmp_path / "data.csv").write_text(",".join(f"x{j}" for j in range(101)) + "\n")
    with pytest.raises(DataError, match="more than 100 columns"):
        open_data(tmp_path / "data.csv")


def zeros(path, rows):
    """Zeros that are compressed, `rows` of them at a time."""
    table = pa.table({"a": np.zeros(ZEROS), "b": np.zeros(ZEROS), "y": np.zeros(ZEROS)})
    if path.suffix == ".parquet":
        parquet.write_table(
            table, path, row_group_size=rows, compression="zstd", use_dictionary=False,
            data_page_size=1 << 30,
        )  # fmt: skip
    else:
        feather.write_feather(table, str(path), compression="zstd", chunksize=rows)
    assert path.stat().st_size < 100_000
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_what_a_file_declares_to_unpack_has_a_limit(tmp_path, monkeypatch, suffix):
    monkeypatch.setenv(VARIABLE, "1e7")
    data = open_data(zeros(tmp_path / f"data{suffix}", rows=ZEROS))
    with pytest.raises(DataError, match=rf"data{suffix} takes 9.6e\+07 bytes .*{VARIABLE}"):
        next(iter(data))
    monkeypatch.setenv(VARIABLE, "1e8")
    assert len(read(data)) == ZEROS


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_large_tables_of_small_pieces_have_none(tmp_path, monkeypatch, suffix):
    monkeypatch.setenv(VARIABLE, "1e7")
    assert len(read(open_data(zeros(tmp_path / f"data{suffix}", rows=100_000)))) == ZEROS


def test_columns_that_are_not_read_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "7e7")
    path = zeros(tmp_path / "data.parquet", rows=ZEROS)
    with pytest.raises(DataError, match=r"row group 0 of .*; leave columns out"):
        next(iter(open_data(path)))
    assert len(read(open_data(path, drop=["b"]))) == ZEROS


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_a_part_is_held_as_a_whole_and_has_a_limit(tmp_path, monkeypatch, suffix):
    (part,) = open_data(zeros(tmp_path / f"data{suffix}", rows=ZEROS)).parts()
    monkeypatch.setenv(VARIABLE, "5e7")
    with pytest.raises(DataError, match=r"takes .* bytes of memory"):
        part.read()


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_a_long_text_in_every_row_is_there_once(tmp_path, suffix):
    """2,000 rows of 1 MB each, of which two are different."""
    rows = np.arange(2_000) % 2
    texts = pa.DictionaryArray.from_arrays(rows, ["a" * 2**20, "b" * 2**20])
    table = pa.table({"text": texts, "y": rows.astype(float)})
    path = tmp_path / f"data{suffix}"
    if suffix == ".parquet":
        # Without the schema of Arrow, which says that the column is a dictionary.
        parquet.write_table(table, path, store_schema=False)
    else:
        feather.write_feather(table, str(path))
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    pa.set_memory_pool(pool)
    try:
        X = read(open_data(path))
    finally:
        pa.set_memory_pool(before)
    np.testing.assert_array_equal(X[:, 0], rows)
    assert pool.max_memory() < 100 * 2**20


@pytest.mark.parametrize("compression", ["lz4", "zstd", None])
@pytest.mark.parametrize("layout", ["file", "stream"])
def test_the_size_of_batches_is_what_they_declare(tmp_path, compression, layout):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": np.zeros(5_000), "b": rng.normal(size=5_000)})
    table = pa.table({"a": frame["a"], "b": frame["b"], "t": ["some text"] * 5_000})
    table = table.append_column("d", table["t"].combine_chunks().dictionary_encode())
    new = pa.ipc.new_file if layout == "file" else pa.ipc.new_stream
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with new(tmp_path / "data.arrow", table.schema, options=options) as file:
        file.write_table(table, max_chunksize=2_000)
    with pa.memory_map(str(tmp_path / "data.arrow")) as source:
        assert most_unpacked(source) == pytest.approx(table[:2_000].nbytes, rel=0.01, abs=200)
        assert source.tell() == 0


def test_batches_of_many_columns_have_few_rows(tmp_path, monkeypatch):
    """Columns of one value take a few bytes for any number of rows."""
    assert 8 * 100_000 * rows_at_a_time(100_000) <= 2**30
    n, asked = 100_000, []
    columns = {f"t{j}": pa.DictionaryArray.from_arrays(np.zeros(n, "i1"), ["a"]) for j in range(40)}
    table = pa.table(columns | {"x": np.zeros(n), "y": np.zeros(n)})
    parquet.write_table(table, tmp_path / "data.parquet", compression="zstd", store_schema=False)
    real = arrow.arrow_chunks

    def chunks(batches, wanted, rows, *rest):
        asked.append(8 * rows * len(wanted))
        return real(batches, wanted, rows, *rest)

    monkeypatch.setattr(arrow, "arrow_chunks", chunks)
    with tuned(batch_bytes=2**20):
        for X, _ in open_data(tmp_path / "data.parquet"):
            assert X.values.shape[1] == 1  # text with one level is no feature
    assert len(asked) == 2
    assert max(asked) < 1.1 * 2**20


def test_dictionaries_of_all_columns_are_in_memory_together(tmp_path, monkeypatch):
    texts = pa.array(["a" * 1_000_000, "b"])
    columns = {f"t{j}": pa.DictionaryArray.from_arrays([0, 1, 1], texts) for j in range(10)}
    table = pa.table(columns | {"y": [1.0, 2.0, 4.0]})
    feather.write_feather(table, str(tmp_path / "data.feather"), compression="zstd")
    monkeypatch.setenv(VARIABLE, "5e6")
    with pytest.raises(DataError, match=rf"takes 1e\+07 bytes .*{VARIABLE}"):
        open_data(tmp_path / "data.feather")
    monkeypatch.setenv(VARIABLE, "2e7")
    assert read(open_data(tmp_path / "data.feather")).shape == (3, 10)


def test_a_dictionary_that_grows_counts_as_a_whole_and_another_in_its_place_alone(tmp_path):
    schema = pa.schema({"t": pa.dictionary(pa.int32(), pa.string())})

    def most(pieces, **options):
        options = pa.ipc.IpcWriteOptions(compression="zstd", **options)
        with pa.ipc.new_stream(tmp_path / "data.arrow", schema, options=options) as stream:
            for texts in pieces:
                part = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), texts)
                stream.write_batch(pa.record_batch([part], schema=schema))
        with pa.memory_map(str(tmp_path / "data.arrow")) as source:
            return most_unpacked(source)

    long = [letter * 10_000 for letter in "abcd"]
    grown = most([long[: i + 1] for i in range(4)], emit_dictionary_deltas=True)
    assert grown == pytest.approx(40_000, rel=0.01)
    assert most([[text] for text in long]) == pytest.approx(10_000, rel=0.01)


def test_a_table_of_contents_brings_in_no_other_batches(tmp_path, monkeypatch):
    """The stream ends at once, and the table of contents at the end names batches behind that."""
    monkeypatch.setenv(VARIABLE, "1e7")
    path = zeros(tmp_path / "data.feather", rows=ZEROS)
    content = bytearray(path.read_bytes())
    content[8:16] = b"\xff\xff\xff\xff\0\0\0\0"
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot read"):
        read(open_data(path))
