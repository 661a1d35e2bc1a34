"""Without optional packages, what needs them says how to install them."""

import sys

import numpy as np
import pytest

import bestk
from bestk.readers.data import NamedColumns


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("groups_of", lambda X, y: bestk.groups_of(X)),
        ("to_frame", lambda X, y: bestk.near_optimal(X, y, k=1, within=0.1).to_frame()),
        ("to_frame", lambda X, y: bestk.stability(X, y, k=1, n_resamples=2).to_frame()),
        ("to_frame", lambda X, y: NamedColumns(X, ("a", "b", "c")).to_frame()),
    ],
    ids=["groups", "list", "stability", "columns"],
)
def test_pandas_is_named(name, call, monkeypatch):
    X = np.random.default_rng(0).standard_normal((20, 3))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=rf'{name} needs pandas: pip install "bestk\[io\]"'):
        call(X, X[:, 0] + 0.1 * X[:, 1])
