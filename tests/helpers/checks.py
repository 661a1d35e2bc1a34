"""What a result promises, checked against brute force and against the data."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest

from bestk import Advanced, Status
from bestk.results.result import PERFECT_FIT
from helpers.instances import tolerance


def assert_same(a, b):
    """Equal through and through: types, numbers and arrays."""
    assert type(a) is type(b)
    if isinstance(b, np.ndarray):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    elif isinstance(b, tuple):
        for one, other in zip(a, b, strict=True):
            assert_same(one, other)
    elif is_dataclass(b):
        for column in fields(b):
            assert_same(getattr(a, column.name), getattr(b, column.name))
    else:
        assert a == b


def assert_same_run(ours, theirs):
    """The same tree, the same answer, the same certificate."""
    assert (ours.status, ours.n_nodes) == (theirs.status, theirs.n_nodes)
    assert (ours.objective, ours.lower_bound) == (theirs.objective, theirs.lower_bound)
    assert_same(ours.coef, theirs.coef)
    assert_same(ours.history["bound"], theirs.history["bound"])
    assert_same(ours.certificate, theirs.certificate)


SEARCHES = ("best-first", "breadth-first", "depth-first")
BOUNDS = ("descent", "admm", "fast", "subgradient")
SWITCHES = {
    "default": Advanced(),
    "no enumeration": Advanced(enumeration=False),
    "no fixing": Advanced(fixing=False),
    "no enumeration, no fixing": Advanced(enumeration=False, fixing=False),
    "uniform split": Advanced(enumeration=False, split="uniform"),
    "no rebuild": Advanced(enumeration=False, rebuild=False),
    "heuristic branching": Advanced(enumeration=False, branching="heuristic"),
    "single nodes": Advanced(enumeration=False, batch_size=1, beam_width=1),
    "paper": Advanced.paper(),
}


def configuration(seed):
    """Method, switches, tolerance and limit of a run, drawn independently of the instance."""
    rng = np.random.default_rng([seed, 1])
    return {
        "search": str(rng.choice(SEARCHES)),
        "bound": str(rng.choice(BOUNDS)),
        "advanced": SWITCHES[str(rng.choice(list(SWITCHES)))],
        "gap_tol": float(rng.choice([1e-4, 0.0, 0.1])),
        "node_limit": [None, None, None, 0, 1, 3, 8][rng.integers(7)],
        "n_threads": 1,
    }


def check_result(instance, result, gap_tol, optimum=None):
    """Everything a Result promises, against brute force and against the data."""
    X, y, options = instance.X.astype(float), instance.y.astype(float), instance.options
    weight = options.get("sample_weight", np.ones(len(y)))
    yy = float(y @ (weight * y))
    optimum = instance.brute_force() if optimum is None else optimum
    allowance = tolerance(instance, optimum, yy)

    assert result.lower_bound <= optimum + allowance
    assert result.objective >= optimum - allowance
    assert 0.0 <= result.lower_bound <= result.objective
    if result.status is Status.OPTIMAL:
        slack = gap_tol * max(result.objective, PERFECT_FIT * yy)
        assert result.objective - optimum <= slack + allowance
        assert result.gap <= gap_tol + 1e-15
    else:
        assert result.status is Status.NODE_LIMIT

    coef, support = result.coef, result.support
    assert coef.shape == (X.shape[1],)
    assert np.isfinite(coef).all()
    assert len(support) <= instance.k
    assert (np.diff(support) > 0).all()
    assert set(np.flatnonzero(coef)) <= set(support.tolist())
    assert not set(support.tolist()) & set(options.get("exclude", ()))
    lower, upper = options.get("bounds", (-np.inf, np.inf))
    assert (coef >= lower).all()
    assert (coef <= upper).all()

    residual = y - X @ coef
    recomputed = residual @ (weight * residual) + options.get("alpha", 0.0) * (coef @ coef)
    terms = np.abs(y) + np.abs(X) @ np.abs(coef)
    rounding = 1e-14 * float(terms @ (weight * terms)) + 1e-14 * recomputed
    assert result.objective == pytest.approx(recomputed, rel=0, abs=rounding)

    difference = result.objective - result.lower_bound
    if difference > 0:
        assert result.gap == pytest.approx(difference / max(result.objective, PERFECT_FIT * yy))
        explained = yy - result.objective
        if explained > 1e-9 * yy:
            assert result.explained_gap == pytest.approx(difference / explained, rel=1e-5)
    else:
        assert result.gap == result.explained_gap == 0.0
