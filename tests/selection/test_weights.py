"""Weights that cannot be: wherever they come in, the error names them."""

import numpy as np
import pandas as pd
import pytest
from helpers.command_line import run
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import bestk
from bestk.cross_validation import cross_validate_batches
from bestk.sindy import OKRidge

N = 20
X = np.random.default_rng(0).standard_normal((N, 4))
Y = X[:, 0] + 0.1 * np.random.default_rng(1).standard_normal(N)

ENTRIES = {
    "solve": lambda w: bestk.solve(X, Y, 2, sample_weight=w),
    "structure": lambda w: bestk.solve(X, Y, 1, groups=list("aabb"), sample_weight=w),
    "auto": lambda w: bestk.solve(X, Y, 2, bounds="auto", sample_weight=w),
    "problem": lambda w: bestk.Problem.from_data(X, Y, sample_weight=w),
    "path": lambda w: bestk.solve_path(X, Y, ks=[1, 2], sample_weight=w),
    "list": lambda w: bestk.near_optimal(X, Y, 2, within=0.1, sample_weight=w),
    "beam": lambda w: bestk.beam_search(X, Y, 2, sample_weight=w),
    "stability": lambda w: bestk.stability(X, Y, 2, n_resamples=2, sample_weight=w),
    "estimator": lambda w: bestk.SparseRidge(k=2).fit(X, Y, sample_weight=w),
    "cv": lambda w: bestk.SparseRidgeCV(ks=[1, 2]).fit(X, Y, sample_weight=w),
    "sindy": lambda w: OKRidge(k=2).fit(X, Y[:, None], sample_weight=w),
}
BATCHES = {
    "batches": lambda w: bestk.Problem.from_batches([(X[:5], Y[:5], w[:5]), (X[5:], Y[5:], w[5:])]),
    "cv": lambda w: cross_validate_batches([(X, Y, w)], [1, 2], [0.0], n_folds=3),
}


@pytest.mark.parametrize("name", ENTRIES)
@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.zeros(N), "zero"),
        (-np.ones(N), "egative"),
        (np.full(N, np.nan), "NaN"),
        (np.ones(N - 1), "sample_weight"),
    ],
    ids=["zero", "negative", "NaN", "length"],
)
def test_weights_that_cannot_be(name, weight, words):
    with pytest.raises(ValueError, match=r"(?i)sample.weight") as error:  # or scikit-learn's words
        ENTRIES[name](weight)
    assert words in str(error.value)


@pytest.mark.parametrize("name", BATCHES)
def test_batches_need_some_weight_together(name):
    with pytest.raises(ValueError, match="the weight of the batches is zero for every row"):
        BATCHES[name](np.zeros(N))
    some = np.ones(N)
    some[:5] = 0.0  # all of the first batch
    BATCHES[name](some)


def test_collections_need_some_weight_together():
    array = pytest.importorskip("dask.array")
    parts = [array.from_array(part, chunks=10) for part in (X, Y, np.zeros(N))]
    chunked = parts[0].rechunk((10, 4)), *parts[1:]
    with pytest.raises(ValueError, match="the weight of the partitions is zero for every row"):
        bestk.solve(*chunked[:2], 2, sample_weight=chunked[2])


def test_every_fold_needs_some_weight():
    weight = np.ones(N)
    weight[:4] = 0.0  # the first of five folds
    with pytest.raises(ValueError, match=r"all rows of a fold.*shuffle=True"):
        bestk.SparseRidgeCV(ks=[1, 2], cv=5).fit(X, Y, sample_weight=weight)
    shuffled = KFold(5, shuffle=True, random_state=0)
    bestk.SparseRidgeCV(ks=[1, 2], cv=shuffled).fit(X, Y, sample_weight=weight)


def test_rows_of_weight_zero_are_left_out():
    weight = np.ones(N)
    weight[3:7] = 0.0
    kept = weight > 0
    found = bestk.solve(X, Y, 2, alpha=1.0, sample_weight=weight)
    without = bestk.solve(X[kept], Y[kept], 2, alpha=1.0)
    np.testing.assert_allclose(found.coef, without.coef, rtol=1e-10)
    ridge = Ridge(1.0, fit_intercept=False).fit(X[:, found.support], Y, sample_weight=weight)
    np.testing.assert_allclose(found.coef[found.support], ridge.coef_, rtol=1e-8)


def test_the_command_line_says_so(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=Y, w=0.0)
    frame.to_csv(tmp_path / "data.csv", index=False)
    outcome = run("fit", tmp_path / "data.csv", "-k", 2, "--weight", "w")
    assert outcome.exit_code == 1
    assert "is zero for every row" in outcome.stderr
