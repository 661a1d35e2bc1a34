"""The verifier accepts proofs, and nothing above the optimum: brute force and exact numbers."""

import math
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers.instances import REGIMES, make_medium
from helpers.mutations import proof
from helpers.prover import (
    HARD,
    Form,
    assert_refused,
    certify,
    certify_by_enumeration,
    checked,
    is_tiny,
    make_problem,
)
from helpers.seeds import seeds

from bestk import Advanced
from bestk.results.certificate import Certificate
from bestk.verification.verify import verify, verify_gram


@seeds(12)
@pytest.mark.parametrize("regime", REGIMES)
def test_random_proofs_hold_and_no_more_than_the_optimum_is_accepted(seed, regime):
    instance = make_problem(seed, regime)
    certificate = certify(instance, seed)
    found = checked(instance, certificate)
    assert found, str(found)
    assert found.lower_bound <= certificate.objective * (1 + 1e-12)
    if not is_tiny(instance, certificate.objective):
        more = certificate.objective * (1 + 1e-6)
        greedy = replace(certificate, lower_bound=more, objective=more)
        assert_refused(checked(instance, greedy))


@seeds(40)
def test_a_bound_below_the_optimum_is_accepted_too(seed):
    instance = make_problem(seed)
    certificate = certify(instance, seed)
    modest = replace(certificate, lower_bound=0.7 * certificate.lower_bound)
    assert checked(instance, modest)


@pytest.mark.parametrize("seed", range(40))
def test_exact_and_floating_point_verification_agree(seed):
    instance = make_problem(seed)
    certificate = certify(instance, seed)
    found, exact = checked(instance, certificate), checked(instance, certificate, exact=True)
    assert exact.exact
    if instance.regime not in HARD and found.assumptions == certificate.assumptions:
        assert exact, str(exact)
        # The perfect fits of floating point are not perfect, so leave out what is below 1e-12.
        slack = 1e-9 * certificate.objective + 1e-20 * Form(instance).yy
        assert abs(found.lower_bound - exact.lower_bound) <= slack
        assert abs(found.objective - exact.objective) <= slack
    if not is_tiny(instance, certificate.objective):
        more = certificate.objective * (1 + 1e-6)
        greedy = replace(certificate, lower_bound=more, objective=more)
        assert_refused(checked(instance, greedy, exact=True))


@seeds(60)
def test_certificates_of_the_search_hold(seed):
    instance = make_problem(seed)
    certificate = instance.solve().certificate
    found = checked(instance, certificate)
    assert found, str(found)
    more = certificate.objective * (1 + 1e-6)
    greedy = replace(certificate, lower_bound=more, objective=more)
    if not is_tiny(instance, certificate.objective):
        assert_refused(checked(instance, greedy))


@seeds(12)
def test_trees_of_the_search_hold_and_need_all_their_leaves(seed):
    instance = make_medium(seed)
    certificate = instance.solve(advanced=Advanced(enumeration=False)).certificate
    assert checked(instance, certificate)
    tree = certificate.tree
    fixes = np.diff(tree.in_ends + tree.out_ends, prepend=0) > 0
    # Leaves without a feature are second proofs of a cell, which may have a first one.
    needed = tree.is_leaf & ~tree.enumerated & (tree.feature >= 0) & (tree.split >= 0) & ~fixes
    leaves = np.flatnonzero(needed)[:3]
    assert len(leaves) > 0
    for leaf in leaves:
        weaker = replace(tree, split=np.where(np.arange(len(tree)) == leaf, -1, tree.split))
        found = checked(instance, replace(certificate, tree=weaker))
        assert not found, leaf
        assert "proven only to" in found.failures[-1]


def test_threads_change_nothing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 70))
    y = X[:, :3].sum(axis=1) + rng.standard_normal(60)
    certificate = certify_by_enumeration(X, y, 5)
    one, two = (verify(certificate, X, y, n_threads=count) for count in (1, 2))
    assert one
    assert one.lower_bound == two.lower_bound
    assert one.n_supports == two.n_supports == math.comb(70, 5)


def test_bad_data_are_errors_of_the_caller():
    instance, certificate = proof()
    with pytest.raises(ValueError, match="length"):
        verify(certificate, instance.X, instance.y[:-1])
    with pytest.raises(ValueError, match="NaN"):
        verify(certificate, np.where(instance.X > 1, np.nan, instance.X), instance.y)
    with pytest.raises(ValueError, match="two dimensions"):
        verify(certificate, instance.y, instance.y)
    with pytest.raises(ValueError, match="at most 40 features"):
        verify(certificate, np.ones((5, 41)), np.ones(5), exact=True)
    with pytest.raises(ValueError, match="square"):
        verify_gram(certificate, instance.X, instance.y, 1.0)


def test_the_report_is_readable():
    instance, certificate = proof()
    found = checked(instance, certificate)
    assert bool(found) is found.is_valid is True
    assert str(found).startswith("Verified")
    assert found.n_nodes == len(certificate.tree)
    assert found.n_leaves == certificate.tree.is_leaf.sum()
    refused = checked(instance, replace(certificate, objective=1.0))
    assert "NOT verified" in str(refused)
    assert refused.failures[0] in str(refused)


def test_a_certificate_survives_its_file(tmp_path):
    instance, certificate = proof()
    certificate.save(tmp_path / "proof.npz")
    assert Certificate.load(tmp_path / "proof.npz").verify(instance.X, instance.y)


def test_the_verifier_shares_no_code_with_the_search():
    code = (
        "import sys, bestk.verification, bestk.certificate;"
        "print(*sorted(m for m in sys.modules if m.startswith('bestk')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    allowed = {
        "bestk", "bestk.certificate", "bestk.results", "bestk.results.certificate", "bestk.base",
        "bestk.base.archive", "bestk.base.constants", "bestk.base.fingerprint",
        "bestk.base.question", "bestk.base.structure", "bestk.base.validation",
        "bestk.base.cluster", "bestk.base.cluster.collections", "bestk.base.device",
        "bestk.base.device.cuda", "bestk.base.device.driver", "bestk.base.printable",
    }  # fmt: skip
    own = ("bestk.verification", "bestk.base.validation.")
    others = [m for m in found.stdout.split() if not m.startswith(own)]
    assert set(others) <= allowed
