"""What is said about equations: text, distances to the next best, scores."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln

from bestk import Status
from bestk.sindy import discover
from bestk.sindy.discovery import equation, next_best
from bestk.sindy.scoring import score_of


def test_summary_and_pickle(found):
    text = str(found)
    for line in found.equations:
        assert line in text
    assert "Every equation is proven the best of its size." in text
    assert "24 models, 24 of them proven" in text
    copy = pickle.loads(pickle.dumps(found))
    assert str(copy) == text


def test_equations_as_text():
    terms = ["1", "x", "x y"]
    assert equation("x", terms, np.array([-2.0, 0.0, 0.5])) == "x' = -2 + 0.5 x y"
    assert equation("x", terms, np.array([0.0, 1.23456, -1.0])) == "x' = 1.235 x - 1 x y"
    assert equation("y", terms, np.zeros(3)) == "y' = 0"


@pytest.mark.parametrize(
    ("excess", "changes", "text"),
    [
        (0.0689999, {}, "6.89% worse"),
        (0.5, {"status": Status.TIME_LIMIT, "gap": 0.1}, "at least 50% worse"),
        (0.5, {"gap": 1e-5}, "at least 50% worse"),
        (19.999, {}, "20.9 times the objective"),
        (1e-13, {}, "as good up to rounding"),
        (1e-13, {"gap": 0.1}, "may be as good"),
        (-0.1, {"status": Status.TIME_LIMIT, "gap": 0.1}, "may be as good"),
        (0.5, {"status": Status.INTERRUPTED, "gap": 0.1}, "may be as good"),
    ],
)
def test_distances_are_rounded_down_and_claim_no_more_than_is_proven(found, excess, changes, text):
    result = replace(found.results[0], objective=1.0)
    other = replace(found.runners_up[0], lower_bound=1.0 + excess, **changes)
    assert next_best(result, other) == text


def test_a_tolerance_is_part_of_what_is_proven(found):
    loose = replace(found.results[0], gap=1.2e-3)
    head, _ = replace(found, results=[loose, *found.results[1:]]).verdict
    assert head == "Every equation is proven the best of its size, up to a gap of 0.12%."


def test_aicc_of_few_rows():
    assert score_of("aicc", mean_square=1.0, m=4, size=3, p=9) == pytest.approx(6 + 0 + 2 * 4 * 5)
    assert score_of("aicc", mean_square=0.0, m=4, size=1, p=9) == -np.inf


def binom_log(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


def test_ebic_of_more_choices_than_an_integer_of_numpy_holds():
    score = score_of("ebic", mean_square=1.0, m=20, size=60, p=462)
    assert score == pytest.approx(60 * np.log(20) + 2 * float(binom_log(462, 60)))


def test_other_criteria_ask_for_more_evidence(states):
    assert score_of("bic", mean_square=1.0, m=20, size=3, p=9) == pytest.approx(3 * np.log(20))
    ebic = 3 * np.log(20) + 2 * np.log(84)
    assert score_of("ebic", mean_square=1.0, m=20, size=3, p=9) == pytest.approx(ebic)
    sizes = {}
    for criterion in ("aicc", "bic", "ebic"):
        found = discover(states[:700], 0.002, degree=3, alphas=[1e-5], criterion=criterion)
        assert found.criterion == criterion
        sizes[criterion] = [len(result.support) for result in found.results]
    for ebic_size, bic_size, aicc_size in zip(
        *(sizes[c] for c in ("ebic", "bic", "aicc")), strict=True
    ):
        assert 1 <= ebic_size <= bic_size <= aicc_size
    with pytest.raises(ValueError, match="criterion"):
        discover(states, 0.002, criterion="aic")
