"""Lists of near-optimal models against brute force over all supports."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from helpers import instances
from helpers.checks import assert_same, configuration
from helpers.devices import Plain, using
from helpers.lists import check_list, doubt, supports_of
from helpers.seeds import seeds
from scipy.optimize import minimize

import bestk
from bestk import Status
from bestk.results.completeness import ListedModel
from bestk.rivals import searching
from bestk.rivals.stages import ListWriter

TOLERANCES = (0.0, 0.02, 0.1, 0.5, 3.0)


def listed(seed, **settings):
    instance = instances.make(seed)
    rng = np.random.default_rng([seed, 77])
    within = float(rng.choice(TOLERANCES))
    found = bestk.near_optimal(
        instance.X, instance.y, instance.k, within=within, **instance.options, **settings
    )
    return instance, found


def is_undecidable(found):
    """Perfect fits cannot be told apart: lists of them end before they are complete."""
    return found.status is Status.PERFECT_FIT


@seeds(1000, chunk=50)
def test_lists_are_those_of_brute_force(seed):
    instance, found = listed(seed, n_threads=1)
    check_list(instance, found)
    assert found.complete or is_undecidable(found)


@seeds(600, start=5000, chunk=50)
def test_trees_list_what_brute_force_lists(seed, force):
    """Units of few nodes, nothing closed at once."""
    force.closed_in_units_only()
    force.units(nodes=3, in_flight=2, close=0.0 if seed % 2 else 1.0)
    instance, found = listed(seed, n_threads=1)
    check_list(instance, found)
    assert found.complete or is_undecidable(found)


@seeds(600, start=7000, chunk=50)
def test_size_by_size_lists_the_same(seed, monkeypatch):
    """As where many supports of k features are below the threshold."""
    monkeypatch.setattr(searching, "_FEW", 0)
    instance, found = listed(seed, n_threads=1)
    check_list(instance, found)
    assert found.complete or is_undecidable(found)
    if found.certificate is not None:
        assert verify(instance, found.certificate)


@seeds(600, start=9000, chunk=50)
def test_any_method_and_any_limit(seed):
    settings = configuration(seed)
    instance, found = listed(seed, **settings)
    check_list(instance, found)
    if settings["node_limit"] is None:
        assert found.complete or is_undecidable(found)


# Certificates -----------------------------------------------------------------------------------


def verify(instance, certificate):
    weight = instance.options.get("sample_weight")
    return certificate.verify(instance.X, instance.y, weight, n_threads=1)


def mutated(certificate, rng):
    """(what was done, a certificate that lists something else)"""
    models = list(certificate.models)
    kind = rng.choice(
        ["drop", "superset", "stranger", "threshold", "no proof", "coefficient", "largest"]
    )
    if kind == "largest" and certificate.largest:
        return kind, replace(certificate, largest=certificate.largest[1:])
    if kind == "drop" and models:
        del models[rng.integers(len(models))]
        return kind, replace(certificate, models=tuple(models))
    if kind == "superset" and models:
        model = models[rng.integers(len(models))]
        more = np.setdiff1d(np.arange(len(certificate.lower)), model.support)
        if len(more) and len(model.support) < certificate.k:
            support = np.append(model.support, more[0])
            order = np.argsort(support)
            values = np.append(model.values, 0.0)[order]
            models.append(model._replace(support=support[order], values=values))
            return kind, replace(certificate, models=tuple(models))
    if kind == "stranger" and certificate.k > 0:
        support = rng.permutation(len(certificate.lower))[:1]
        models.append(ListedModel(support, np.zeros(1), 0.0))
        return kind, replace(certificate, models=tuple(models))
    if kind == "threshold" and certificate.proofs[-1].size > len(certificate.include):
        return kind, replace(certificate, threshold=2.0 * certificate.threshold + 1e-3)
    if kind == "no proof" and len(certificate.proofs) > 1:
        return kind, replace(certificate, proofs=certificate.proofs[:-1])
    if kind == "coefficient" and models and len(models[0].support):
        models[0] = models[0]._replace(values=models[0].values * 3.0 + 1.0)
        return kind, replace(certificate, models=tuple(models))
    return "nothing", certificate


def is_too_bad(instance, model, threshold):
    """Is the objective of listed coefficients above the threshold?"""
    X, y = instance.X[:, model.support].astype(float), instance.y.astype(float)
    weight, alpha = instance.options.get("sample_weight", 1.0), instance.options.get("alpha", 0.0)
    residual = y - X @ model.values - model.intercept
    loss = float((weight * residual**2).sum() + alpha * (model.values**2).sum())
    return loss > threshold + 3.0 * doubt(instance, threshold)


def is_still_true(instance, certificate):
    """By brute force: does a mutated list happen to be right?"""
    slack = doubt(instance, certificate.threshold)
    listed = [set(model.support.tolist()) for model in certificate.models]
    original = dict(certificate.copies.tolist())
    for support in supports_of(instance):
        below = instance.loss(support) < certificate.threshold - slack
        if below and not any(one <= {original.get(j, j) for j in support} for one in listed):
            return False
    return True


@seeds(1200, chunk=60)
def test_lists_are_verified_and_mutated_ones_refused(seed):
    instance, found = listed(seed, n_threads=1)
    if found.certificate is None:
        assert is_undecidable(found)
        return
    verdict = verify(instance, found.certificate)
    assert verdict, verdict
    best = min(instance.loss(support) for support in supports_of(instance))
    assert found.best.objective == pytest.approx(best, rel=1e-6, abs=doubt(instance, best))
    assert found.best.certificate.verify(
        instance.X, instance.y, instance.options.get("sample_weight"), n_threads=1
    )
    rng = np.random.default_rng([seed, 8])
    for _ in range(3):
        kind, other = mutated(found.certificate, rng)
        verdict = verify(instance, other)
        if kind == "nothing":
            continue
        if kind == "superset" or not is_still_true(instance, other):
            assert not verdict, kind
        if any(is_too_bad(instance, model, other.threshold) for model in other.models):
            assert not verdict, kind
        if kind == "largest" and instance.loss(found.certificate.largest[0]) < (
            found.threshold - doubt(instance, found.threshold)
        ):
            assert not verdict, kind


def refit(problem, support):
    values, _ = problem.fit(np.array(support))
    return ListedModel(np.array(support), values, 0.0)


def test_a_listed_copy_does_not_stand_for_all_that_goes_with_it():
    """{copy of 0, 1} is as good as {0, 1}, but says nothing about {1, 2}."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[:, 4] = 2.0 * X[:, 0]
    y = X[:, 1] + 0.5 * X[:, 0] + 0.45 * X[:, 2] + 0.1 * rng.standard_normal(40)
    problem = bestk.Problem.from_data(X, y)
    threshold = max(problem.fit(np.array(S))[1] for S in ([0, 1], [1, 2])) * 1.01
    found = bestk.near_optimal(X, y, 2, below=threshold)
    assert [m.support.tolist() for m in found] == [[0, 1], [1, 2]]
    certificate = found.certificate
    assert certificate.verify(X, y)
    forged = replace(certificate, models=(refit(problem, [1, 4]),))
    for largest in (certificate.largest, (np.array([1, 4]),), None):
        assert not replace(forged, largest=largest).verify(X, y)


def test_largest_supports_must_be_as_large_as_they_can_be():
    """A smaller one would stand for more than its own parts."""
    X, y, _ = bestk.datasets.make_synthetic(100, 12, k=4, rho=0.9)
    certificate = bestk.near_optimal(X, y, 3, alpha=0.1, within=0.3).certificate
    assert certificate.verify(X, y)
    smaller = tuple(support[:1] for support in certificate.largest)
    assert not replace(certificate, largest=smaller).verify(X, y)
    best = bestk.near_optimal(X, y, 3, alpha=0.1, n_best=300).certificate
    assert best.verify(X, y)
    one = best.models[0]
    part = one._replace(support=one.support[:1], values=one.values[:1])
    assert not replace(best, models=(part,), threshold=1e6).verify(X, y)


def test_what_was_dropped_is_refused():
    X, y, _ = bestk.datasets.make_synthetic(100, 12, k=4, rho=0.9)
    found = bestk.near_optimal(X, y, 3, alpha=0.1, within=0.3)
    certificate = found.certificate
    assert len(found) > 3
    assert certificate.verify(X, y)
    for i in range(len(found)):
        fewer = certificate.models[:i] + certificate.models[i + 1 :]
        assert not replace(certificate, models=fewer).verify(X, y)
    stranger = ListedModel(np.array([0]), np.zeros(1), 0.0)
    assert not replace(certificate, models=(*certificate.models, stranger)).verify(X, y)
    assert not certificate.verify(X, y + 1.0)
    assert not certificate.verify(X[:, ::-1].copy(), y)


def test_a_list_of_a_tree_with_units_is_verified(force):
    """Known supports end nodes inside of units, and the verifier finds that for itself."""
    force.closed_in_units_only()
    force.units(nodes=5, in_flight=3, close=0.0)
    X, y, _ = bestk.datasets.make_synthetic(30, 16, k=8, rho=0.9)
    found = bestk.near_optimal(X, y, 5, alpha=1e-2, within=0.8, n_threads=2)
    assert len({model.size for model in found.models}) > 1
    assert found.n_nodes > 50
    assert found.certificate.verify(X, y)


@seeds(200, chunk=50)
def test_lists_of_products_are_verified_on_them(seed):
    instance = instances.make(seed, ("plain", "square", "integers", "binary")[seed % 4])
    options = dict(instance.options)
    weight = options.pop("sample_weight", np.ones(len(instance.y)))
    choice = {name: options.pop(name) for name in ("include", "exclude") if name in options}
    X, y = instance.X.astype(float), instance.y.astype(float)
    given = X.T @ (weight[:, None] * X), X.T @ (weight * y), float(y @ (weight * y))
    problem = bestk.Problem.from_gram(*given, len(y), **options)
    found = problem.near_optimal(instance.k, within=0.2, n_threads=1, **choice)
    if found.certificate is None:
        assert is_undecidable(found) or found.status is Status.NUMERICAL_LIMIT
        return
    verdict = found.certificate.verify_gram(*given, n_threads=1)
    assert verdict, verdict
    if len(found) and 1e-6 * found.yy < found.threshold:
        fewer = replace(found.certificate, models=found.certificate.models[1:])
        assert not fewer.verify_gram(*given, n_threads=1)
    assert not found.certificate.verify_gram(given[0], given[1] + 1.0, given[2] + 1.0)


def test_a_certificate_survives_a_file(tmp_path):
    X, y, _ = bestk.datasets.make_synthetic(60, 10, k=3, rho=0.7)
    found = bestk.near_optimal(X, y, 4, alpha=0.5, within=0.1, include=[2], fit_intercept=True)
    path = tmp_path / "list.npz"
    found.certificate.save(path)
    again = type(found.certificate).load(path)
    assert again.verify(X, y)
    assert again.threshold == found.threshold
    assert [m.support.tolist() for m in again.models] == [m.support.tolist() for m in found]
    found.best.certificate.save(path)
    with pytest.raises(ValueError, match="no certificate of a list; pass one"):
        type(found.certificate).load(path)


# The best ones of one size ----------------------------------------------------------------------


@seeds(400, chunk=40)
def test_the_n_best_are_those_of_brute_force(seed):
    instance = instances.make(seed)
    if instance.regime in ("copies", "duplicate", "collinear", "perfect_fit", "zero_y", "wide"):
        return
    n = 1 + seed % 7
    found = bestk.near_optimal(
        instance.X, instance.y, instance.k, n_best=n, n_threads=1, **instance.options
    )
    if found.copies:
        return  # supports with copies are not listed
    useful = np.flatnonzero((instance.X != 0.0).any(axis=0))
    lower, upper = instance.options.get("bounds", (-np.inf, np.inf))
    if len(useful) < instance.X.shape[1] or np.any(np.asarray(lower) == np.asarray(upper)):
        return
    every = [S for S in supports_of(instance) if len(S) == min(instance.k, found.models[0].size)]
    losses = sorted(instance.loss(support) for support in every)
    slack = doubt(instance, losses[-1])
    assert found.complete or is_undecidable(found)
    assert len(found) == min(n, len(losses))
    np.testing.assert_allclose(
        [model.objective for model in found], losses[: len(found)], rtol=1e-7, atol=slack
    )


def test_the_n_best_of_a_larger_problem_are_proven():
    X, y, _ = bestk.datasets.make_synthetic(100, 16, k=4, rho=0.8)
    found = bestk.near_optimal(X, y, 4, alpha=0.1, n_best=25)
    problem = bestk.Problem.from_data(X, y, alpha=0.1)
    losses = sorted(problem.fit(np.array(S))[1] for S in combinations(range(16), 4))
    np.testing.assert_allclose([model.objective for model in found], losses[:25], rtol=1e-9)
    assert found.complete
    assert found.only_k
    assert found.certificate.verify(X, y)
    fewer = replace(found.certificate, models=found.certificate.models[1:])
    assert not fewer.verify(X, y)


def test_all_there_are_may_be_fewer_than_asked_for():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 5))
    y = X[:, 0] + rng.standard_normal(50)
    found = bestk.near_optimal(X, y, 2, n_best=11)
    assert len(found) == 10
    assert found.complete
    assert found.certificate.verify(X, y)
    fewer = replace(found.certificate, models=found.certificate.models[1:])
    assert not fewer.verify(X, y)


# Thresholds and limits --------------------------------------------------------------------------


def test_an_absolute_threshold():
    X, y, _ = bestk.datasets.make_synthetic(100, 12, k=4, rho=0.9)
    relative = bestk.near_optimal(X, y, 3, alpha=0.1, within=0.3)
    absolute = bestk.near_optimal(X, y, 3, alpha=0.1, below=relative.threshold)
    assert [m.support.tolist() for m in absolute] == [m.support.tolist() for m in relative]
    assert absolute.within is None
    nothing = bestk.near_optimal(X, y, 3, alpha=0.1, below=0.5 * relative.best.objective)
    assert len(nothing) == 0
    assert nothing.complete
    assert nothing.certificate.verify(X, y)
    assert len(nothing.useless) == 12
    assert np.isnan(nothing.coefficient_ranges()).all()


def test_too_many_models_leave_the_best_ones():
    X, y, _ = bestk.datasets.make_synthetic(100, 14, k=5, rho=0.9)
    whole = bestk.near_optimal(X, y, 4, alpha=0.1, within=0.5)
    some = bestk.near_optimal(X, y, 4, alpha=0.1, within=0.5, max_models=10)
    assert len(whole) > 10 >= len(some) > 0
    assert not some.complete
    assert some.complete_below < some.threshold == whole.threshold
    assert some.certificate.verify(X, y)  # of what it is complete below
    assert f"below {some.complete_below:.10g} only (more than max_models)" in str(some)
    shown = some._repr_html_()
    assert "The list may be incomplete (more than max_models)." in shown
    assert "Raise max_models" in shown
    assert "Proven" not in shown
    check = bestk.near_optimal(X, y, 4, alpha=0.1, below=some.complete_below)
    assert [m.support.tolist() for m in check] == [m.support.tolist() for m in some]


@pytest.mark.parametrize("k", [5, 7, 9])
def test_too_many_perfect_fits_are_not_told_apart(k):
    X = np.random.default_rng(0).standard_normal((4, 7))
    found = bestk.near_optimal(X, X[:, 0] + 1.0, k, max_models=1)
    assert not found.complete
    assert found.status is Status.PERFECT_FIT
    assert found.complete_below == 0.0
    assert found.certificate is None
    assert len(found) == 1


@pytest.mark.parametrize("limits", [{"node_limit": 3}, {"time_limit": 0.0}, {"callback": bool}])
def test_a_limit_leaves_an_honest_list(limits, force):
    force.units(nodes=3, in_flight=2, close=0.0)
    X, y, _ = bestk.datasets.make_synthetic(60, 14, k=5, rho=0.9)
    whole = bestk.near_optimal(X, y, 5, alpha=0.01, within=0.3)
    some = bestk.near_optimal(X, y, 5, alpha=0.01, within=0.3, **limits)
    assert not some.complete
    assert some.certificate is None
    assert some.status in (Status.NODE_LIMIT, Status.TIME_LIMIT, Status.STOPPED)
    assert some.complete_below < some.threshold
    for model in whole.models:
        if model.objective < some.complete_below * (1 - 1e-9):
            assert some.contains(model.support)
    assert some.contains(some.best.support)
    assert some.best.lower_bound <= whole.best.objective * (1 + 1e-9)


@pytest.mark.parametrize(
    ("few", "asked"), [(500, {"within": 0.3}), (0, {"within": 0.3}), (0, {"n_best": 9})]
)
def test_a_killed_run_goes_on(few, asked, force, monkeypatch, tmp_path):
    """From every file that it wrote, with the same list and the same certificate."""
    monkeypatch.setattr(searching, "_FEW", few)
    force.closed_in_units_only()
    force.units(nodes=5, in_flight=3, close=0.0)
    X, y, _ = bestk.datasets.make_synthetic(60, 14, k=5, rho=0.9)
    path, written = tmp_path / "list.ckpt", []
    write = ListWriter.write

    def keep(self, parts):
        write(self, parts)
        written.append(path.read_bytes())

    options = {"alpha": 0.01, "checkpoint": path, "checkpoint_interval": 0.0, **asked}
    monkeypatch.setattr(ListWriter, "write", keep)
    whole = bestk.near_optimal(X, y, 4, **options)
    monkeypatch.setattr(ListWriter, "write", write)
    assert len(written) > 5
    for content in written[:: max(1, len(written) // 10)]:
        path.write_bytes(content)
        again = bestk.near_optimal(X, y, 4, **options)
        assert [m.support.tolist() for m in again] == [m.support.tolist() for m in whole]
        assert again.n_nodes == whole.n_nodes
        assert_same(again.certificate, whole.certificate)
    with pytest.raises(ValueError, match="another run"):
        bestk.near_optimal(X, y, 4, **options | {"within": 0.2})
    with pytest.raises(ValueError, match="list of models"):
        bestk.resume(path, X, y)
    with pytest.raises(ValueError, match="other data"):
        bestk.near_optimal(X, y + 1.0, 4, **options)


def test_a_limit_leaves_a_checkpoint_to_go_on_from(force, tmp_path):
    force.closed_in_units_only()
    force.units(nodes=3, in_flight=2, close=0.0)
    X, y, _ = bestk.datasets.make_synthetic(60, 14, k=5, rho=0.9)
    options = {"alpha": 0.01, "within": 0.3, "checkpoint": tmp_path / "list.ckpt"}
    whole = bestk.near_optimal(X, y, 4, alpha=0.01, within=0.3)
    some = bestk.near_optimal(X, y, 4, **options, node_limit=10)
    assert not some.complete
    again = bestk.near_optimal(X, y, 4, **options)
    assert again.complete
    assert_same(again.certificate, whole.certificate)


@pytest.fixture
def poor_start(monkeypatch):
    """A first model that is far from the best one."""
    first_model = searching.first_model

    def poor(presolved, *others):
        first = first_model(presolved, *others)
        first.support = np.array([9, 10, 11])
        first.coef, first.objective = first.problem.fit(first.support)
        return first

    return lambda: monkeypatch.setattr(searching, "first_model", poor)


def test_a_better_best_model_moves_the_threshold(poor_start):
    """A first model that is not the best one makes a threshold that is too large."""
    X, y, _ = bestk.datasets.make_synthetic(60, 12, k=4, rho=0.9)
    right = bestk.near_optimal(X, y, 3, alpha=0.1, within=0.2)
    poor_start()
    found = bestk.near_optimal(X, y, 3, alpha=0.1, within=0.2)
    assert found.threshold == pytest.approx(right.threshold, rel=1e-12)
    assert [m.support.tolist() for m in found] == [m.support.tolist() for m in right]
    assert found.certificate.verify(X, y)


def test_after_a_limit_the_best_model_is_listed(poor_start, monkeypatch):
    """It may come last, when sizes below k have used up the limit."""
    monkeypatch.setattr(searching, "_FEW", 0)
    poor_start()
    X, y, _ = bestk.datasets.make_synthetic(60, 12, k=4, rho=0.9)
    found = bestk.near_optimal(X, y, 3, alpha=0.1, within=0.01, node_limit=1)
    assert found.status is Status.NODE_LIMIT
    assert found.threshold == pytest.approx(1.01 * found.best.objective, rel=1e-12)
    assert found.contains(found.best.support)
    objectives = [model.objective for model in found]
    assert objectives == sorted(objectives)


def spectra(seed, n=50, p=200, parts=6):
    """Mixtures with overlapping bands: neighbours are nearly copies, and beams are misled."""
    rng = np.random.default_rng(seed)
    centres, widths = rng.uniform(0, p, (parts, 4, 1)), rng.uniform(p / 30, p / 12, (parts, 4, 1))
    bands = np.exp(-0.5 * ((np.arange(p) - centres) / widths) ** 2).sum(axis=1)
    amounts = rng.uniform(0.0, 1.0, (n, parts))
    X = amounts @ bands + 0.003 * rng.standard_normal((n, p))
    y = amounts[:, 0] + 0.02 * rng.standard_normal(n)
    return (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()


def test_a_list_of_wide_data_begins_with_a_good_model():
    """With the threshold of a poor first model, thousands of nodes are not enough."""
    X, y = spectra(1)
    found = bestk.near_optimal(X, y, 5, alpha=1.0, within=0.01, node_limit=300, n_threads=1)
    assert found.complete
    assert found.n_nodes <= 300
    assert found.best.objective < 0.999 * bestk.beam_search(X, y, 5, alpha=1.0).objective
    assert found.certificate.verify(X, y)


def test_ctrl_c_before_a_list_of_wide_data_begins():
    X, y = spectra(1)

    def press(snapshot):
        raise KeyboardInterrupt

    found = bestk.near_optimal(X, y, 5, alpha=1.0, within=0.01, callback=press)
    assert found.status is Status.INTERRUPTED
    assert not found.complete
    assert found.contains(found.best.support)


def test_a_callback_ends_a_list_of_wide_data_before_it_begins():
    """What it asks for once is not forgotten by the next search."""
    X, y = spectra(1)
    answers = iter([True])
    found = bestk.near_optimal(
        X, y, 5, alpha=1.0, within=0.01, callback=lambda snapshot: next(answers, False)
    )
    assert found.status is Status.STOPPED
    assert not found.complete
    assert found.contains(found.best.support)


@pytest.mark.parametrize("threads", [2, 3])
def test_the_list_does_not_depend_on_threads(threads, force):
    force.closed_in_units_only()
    force.units(nodes=5, in_flight=3, close=0.0)
    X, y, _ = bestk.datasets.make_synthetic(60, 14, k=5, rho=0.9)
    one = bestk.near_optimal(X, y, 4, alpha=0.01, within=0.3, n_threads=1)
    many = bestk.near_optimal(X, y, 4, alpha=0.01, within=0.3, n_threads=threads)
    assert one.n_nodes == many.n_nodes
    assert_same(one.certificate, many.certificate)


def test_a_cluster_lists_the_same(client, force):
    force.on_cluster()
    force.closed_in_units_only()
    force.units(nodes=5, in_flight=3, close=0.0)
    X, y, _ = bestk.datasets.make_synthetic(60, 14, k=5, rho=0.9)
    here = bestk.near_optimal(X, y, 4, alpha=0.01, within=0.3, n_threads=1)
    there = bestk.near_optimal(X, y, 4, alpha=0.01, within=0.3, client=client)
    assert there.engine.startswith("dask")
    assert_same(here.certificate, there.certificate)


@pytest.mark.parametrize("few", [0, 500])
def test_a_device_lists_the_same(few, force, monkeypatch):
    monkeypatch.setattr(searching, "_FEW", few)
    X, y, _ = bestk.datasets.make_synthetic(40, 12, k=5, rho=0.9)
    here = bestk.near_optimal(X, y, 4, alpha=0.01, within=0.3, n_threads=1)
    force.closed_on_device()
    with using(Plain()) as device:
        there = bestk.near_optimal(X, y, 4, alpha=0.01, within=0.3, device="cuda")
    assert device.n_calls > 0
    assert [m.support.tolist() for m in there] == [m.support.tolist() for m in here]
    assert there.certificate.verify(X, y)


def test_copies_are_stated_and_may_be_asked_for():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 5))
    X[:, 4] = -2.0 * X[:, 1]
    y = X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(50)
    found = bestk.near_optimal(X, y, 2, within=0.1)
    assert found.copies == ((4, 1),)
    assert found.contains([0, 1])
    assert found.contains([0, 4])
    assert not found.contains([1, 4])
    assert found.necessary.tolist() == [0]
    assert found.possible.tolist() == [1, 4]
    assert "repeats" in str(found)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"within": -0.1}, "within"),
        ({"within": np.nan}, "within"),
        ({"below": -1.0}, "below"),
        ({"n_best": 0}, "n_best"),
        ({"n_best": 3, "below": 1.0}, "n_best and below"),
        ({"max_models": 0}, "max_models"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_bad_arguments_are_named(arguments, name, easy_data):
    with pytest.raises((ValueError, TypeError), match=name):
        bestk.near_optimal(*easy_data, 2, **arguments)


# What the list tells ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    X, y, _ = bestk.datasets.make_synthetic(80, 10, k=4, rho=0.9)
    return bestk.near_optimal(X, y, 3, alpha=0.1, within=0.4, fit_intercept=True)


def test_features_are_sorted_by_what_they_are_in(found):
    has = np.array([[j in m.support for j in range(10)] for m in found])
    np.testing.assert_array_equal(found.necessary, np.flatnonzero(has.all(axis=0)))
    np.testing.assert_array_equal(found.useless, np.flatnonzero(~has.any(axis=0)))
    together = np.concatenate([found.necessary, found.possible, found.useless])
    np.testing.assert_array_equal(np.sort(together), np.arange(10))
    np.testing.assert_allclose(found.inclusion(), has.mean(axis=0))
    feature = int(found.possible[0])
    without = found.replacements(feature)
    assert without == found.filter(exclude=[feature])
    assert 0 < len(without) < len(found)
    assert len(without) + len(found.filter(include=[feature])) == len(found)
    assert all(m.size <= 2 for m in found.filter(max_size=2))
    with pytest.raises(ValueError, match="support"):
        found.contains([0, 1, 2, 3])


@pytest.mark.parametrize("bounds", [None, (-0.6, 0.9)])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_ranges_are_attained_and_not_exceeded(bounds, fit_intercept):
    """Against random coefficients with a near-optimal objective, and a general solver."""
    X, y, _ = bestk.datasets.make_synthetic(40, 6, k=3, rho=0.5, seed=2)
    options = {"alpha": 0.5, "fit_intercept": fit_intercept, "bounds": bounds}
    found = bestk.near_optimal(X, y, 2, within=0.3, **options)
    assert len(found) > 0
    rows = X[:3]
    ranges, predicted = found.model_ranges(), found.predictions(rows)
    lo, hi = bounds or (-np.inf, np.inf)
    for model, own, seen in zip(found, ranges, predicted, strict=True):
        S = model.support

        def f(b, S=S):
            residual = y - X[:, S] @ b[:-1] - b[-1]
            return residual @ residual + 0.5 * b[:-1] @ b[:-1]

        free = (None, None) if fit_intercept else (0.0, 0.0)
        box = [(lo, hi)] * len(S) + [free]
        start = np.append(model.values, model.intercept)
        constraint = {"type": "ineq", "fun": lambda b: found.threshold - f(b)}

        def extreme(v, box=box, start=start, constraint=constraint):
            best = minimize(
                lambda b: -(v @ b), start, bounds=box, constraints=[constraint],
                method="SLSQP", options={"ftol": 1e-12, "maxiter": 500},
            )  # fmt: skip
            return v @ best.x

        for j in range(len(S)):
            unit = np.eye(len(S) + 1)[j]
            np.testing.assert_allclose(own[j, 1], extreme(unit), rtol=2e-4, atol=1e-4)
            np.testing.assert_allclose(own[j, 0], -extreme(-unit), rtol=2e-4, atol=1e-4)
        for row, (low, fitted, high) in zip(rows, seen, strict=True):
            v = np.append(row[S], 1.0)
            assert low - 1e-9 <= fitted <= high + 1e-9
            np.testing.assert_allclose(high, extreme(v), rtol=2e-4, atol=1e-4)
            np.testing.assert_allclose(low, -extreme(-v), rtol=2e-4, atol=1e-4)
    together = found.prediction_range(rows)
    np.testing.assert_allclose(together[:, 0], predicted[:, :, 0].min(axis=0))
    np.testing.assert_allclose(together[:, 1], predicted[:, :, 2].max(axis=0))
    wide = found.coefficient_ranges()
    for model, own in zip(found, ranges, strict=True):
        assert (wide[model.support, 0] <= own[:, 0] + 1e-12).all()
        assert (wide[model.support, 1] >= own[:, 1] - 1e-12).all()


@seeds(400, chunk=50)
def test_ranges_hold_the_models_whatever_the_data(seed):
    instance, found = listed(seed, n_threads=1)
    rows = instance.X[:2].astype(float)
    wide = found.coefficient_ranges()
    if not len(found):
        return
    assert not np.isnan(wide).any()
    for model, own in zip(found, found.model_ranges(), strict=True):
        slack = 1e-6 * (np.abs(model.values) + np.abs(model.values).max(initial=0.0))
        assert (own[:, 0] <= model.values + slack).all()
        assert (own[:, 1] >= model.values - slack).all()
    low, fitted, high = np.moveaxis(found.predictions(rows), 2, 0)
    slack = 1e-6 * (np.abs(fitted) + np.abs(instance.y).max())
    assert (low <= fitted + slack).all()
    assert (high >= fitted - slack).all()


def test_dependent_columns_have_no_range_but_that_of_the_bounds():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    X[:, 2] = X[:, 0] + X[:, 1]
    y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(30)
    free = bestk.near_optimal(X, y, 3, within=0.1, include=[0, 1, 2])
    assert np.isinf(free.coefficient_ranges()).all()
    assert np.isfinite(free.prediction_range(X[:3])).all()
    held = bestk.near_optimal(X, y, 3, within=0.1, include=[0, 1, 2], bounds=(-2.0, 2.0))
    ranges = held.coefficient_ranges()
    assert (np.abs(ranges) <= 2.0 + 1e-9).all()
    assert (ranges[:, 1] - ranges[:, 0] > 0.5).all()


def test_importance_is_the_price_of_doing_without(found):
    prices = found.importance(gap_tol=0.0)
    assert sorted(prices) == found.best.support.tolist()
    for feature, result in prices.items():
        assert feature not in result.support
        assert result.objective >= found.best.objective
        if feature in found.necessary:
            assert result.lower_bound > found.threshold * (1 - 1e-9)


def test_words_frames_and_equations(found):
    assert "complete     yes" in str(found)
    assert str(found[0]) == found[0].equation()
    assert found[0].equation().startswith("y = ")
    frame = found.to_frame()
    assert len(frame) == len(found)
    np.testing.assert_allclose(frame["objective"], [m.objective for m in found])
    np.testing.assert_allclose(frame[["x3"]].to_numpy()[:, 0], [m.coef[3] for m in found])
    assert (frame["size"] == [m.size for m in found]).all()
