"""What a result says of itself: status, gap, text."""

import numpy as np
import pytest
from helpers.instances import make_medium

import bestk
from bestk import Advanced, Status
from bestk.results.result import relative_gap


@pytest.mark.parametrize("status", Status)
def test_every_status_says_what_to_do_next(status):
    assert len(status.advice) > 20
    assert status.advice.endswith(".")
    assert str(status) == status.value


def test_long_supports_are_abbreviated():
    X, y, _ = bestk.datasets.make_synthetic(100, 30, 30)
    text = str(bestk.solve(X, y, 30, alpha=0.1))
    assert "... and 10 more" in text


@pytest.mark.parametrize(
    ("objective", "bound", "yy", "gap"),
    [(2.0, 1.0, 10.0, 0.5), (0.0, 0.0, 1.0, 0.0), (1.0, 1.5, 10.0, 0.0), (1e-20, 0.0, 1.0, 1e-8)],
)
def test_gap_is_relative_to_the_objective_and_a_perfect_fit_to_yy(objective, bound, yy, gap):
    assert relative_gap(objective, bound, yy) == pytest.approx(gap)


def test_message_and_printed_result_tell_the_essentials():
    slow = Advanced(enumeration=False, batch_size=1)
    result = make_medium(5).solve(node_limit=10, advanced=slow)
    assert result.message == f"Node limit. {result.status.advice}"
    text = str(result)
    for word in ("node limit", "objective", "lower bound", "gap", "nodes", "seconds"):
        assert word in text
    assert text.endswith(result.status.advice)
    for number in (result.objective, *result.coef[result.support]):
        assert f"{number:.12f}"[:7] in text


def test_coefficients_by_name():
    X, y, _ = bestk.datasets.make_synthetic(100, 8, k=3)
    result = bestk.Problem.from_data(X, y, feature_names=list("abcdefgh")).solve(3)
    assert list(result.named_coef) == result.names
    assert list(result.named_coef.values()) == result.coef[result.support].tolist()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("k", [2, 4, 6])
@pytest.mark.parametrize("seed", range(10))
def test_what_the_verifier_assumes_the_result_says(seed, k, fit_intercept):
    """A sum of two columns, rounded: in exact arithmetic the roundings could be fitted, too."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 4)) * 10.0 ** rng.integers(-3, 4, 4)
    X[:, 3] = 0.3 * X[:, 0] - 1.7 * X[:, 1]
    y = X @ rng.standard_normal(4) + rng.standard_normal(12)
    result = bestk.solve(X, y, k, fit_intercept=fit_intercept)
    verified = result.certificate.verify(X, y)
    assert verified, str(verified)
    if any("dependent" in text for text in verified.assumptions):
        assert any("depend on others" in text for text in result.assumptions)
    assert not bestk.solve(X[:, :3], y, 3, fit_intercept=fit_intercept).assumptions
