"""A saved run comes back whole, and what is no run is refused."""

import os
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.checks import assert_same

import bestk
from bestk import storage
from bestk.results.status import Status


@pytest.mark.parametrize("node_limit", [None, 30])
@pytest.mark.parametrize("names", [True, False])
def test_a_saved_run_comes_back_whole(tmp_path, node_limit, names):
    X, y, _ = bestk.datasets.make_synthetic(60, 40, k=8, rho=0.9)
    if names:
        X = pd.DataFrame(X, columns=[f"f{j}" for j in range(40)])
    options = {"advanced": bestk.Advanced(enumeration=False), "exclude": [3]}
    result = bestk.solve(X, y, 5, alpha=0.1, node_limit=node_limit, **options)
    assert len(result.certificate.tree) > 2
    storage.save(result, tmp_path / "run")
    again = storage.load(tmp_path / "run")
    assert str(again) == str(result)
    assert again.settings == result.settings
    assert again.status is (Status.NODE_LIMIT if node_limit else Status.OPTIMAL)
    for name in ("coef", "support", "history"):
        np.testing.assert_array_equal(getattr(again, name), getattr(result, name))
    ours, theirs = again.certificate, result.certificate
    assert (ours.k, ours.exclude.tolist()) == (5, [3])
    assert_same(ours, theirs)


def test_a_run_without_a_record_can_be_saved(tmp_path):
    X, y, _ = bestk.datasets.make_synthetic(60, 10, k=3)
    batches = [(X[:30], y[:30]), (X[30:], y[30:])]
    problem = bestk.Problem.from_batches(batches)
    result = problem.solve(3, advanced=bestk.Advanced(record=False))
    storage.save(result, tmp_path / "run.npz")
    again = storage.load(tmp_path / "run.npz")
    assert again.certificate is None
    assert again.n_samples == 60
    np.savez(tmp_path / "other.npz", X=X)
    with pytest.raises(ValueError, match="was not written by"):
        storage.load(tmp_path / "other.npz")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there are no devices with names")
def test_what_may_never_end_is_not_opened(tmp_path):
    (tmp_path / "run.npz").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe")
    loads = (storage.load, storage.from_json, bestk.Certificate.load)
    for load, name in product(loads, ("run.npz", "pipe")):
        with pytest.raises(ValueError, match="is a device or a pipe"):
            load(tmp_path / name)


@pytest.mark.parametrize("name", ["history", "status", "certificate"])
def test_a_broken_run_is_named(tmp_path, name):
    X, y, _ = bestk.datasets.make_synthetic(60, 10, k=3)
    storage.save(bestk.solve(X, y, 2), tmp_path / "run.npz")
    with np.load(tmp_path / "run.npz") as file:
        entries = dict(file)
    if name == "status":
        entries["run"] = np.array(str(entries["run"]).replace("OPTIMAL", "GREAT"))
    else:
        entries[name] = np.array("{}") if name == "certificate" else np.zeros(3)
    np.savez(tmp_path / "run.npz", **entries)
    with pytest.raises(ValueError, match=r"run\.npz: .*(history|status|certificate)"):
        storage.load(tmp_path / "run.npz")
