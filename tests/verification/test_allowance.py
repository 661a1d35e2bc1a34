"""Proofs that ask for years are refused before they begin; long ones are checked when allowed."""

import weakref
from dataclasses import replace
from math import comb
from time import perf_counter

import numpy as np
import pytest
from helpers.mutations import proof

import bestk
from bestk.base.fingerprint import fingerprint, rows_digest
from bestk.verification import TooLong
from bestk.verification.allowance import Allowance
from bestk.verification.choices.cover import ChoiceWalk
from bestk.verification.completeness import verify_list_batches
from bestk.verification.completeness.check import ListCheck
from bestk.verification.completeness.models import containments
from bestk.verification.forecast import Work, work_of
from bestk.verification.limits import count_of, limited
from bestk.verification.verify import verify_batches


def enumerated(certificate):
    """The same claim, to be proven by trying every support."""
    tree = certificate.tree
    nothing = np.zeros(1, dtype=np.int64)
    columns = {
        "parent": nothing - 1, "feature": nothing - 1, "inside": nothing > 0,
        "split": nothing - 1, "enumerated": nothing == 0, "dual_ends": nothing,
        "dual_index": nothing[:0], "dual_value": np.zeros(0), "in_ends": nothing,
        "in_index": nothing[:0], "out_ends": nothing, "out_index": nothing[:0],
    }  # fmt: skip
    return replace(certificate, tree=replace(tree, **columns))


def wide_claim(p=600, k=6, **options):
    X, y, _ = bestk.datasets.make_synthetic(500, p, k=k, rho=0.3)
    found = bestk.solve(X, y, k, node_limit=3, **options)
    return enumerated(found.certificate), X, y


def test_a_hopeless_proof_is_refused_before_it_begins():
    forged, X, y = wide_claim()
    assert work_of(forged).supports > 5e13
    with pytest.raises(TooLong, match=r"e\+13 supports, .* hours.*allow_long=True"):
        forged.verify(X, y, n_threads=1)
    with pytest.raises(TooLong):
        verify_batches(forged, [(X, y)], n_threads=1)
    with pytest.raises(TooLong, match=r"about 1 second\. Allowed: 0\.5 seconds"):
        wide_claim(200, 5)[0].verify(*wide_claim(200, 5)[1:], n_threads=1, max_seconds=0.5)


def test_with_permission_it_is_checked():
    instance, certificate = proof()
    whole = enumerated(certificate)
    with limited(forecast_seconds=0.0):
        with pytest.raises(TooLong):
            whole.verify(instance.X, instance.y)
        assert whole.verify(instance.X, instance.y, allow_long=True)
        assert whole.verify(instance.X, instance.y, max_seconds=60.0)


def test_time_that_is_over_ends_the_work():
    instance, certificate = proof()
    with pytest.raises(TooLong, match="given up after"):
        certificate.verify(instance.X, instance.y, max_seconds=0.0, allow_long=True)
    for one in (certificate, enumerated(certificate)):
        with pytest.raises(TooLong, match="given up after"):
            one.verify(instance.X, instance.y, exact=True, max_seconds=0.0)
    with pytest.raises(TooLong):
        Allowance(max_seconds=0.0, started=-1.0).check()
    with pytest.raises(ValueError, match="max_seconds must be a number >= 0, got nan"):
        certificate.verify(instance.X, instance.y, max_seconds=float("nan"))
    Allowance(started=-1e9).check()


def test_rational_numbers_have_a_clock(monkeypatch):
    """They have no forecast, and each node may take long."""
    instance, certificate = proof()
    looks = []
    monkeypatch.setattr(Allowance, "check", lambda self: looks.append(1))
    assert certificate.verify(instance.X, instance.y, exact=True)
    assert len(looks) > np.count_nonzero(certificate.tree.split >= 0) > 2


def test_choices_of_groups_are_forecast():
    X, y, _ = bestk.datasets.make_synthetic(500, 600, k=6, rho=0.3)
    rules = [bestk.rules.at_most(3, range(5))]
    found = bestk.solve(X, y, 6, rules=rules, node_limit=1)
    forged = enumerated(found.certificate)
    choices = forged.choices._replace(broken=np.array([-1]), multipliers=np.zeros((1, 0)))
    forged = replace(forged, choices=choices)
    with pytest.raises(TooLong, match="hours"):
        forged.verify(X, y, n_threads=1)
    # Whole groups are listed, and there is a limit to that.
    found = bestk.solve(X, y, 6, groups=[f"g{j // 4}" for j in range(600)], node_limit=1)
    forged = enumerated(found.certificate)
    choices = forged.choices._replace(broken=np.array([-1]), multipliers=np.zeros((1, 0)))
    assert 10.0 < work_of(replace(forged, choices=choices)).seconds(1) < 3600.0


def test_millions_of_rules_are_forecast_and_have_a_limit():
    """Each of them is looked at in every node, and for every choice."""
    X, y, _ = bestk.datasets.make_synthetic(40, 200, k=2)
    rules = [bestk.rules.at_most(2, [0, 1, 2])]
    certificate = bestk.solve(X, y, 2, rules=rules, n_threads=1).certificate
    structure = certificate.structure
    zeros = np.zeros(1_000_000, dtype=np.int64)
    tree = enumerated(certificate).tree
    tree = replace(tree, parent=zeros, feature=zeros - 1, enumerated=zeros > 0)
    tree = replace(tree, in_ends=zeros, out_ends=zeros, split=zeros - 1, inside=zeros > 0)
    forged = replace(certificate, structure=replace(structure, rows=structure.rows * 1000))
    few = work_of(replace(certificate, tree=tree)).seconds(1)
    assert work_of(replace(forged, tree=tree)).seconds(1) > few + 30.0
    forged = replace(forged, fingerprint=fingerprint(rows_digest(X, y, None), forged))
    assert forged.verify(X, y, n_threads=1)
    with limited(rule_entries=100_000):
        verification = forged.verify(X, y, n_threads=1)
    assert verification.failures == ("1000 rules about 200 groups are too many to check",)


def test_multiplications_are_forecast():
    _, certificate = proof()
    tree = certificate.tree
    n, p = 10_000, 3000
    zeros = np.zeros(n, dtype=np.int64)
    tree = replace(
        tree, parent=np.arange(-1, n - 1), feature=zeros - 1, inside=zeros > 0, split=zeros,
        enumerated=zeros > 0, in_ends=zeros, out_ends=zeros,
    )  # fmt: skip
    split = certificate.splits[0]._replace(features=np.arange(p), t=np.zeros(p))
    large = replace(certificate, tree=tree, splits=(split,), coef=np.zeros(p))
    assert work_of(large).multiplies == pytest.approx(n * p**2 + p**3 / 3)
    assert work_of(large, n_rows=30).multiplies < 31 * n * p
    assert Work(2.5e9, 2e9).seconds(2) == pytest.approx(1.0)


def test_lists_are_forecast():
    X, y, _ = bestk.datasets.make_synthetic(60, 12, k=3)
    found = bestk.near_optimal(X, y, 3, within=0.2)
    assert found.certificate.verify(X, y)
    with limited(forecast_seconds=0.0):
        with pytest.raises(TooLong):
            found.certificate.verify(X, y)
        assert found.certificate.verify(X, y, allow_long=True)


def test_large_models_of_a_list_are_compared_without_forming_their_parts():
    """Two models of 60 and 30 features have 1e17 parts."""
    large, small = frozenset(range(60)), frozenset(range(30))
    assert containments([large, small]) == ["model 0 contains another one of the list"]
    assert containments([large, small | {99}]) == []


def test_supports_are_counted_up_to_a_limit():
    for m in range(60):
        for r in range(m + 1):
            assert count_of(m, r) == (comb(m, r) if comb(m, r) <= 1e15 else np.inf)
            assert count_of(m, r, 100) == (comb(m, r) if comb(m, r) <= 100 else np.inf)
    assert count_of(3, 4) == 0
    assert count_of(10**9, 5 * 10**8) == np.inf  # a number of 300 million digits


@pytest.mark.parametrize("rules", [(), [bestk.rules.at_most(1, [0, 1])]])
def test_numbers_of_supports_may_have_hundreds_of_digits(rules):
    """No float holds how many supports of 550 of 1100 features there are."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 1100)), rng.normal(size=30)
    options = {"alpha": 0.1, "node_limit": 1, "n_threads": 1}
    forged = enumerated(bestk.solve(X, y, 1, rules=rules, **options).certificate)
    if forged.choices is not None:
        choices = forged.choices._replace(broken=np.array([-1]), multipliers=np.zeros((1, 0)))
        forged = replace(forged, choices=choices)
    forged = replace(forged, k=550, lower_bound=0.5 * forged.objective)
    forged = replace(forged, fingerprint=fingerprint(rows_digest(X, y, None), forged))
    verification = forged.verify(X, y, n_threads=1)
    assert not verification
    assert "more than 1e+15 supports, too many to try" in str(verification)


def test_models_are_forecast_with_the_rows_they_are_evaluated_on():
    """A thousand models on a hundred thousand rows: half a minute, and nothing to be proven."""
    X, y, _ = bestk.datasets.make_synthetic(100_000, 8, k=3)
    certificate = bestk.near_optimal(X[:60], y[:60], 3, within=0.2, n_threads=1).certificate
    forged = replace(certificate, models=certificate.models[:1] * 1000)
    forged = replace(forged, fingerprint=fingerprint(rows_digest(X, y, None), forged))
    for verify in (forged.verify, lambda X, y, **how: verify_list_batches(forged, [(X, y)], **how)):
        with pytest.raises(TooLong, match="seconds for its nodes, rules and models"):
            verify(X, y, n_threads=1, max_seconds=5.0)


def test_parts_of_the_largest_models_are_forecast():
    """Each of them is compared with all models of the list."""
    X, y, _ = bestk.datasets.make_synthetic(60, 12, k=3)
    certificate = bestk.near_optimal(X, y, 3, within=0.2, n_threads=1).certificate
    check = ListCheck(certificate, None, Allowance())
    largest = [np.array([0, i, i + 1]) for i in range(1, 100)]
    listed = [np.array([200, i]) for i in range(100_000)]
    with limited(forecast_seconds=0.05), pytest.raises(TooLong, match="rules and models"):
        check._parts(largest, listed, None, None, 0.0)


def test_cells_of_a_forged_tree_do_not_fill_the_memory(monkeypatch):
    """A child of every node comes after all others, and still no cells are kept for them."""
    X, y, _ = bestk.datasets.make_synthetic(40, 10, k=2)
    rules = [bestk.rules.at_most(2, [0, 1, 2])]
    options = {"alpha": 0.1, "n_threads": 1, "node_limit": 1}
    forged = enumerated(bestk.solve(X, y, 2, rules=rules, **options).certificate)
    n = 1000
    zeros = np.zeros(2 * n + 1, dtype=np.int64)
    columns = dict.fromkeys(("dual_ends", "in_ends", "out_ends"), zeros)
    columns |= {"feature": zeros - 1, "inside": zeros > 0, "split": zeros - 1}
    parents = np.concatenate([[-1], np.zeros(n, dtype=np.int64), np.arange(1, n + 1)])
    tree = replace(forged.tree, parent=parents, enumerated=zeros > 0, **columns)
    choices = forged.choices._replace(broken=zeros - 1, multipliers=np.zeros((2 * n + 1, 0)))
    forged = replace(forged, tree=tree, choices=choices)
    forged = replace(forged, fingerprint=fingerprint(rows_digest(X, y, None), forged))
    enter, alive, counts = ChoiceWalk._enter, set(), []

    def watched(self, node, cell):
        cells = enter(self, node, cell)
        alive.add(node)
        weakref.finalize(cells.after, alive.remove, node)
        counts.append(len(alive))
        return cells

    monkeypatch.setattr(ChoiceWalk, "_enter", watched)
    assert not forged.verify(X, y, n_threads=1)
    assert len(counts) == 2 * n + 1
    assert max(counts) < 5


STRUCTURES = [{}, {"rules": [bestk.rules.at_most(2, [0, 1, 2])]}, {"groups": list("aabbccddeeff")}]


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("k", [2**31, 2**61])
def test_a_forged_k_takes_no_time_and_no_memory(structure, k):
    """There are no more than 12 features, and nothing goes on beyond them."""
    X, y, _ = bestk.datasets.make_synthetic(60, 12, k=3, rho=0.8)
    slow = bestk.Advanced(enumeration=False)
    certificate = bestk.solve(X, y, 3, advanced=slow, n_threads=1, **structure).certificate
    listed = bestk.near_optimal(X, y, 3, within=0.2, n_threads=1, **structure).certificate
    for one in (certificate, listed, replace(listed, largest=None)):
        forged = replace(one, k=k)
        forged = replace(forged, fingerprint=fingerprint(rows_digest(X, y, None), forged))
        started = perf_counter()
        verification = forged.verify(X, y, n_threads=1)
        assert not verification
        assert len(verification.failures) < 20
        assert perf_counter() - started < 10.0
