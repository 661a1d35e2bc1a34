"""Proofs of wide data: verified without a square matrix, refused where they were tampered with."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from helpers.instances import Instance
from helpers.mutations import changed, with_tree, without_node
from helpers.prover import as_batches

import bestk
from bestk.datasets import make_synthetic
from bestk.verification.evidence import from_rows, sources
from bestk.verification.numerics.matrices import ByColumns
from bestk.verification.splits import ProvenSplit
from bestk.verification.verify import verify_batches


@pytest.fixture(scope="module")
def wide_proof():
    data = make_synthetic(60, 20_000, 2, rho=0.1, snr=20.0)
    options = {"k": 2, "alpha": 1.0, "bounds": (-2.0, 2.0), "n_threads": 1}
    return data.X, data.y, bestk.solve(data.X, data.y, **options).certificate


def test_no_square_matrix_is_formed(wide_proof, force):
    X, y, certificate = wide_proof
    force.verifier_parts(block=1 << 14, gains=1 << 16)
    tracemalloc.start()
    evidence = from_rows(certificate, X, y, None)
    _, peak = tracemalloc.get_traced_memory()
    assert isinstance(evidence.A, ByColumns)
    assert peak < 1.6 * X.nbytes  # the columns, and vectors of features
    del evidence
    tracemalloc.reset_peak()
    found = certificate.verify(X, y, n_threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found, str(found)
    assert found.gap <= 1.001e-4
    assert peak < 3 * X.nbytes < 0.01 * 8 * X.shape[1] ** 2


OBJECTIVE, ONLY = "the objective of the model is", "the lower bound is proven only to"


def raised(certificate):
    more = certificate.objective * (1 + 1e-6)
    return replace(certificate, lower_bound=more, objective=more)


def overcharged(certificate):
    (split,) = certificate.splits
    return replace(certificate, splits=(split._replace(t=split.t * 1.01),))


def without_last_leaf(certificate):
    return without_node(certificate, int(np.flatnonzero(certificate.tree.is_leaf)[-1]))


def with_feature_fixed_twice(certificate):
    index = certificate.tree.out_index
    return with_tree(certificate, out_index=changed(index, 0, int(index[1])))


def with_duals(factor):
    return lambda c: with_tree(c, dual_value=c.tree.dual_value * np.float32(factor))


@pytest.mark.parametrize(
    ("change", "reasons"),
    [
        (raised, [OBJECTIVE, ONLY]),
        (overcharged, ["its charges exceed the penalty", ONLY]),
        (with_duals(0.0), [ONLY]),
        (with_duals(2.0), [ONLY]),
        (without_last_leaf, [ONLY]),
        (with_feature_fixed_twice, ["is fixed, but not free", ONLY]),
    ],
    ids=["claims", "charges", "no duals", "twice the duals", "a leaf", "a fixing"],
)
def test_tampered_proofs_of_wide_data_are_refused(wide_proof, change, reasons):
    X, y, certificate = wide_proof
    found = change(certificate).verify(X, y)
    assert not found
    for reason, failure in zip(reasons, found.failures, strict=True):
        assert reason in failure


def test_charges_a_little_above_the_penalty_are_lowered(wide_proof):
    X, y, certificate = wide_proof
    split = certificate.splits[0]
    others = replace(certificate, splits=(split._replace(t=split.t * (1 + 1e-11)),))
    evidence = from_rows(others, X, y, None)
    assert (ProvenSplit(evidence, others.splits[0]).t <= evidence.A.ridge).all()
    found, plain = others.verify(X, y), certificate.verify(X, y)
    assert found, str(found)
    assert found.lower_bound == pytest.approx(plain.lower_bound, rel=1e-9)


def test_wide_batches_are_kept_however_many(wide_proof, force):
    force.verifier_keeps(8 * 2500 * 10)
    force.wide_from(2.0)
    kept, rows = sources._Kept(2498), np.random.default_rng(0).random((1300, 2498))
    for start in range(0, 1200, 240):
        part = rows[start : start + 240]
        assert kept.add(part, part[:, 0], None)
    assert not kept.add(rows[1200:], rows[1200:, 0], None)  # as large as their products
    X, y, _ = kept.release()
    np.testing.assert_array_equal(X, rows[:1200])
    np.testing.assert_array_equal(y, rows[:1200, 0])
    assert not kept.add(rows[:1], y[:1], None)
    X, y, certificate = wide_proof
    instance = Instance(regime="plain", X=X, y=y, k=2)
    whole = certificate.verify(X, y, n_threads=1)
    force.verifier_keeps(8 * X.shape[1] * 10)
    found = verify_batches(certificate, as_batches(instance, 7), n_threads=1)
    assert replace(found, seconds=0.0) == replace(whole, seconds=0.0)
