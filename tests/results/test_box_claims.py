"""Certificates, files and checkpoints keep the condition of an automatic box."""

import json
from dataclasses import replace

import numpy as np
import pytest

import bestk
from bestk import Advanced, Problem, Status, storage
from bestk.results.certificate import Certificate

SLOW = Advanced(enumeration=False, batch_size=1)


def test_the_certificate_says_so_and_nobody_can_take_it_back(easy_data, tmp_path):
    X, y = easy_data
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


def test_given_bounds_are_an_assumption_of_the_certificate_only(easy_data):
    X, y = easy_data
    result = bestk.solve(X, y, 3, bounds=(-5.0, 5.0))
    assert result.assumptions == ()
    certificate = result.certificate
    assert not certificate.is_box_assumed
    expected = ("coefficients lie within the bounds that were given",)
    assert certificate.assumptions == expected
    assert certificate.verify(X, y).assumptions == expected
    assert not replace(certificate, is_box_assumed=True).verify(X, y)
    assert bestk.solve(X, y, 3).certificate.assumptions == ()


def test_certificates_from_before_boxes_are_read(easy_data):
    X, y = easy_data
    certificate = bestk.solve(X, y, 3, bounds=(-5.0, 5.0)).certificate
    arrays = certificate.to_arrays()
    header = json.loads(str(arrays["certificate"]))
    assert header.pop("is_box_assumed") is False
    assert header["version"] == 1
    old = Certificate.from_arrays(arrays | {"certificate": np.array(json.dumps(header))})
    assert old.verify(X, y)


def test_a_stored_run_keeps_the_condition(easy_data, tmp_path, force):
    force.box_factor(0.5)
    result = bestk.solve(*easy_data, 3, bounds="auto")
    assert result.at_bounds
    storage.save(result, tmp_path / "run.npz")
    loaded = storage.load(tmp_path / "run.npz")
    for name in ("status", "box", "at_bounds", "assumptions", "is_conditional", "message"):
        assert getattr(loaded, name) == getattr(result, name)
    assert loaded.status is Status.CONDITIONAL
    assert loaded.certificate.is_box_assumed


def test_a_resumed_run_keeps_the_box(hard_data, tmp_path):
    X, y = hard_data
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


def test_a_checkpoint_tells_chosen_bounds_from_given_ones(hard_data, tmp_path):
    X, y = hard_data
    path = tmp_path / "run.ckpt"
    cut = bestk.solve(X, y, 4, bounds="auto", node_limit=3, advanced=SLOW, checkpoint=path)
    upper = cut.certificate.upper
    given = Problem.from_data(X, y, bounds=(-upper, upper))
    with pytest.raises(ValueError, match="another problem"):
        bestk.resume(path, problem=given)
    bestk.solve(X, y, 4, bounds=(-1.0, 1.0), node_limit=3, advanced=SLOW, checkpoint=path)
    with pytest.raises(ValueError, match="another problem"):
        bestk.resume(path, problem=given.with_bounds("auto"))
