"""Lists of near-optimal models with structure: complete, irreducible, verified, or refused."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.choice_checks import check_list
from helpers.seeds import seeds

from bestk import near_optimal, rules
from bestk.base.fingerprint import fingerprint, rows_digest
from bestk.results.completeness import CompletenessCertificate


@seeds(900, chunk=60)
def test_lists_are_complete_and_irreducible(seed):
    check_list(seed)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(5)
    common = rng.normal(size=60)  # all features are alike: many models are nearly as good
    X = common[:, None] + 0.7 * rng.normal(size=(60, 8))
    y = common + 0.5 * rng.normal(size=60)
    rule = [rules.exclusive(0, 4), rules.implies(6, [2])]
    return X, y, near_optimal(X, y, 3, within=0.1, rules=rule)


def test_a_list_in_a_file_is_the_same(case, tmp_path):
    X, y, found = case
    assert found.complete
    assert len(found) > 2
    found.certificate.save(tmp_path / "list.npz")
    assert CompletenessCertificate.load(tmp_path / "list.npz").verify(X, y)


def refreshed(certificate, X, y, **changes):
    """A certificate that was changed by somebody who knows about fingerprints."""
    changed = replace(certificate, **changes)
    return replace(changed, fingerprint=fingerprint(rows_digest(X, y), changed))


def test_a_list_that_lacks_a_model_is_refused(case):
    X, y, found = case
    for i in range(len(found)):
        fewer = (*found.certificate.models[:i], *found.certificate.models[i + 1 :])
        assert not refreshed(found.certificate, X, y, models=fewer).verify(X, y)


def test_a_list_with_a_larger_threshold_is_refused(case):
    X, y, found = case
    assert not refreshed(found.certificate, X, y, threshold=found.threshold * 1.5).verify(X, y)


def test_a_list_without_a_rule_is_refused(case):
    X, y, found = case
    structure = found.certificate.structure
    for i in range(len(structure.rows)):
        rows = (*structure.rows[:i], *structure.rows[i + 1 :])
        other = refreshed(found.certificate, X, y, structure=replace(structure, rows=rows))
        again = near_optimal(X, y, 3, below=found.threshold, rules=[], groups=list(range(8)))
        if len(again) != len(found):
            assert not other.verify(X, y)


def test_too_many_models_lower_the_level(case):
    X, y, _ = case
    fewer = near_optimal(X, y, 3, within=0.1, max_models=1, rules=[rules.exclusive(0, 4)])
    assert not fewer.complete
    assert len(fewer) <= 1
    assert fewer.complete_below < fewer.threshold


def test_what_a_list_contains(case):
    _, _, found = case
    best = found.best.support
    assert found.contains(best)
    assert not found.contains([0, 4]), "which the rules forbid"
    with pytest.raises(ValueError, match="more than k"):
        found.contains([0, 1, 2, 3])


@pytest.mark.parametrize("options", [{"n_best": 3}, {"checkpoint": "list.ckpt"}])
def test_what_lists_with_structure_cannot_do_is_said(case, options):
    X, y, _ = case
    with pytest.raises(ValueError, match="cannot be used"):
        near_optimal(X, y, 3, rules=[rules.exclusive(0, 4)], **options)
