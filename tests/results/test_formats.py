"""Files of every format, written when the formats were fixed: they are read, and still verify.

``tests/data/write_formats.py`` wrote them. If a test fails here, bestk no longer reads files that
users have: read the old version, too, or raise the number of the version and say so.
"""

import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import bestk
from bestk import Certificate, storage
from bestk.results.completeness import CompletenessCertificate

FOLDER = Path(__file__).parents[1] / "data"
KINDS = ("certificate", "checkpoint", "list", "model", "run")
ARCHIVES = sorted(FOLDER.glob("formats-*.tar.xz"))


@pytest.fixture(scope="module")
def written():
    """The script that wrote the files: their data and questions."""
    sys.path.insert(0, str(FOLDER))
    try:
        import write_formats
    finally:
        sys.path.remove(str(FOLDER))
    return write_formats


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda path: path.name)
def files(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    with tarfile.open(request.param) as archive:
        for member in archive.getmembers():
            (folder / Path(member.name).name).write_bytes(archive.extractfile(member).read())
    return folder


@pytest.fixture(scope="module", params=["plain", "structure"])
def name(request):
    return request.param


@pytest.fixture(scope="module")
def solved(written, name):
    """The same question, asked today."""
    X, y = written.data()
    own = written.QUESTIONS[name]
    return bestk.solve(X, y, written.K, alpha=written.ALPHA, fit_intercept=True, **own)


def test_every_file_is_tested(files, written):
    endings = {kind: "json" if kind == "model" else "npz" for kind in KINDS}
    expected = {f"{k}-{n}.{endings[k]}" for k in KINDS for n in ("plain", "structure")}
    assert {path.name for path in files.iterdir()} == {*expected, written.LIST_CHECKPOINT}


def test_certificates_verify(files, written, name):
    X, y = written.data()
    for kind in ("certificate", "run"):
        certificate = Certificate.load(files / f"{kind}-{name}.npz")
        assert (certificate.structure is not None) == (name == "structure")
        assert len(certificate.tree) > 2
        found = certificate.verify(X, y)
        assert found, str(found)
        assert found.lower_bound >= certificate.lower_bound * (1 - 1e-9)
        assert not certificate.verify(X, y + 1.0)


def test_runs_are_read(files, written, name, solved):
    X, _ = written.data()
    result = storage.load(files / f"run-{name}.npz")
    assert result.is_proven
    assert result.names == solved.names
    np.testing.assert_allclose(result.predict(X), solved.predict(X), rtol=1e-9)
    assert result.objective == pytest.approx(solved.objective, rel=1e-12)
    assert str(result).splitlines()[0] == str(solved).splitlines()[0]
    assert result.group_names == solved.group_names


def test_models_are_read(files, written, name):
    X, _ = written.data()
    model = storage.from_json(files / f"model-{name}.json")
    run = storage.load(files / f"run-{name}.npz")
    np.testing.assert_array_equal(model.coef, run.coef)
    np.testing.assert_array_equal(model.predict(X), run.predict(X))
    assert (model.objective, model.lower_bound, model.status) == (
        run.objective, run.lower_bound, run.status,
    )  # fmt: skip
    assert model.group_names == run.group_names
    if name == "structure":
        assert model.structure.identity() == run.structure.identity()
        assert model.structure.words == run.structure.words


def test_lists_verify(files, written, name):
    X, y = written.data()
    certificate = CompletenessCertificate.load(files / f"list-{name}.npz")
    found = certificate.verify(X, y)
    assert found, str(found)
    near = bestk.near_optimal(
        X, y, written.K, within=0.1, alpha=written.ALPHA, **written.QUESTIONS[name]
    )
    supports = {tuple(model.support.tolist()) for model in certificate.models}
    assert supports == {tuple(model.support.tolist()) for model in near.models}


def test_checkpoints_go_on(files, written, name):
    X, y = written.data()
    result = bestk.resume(files / f"checkpoint-{name}.npz", X, y)
    again = bestk.solve(X, y, written.K, alpha=written.ALPHA, **written.QUESTIONS[name])
    assert result.is_proven
    assert result.names == again.names
    assert result.certificate.verify(X, y)


def test_checkpoints_of_lists_go_on(files, written):
    X, y = written.data()
    found = written.list_in(files / written.LIST_CHECKPOINT)
    again = bestk.near_optimal(X, y, written.K, within=0.1, alpha=written.ALPHA)
    assert found.complete
    supports = {tuple(model.support.tolist()) for model in found.models}
    assert supports == {tuple(model.support.tolist()) for model in again.models}
    assert found.certificate.verify(X, y)
