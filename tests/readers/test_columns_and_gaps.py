"""Which columns are read, what happens to rows with missing values, and tables like another one."""

from time import process_time

import numpy as np
import pandas as pd
import pytest

from bestk.readers import DataError, open_data

SUFFIXES = [".csv", ".parquet", ".feather", ".npz"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(90, 4)), columns=["temp_in", "temp_out", "flow", "y"])
    frame["site"] = rng.choice(["Ulm", "Bonn", "Kiel"], 90)
    return frame


@pytest.fixture
def holed(frame):
    """The same with 7 rows in which 9 values are missing."""
    frame = frame.copy()
    frame.loc[[3, 40, 41], "flow"] = np.nan
    frame.loc[[40, 60, 89], "y"] = np.nan
    frame.loc[[3, 33, 34], "site"] = ""
    return frame


def write(frame, folder, suffix):
    """Three files."""
    folder.mkdir()
    for i, rows in enumerate(np.split(np.arange(len(frame)), [20, 50])):
        piece, path = frame.iloc[rows].reset_index(drop=True), folder / f"part-{i}{suffix}"
        if suffix == ".csv":
            piece.to_csv(path, index=False)
        elif suffix == ".parquet":
            # Parquet has a missing text of its own.
            piece = piece.assign(site=piece["site"].where(piece["site"] != "", None))
            piece.to_parquet(path, row_group_size=11)
        elif suffix == ".feather":
            piece.to_feather(path)
        else:
            columns = {name: piece[name].to_numpy() for name in piece}
            np.savez(path, **columns | {"site": piece["site"].to_numpy(dtype=str)})
    return folder


def read(data):
    batches = list(data)
    return tuple(np.concatenate([np.asarray(batch[i]) for batch in batches]) for i in (0, 1))


def read_parts(data):
    parts = [part.read() for part in data.parts()]
    return tuple(np.concatenate([part[i] for part in parts]) for i in (0, 1))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_with_missing_values_are_left_out_and_counted(holed, tmp_path, force, suffix):
    force.parts(n_bytes=1, columns=2, block_bytes=8)
    data = open_data(write(holed, tmp_path / "data", suffix), missing="drop", batch_rows=7)
    assert data.left_out.n_rows is None
    whole = holed.dropna()[holed.dropna()["site"] != ""]
    X, y = read(data)
    assert len(whole) == 83
    assert (data.left_out.n_rows, data.left_out.values["site"]) == (7, 3)
    assert (data.left_out.values["flow"], data.left_out.values["y"]) == (3, 3)
    np.testing.assert_array_equal(y, whole["y"])
    np.testing.assert_array_equal(X[:, data.features.index("flow")], whole["flow"])
    np.testing.assert_array_equal(X[:, data.features.index("site=Ulm")], whole["site"] == "Ulm")
    for ours, others in zip(read_parts(data), (X, y), strict=True):
        np.testing.assert_array_equal(ours, others)
    assert sum(part.count() for part in data.parts()) == 83


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_infinite_values_stay_errors(holed, tmp_path, suffix):
    holed.loc[70, "flow"] = np.inf
    data = open_data(write(holed, tmp_path / "data", suffix), missing="drop")
    for read_all in (read, read_parts):
        with pytest.raises(
            DataError, match=r"'flow' has an infinite value in row 21; .*drop=\['flow'\]"
        ):
            read_all(data)


def test_ways_out_are_those_that_there_are(holed, tmp_path):
    path = write(holed, tmp_path / "data", ".parquet")
    with pytest.raises(DataError, match=r"'flow' .*missing='drop'.*drop=\['flow'\]"):
        read(open_data(path, features=["flow"]))
    for read_all in (read, read_parts):
        with pytest.raises(DataError, match=r"'y' has a missing .*missing='drop'") as caught:
            read_all(open_data(path, features=["temp_in"]))
        assert "drop=" not in str(caught.value)


def test_where_no_row_is_whole(holed, tmp_path):
    holed["flow"] = np.nan
    with pytest.raises(DataError, match=r"every row of .* has a missing value, .*'flow'"):
        read(open_data(write(holed, tmp_path / "data", ".parquet"), missing="drop"))


def test_a_word_that_is_no_way(frame, tmp_path):
    with pytest.raises(ValueError, match="missing must be one of 'error', 'drop'"):
        open_data(write(frame, tmp_path / "data", ".csv"), missing="fill")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_columns_are_chosen_by_name_and_by_pattern(frame, tmp_path, suffix):
    path = write(frame, tmp_path / "data", suffix)
    assert open_data(path, features=["flow,temp_*"]).columns == ("temp_in", "temp_out", "flow")
    assert open_data(path, features=["*"], drop=["temp_*"]).columns == ("flow", "site")
    X, _ = read(open_data(path, features=["temp_?ut"]))
    np.testing.assert_array_equal(X, frame[["temp_out"]])
    with pytest.raises(DataError, match=r"features: there is no column 'volt_\*'"):
        open_data(path, features=["volt_*"])


def test_a_name_that_looks_like_a_pattern_is_a_name(frame, tmp_path):
    frame = frame.rename(columns={"flow": "temp_*"})
    path = write(frame, tmp_path / "data", ".parquet")
    assert open_data(path, features=["temp_*"]).columns == ("temp_*",)


def test_columns_that_nobody_asked_for_may_differ_between_files(frame, tmp_path):
    path = write(frame, tmp_path / "data", ".parquet")
    frame.assign(more=1.0).drop(columns="site").to_parquet(path / "part-9.parquet")
    _, y = read(open_data(path, features=["flow"]))
    assert len(y) == 180
    with pytest.raises(DataError, match=r"part-9.parquet has no column 'site'"):
        open_data(path)


def test_a_table_like_another_one_has_its_columns_and_levels(frame, tmp_path):
    first = open_data(
        write(frame, tmp_path / "first", ".parquet"), features=["flow", "site"], missing="drop"
    )
    # Another order, another column, one level only, and a hole.
    later = frame[frame["site"] == "Ulm"][["y", "site", "flow"]].assign(new=1.0)
    later.iloc[0, 2] = np.nan
    second = open_data(write(later, tmp_path / "later", ".csv"), like=first)
    assert second.features == first.features == ("flow", "site=Kiel", "site=Ulm")
    X, y = read(second)
    np.testing.assert_array_equal(X[:, 0], later["flow"][1:])
    np.testing.assert_array_equal(X[:, 1:], np.tile([0.0, 1.0], (len(y), 1)))
    assert (second.left_out.n_rows, first.left_out.n_rows) == (1, None)


def test_what_another_table_does_not_have(frame, tmp_path):
    first = open_data(write(frame, tmp_path / "first", ".parquet"))
    lacking = write(frame.drop(columns="flow"), tmp_path / "lacking", ".parquet")
    with pytest.raises(DataError, match=r"lacking.part-0.parquet has no column 'flow', as .*first"):
        open_data(lacking, like=first)
    strange = open_data(write(frame.assign(site="Rom"), tmp_path / "rom", ".csv"), like=first)
    with pytest.raises(DataError, match="'site' has a level 'Rom' that was not there"):
        read(strange)


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_types_that_no_row_can_mend_are_found_before_rows_are_read(frame, tmp_path, suffix):
    path = write(frame, tmp_path / "data", suffix)
    dated = frame.assign(flow=pd.date_range("2024-01-01", periods=len(frame)))
    write(dated, tmp_path / "dated", suffix)
    (tmp_path / f"dated/part-2{suffix}").rename(path / f"part-3{suffix}")
    with pytest.raises(
        DataError, match=rf"part-3{suffix}: column 'flow' holds values of type time"
    ):
        open_data(path)
    assert open_data(path, drop=["flow"]).columns == ("temp_in", "temp_out", "site")


def test_parquet_tells_how_many_rows_there_will_be(holed, tmp_path):
    parquet = write(holed, tmp_path / "parquet", ".parquet")
    assert open_data(parquet, missing="drop").n_file_rows == 90
    assert open_data(write(holed, tmp_path / "csv", ".csv"), missing="drop").n_file_rows is None


def test_a_batch_as_a_data_frame(frame, tmp_path):
    batches = [X.to_frame() for X, _ in open_data(write(frame, tmp_path / "data", ".parquet"))]
    whole = pd.concat(batches, ignore_index=True)
    assert list(whole) == ["temp_in", "temp_out", "flow", "site=Kiel", "site=Ulm"]
    pd.testing.assert_frame_equal(whole[["temp_in", "flow"]], frame[["temp_in", "flow"]])


# What is wrong, where, and what to do -------------------------------------------------------------

ROWS = "\n".join(f"u{i},{i},{i % 7},{i % 3}" for i in range(30))


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (
            f"id,a,b,y\n{ROWS}",
            {},
            r"'id' is text that differs in all 30 rows, .*drop=\['id'\], ",
        ),
        ("a b y\n1 2 3\n", {}, "no column 'y'; .* has one column, 'a b y'. .* commas, semicolons"),
        ("a,y\n1,2\n", {"weight": "y"}, "target='y' and weight='y' are one column; choose two"),
        ("a,y\n1,2\n", {"weight": ""}, "weight: there is no column ''"),
        ("a,w,y\n1,0,2\n2,-3,4\n", {"weight": "w"}, "weight='w' has negative .* -3"),
        ("a,y\n1,u\n2,v\n", {}, "'y' holds text .* must hold numbers, .* or choose another column"),
        ("a,y\n1;5,2\n2,1\n", {"numeric": ["a"]}, "'a' holds text .*turn it into numbers"),
        ("y\n1\n", {}, "no columns besides 'y' that could be features; name others"),
        ("a,y\n1,2\n3\n", {}, "row 2 of .* has 1 value for 2 columns; correct this row"),
    ],
)
@pytest.mark.parametrize("read", [list, lambda data: [part.read() for part in data.parts()]])
def test_tables_that_cannot_be_read(tmp_path, read, text, options, words):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(DataError, match=words):
        read(open_data(tmp_path / "data.csv", **options))


def test_identifiers_may_be_taken_as_text(tmp_path):
    (tmp_path / "data.csv").write_text(f"id,a,b,y\n{ROWS}")
    assert len(open_data(tmp_path / "data.csv", text=["id"]).features) == 31


def test_sizes_of_batches_are_checked(tmp_path):
    (tmp_path / "data.csv").write_text("a,y\n1,2\n")
    with pytest.raises(ValueError, match="batch_rows must be at least 1, got 0"):
        open_data(tmp_path / "data.csv", batch_rows=0)


@pytest.mark.parametrize("features", [[], ["c*"]])
def test_very_many_columns_do_not_take_very_long(tmp_path, features):
    """No work for each pair of columns: that took half a minute."""
    n = 100_000
    lines = [",".join(f"c{j}" for j in range(n)), ",".join("1" * n), "?" + ",2" * (n - 1)]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    started = process_time()
    data = open_data(tmp_path / "data.csv", target="c9", missing="drop", features=features)
    assert read(data)[0].shape == (1, n - 1)
    assert process_time() - started < 12.0
