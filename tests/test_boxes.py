"""bounds="auto": the best model in a box that was chosen, and nothing more is claimed."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from instances import REGIMES, Instance, make, tolerance
from typer.testing import CliRunner

import bestk
from bestk import Advanced, Problem, Status, storage
from bestk.cli.app import app
from bestk.results.certificate import Certificate
from bestk.search import automatic_box as boxes
from bestk.search.checkpoint import Checkpoint
from bestk.selection.cross_validation import cross_validate_batches
from bestk.selection.runner_up import _best_of
from bestk.show import report

SLOW = Advanced(enumeration=False, batch_size=1)


@pytest.fixture(scope="module")
def data():
    X, y, _ = bestk.datasets.make_synthetic(60, 12, k=3, rho=0.6, seed=3)
    return X, y


@pytest.fixture(scope="module")
def hard():
    """Data whose best model takes more than one node to prove."""
    X, y, _ = bestk.datasets.make_synthetic(100, 60, k=8, rho=0.9)
    return X, y


@pytest.fixture(scope="module")
def trap():
    """(X, y): two columns whose tiny difference is y, and two that a greedy search prefers."""
    rng = np.random.default_rng(1)
    z, a, f, g = np.linalg.qr(rng.standard_normal((40, 4)))[0].T
    X = np.column_stack([a, a + 1e-3 * z, f + 0.8 * z, g + 0.8 * z])
    return X, z + 0.01 * rng.standard_normal(40)


GREEDY = Advanced(beam_width=1)


def lengths(X, y, *, alpha=0.0, weight=None, intercept=False):
    """(lengths of the columns with their ridge, length of y), as theory eq. 1 has them."""
    X, y = X.astype(float), y.astype(float)
    weight = np.ones(len(y)) if weight is None else weight
    if intercept:
        X = X - np.average(X, axis=0, weights=weight)
        y = y - np.average(y, weights=weight)
    return np.sqrt(weight @ X**2 + alpha), np.sqrt(weight @ y**2)


# The best in the box ------------------------------------------------------------------------


def centred(instance):
    """The same problem without an intercept: weighted means taken off."""
    weight = instance.options.get("sample_weight")
    data = np.column_stack([instance.X, instance.y]).astype(float)
    rest = data - np.average(data, axis=0, weights=weight)
    rest[:, np.ptp(data, axis=0) == 0.0] = 0.0  # and not a rounding
    return replace(instance, X=rest[:, :-1], y=rest[:, -1])


@pytest.mark.parametrize("regime", REGIMES)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("factor", [1.5, 0.4])
def test_no_model_in_the_box_is_better(regime, intercept, factor, monkeypatch):
    # The first models of tiny problems are the best ones: only a smaller box is in their way.
    monkeypatch.setattr(boxes, "FACTOR", factor)
    for seed in range(12):
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


def test_most_of_these_are_conditional_and_many_at_their_bounds(monkeypatch):
    """What the test above would not notice: that boxes are never chosen, or never in the way."""
    monkeypatch.setattr(boxes, "FACTOR", 0.4)
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
def test_units_of_a_column_do_not_matter(data, power, intercept):
    X, y = data
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


def test_where_there_is_nothing_to_choose_nothing_is_assumed(data):
    X, y = data
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


def test_no_box_is_chosen_from_rounding():
    """y is orthogonal to all columns, up to what its first model then explains."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        q = np.linalg.qr(rng.standard_normal((40, 7)))[0]
        result = bestk.solve(q[:, :6] @ rng.standard_normal((6, 6)), q[:, 6], 3, bounds="auto")
        assert result.box is None
        assert result.is_proven


def test_features_that_cannot_enter_keep_no_bounds(data):
    X, y = data
    X = np.column_stack([X, np.zeros(60)])
    certificate = bestk.solve(X, y, 3, bounds="auto").certificate
    assert np.isfinite(certificate.upper).tolist() == [True] * 12 + [False]
    np.testing.assert_array_equal(certificate.lower, -certificate.upper)


def test_a_limit_leaves_its_status_and_the_condition(hard):
    result = bestk.solve(*hard, 6, bounds="auto", node_limit=5, advanced=SLOW)
    assert result.status is Status.NODE_LIMIT
    assert result.is_conditional
    assert not result.is_closed
    for text in (result.message, str(result)):
        assert "proven only among models inside the box" in text
    plain = bestk.solve(*hard, 6, node_limit=5, advanced=SLOW)
    assert "inside the box" not in plain.message


def test_the_assumption_has_numbers(data):
    result = bestk.solve(*data, 3, bounds="auto")
    (text,) = result.assumptions
    assert "1.5 times" in text
    assert f"{result.box / 1.5:.4g}" in text
    assert text in result.message
    assert text in str(result)
    assert bestk.solve(*data, 3).assumptions == ()


# Coefficients at their bounds -----------------------------------------------------------------


def test_coefficients_at_given_bounds_are_named(data):
    X, y = data
    free = bestk.solve(X, y, 3)
    assert free.at_bounds == ()
    assert "bound:" not in free.message
    j = int(np.argmax(free.coef))
    upper = np.full(12, np.inf)
    upper[j] = 0.9 * free.coef[j]
    result = bestk.solve(X, y, 3, bounds=(-np.inf, upper), include=[j])
    assert result.at_bounds == (j,)
    sentence = f"x{j} is at its bound: a wider box may allow a better model."
    for text in (result.message, str(result), report.result_page(result), result._repr_html_()):
        assert sentence in text
    assert result.status is Status.OPTIMAL
    assert not result.is_conditional


def test_signs_are_no_bounds_to_lie_at(data):
    X, y = data
    result = bestk.solve(X, -y, 3, bounds=(0.0, np.inf))
    assert (result.coef == 0.0).sum() > 0
    assert result.at_bounds == ()
    assert bestk.solve(X, y, 3, bounds=(0.0, 0.1)).at_bounds != ()


def test_several_are_listed_and_many_counted(data):
    X, y = data
    result = bestk.solve(pd.DataFrame(X).add_prefix("f"), y, 3, bounds=(-0.01, 0.01))
    assert len(result.at_bounds) == 3
    a, b, c = result.names
    assert f"{a}, {b} and {c} are at their bounds" in result.message
    many = bestk.solve(X, y, 8, bounds=(-1e-3, 1e-3))
    assert len(many.at_bounds) == 8
    assert "and 3 more are at their bounds" in many.message


def test_coefficients_at_a_chosen_bound_are_named(data, monkeypatch):
    monkeypatch.setattr(boxes, "FACTOR", 0.5)
    free = bestk.solve(*data, 3)
    result = bestk.solve(*data, 3, bounds="auto")
    assert result.at_bounds != ()
    assert set(result.at_bounds) <= set(result.support.tolist())
    assert result.objective > free.objective
    certificate = result.certificate
    for j in result.support:
        is_at = abs(result.coef[j]) > (1 - 1e-6) * certificate.upper[j]
        assert is_at == (j in result.at_bounds)
    assert "a wider box may allow" in result.message


# What is accepted -----------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", ["automatic", "", "AUTO"])
def test_other_words_are_refused(data, bounds):
    X, y = data
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


def test_beam_search_has_no_box_to_choose(data):
    with pytest.raises(ValueError, match="beam_search makes none"):
        bestk.beam_search(*data, 2, bounds="auto")


def test_every_way_to_a_problem_chooses_the_same_box(data):
    X, y = data
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


def test_too_many_included_features_are_an_error_as_ever(data):
    with pytest.raises(ValueError, match="include names 3 features, but k = 2"):
        bestk.solve(*data, 2, include=[0, 1, 2], bounds="auto")


# Paths, grids, runners-up ---------------------------------------------------------------------


def test_a_path_has_one_box_from_its_largest_size(data):
    X, y = data
    path = bestk.solve_path(X, y, [1, 2, 5], bounds="auto")
    largest = bestk.solve(X, y, 5, bounds="auto")
    assert {result.box for result in path.results} == {largest.box}
    assert path[5].objective == largest.objective
    assert path.is_closed
    assert path.is_conditional
    assert not path.is_proven
    upper = largest.certificate.upper
    for k, result in path.items():
        inside = bestk.solve(X, y, k, bounds=(-upper, upper))
        assert result.objective == pytest.approx(inside.objective, rel=1e-9)
        assert result.status is Status.CONDITIONAL
    assert "conditional: x" in str(path)
    assert "optimal" not in str(path)


def test_a_grid_has_one_box_in_standard_units(data):
    X, y = data
    problem = Problem.from_data(X, y, bounds="auto")
    grid = problem.solve_grid([1, 3], [0.5, 50.0])
    first = problem.with_alpha(0.5).solve(3)
    assert {r.box for path in grid.values() for r in path.results} == {first.box}
    for alpha, path in grid.items():
        long, y_long = lengths(X, y, alpha=alpha)
        reach = first.box * y_long / long
        for k, result in path.items():
            np.testing.assert_allclose(result.certificate.upper, reach, rtol=1e-12)
            inside = bestk.solve(X, y, k, alpha=alpha, bounds=(-reach, reach))
            assert result.objective == pytest.approx(inside.objective, rel=1e-9)
            assert result.status is Status.CONDITIONAL


def test_a_runner_up_is_sought_in_the_box_of_the_result(trap):
    X, y = trap
    problem = Problem.from_data(X, y, bounds="auto")
    result = problem.solve(2, advanced=GREEDY)
    other = problem.runner_up(result)
    assert other.box == result.box
    assert other.status is Status.CONDITIONAL
    np.testing.assert_array_equal(other.support == [2, 3], [False, True])
    # Without a box the same question has another answer, which is then proven.
    free = Problem.from_data(X, y).runner_up(result)
    assert free.support.tolist() == [0, 1]
    assert free.status is Status.OPTIMAL
    assert not free.is_conditional


def test_an_interrupted_runner_up_claims_no_more_than_holds(trap, monkeypatch):
    X, y = trap
    problem = Problem.from_data(X, y, bounds="auto")
    result = problem.solve(2, advanced=GREEDY)

    def interrupted(*args, **options):
        from bestk.search.solve import solve_problem

        return replace(solve_problem(*args, **options), status=Status.INTERRUPTED)

    monkeypatch.setattr("bestk.selection.runner_up.solve_problem", interrupted)
    inside = problem.runner_up(result)
    assert inside.status is Status.INTERRUPTED
    assert inside.lower_bound == pytest.approx(result.lower_bound)
    outside = Problem.from_data(X, y).runner_up(result)
    assert outside.lower_bound == 0.0  # the parts not searched may hold anything


def test_closed_parts_of_a_runner_up_are_not_open(data):
    result = bestk.solve(*data, 2, bounds="auto")
    assert _best_of([result, result]).status is Status.CONDITIONAL


# Certificates, files, checkpoints -------------------------------------------------------------


def test_the_certificate_says_so_and_nobody_can_take_it_back(data, tmp_path):
    X, y = data
    result = bestk.solve(X, y, 3, bounds="auto")
    result.certificate.save(tmp_path / "proof.npz")
    certificate = Certificate.load(tmp_path / "proof.npz")
    assert certificate.is_box_assumed
    assert "chosen from the solution itself" in certificate.assumptions[0]
    for exact in (False, True):
        verification = certificate.verify(X, y, exact=exact)
        assert verification, str(verification)
        assert verification.assumptions == certificate.assumptions
    forged = replace(certificate, is_box_assumed=False).verify(X, y)
    assert not forged
    assert "fingerprint" in forged.failures[0]
    assert not replace(certificate, is_box_assumed="perhaps").verify(X, y)


def test_given_bounds_are_an_assumption_of_the_certificate_only(data):
    X, y = data
    result = bestk.solve(X, y, 3, bounds=(-5.0, 5.0))
    assert result.assumptions == ()
    certificate = result.certificate
    assert not certificate.is_box_assumed
    expected = ("coefficients lie within the bounds that were given",)
    assert certificate.assumptions == expected
    assert certificate.verify(X, y).assumptions == expected
    assert not replace(certificate, is_box_assumed=True).verify(X, y)
    assert bestk.solve(X, y, 3).certificate.assumptions == ()


def test_certificates_from_before_boxes_are_read(data):
    X, y = data
    certificate = bestk.solve(X, y, 3, bounds=(-5.0, 5.0)).certificate
    arrays = certificate.to_arrays()
    header = json.loads(str(arrays["certificate"]))
    assert header.pop("is_box_assumed") is False
    assert header["version"] == 1
    old = Certificate.from_arrays(arrays | {"certificate": np.array(json.dumps(header))})
    assert old.verify(X, y)


def test_a_stored_run_keeps_the_condition(data, tmp_path, monkeypatch):
    monkeypatch.setattr(boxes, "FACTOR", 0.5)
    result = bestk.solve(*data, 3, bounds="auto")
    assert result.at_bounds
    storage.save(result, tmp_path / "run.npz")
    loaded = storage.load(tmp_path / "run.npz")
    for name in ("status", "box", "at_bounds", "assumptions", "is_conditional", "message"):
        assert getattr(loaded, name) == getattr(result, name)
    assert loaded.status is Status.CONDITIONAL
    assert loaded.certificate.is_box_assumed


def test_a_resumed_run_keeps_the_box(hard, tmp_path):
    X, y = hard
    path = tmp_path / "run.ckpt"
    options = {"bounds": "auto", "alpha": 1e-3, "advanced": Advanced(enumeration=False)}
    whole = bestk.solve(X, y, 4, **options)
    assert whole.n_nodes > 20
    for again in (
        {"X": X, "y": y},
        {"problem": Problem.from_data(X, y, alpha=1e-3, bounds="auto")},
    ):
        cut = bestk.solve(X, y, 4, **options, node_limit=10, checkpoint=path)
        assert cut.status is Status.NODE_LIMIT
        result = bestk.resume(path, **again)
        assert result.status is Status.CONDITIONAL
        assert result.box == whole.box
        assert result.objective == whole.objective
        assert result.certificate.is_box_assumed
        np.testing.assert_array_equal(result.certificate.upper, whole.certificate.upper)
        assert result.certificate.verify(X, y)


def test_a_checkpoint_tells_chosen_bounds_from_given_ones(hard, tmp_path):
    X, y = hard
    path = tmp_path / "run.ckpt"
    cut = bestk.solve(X, y, 4, bounds="auto", node_limit=3, advanced=SLOW, checkpoint=path)
    upper = cut.certificate.upper
    given = Problem.from_data(X, y, bounds=(-upper, upper))
    with pytest.raises(ValueError, match="another problem"):
        bestk.resume(path, problem=given)
    bestk.solve(X, y, 4, bounds=(-1.0, 1.0), node_limit=3, advanced=SLOW, checkpoint=path)
    with pytest.raises(ValueError, match="another problem"):
        bestk.resume(path, problem=given.with_bounds("auto"))


def test_checkpoints_from_before_boxes_are_read(hard, tmp_path, monkeypatch):
    path = tmp_path / "run.ckpt"
    bestk.solve(*hard, 4, bounds=(-9.0, 9.0), node_limit=3, advanced=SLOW, checkpoint=path)
    read = Checkpoint.read

    def old(path):
        saved = read(path)
        del saved.header["question"]["box"]
        return saved

    monkeypatch.setattr(Checkpoint, "read", old)
    assert bestk.resume(path, *hard, node_limit=5).status is Status.NODE_LIMIT


# Estimators, cross-validation, equations ------------------------------------------------------


def test_an_estimator_does_not_warn_of_what_is_closed(data, hard):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = bestk.SparseRidge(k=3, bounds="auto").fit(X, np.column_stack([y, y**2]))
    assert model.status_ == [Status.CONDITIONAL] * 2
    assert model.result_[0].box != model.result_[1].box
    slow = bestk.SparseRidge(k=6, bounds="auto", node_limit=3, advanced=SLOW)
    with pytest.warns(UserWarning, match="the search stopped"):
        slow.fit(*hard)


def test_cross_validation_is_conditional_through_and_through(data):
    X, y = data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = bestk.SparseRidgeCV([1, 2], [0.0, 1.0], cv=3, bounds="auto").fit(X, y)
    assert model.status_ is Status.CONDITIONAL
    validation = model.cross_validation_
    assert validation.share_proven == 0.0
    assert validation.share_conditional == 1.0
    assert validation.is_closed
    assert validation.is_conditional
    assert not validation.is_proven
    assert "0% of the fits are proven optimal, 100% the best inside a box" in str(validation)
    for page in (report.cv_page(validation), validation._repr_html_()):
        assert "Conditional." in page
        assert "is proven optimal" not in page
    free = bestk.SparseRidgeCV([1, 2], [0.0, 1.0], cv=3).fit(X, y).cross_validation_
    assert str(free).endswith("100% of the fits are proven optimal")
    batches, problem = cross_validate_batches([(X, y)], [1, 2], [0.0], n_folds=3, bounds="auto")
    assert batches.share_conditional == 1.0
    assert problem.solve(2).status is Status.CONDITIONAL


def test_equations_have_boxes_of_their_own(data):
    pytest.importorskip("pysindy")
    from bestk.sindy import OKRidge

    X, y = data
    Y = np.column_stack([y, X[:, 0] - 3.0 * X[:, 5] + 0.1 * y])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        every = OKRidge(k=2, bounds="auto").fit(X, Y)
        one = OKRidge(k=2, bounds={1: "auto"}).fit(X, Y)
    assert [result.status for result in every.results_] == [Status.CONDITIONAL] * 2
    assert every.results_[0].box != every.results_[1].box
    assert "conditional" in every.summary()
    assert [result.status for result in one.results_] == [Status.OPTIMAL, Status.CONDITIONAL]
    other = every.problems_[1].runner_up(every.results_[1])
    assert other.box == every.results_[1].box
    shared = OKRidge(k=3, total_k=4, bounds="auto").fit(X, Y)
    assert all(result.is_closed for result in shared.results_)


# Pages, pictures and the command line ---------------------------------------------------------


def test_a_report_says_conditional(data, hard):
    result = bestk.solve(*data, 3, bounds="auto")
    for page in (report.result_page(result), result._repr_html_()):
        assert "<strong>Conditional.</strong>" in page
        assert "larger coefficients were not looked at" in page
        assert "Proven optimal" not in page
        assert 'class="verdict"' in page
        assert 'class="verdict proven"' not in page
    assert "search ended early" not in report.result_page(result)
    stopped = bestk.solve(*hard, 6, bounds="auto", node_limit=5, advanced=SLOW)
    assert "features inside the box is better by more than" in report.result_page(stopped)


def test_a_path_report_and_picture_say_conditional(data):
    path = bestk.solve_path(*data, [1, 2], bounds="auto")
    for page in (report.path_page(path), path._repr_html_()):
        assert "<strong>Conditional.</strong>" in page
        assert "proven optimal" not in page.lower()
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert path.plot(ax).get_title() == "All sizes proven inside a chosen box"


@pytest.fixture(scope="module")
def file(data, tmp_path_factory):
    X, y = data
    path = tmp_path_factory.mktemp("boxes") / "data.csv"
    pd.DataFrame(X).add_prefix("f").assign(y=y).to_csv(path, index=False)
    return path


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize(
    ("arguments", "piece"),
    [
        (["fit", "-k", "3"], "Conditional: no model with at most 3 features inside the box"),
        (["path", "--max-k", "3"], "(conditional)"),
        (["cv", "--max-k", "2", "--folds", "3"], "100% the best inside a box"),
    ],
)
def test_the_command_line_says_conditional(file, arguments, piece):
    command, *options = arguments
    outcome = run(command, file, *options, "--auto-bounds")
    assert outcome.exit_code == 0, outcome.output
    text = " ".join(outcome.stdout.split())
    assert piece in text
    assert "Proven:" not in text
    document = json.loads(run(command, file, *options, "--auto-bounds", "--json").stdout)
    assert document["conditional"] is True
    assert document["proven"] is False
    plain = json.loads(run(command, file, *options, "--json").stdout)
    assert plain["conditional"] is False
    assert plain["proven"] is True


def test_a_limit_inside_a_box_is_code_3(hard, tmp_path):
    X, y = hard
    np.savez(tmp_path / "hard.npz", X=X, y=y)
    arguments = ("fit", tmp_path / "hard.npz", "-k", 9, "--auto-bounds", "--node-limit", 0)
    outcome = run(*arguments)
    assert outcome.exit_code == 3
    assert "features inside the box may be better" in " ".join(outcome.stdout.split())


@pytest.mark.parametrize("other", [["--lower", "-1"], ["--upper", "1"], ["--nonnegative"]])
def test_chosen_and_given_bounds_exclude_each_other(file, other):
    outcome = run("fit", file, "-k", 2, "--auto-bounds", *other)
    assert outcome.exit_code == 2
    assert "--auto-bounds excludes" in outcome.output


def test_the_command_line_names_coefficients_at_their_bounds(file):
    outcome = run("fit", file, "-k", 1, "--upper", "0.1", "--lower", "-0.1")
    assert "is at its bound: a wider box" in " ".join(outcome.stdout.split())
    document = json.loads(
        run("fit", file, "-k", 1, "--upper", "0.1", "--lower", "-0.1", "--json").stdout
    )
    assert document["at_bounds"] == document["support"]


def test_a_checkpoint_of_the_command_line_keeps_the_box(file, tmp_path):
    path = tmp_path / "run.ckpt"
    fit = ("fit", file, "-k", 4, "--checkpoint", path, "--json")
    first = run(*fit, "--auto-bounds", "--node-limit", 0)
    assert first.exit_code == 3
    assert run(*fit).exit_code == 1
    second = run(*fit, "--auto-bounds")
    assert second.exit_code == 0
    assert json.loads(second.stdout)["conditional"] is True


def test_a_saved_proof_in_a_box_is_verified_with_its_assumption(file, tmp_path):
    path = tmp_path / "run.npz"
    assert run("fit", file, "-k", 3, "--auto-bounds", "--save", path).exit_code == 0
    outcome = run("verify", path, file)
    assert outcome.exit_code == 0
    assert "box chosen from the solution itself" in outcome.stdout
