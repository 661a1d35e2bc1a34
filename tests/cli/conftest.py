"""Files for the command line."""

import numpy as np
import pandas as pd
import pytest
from helpers.command_line import N, P

import bestk


@pytest.fixture(scope="module")
def frame():
    X, y, _ = bestk.datasets.make_synthetic(N, P, k=3, rho=0.6, seed=5)
    frame = pd.DataFrame(X, columns=[f"size{j}" for j in range(P)])
    return frame.assign(price=y + 4.0, count=np.arange(1, N + 1))


@pytest.fixture(scope="module")
def file(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "data.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def folders(frame, tmp_path_factory):
    """The data in three files each of Parquet and CSV."""
    folder = tmp_path_factory.mktemp("tables")
    (folder / "parquet").mkdir()
    (folder / "csv").mkdir()
    for i in range(3):
        piece = frame[i * 30 : (i + 1) * 30]
        piece.to_parquet(folder / "parquet" / f"part-{i}.parquet", row_group_size=11)
        piece.to_csv(folder / "csv" / f"part-{i}.csv", index=False)
    (folder / "csv" / "about.txt").write_text("three files")
    return folder


@pytest.fixture(scope="module")
def hard(tmp_path_factory):
    """Data whose best ten features take long to prove."""
    X, y, _ = bestk.datasets.make_synthetic(100, 80, k=10, rho=0.9)
    path = tmp_path_factory.mktemp("cli") / "hard.npz"
    np.savez(path, X=X, y=y)
    return path


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory):
    states = bestk.datasets.simulate("lorenz", 2.0, noise=0.002)
    frame = pd.DataFrame(states, columns=["x", "y", "z"])
    path = tmp_path_factory.mktemp("cli") / "lorenz.csv"
    frame.assign(note="text", seconds=0.002 * np.arange(len(frame))).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def data_file(easy_data, tmp_path_factory):
    X, y = easy_data
    path = tmp_path_factory.mktemp("boxes") / "data.csv"
    pd.DataFrame(X).add_prefix("f").assign(y=y).to_csv(path, index=False)
    return path
