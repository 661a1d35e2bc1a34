"""The verifier's own kernel: every set of features that gains enough is behind a beginning."""

from dataclasses import replace
from importlib import import_module
from itertools import combinations
from math import comb

import numpy as np
import pytest
from helpers.emulator import COMPILER, Emulator
from helpers.seeds import seeds

import bestk
from bestk.base.device.driver import DeviceUnavailable
from bestk.verification.forecast import forecast, in_words, n_supports
from bestk.verification.supports import on_device
from bestk.verification.supports.on_device import PairScan, open_scan
from bestk.verification.verify import LongVerification

VERIFY = "bestk.verification.verify"


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    if COMPILER is None:
        pytest.skip("no C++ compiler")
    return PairScan([Emulator(tmp_path_factory.mktemp("pairs")) for _ in range(2)])


@pytest.fixture(scope="module")
def cuda():
    try:
        return open_scan("cuda")
    except DeviceUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.cuda)])
def scan(request):
    return request.getfixturevalue(request.param)


def problem(rng, m, r):
    """(H, d, needed): unit columns that are alike or copied, and the gain of some good set."""
    X = rng.standard_normal((m + 6, m)) + rng.choice([0.0, 1.0]) * rng.standard_normal((m + 6, 1))
    if rng.random() < 0.3:
        a, b = rng.permutation(m)[:2]
        X[:, a] = X[:, b] + rng.choice([0.0, 1e-6, 1e-2]) * X[:, a]
    X /= np.linalg.norm(X, axis=0)
    y = X[:, :3].sum(axis=1) * rng.choice([0.0, 1.0]) + rng.standard_normal(m + 6)
    d = X.T @ (y / np.linalg.norm(y))
    H = X.T @ X - 1e-12 * np.eye(m)
    chosen = list(range(r))
    gain = gain_of(H, d, chosen)
    return H, d, min(max(gain, 1e-3) * (1.0 + rng.choice([-0.2, -1e-6, 1e-6, 0.2])), 1.0)


def gain_of(H, d, chosen):
    part = H[np.ix_(chosen, chosen)]
    if np.linalg.eigvalsh(part)[0] <= 0.0:
        return np.inf
    return float(d[chosen] @ np.linalg.solve(part, d[chosen]))


@seeds(60, chunk=6)
def test_no_set_that_gains_enough_is_passed_over(seed, scan):
    rng = np.random.default_rng([seed, 9])
    m = int(rng.integers(4, 12))
    r = int(rng.integers(3, min(m - 1, 6) + 1))
    H, d, needed = problem(rng, m, r)
    assert scan.can_try(m, r)
    rows = [tuple(row) for row in scan.beginnings(np.triu(H), d, needed, 0.0, r).tolist()]
    assert rows == sorted(set(rows))
    whole = {row[:-1] for row in rows if row[-1] < 0}
    for chosen in combinations(range(m), r):
        beginning, gain = chosen[: r - 2], gain_of(H, d, list(chosen))
        listed = beginning in rows or beginning[:-1] in whole
        if gain >= needed * (1.0 + 1e-11):
            assert listed, (chosen, gain, needed)
    assert len(rows) < comb(m, r - 2) or needed < 0.5 or m < 8


@pytest.mark.parametrize(("m", "r"), [(40, 3), (70, 3), (34, 4), (12, 8)])
def test_larger_ones_and_the_verifiers_loop_agree(m, r, scan):
    from bestk.verification.numerics.scan import scan as loop

    rng = np.random.default_rng([m, r])
    H, d, _ = problem(rng, m, r)
    best = np.sort(d**2 / H.diagonal())[::-1]
    needed = min(best[:r].sum() * 0.7, 0.9)
    hits = np.empty((100_000, r), dtype=np.int64)
    count = loop(np.triu(H), d, needed, 0.0, r, 0, m, hits)
    assert count >= 0
    rows = {tuple(row) for row in scan.beginnings(np.triu(H), d, needed, 0.0, r).tolist()}
    for hit in hits[:count].tolist():
        beginning = tuple(hit[: r - 2])
        assert beginning in rows or (*beginning[:-1], -1) in rows or -1 in hit
    without = {row for row in rows if row[-1] >= 0} - {
        tuple(hit[: r - 2]) for hit in hits[:count].tolist()
    }
    assert len(without) <= 2 * r  # a beginning is listed for nothing only at the level of rounding


def test_work_is_cut_into_launches(scan, monkeypatch):
    rng = np.random.default_rng(2)
    H, d, needed = problem(rng, 14, 5)
    at_once = scan.beginnings(H, d, needed, 0.0, 5)
    monkeypatch.setattr(on_device, "_MOST_BLOCKS", 10)
    np.testing.assert_array_equal(scan.beginnings(H, d, needed, 0.0, 5), at_once)


def test_too_many_are_not_listed(scan, monkeypatch):
    monkeypatch.setattr(on_device, "_MOST_LISTED", 4)
    assert scan.beginnings(np.eye(12), np.ones(12), 0.5, 0.0, 4) is None


def test_prefixes_are_in_the_order_of_a_dictionary():
    every = [tuple(on_device._prefix(rank, 3, 8)) for rank in range(comb(8, 3))]
    assert every == list(combinations(range(8), 3))
    assert on_device._prefix(0, 0, 8) == []


def test_what_can_be_tried(emulated):
    assert emulated.can_try(400, 5)
    assert not emulated.can_try(400, 2)
    assert not emulated.can_try(40, 20)
    assert not emulated.can_try(1025, 4)
    assert not emulated.can_try(1000, 12)


def certified(k=6):
    """A run whose enumerations are worth a device, if a device is asked for little."""
    X, y, _ = bestk.datasets.make_synthetic(60, 22, k=8, rho=0.9)
    return X, y, bestk.solve(X, y, k, alpha=1e-3).certificate


def test_proofs_are_verified_on_a_device(scan, monkeypatch, force):
    X, y, certificate = certified()
    force.verified_on_device()
    monkeypatch.setattr(import_module(VERIFY), "open_scan", lambda name: scan)
    asked = []
    beginnings = PairScan.beginnings
    monkeypatch.setattr(
        PairScan, "beginnings", lambda self, *a: (asked.append(a[-1]), beginnings(self, *a))[1]
    )
    plain, other = certificate.verify(X, y), certificate.verify(X, y, device="cuda")
    assert plain
    assert other
    assert asked
    assert other.lower_bound == pytest.approx(plain.lower_bound, rel=1e-12)
    assert other.n_supports == plain.n_supports


def test_a_claim_too_high_is_not_verified_on_a_device(scan, monkeypatch, force):
    X, y, certificate = certified()
    force.verified_on_device()
    monkeypatch.setattr(import_module(VERIFY), "open_scan", lambda name: scan)
    # A better model is hidden: a claim that all supports but the best one would support.
    worse = bestk.solve(X, y, 6, alpha=1e-3, exclude=[int(certificate.coef.nonzero()[0][0])])
    lie = replace(
        certificate,
        coef=worse.coef,
        intercept=worse.intercept,
        objective=worse.objective,
        lower_bound=worse.objective,
    )
    for device in ("cpu", "cuda"):
        verification = lie.verify(X, y, device=device)
        assert not verification
        assert any("lower bound" in failure for failure in verification.failures)


def test_a_long_verification_is_forecast():
    X, y, certificate = certified()
    assert forecast(certificate, 1) is None
    tried = n_supports(certificate)
    assert tried == certificate.verify(X, y).n_supports
    wide = replace(certificate, coef=np.zeros(600))
    words = forecast(wide, 2)
    assert "supports have to be tried one by one" in words
    assert "on 2 threads" in words
    assert "on a large GPU (device='cuda')" in words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 seconds"),
        (0.2, "0.2 seconds"),
        (1.2, "1 second"),
        (80, "80 seconds"),
        (100, "2 minutes"),
        (7200, "2 hours"),
        (1e6, "12 days"),
    ],
)
def test_times_are_said_in_words(seconds, words):
    assert in_words(seconds) == words


def test_a_forecast_comes_before_the_work(monkeypatch):
    X, y, certificate = certified()
    monkeypatch.setattr(import_module(VERIFY), "forecast", lambda *a: "this takes long")
    with pytest.warns(LongVerification, match="this takes long"):
        assert certificate.verify(X, y)


def test_devices_are_named_as_everywhere():
    X, y, certificate = certified()
    with pytest.raises(ValueError, match='device must be "cpu", "cuda", or "cuda:" and a number'):
        certificate.verify(X, y, device="gpu")
