"""Proofs about structures: what holds is verified, what does not is refused."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.choice_prover import (
    Asked,
    bounded,
    certify,
    checked,
    enumerated,
    make_asked,
    sealed,
    structure_of,
)
from helpers.prover import assert_refused
from helpers.seeds import seeds

from bestk.base.fingerprint import fingerprint, gram_digest
from bestk.results.certificate import Certificate, SplitRecord
from bestk.verification.limits import limited
from bestk.verification.verify import verify_batches, verify_gram


def solved(seed, **options):
    """(question, fits from best to worst), None where nothing is feasible or y has no variation."""
    asked = make_asked(seed, **options)
    fits = asked.fits()
    if not fits or asked.yy <= 1e-12 * float(np.sum(asked.y**2)):
        return None
    return asked, fits


def is_noise(asked, objective) -> bool:
    """A perfect fit: coefficients may be zero up to rounding, relative errors mean nothing."""
    return objective <= 1e-12 * asked.yy


def assert_not_above(found, asked, objective) -> None:
    assert found.lower_bound <= objective + 1e-9 * max(objective, 1e-3 * asked.yy)


@seeds(400, chunk=20)
def test_enumerated_roots(seed):
    problem = solved(seed)
    if problem is None:
        return
    asked, fits = problem
    objective, Z, coef = fits[0]
    if is_noise(asked, objective):
        return
    found = checked(asked, enumerated(asked, Z, coef))
    assert_not_above(found, asked, objective)
    assert found, found.failures
    assert found.gap <= 1e-9
    for worse, Z, coef in fits[1:]:
        if worse > objective + 1e-6 * max(objective, 1e-3 * asked.yy):
            found = checked(asked, enumerated(asked, Z, coef))
            assert_refused(found)
            assert_not_above(found, asked, objective)
            break


@seeds(600, chunk=30)
def test_bounds_of_roots_are_what_they_should_be_and_valid(seed):
    problem = solved(seed)
    if problem is None:
        return
    asked, fits = problem
    objective, Z, coef = fits[0]
    rng = np.random.default_rng(seed)
    for _ in range(4):
        claim, value = bounded(asked, Z, coef, rng)
        found = checked(asked, claim)
        assert found or is_noise(asked, objective), found.failures
        assert_not_above(found, asked, objective)
        if np.isfinite(value):
            size = 1e-6 * asked.yy * max(1.0, abs(value))
            assert found.lower_bound >= min(value * asked.yy, objective) - size


@seeds(400, chunk=20)
def test_random_trees(seed):
    problem = solved(seed)
    if problem is None:
        return
    asked, fits = problem
    objective = fits[0][0]
    if is_noise(asked, objective):
        return
    certificate = certify(asked, seed)
    found = checked(asked, certificate)
    assert_not_above(found, asked, objective)
    assert found, found.failures
    for worse, Z, coef in fits[1:]:
        if worse > objective + 1e-6 * max(objective, 1e-3 * asked.yy):
            claim = replace(
                certificate, coef=coef, intercept=asked.intercept(coef), objective=worse,
                lower_bound=worse,
                choices=certificate.choices._replace(chosen=np.array(Z, dtype=np.int64)),
            )  # fmt: skip
            found = checked(asked, claim)
            assert_refused(found)
            assert_not_above(found, asked, objective)
            break


@seeds(60, chunk=10)
def test_saved_proofs_and_other_doors(seed, tmp_path):
    problem = solved(seed, constraints=bool(seed % 2))
    if problem is None or is_noise(problem[0], problem[1][0][0]):
        return
    asked = problem[0]
    certificate = certify(asked, seed)
    certificate.save(tmp_path / "proof.npz")
    loaded = Certificate.load(tmp_path / "proof.npz")
    first, again = checked(asked, certificate), checked(asked, loaded)
    assert first, first.failures
    assert again, again.failures
    assert again.lower_bound == first.lower_bound
    step = 5
    rows = [
        (asked.X[i : i + step], asked.y[i : i + step])
        if asked.weight is None
        else (asked.X[i : i + step], asked.y[i : i + step], asked.weight[i : i + step])
        for i in range(0, len(asked.y), step)
    ]
    found = verify_batches(loaded, rows, n_threads=1)
    assert found, found.failures
    with pytest.raises(ValueError, match="groups, rules or constraints"):
        checked(asked, certificate, exact=True)


@seeds(60, chunk=10)
def test_products_alone(seed):
    problem = solved(seed, kind="plain")
    if problem is None or problem[1][0][0] < 1e-3 * problem[0].yy:
        return
    asked = problem[0]
    if asked.centre or asked.weight is not None:
        return
    certificate = certify(asked, seed)
    G, c, yy = asked.X.T @ asked.X, asked.X.T @ asked.y, float(asked.y @ asked.y)
    certificate = replace(certificate, fingerprint=fingerprint(gram_digest(G, c, yy), certificate))
    found = verify_gram(certificate, G, c, yy, n_threads=1)
    assert found, found.failures


def plain_data(seed=0, n=30, p=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    return X, X[:, 0] - X[:, 1] + 0.5 * X[:, 4] + rng.standard_normal(n)


def asked_for(X, y, k, structure, **options):
    p = X.shape[1]
    return Asked(
        X=X, y=y, k=k, structure=structure, lower=np.full(p, -np.inf), upper=np.full(p, np.inf),
        **options,
    )  # fmt: skip


def test_choices_that_cannot_satisfy_constraints_do_not_count():
    """Two constraints contradict each other without feature 5: all other choices are worthless."""
    X, y = plain_data()
    rows = [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]]
    structure = structure_of(np.arange(6), (), rows, [1.0, -1.0], [1.0, -1.0])
    asked = asked_for(X, y, 3, structure)
    _, Z, coef = asked.fits()[0]
    assert 5 in Z
    found = checked(asked, enumerated(asked, Z, coef))
    assert found, found.failures
    assert found.objective > asked.yy  # worse than nothing, which is not allowed


def test_groups_that_no_row_can_do_without():
    X, y = plain_data()
    structure = structure_of([0, 0, 1, 1, 2, 2], (), [[0, 0, 0, 0, 1, 1]], [3.0], [np.inf])
    asked = asked_for(X, y, 1, structure)
    _, Z, coef = asked.fits()[0]
    assert Z == (2,)
    found = checked(asked, enumerated(asked, Z, coef))
    assert found, found.failures


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_y_without_variation(value):
    X, _ = plain_data()
    y = np.full(len(X), value)
    plain = structure_of([0, 0, 1, 1, 2, 2])
    asked = asked_for(X, y, 2, plain, centre=True)
    coef = np.zeros(6)
    assert checked(asked, enumerated(asked, (0,), coef))
    asked.structure = structure_of([0, 0, 1, 1, 2, 2], (), [np.ones(6)], [1.0], [1.0])
    coef = np.array([1.0, 0, 0, 0, 0, 0])
    assert checked(asked, enumerated(asked, (0,), coef, lower_bound=0.0))
    assert not checked(asked, enumerated(asked, (0,), coef))  # it may be true, it is not proven
    assert not checked(asked, enumerated(asked, (0,), np.zeros(6), lower_bound=0.0))


def test_features_that_depend_on_their_group_need_no_charge():
    """All levels of a factor beside an intercept: splits may leave one out, if it is one."""
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 40)
    X = np.column_stack([level == 0, level == 1, level == 2, rng.standard_normal((40, 3))])
    y = X @ [1.0, -1.0, 0.0, 0.5, 0.2, 0.0] + 0.3 * rng.standard_normal(40)
    asked = asked_for(X, y, 2, structure_of([0, 0, 0, 1, 2, 3]), centre=True)
    _, Z, coef = asked.fits()[0]
    claim, _ = bounded(asked, Z, coef, rng, blocks=False)
    for left_out, is_fine in ((2, True), (3, False)):
        kept = np.delete(np.arange(6), left_out)
        M = asked.centred()[0][:, kept]
        A = M.T @ M / np.outer(*[np.linalg.norm(M, axis=0)] * 2)
        t = np.full(5, 0.9 * max(np.linalg.eigvalsh(A)[0], 0.0))
        found = checked(asked, sealed(asked, replace(claim, splits=(SplitRecord(kept, t),))))
        assert bool(found) == is_fine, found.failures
        assert any("feature 2 is treated as dependent" in text for text in found.assumptions) == (
            is_fine
        )


def test_many_choices_at_once_and_limits_on_them():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 22))
    y = X[:, :4].sum(axis=1) + rng.standard_normal(60)
    rules = [([i], [i - 1], 0) for i in range(19, 22)]
    asked = asked_for(X, y, 5, structure_of(np.arange(22), rules))
    coef = np.zeros(22)
    coef[:4] = np.linalg.lstsq(X[:, :4], y, rcond=None)[0]
    claim = enumerated(asked, (0, 1, 2, 3), coef, lower_bound=0.5 * asked.objective(coef))
    found = checked(asked, claim)
    assert found, found.failures
    assert found.n_supports > 10_000
    for limit, words in (("choices", "more than 1000 choices"), ("choice_entries", "into memory")):
        with limited(**{limit: 1000}, listed_choices=10**9):
            found = checked(asked, claim)
        assert not found
        assert any(words in reason for reason in found.failures)


def test_choices_of_large_groups_have_a_limit():
    """Three of eight groups are 56 choices, of 30 features each."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 80))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(200)
    asked = asked_for(X, y, 3, structure_of(np.repeat(np.arange(8), 10)))
    coef = np.zeros(80)
    coef[:10] = np.linalg.lstsq(X[:, :10], y, rcond=None)[0]
    claim = enumerated(asked, (0,), coef, lower_bound=0.5 * asked.objective(coef))
    assert checked(asked, claim)
    with limited(choice_entries=1000):
        found = checked(asked, claim)
    assert not found
    assert any("into memory" in reason for reason in found.failures)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_columns_of_zeros_help_to_satisfy_constraints(alpha):
    """b_0 + b_2 = 1: with feature 2, which explains nothing, b_0 is free to be 3."""
    X, y = plain_data()
    X[:, 2] = 0.0
    y = 3.0 * X[:, 0] + X[:, 1] + 0.1 * y
    structure = structure_of(np.arange(6), (), [[1, 0, 1, 0, 0, 0]], [1.0], [1.0])
    asked = asked_for(X, y, 3, structure, alpha=alpha)
    _, Z, coef = asked.fits()[0]
    assert 2 in Z
    found = checked(asked, enumerated(asked, Z, coef))
    assert found, found.failures
    without = asked.fit((0, 1, 3))
    assert_refused(checked(asked, enumerated(asked, (0, 1, 3), without)))


def test_dependent_features_within_constraints_are_judged_in_rational_numbers():
    """x_1 = -2 x_0 and b_0 + b_1 = b_2: only together do they leave b_2 free."""
    X, y = plain_data()
    X[:, 1] = -2.0 * X[:, 0]
    structure = structure_of(np.arange(6), (), [[1, 1, -1, -1, -1, -1]], [0.0], [0.0])
    asked = asked_for(X, y, 3, structure)
    _, Z, coef = asked.fits()[0]
    found = checked(asked, enumerated(asked, Z, coef))
    assert found, found.failures
    with limited(exact_fit=0.0):
        found = checked(asked, enumerated(asked, Z, coef))
    assert found or found.lower_bound <= asked.objective(coef)
