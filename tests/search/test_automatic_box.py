"""bounds="auto": the best model in a box that was chosen, and nothing more is claimed."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.boxes import lengths
from helpers.instances import REGIMES, Instance, make, tolerance
from helpers.seeds import seeds

import bestk
from bestk import Advanced, Problem, Status

SLOW = Advanced(enumeration=False, batch_size=1)
GREEDY = Advanced(beam_width=1)


def centred(instance):
    """The same problem without an intercept: weighted means taken off."""
    weight = instance.options.get("sample_weight")
    easy_data = np.column_stack([instance.X, instance.y]).astype(float)
    rest = easy_data - np.average(easy_data, axis=0, weights=weight)
    rest[:, np.ptp(easy_data, axis=0) == 0.0] = 0.0  # and not a rounding
    return replace(instance, X=rest[:, :-1], y=rest[:, -1])


@seeds(12, chunk=12)
@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("factor", [1.5, 0.4])
def test_no_model_in_the_box_is_better(seed, regime, intercept, factor, force):
    # The first models of tiny problems are the best ones: only a smaller box is in their way.
    force.box_factor(factor)
    instance = make(1000 + seed, regime)
    instance.options.pop("bounds", None)
    result = instance.solve(bounds="auto", fit_intercept=intercept, gap_tol=0.0)
    same = centred(instance) if intercept else instance
    check_best_in_box(same, result)


def check_best_in_box(instance: Instance, result) -> None:
    yy = instance.loss(())
    unbounded = instance.brute_force()
    if result.box is None:
        # No feature helped the first model: nothing was chosen, and the claim is not conditional.
        best, inside = unbounded, Status.OPTIMAL
        assert best >= (1.0 - 1e-9) * yy
    else:
        long, y_long = lengths(
            instance.X,
            instance.y,
            alpha=instance.options.get("alpha", 0.0),
            weight=instance.options.get("sample_weight"),
        )
        with np.errstate(divide="ignore"):
            reach = np.where(long > 0.0, result.box * y_long / long, np.inf)
        # The lengths here and there differ by roundings.
        assert (np.abs(result.coef) <= reach * (1 + 1e-9)).all()
        options = instance.options | {"bounds": (-reach, reach)}
        best, inside = replace(instance, options=options).brute_force(), Status.CONDITIONAL
    slack = tolerance(instance, best, yy) + 1e-9 * best
    assert result.objective == pytest.approx(best, rel=1e-9, abs=slack)
    assert result.lower_bound <= best + slack
    perfect = best <= 1e-9 * yy  # where rounding is all that is left
    assert result.status is inside or perfect
    assert result.is_conditional is (result.box is not None)
    assert result.objective >= unbounded - tolerance(instance, unbounded, yy)


def test_most_of_these_are_conditional_and_many_at_their_bounds(force):
    """What the test above would not notice: that boxes are never chosen, or never in the way."""
    force.box_factor(0.4)
    runs = [make(seed) for seed in range(100)]
    for run in runs:
        run.options.pop("bounds", None)
    results = [run.solve(bounds="auto") for run in runs]
    assert sum(result.status is Status.CONDITIONAL for result in results) > 60
    assert sum(len(result.at_bounds) > 0 for result in results) > 60


@pytest.mark.parametrize("seed", range(8))
def test_the_box_is_that_of_the_first_model(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 12)) * 10.0 ** rng.integers(-6, 7, 12)
    y = X[:, :5] @ (rng.standard_normal(5) / np.linalg.norm(X[:, :5], axis=0))
    y += 0.1 * rng.standard_normal(30)
    weight, alpha, intercept = rng.random(30), [0.0, 1.0][seed % 2], seed % 4 < 2
    options = {"alpha": alpha, "sample_weight": weight, "fit_intercept": intercept}
    first = bestk.beam_search(X, y, 4, width=Advanced().beam_width, **options)
    result = bestk.solve(X, y, 4, bounds="auto", **options)
    long, y_long = lengths(X, y, alpha=alpha, weight=weight, intercept=intercept)
    largest = np.abs(first.coef * long).max() / y_long
    assert result.box == pytest.approx(1.5 * largest, rel=1e-9)
    assert (np.abs(result.coef) * long <= result.box * y_long).all()
    assert result.status is Status.CONDITIONAL


@pytest.mark.parametrize("power", [-30, -3, 1, 40])
@pytest.mark.parametrize("intercept", [False, True])
def test_units_of_a_column_do_not_matter(easy_data, power, intercept):
    X, y = easy_data
    plain = bestk.solve(X, y, 4, bounds="auto", fit_intercept=intercept)
    used = int(plain.support[1])
    for j in (used, int(np.setdiff1d(np.arange(12), plain.support)[0])):
        scaled = X.copy()
        scaled[:, j] *= 2.0**power
        result = bestk.solve(scaled, y, 4, bounds="auto", fit_intercept=intercept)
        coef = plain.coef.copy()
        coef[j] /= 2.0**power
        np.testing.assert_array_equal(result.coef, coef)
        facts = ("objective", "lower_bound", "box", "status", "n_nodes", "intercept")
        assert [getattr(result, f) for f in facts] == [getattr(plain, f) for f in facts]


def test_a_model_outside_the_box_is_missed_and_none_is_claimed_not_to_exist(trap):
    X, y = trap
    best = bestk.solve(X, y, 2)
    assert best.status is Status.OPTIMAL
    assert best.support.tolist() == [0, 1]
    result = bestk.solve(X, y, 2, bounds="auto", advanced=GREEDY)
    assert result.support.tolist() == [2, 3]
    assert result.lower_bound > best.objective  # true in the box, wrong outside it
    assert result.status is Status.CONDITIONAL
    assert result.is_closed
    assert result.is_conditional
    assert not result.is_proven
    for text in (result.message, str(result)):
        assert "inside the box" in text
        assert "Proven: no model" not in text
    # A first model with the pair makes room for it.
    told = bestk.solve(X, y, 2, bounds="auto", advanced=GREEDY, initial_support=[0, 1])
    assert told.support.tolist() == [0, 1]
    assert told.box > 100 * result.box


def test_where_there_is_nothing_to_choose_nothing_is_assumed(easy_data):
    X, y = easy_data
    cases = [
        bestk.solve(X, np.zeros(60), 3, bounds="auto"),
        bestk.solve(X, y, 0, bounds="auto"),
        bestk.solve(np.zeros((60, 3)), y, 2, bounds="auto"),
        bestk.solve(X, y, 2, exclude=range(12), bounds="auto"),
    ]
    for result in cases:
        assert result.status is Status.OPTIMAL
        assert result.is_proven
        assert not result.is_conditional
        assert result.box is None
        assert result.assumptions == ()
        assert np.isinf(result.certificate.upper).all()
        assert not result.certificate.is_box_assumed


@seeds(20)
def test_no_box_is_chosen_from_rounding(seed):
    """y is orthogonal to all columns, up to what its first model then explains."""
    rng = np.random.default_rng(seed)
    q = np.linalg.qr(rng.standard_normal((40, 7)))[0]
    result = bestk.solve(q[:, :6] @ rng.standard_normal((6, 6)), q[:, 6], 3, bounds="auto")
    assert result.box is None
    assert result.is_proven


def test_features_that_cannot_enter_keep_no_bounds(easy_data):
    X, y = easy_data
    X = np.column_stack([X, np.zeros(60)])
    certificate = bestk.solve(X, y, 3, bounds="auto").certificate
    assert np.isfinite(certificate.upper).tolist() == [True] * 12 + [False]
    np.testing.assert_array_equal(certificate.lower, -certificate.upper)


def test_a_limit_leaves_its_status_and_the_condition(hard_data):
    result = bestk.solve(*hard_data, 6, bounds="auto", node_limit=5, advanced=SLOW)
    assert result.status is Status.NODE_LIMIT
    assert result.is_conditional
    assert not result.is_closed
    for text in (result.message, str(result)):
        assert "proven only among models inside the box" in text
    plain = bestk.solve(*hard_data, 6, node_limit=5, advanced=SLOW)
    assert "inside the box" not in plain.message


def test_the_assumption_has_numbers(easy_data):
    result = bestk.solve(*easy_data, 3, bounds="auto")
    (text,) = result.assumptions
    assert "1.5 times" in text
    assert f"{result.box / 1.5:.4g}" in text
    assert text in result.message
    assert text in str(result)
    assert bestk.solve(*easy_data, 3).assumptions == ()


@pytest.mark.parametrize("bounds", ["automatic", "", "AUTO"])
def test_other_words_are_refused(easy_data, bounds):
    X, y = easy_data
    problem = Problem.from_data(X, y)
    calls = [
        lambda: bestk.solve(X, y, 2, bounds=bounds),
        lambda: problem.with_bounds(bounds),
        lambda: Problem.from_gram(X.T @ X, X.T @ y, y @ y, bounds=bounds),
        lambda: Problem.from_batches([(X, y)], bounds=bounds),
        lambda: bestk.SparseRidge(2, bounds=bounds).fit(X, y),
        lambda: bestk.SparseRidgeCV([1], bounds=bounds).fit(X, y),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r'bounds must be a pair \(lower, upper\), "auto"'):
            call()


def test_beam_search_has_no_box_to_choose(easy_data):
    with pytest.raises(ValueError, match="beam_search makes none"):
        bestk.beam_search(*easy_data, 2, bounds="auto")


def test_every_way_to_a_problem_chooses_the_same_box(easy_data):
    X, y = easy_data
    expected = bestk.solve(X, y, 3, bounds="auto")
    problems = [
        Problem.from_data(X, y, bounds="auto"),
        Problem.from_data(X, y).with_bounds("auto"),
        Problem.from_data(X, -y, bounds="auto").with_target(y),
        Problem.from_data(X, y, alpha=5.0, bounds="auto").with_alpha(0.0),
        Problem.from_gram(X.T @ X, X.T @ y, y @ y, bounds="auto"),
        Problem.from_batches([(X[:20], y[:20]), (X[20:], y[20:])], bounds="auto"),
    ]
    for problem in problems:
        result = problem.solve(3)
        assert result.status is Status.CONDITIONAL
        assert result.box == pytest.approx(expected.box, rel=1e-9)
        assert result.objective == pytest.approx(expected.objective, rel=1e-9)
    assert problems[0].with_bounds(None).solve(3).status is Status.OPTIMAL
    assert problems[0].with_bounds((-9, 9)).solve(3).status is Status.OPTIMAL
    # The problem itself is what it was: another size has another box.
    assert problems[0].solve(1).box != problems[0].solve(3).box


def test_too_many_included_features_are_an_error_as_ever(easy_data):
    with pytest.raises(ValueError, match="include names 3 features, but k = 2"):
        bestk.solve(*easy_data, 2, include=[0, 1, 2], bounds="auto")
