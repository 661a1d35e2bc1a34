"""What chooses among models: rows close in time, and the units of states."""

import numpy as np
import pytest

from bestk.datasets import simulate
from bestk.sindy import discover
from bestk.sindy.scoring import rows_worth


def by_definition(residual, lengths):
    """The formula of the theory, with loops."""
    parts = np.split(residual - residual.mean(), np.cumsum(lengths)[:-1])
    lags = [
        sum(float(part[lag:] @ part[: len(part) - lag]) for part in parts if lag < len(part))
        for lag in range(max(lengths))
    ]
    total, lag = 0.0, 1
    while lag < len(lags) and lags[lag] > 0.0:
        total, lag = total + lags[lag] / lags[0], lag + 1
    return len(residual) / (1.0 + 2.0 * total)


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_worth_what_the_formula_says(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 60, size=rng.integers(1, 4)).tolist()
    smooth = np.convolve(rng.normal(size=sum(lengths) + 9), np.ones(rng.integers(1, 9)), "same")
    residual = smooth[: sum(lengths)]
    assert rows_worth(residual, lengths) == pytest.approx(by_definition(residual, lengths))


def test_independent_rows_are_worth_about_what_they_are():
    residual = np.random.default_rng(0).normal(size=20_000)
    assert 19_000 < rows_worth(residual, [20_000]) <= 20_000


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_rows_of_an_autoregression(rho):
    """Of x' = rho x + noise, n rows are worth n (1 - rho) / (1 + rho)."""
    noise = np.random.default_rng(1).normal(size=200_000)
    rows = np.zeros_like(noise)
    for i in range(1, len(rows)):
        rows[i] = rho * rows[i - 1] + noise[i]
    expected = len(rows) * (1 - rho) / (1 + rho)
    assert rows_worth(rows, [len(rows)]) == pytest.approx(expected, rel=0.1)


def test_what_is_the_same_everywhere_has_no_autocorrelation():
    assert rows_worth(np.zeros(30), [30]) == 30
    assert rows_worth(np.full(30, 2.0), [10, 20]) == 30


def test_the_end_of_one_trajectory_says_nothing_of_the_next():
    """Two halves that are mirror images: products across the border would count."""
    half = np.random.default_rng(2).normal(size=500).cumsum()
    residual = np.concatenate([half, half[::-1]])
    apart, joined = rows_worth(residual, [500, 500]), rows_worth(residual, [1000])
    assert apart != pytest.approx(joined, rel=1e-3)
    assert apart == pytest.approx(by_definition(residual, [500, 500]))


@pytest.mark.parametrize("unit", [1e-40, 1e-9, 1e9])
def test_units_of_states_do_not_matter(unit):
    """Terms of degree d shrink by the power d; equations are those in other units."""
    states = simulate("lorenz", 2.0, noise=0.002)
    plain = discover(states, 0.002, degree=3, ks=[2, 3])
    found = discover(unit * states, 0.002, degree=3, ks=[2, 3])
    assert found.is_proven
    assert found.share_proven == 1.0
    degrees = np.array([0] + [1] * 3 + [2] * 6 + [3] * 10)
    for ours, theirs in zip(found.results, plain.results, strict=True):
        assert ours.names == theirs.names
        used = ours.support
        again = ours.coef[used] * unit ** (degrees[used] - 1.0)
        np.testing.assert_allclose(again, theirs.coef[used], rtol=1e-3)


def test_penalties_are_relative_to_the_smallest_term():
    states = simulate("hopf", 2.0, noise=0.002)
    found = discover(states, 0.002, degree=2, ks=[1], alphas=[0.5, 2.0])
    rows = found.grids[0][found.alphas[0]].results[0].n_samples
    first = states[:rows]
    x, y = first.T
    smallest = min(np.mean(term**2) for term in (np.ones(rows), x, y, x * x, x * y, y * y))
    np.testing.assert_allclose(found.alphas, [0.5 * smallest, 2.0 * smallest])


def test_smooth_residuals_do_not_make_terms(monkeypatch):
    """Every row counted for itself takes terms that are not there."""
    states = simulate("lorenz", 12.0, noise=0.05, seed=3)
    options = {"degree": 3, "ks": range(1, 5), "alphas": [1e-5]}
    assert discover(states, 0.002, **options).results[0].names == ["x0", "x1"]
    monkeypatch.setattr("bestk.sindy.scoring.rows_worth", lambda residual, lengths: len(residual))
    assert len(discover(states, 0.002, **options).results[0].names) > 2
