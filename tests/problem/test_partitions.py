"""Dask arrays and data frames as X and y: the same problem, without gathering a row."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from helpers.instances import make, tolerance
from helpers.seeds import seeds

import bestk
from bestk import Problem
from bestk.problem import table as table_module
from bestk.problem.table import Table


@pytest.fixture(autouse=True)
def in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def chunked(array, rng):
    """A Dask array with row chunks of any length, empty ones among them."""
    n = len(array)
    edges = [0, *np.sort(rng.integers(0, n + 1, int(rng.integers(0, 5)))).tolist(), n]
    chunks = (tuple(np.diff(edges).tolist()),)
    if array.ndim == 2:
        chunks += (max(1, array.shape[1] // 2),)
    return da.from_array(array, chunks=chunks)


def frame_of(X, y, npartitions=4, **more):
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])]).assign(y=y, **more)
    frame = dd.from_pandas(frame, npartitions=npartitions, sort=False)
    return frame[[f"f{j}" for j in range(X.shape[1])]], frame["y"], frame


@seeds(120, chunk=20)
def test_chunks_give_the_problem_and_the_proof_of_the_rows(seed):
    rng = np.random.default_rng([seed, 7])
    instance = make(seed)
    X, y, options = instance.X, instance.y, dict(instance.options)
    weight = options.pop("sample_weight", None)
    best = instance.brute_force()
    X_parts, y_parts = chunked(X, rng), chunked(y, rng)
    if weight is not None:
        options["sample_weight"] = chunked(weight, rng)
    result = bestk.solve(X_parts, y_parts, instance.k, **options, n_threads=1)
    slack = tolerance(instance, best, result.yy)
    assert result.lower_bound <= best + slack
    assert result.objective >= best - slack
    if result.certificate is not None and len(y):
        verification = result.certificate.verify(X, y, weight)
        assert verification, verification


@pytest.mark.parametrize("centre", [False, True])
def test_frames_give_the_same_digest_names_and_model(centre):
    X, y, _ = bestk.datasets.make_synthetic(200, 12, k=3, rho=0.5)
    X_frame, y_frame, frame = frame_of(X, y, w=np.linspace(1, 2, 200))
    weight = np.linspace(1, 2, 200)
    ours = Problem.from_data(X_frame, y_frame, sample_weight=frame["w"], fit_intercept=centre)
    theirs = Problem.from_data(X, y, sample_weight=weight, fit_intercept=centre)
    assert ours.digest == theirs.digest
    assert ours.feature_names == tuple(f"f{j}" for j in range(12))
    result = ours.solve(3)
    assert result.names == [f"f{j}" for j in theirs.solve(3).support]
    assert result.certificate.verify(X, y, weight)
    assert result.certificate.verify(X_frame, y_frame, frame["w"])
    assert not result.certificate.verify(X_frame, y_frame)


def test_partitions_of_unknown_length_and_empty_ones():
    X, y, _ = bestk.datasets.make_synthetic(90, 5, k=2)
    _, _, frame = frame_of(X, y, npartitions=6)
    some = frame[frame["f0"] > 1.0]  # lengths are not known, and perhaps 0
    rows = X[:, 0] > 1.0
    columns = [f"f{j}" for j in range(5)]
    ours = Problem.from_data(some[columns], some["y"], fit_intercept=True)
    assert ours.n_samples == rows.sum()
    assert ours.digest == Problem.from_data(X[rows], y[rows]).digest
    arrays = Problem.from_data(some[columns].to_dask_array(), some["y"].to_dask_array())
    assert arrays.digest == ours.digest


def test_sums_do_not_depend_on_where_in_memory_rows_begin():
    X, y, _ = bestk.datasets.make_synthetic(90, 10, k=3, rho=0.5)
    memory = bytearray(X.nbytes + 8)
    share = table_module.Share(0, 1, 0, False)
    grams = []
    for start in range(8):
        rows = np.frombuffer(memory, count=X.size, offset=start).reshape(X.shape)
        rows[:] = X
        triple = table_module.checked_rows(0, rows, y, None)
        grams.append(table_module.part_of(triple, 0, share).moments.gram)
    assert all(np.array_equal(gram, grams[0]) for gram in grams)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, by Dask
@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_small_files_stay_partitions(kind, tmp_path):
    """Dask would join them to read one column, and not to read many."""
    X, y, _ = bestk.datasets.make_synthetic(90, 9, k=3, rho=0.5)
    frame = pd.DataFrame(X).add_prefix("f").assign(y=y, other=0.0)
    for i in range(9):
        write = getattr(frame[10 * i : 10 * (i + 1)], f"to_{kind}")
        write(tmp_path / f"part-{i}.{kind}", index=False)
    # pandas 2 would read a text to the nearest number but one; later ones do not take the option.
    is_rough = kind == "csv" and int(pd.__version__.split(".")[0]) < 3
    digits = {"float_precision": "round_trip"} if is_rough else {}
    rows = getattr(dd, f"read_{kind}")(str(tmp_path / f"*.{kind}"), **digits)
    names = [f"f{j}" for j in range(9)]
    result = bestk.solve(rows[names], rows["y"], 3)
    assert result.certificate.verify(X, y)
    weighted = bestk.solve(rows[names], rows["y"], 3, sample_weight=rows["other"] + 1.0)
    np.testing.assert_allclose(weighted.coef, result.coef, rtol=1e-9)


def test_types_are_mixed_and_integers_exact():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {
            "a": rng.integers(0, 9, 50),
            "b": rng.random(50).astype(np.float32),
            "c": rng.random(50) < 0.5,
            "d": pd.array(rng.integers(0, 5, 50), dtype="Int64"),
            "y": rng.random(50),
        }
    )
    parts = dd.from_pandas(frame, npartitions=3)
    ours = Problem.from_data(parts[list("abcd")], parts["y"])
    theirs = Problem.from_data(frame[list("abcd")], frame["y"])
    assert ours.digest == theirs.digest
    np.testing.assert_allclose(ours.gram, theirs.gram, rtol=1e-13)


def _with(column, value):
    X, y, _ = bestk.datasets.make_synthetic(100, 4, k=2)
    _, _, frame = frame_of(X, y)
    pandas = frame.compute().assign(w=1.0)
    if value is not None:
        pandas[column] = pandas[column].astype(object) if isinstance(value, str) else pandas[column]
        pandas.loc[60, column] = value
    return dd.from_pandas(pandas, npartitions=4)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("f1", np.nan, "X of partition 2 contains NaN or infinite values"),
        ("f1", np.inf, "X of partition 2 contains NaN or infinite values"),
        ("f1", "many", "X of partition 2 has 'many' in row 0, column 1"),
        ("y", np.nan, "y of partition 2 contains NaN or infinite values"),
        ("w", np.nan, "partition 2: sample_weight contains NaN"),
        ("w", -1.0, "partition 2: sample_weight must not be negative"),
        ("f1", 1e200, "X'X of partition 2 overflows: rescale"),
    ],
)
def test_errors_name_the_partition(column, value, message):
    frame = _with(column, value)
    if isinstance(value, str):  # which Dask would turn into text of its own kind
        clean = _with("f1", None)
        pieces = [clean.partitions[i].compute() for i in range(4)]
        pieces[2] = pieces[2].astype(object)
        pieces[2].iloc[0, 1] = value
        X = da.concatenate([da.from_array(p[["f0", "f1"]].to_numpy(), chunks=-1) for p in pieces])
        y = da.from_array(clean["y"].compute().to_numpy(), chunks=X.chunks[:1])
        with pytest.raises(TypeError, match=message):
            bestk.solve(X, y, 1)
        return
    with pytest.raises(ValueError, match=message):
        bestk.solve(frame[["f0", "f1"]], frame["y"], 1, sample_weight=frame["w"])


def test_categories_and_text_are_refused_before_any_row_is_read():
    X, y, _ = bestk.datasets.make_synthetic(40, 3, k=1)
    X_frame, y_frame, _ = frame_of(X, y)
    for kind in ("category", "string"):
        with pytest.raises(TypeError, match=r"column 'f2' of dtype .*; turn it into numbers"):
            bestk.solve(X_frame.assign(f2=X_frame["f2"].astype(str).astype(kind)), y_frame, 1)


def test_shapes_that_do_not_fit_are_refused():
    X, y, _ = bestk.datasets.make_synthetic(40, 3, k=1)
    X_frame, y_frame, _ = frame_of(X, y)
    X_array, y_array = da.from_array(X, chunks=(10, 3)), da.from_array(y, chunks=7)
    with pytest.raises(TypeError, match="y must be a Dask collection"):
        bestk.solve(X_frame, y, 1)
    with pytest.raises(ValueError, match="y has 2 partitions and X has 4"):
        bestk.solve(X_frame, y_frame.repartition(npartitions=2), 1)
    with pytest.raises(ValueError, match="y has length 39, but there are 40 rows"):
        bestk.solve(X_array, y_array[:39], 1)
    with pytest.raises(ValueError, match=r"y has shape \(39,\)"):
        bestk.solve(X_array, y[:39], 1)
    with pytest.raises(ValueError, match="two dimensions"):
        bestk.solve(y_array, y_array, 1)
    with pytest.raises(ValueError, match=r"y must be a vector.*; pass one column, such as y"):
        bestk.solve(X_array, X_array, 1)
    with pytest.raises(TypeError, match="y is None; pass a vector"):
        bestk.solve(X_array, None, 1)
    with pytest.raises(ValueError, match="all its partitions are empty"):
        bestk.solve(X_array[:0], y_array[:0], 1)
    assert bestk.solve(X_array, y, 1).support.tolist() == bestk.solve(X, y, 1).support.tolist()


def test_names_of_an_array_in_any_container():
    X, y, _ = bestk.datasets.make_synthetic(40, 3, k=1)
    parts = da.from_array(X, chunks=(10, 3)), da.from_array(y, chunks=10)
    names = pd.Index(["a", "b", "c"])
    assert Problem.from_data(*parts, feature_names=names).feature_names == tuple(names)
    with pytest.raises(ValueError, match="feature_names must be 3 strings, one per feature, got 2"):
        Problem.from_data(*parts, feature_names=names[:2])


def test_predictions_are_for_the_columns_of_the_fit():
    X, y, _ = bestk.datasets.make_synthetic(40, 3, k=1)
    X_frame, _, _ = frame_of(X, y)
    model = bestk.SparseRidge(1).fit(pd.DataFrame(X, columns=X_frame.columns), y)
    np.testing.assert_allclose(model.predict(X_frame).compute(), model.predict(X_frame.compute()))
    with pytest.raises(ValueError, match="X has its columns in another order than the data of the"):
        model.predict(X_frame[["f2", "f1", "f0"]])
    with pytest.raises(ValueError, match="X has 2 columns, but the data of the fit have 3; pass"):
        model.predict(da.from_array(X[:, :2]))


def test_rows_of_wide_data_are_gathered_if_they_fit(force, monkeypatch):
    X, y, _ = bestk.datasets.make_synthetic(30, 60, k=2, rho=0.1)
    force.wide_search()
    parts = da.from_array(X, chunks=(8, 20)), da.from_array(y, chunks=8)
    result = bestk.solve(*parts, 2, alpha=1.0, bounds=(-2, 2))
    assert (
        result.support.tolist() == bestk.solve(X, y, 2, alpha=1.0, bounds=(-2, 2)).support.tolist()
    )
    monkeypatch.setattr(table_module, "_free_memory", lambda: 1000.0)
    with pytest.raises(MemoryError, match=r"X is wide \(30 rows, 60 features\)"):
        bestk.solve(*parts, 2, alpha=1.0)


def test_no_task_has_more_than_a_partition_and_two_sums():
    X, y, _ = bestk.datasets.make_synthetic(400, 8, k=2)
    table = Table.of_collections(
        da.from_array(X, chunks=(20, 8)), da.from_array(y, chunks=20), None, None
    )
    seen = []

    def watched(first, second):
        seen.append((first.moments.gram.shape, second.moments.gram.shape))
        return first + second

    monkeypatch = pytest.MonkeyPatch()
    with monkeypatch.context() as patch:
        patch.setattr(table_module, "_parts_joined", watched)
        total, _ = table.sums(True)
    assert seen == [((8, 8), (8, 8))] * 19
    assert total.moments.n_rows == 400


@pytest.mark.parametrize("centre", [False, True])
def test_folds_come_from_one_reading(centre):
    X, y, _ = bestk.datasets.make_synthetic(300, 6, k=2)
    weight = np.linspace(0.5, 2.0, 300)
    read = []

    class Sixth:
        n_rows = None

        def __init__(self, i):
            self.i, self.rows = i, slice(50 * i, 50 * i + 50)

        def read(self):
            read.append(self.i)
            return X[self.rows], y[self.rows], weight[self.rows]

        def count(self):
            return 50

    table = Table.of_parts([Sixth(i) for i in range(6)], tuple("abcdef"), None)
    folds, digest = table.sums_of_folds(centre, 4, seed=3)
    assert sorted(read) == list(range(6))
    assert digest == Problem.from_data(X, y, sample_weight=weight).digest
    assert [part.moments.n_rows for part in folds] == pytest.approx([75] * 4, abs=6)
    total = sum(folds[1:], start=folds[0]).sums()
    whole = Problem.from_data(X, y, sample_weight=weight, fit_intercept=centre)
    np.testing.assert_allclose((total.centred() if centre else total).gram, whole.gram, rtol=1e-12)
    again, _ = table.sums_of_folds(centre, 4, seed=3)
    other, _ = table.sums_of_folds(centre, 4, seed=4)
    assert all((a.moments.gram == b.moments.gram).all() for a, b in zip(folds, again, strict=True))
    assert any((a.moments.gram != b.moments.gram).any() for a, b in zip(folds, other, strict=True))


def test_more_folds_than_rows_are_refused():
    X, y = da.ones((4, 2), chunks=(2, 2)), da.ones(4, chunks=2)
    table = Table.of_collections(X, y, None, None)
    with pytest.raises(ValueError, match="too few rows for n_folds = 9"):
        table.sums_of_folds(False, 9, 0)


def test_nearly_dependent_features_are_told_apart_by_a_second_reading():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((400, 5))
    X[:, 4] = X[:, 0] + X[:, 1] + 1e-7 * rng.standard_normal(400)
    y = 1e6 * (X[:, 4] - X[:, 0] - X[:, 1]) + X[:, 2] + 0.01 * rng.standard_normal(400)
    parts = da.from_array(X, chunks=(90, 5)), da.from_array(y, chunks=90)
    close = Problem.from_data(*parts, fit_intercept=True)
    assert close.rows is not None
    found = close.solve(4)
    assert found.support.tolist() == bestk.solve(X, y, 4, fit_intercept=True).support.tolist()
    assert found.objective == pytest.approx(
        bestk.solve(X, y, 4, fit_intercept=True).objective, rel=1e-6
    )
    assert found.certificate.verify(X, y)
    plain = Problem.from_data(parts[0][:, :4], parts[1], fit_intercept=True)
    assert plain.rows is None
    assert plain.solve(2).certificate.verify(X[:, :4], y)


def test_perfect_fits_are_told_from_good_ones():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((300, 6))
    y = X[:, 1] - 2.0 * X[:, 3] + 1e-7 * rng.standard_normal(300)
    parts = da.from_array(X, chunks=(70, 6)), da.from_array(y, chunks=70)
    found, exact = bestk.solve(*parts, 2), bestk.solve(X, y, 2)
    assert found.support.tolist() == [1, 3]
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)
