"""Certificates in files of format version 1, written long ago: they are read, and still verify."""

from pathlib import Path

import numpy as np
import pytest

from bestk import Certificate
from bestk.datasets import make_synthetic

FILES = Path(__file__).parent / "data"
# The data of each file, the question, and what is special about its proof.
TREE = {"n": 60, "p": 20, "k": 4, "rho": 0.7, "seed": 1}
CASES = {
    "tree": (TREE, {"k": 4, "alpha": 0.1}, lambda c: len(c.tree) > 1),
    "enumerated": (
        TREE,
        {"k": 4, "alpha": 0.0, "fit_intercept": True},
        lambda c: c.tree.enumerated.all(),
    ),
    "clusters": (
        {"n": 200, "p": 40, "k": 8, "rho": 0.9, "seed": 3},
        {"k": 5, "alpha": 1e-3},
        lambda c: any(split.clusters for split in c.splits),
    ),
    "narrowed": (
        {"n": 66, "p": 60, "k": 4, "rho": 0.1, "snr": 5.0},
        {"k": 4, "alpha": 0.0},
        lambda c: any(len(split.lower) for split in c.splits),
    ),
    "wide": (
        {"n": 30, "p": 220, "k": 3, "rho": 0.1, "seed": 5},
        {"k": 3, "alpha": 1.0, "is_box_assumed": True},
        lambda c: np.isfinite(c.upper).all(),
    ),
}


def test_every_file_is_tested():
    assert {path.stem for path in FILES.glob("*.npz")} == set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_certificates_of_version_1_verify(name):
    data, question, is_special = CASES[name]
    X, y, _ = make_synthetic(**data)
    certificate = Certificate.load(FILES / f"{name}.npz")
    asked = {"fit_intercept": False, "is_box_assumed": False, **question}
    assert {key: getattr(certificate, key) for key in asked} == asked
    assert is_special(certificate)
    found = certificate.verify(X, y)
    assert found.is_valid is True, str(found)
    assert found.lower_bound >= certificate.lower_bound * (1 - 1e-9)
    assert found.objective == pytest.approx(certificate.objective, rel=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_they_hold_for_their_data_only(name):
    data, _, _ = CASES[name]
    X, y, _ = make_synthetic(**data)
    certificate = Certificate.load(FILES / f"{name}.npz")
    found = certificate.verify(X, np.nextafter(y, np.inf))
    assert not found
    assert "fingerprint" in found.failures[0]
