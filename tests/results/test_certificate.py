"""The proofs that searches record: every one of them verifies, and survives a file."""

import numpy as np
import pytest
from helpers.checks import assert_same
from helpers.instances import REGIMES, Instance, make, make_medium
from helpers.seeds import seeds

import bestk
from bestk import Advanced, Certificate, Problem, Status
from bestk.results.certificate import proof_arrays, proof_of

CONFIGURATIONS = {
    "default": {"advanced": Advanced()},
    "no enumeration": {"advanced": Advanced(enumeration=False)},
    "loose": {"advanced": Advanced(enumeration=False), "gap_tol": 0.1},
    "tight": {"advanced": Advanced(enumeration=False), "gap_tol": 0.0},
    "paper": {"advanced": Advanced.paper(), "search": "breadth-first", "bound": "admm"},
    "fast": {"advanced": Advanced(enumeration=False, rebuild=False), "bound": "fast"},
    "depth-first": {"advanced": Advanced(enumeration=False), "search": "depth-first"},
    "stopped": {"advanced": Advanced(enumeration=False, batch_size=1), "node_limit": 7},
}


def small_tree(seed):
    rng = np.random.default_rng(seed)
    p, k = int(rng.integers(7, 11)), int(rng.integers(2, 5))
    X = rng.standard_normal((int(rng.integers(p, 20)), p)) + rng.standard_normal((1, p))
    y = rng.standard_normal(len(X)) + X[:, 0]
    options = {"alpha": 0.1} if seed % 2 else {}
    if seed % 3 == 1:
        options["bounds"] = (-0.3, 0.4)
    if seed % 4 == 2:
        options["include"] = [3]
    if seed % 5 == 2:
        options["exclude"] = [5]
    if seed % 7 == 3:
        options["fit_intercept"] = True
    return Instance(regime="plain", X=X, y=y, k=k, options=options)


def assert_verifies(instance, result):
    weight = instance.options.get("sample_weight")
    verification = result.certificate.verify(instance.X, instance.y, weight, n_threads=1)
    assert verification.is_valid, verification
    slack = 1e-9 * max(result.objective, 1e-12 * result.yy)
    assert verification.lower_bound >= result.lower_bound - slack
    assert verification.objective == pytest.approx(result.objective, abs=slack)


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("seed", range(12))
def test_certificates_verify(seed, name):
    instance = small_tree(seed)
    assert_verifies(instance, instance.solve(**CONFIGURATIONS[name]))


@pytest.mark.parametrize("seed", range(12))
def test_certificates_with_block_bounds_verify(seed, cluster_bounds):
    instance = small_tree(seed)
    assert_verifies(instance, instance.solve(**CONFIGURATIONS["no enumeration"]))


@pytest.mark.parametrize("seed", range(6))
def test_certificates_of_trees_that_branch_verify(seed):
    instance = make_medium(seed)
    result = instance.solve(advanced=Advanced(enumeration=False))
    assert len(result.certificate.tree) > 3
    assert_verifies(instance, result)


@seeds(20, chunk=20)
@pytest.mark.parametrize("regime", REGIMES)
def test_certificates_of_every_regime_verify(seed, regime):
    instance = make(seed, regime)
    assert_verifies(instance, instance.solve())


def test_interrupted_runs_have_certificates_that_verify():
    instance = make_medium(1)
    calls = []

    def interrupt(snapshot):
        calls.append(snapshot)
        if len(calls) == 3:
            raise KeyboardInterrupt

    advanced = Advanced(enumeration=False, batch_size=1)
    result = instance.solve(callback=interrupt, advanced=advanced)
    assert result.status is Status.INTERRUPTED
    assert_verifies(instance, result)


def test_models_of_a_path_have_certificates_of_their_own():
    X, y, _ = bestk.datasets.make_synthetic(200, 30, k=5, rho=0.9)
    for k, result in bestk.solve_path(X, y, ks=range(6)).items():
        assert result.certificate.k == k
        assert result.certificate.verify(X, y)


def test_shared_enumerations_have_certificates(force):
    force.sharing(least=0.0)
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (60, 1))
    X = x ** np.arange(12)
    y = X[:, 1] - 2 * X[:, 3] + 0.01 * rng.standard_normal(60)
    grid = Problem.from_data(X, y).solve_grid([2, 3], [1e-6, 1e-5, 1e-4])
    for path in grid.values():
        for result in path.values():
            assert result.certificate.verify(X, y)


def test_certificate_repeats_the_question():
    instance = small_tree(2)
    certificate = instance.solve().certificate
    assert certificate.k == instance.k
    assert certificate.include.tolist() == instance.options["include"]
    assert certificate.exclude.tolist() == instance.options["exclude"]


def test_recording_can_be_switched_off():
    assert small_tree(0).solve(advanced=Advanced(record=False)).certificate is None


@pytest.mark.parametrize(
    "settings",
    [
        {"advanced": Advanced(enumeration=False, record_limit=1000.0)},
        {"advanced": Advanced(enumeration=False), "memory_limit": 60_000.0},
    ],
)
def test_a_record_that_grows_too_large_is_dropped(settings):
    instance = make_medium(2)
    assert len(instance.solve(advanced=Advanced(enumeration=False)).certificate.tree) > 50
    assert instance.solve(**settings).certificate is None


@pytest.mark.parametrize("blocks", [False, True])
def test_a_file_gives_back_the_certificate(tmp_path, force, blocks):
    if blocks:
        force.cluster_bounds()
    instance = make_medium(1)
    certificate = instance.solve(advanced=Advanced(enumeration=False)).certificate
    assert any(split.clusters for split in certificate.splits) == blocks
    certificate.save(tmp_path / "proof")
    again = Certificate.load(tmp_path / "proof")
    assert_same(again, certificate)
    assert again.verify(instance.X, instance.y)


def test_other_files_are_refused(tmp_path):
    certificate = small_tree(0).solve().certificate
    np.savez(tmp_path / "other.npz", X=np.ones(3))
    (tmp_path / "text").write_text("hello")
    arrays = certificate.to_arrays()
    header = str(arrays["certificate"]).replace('"version": 1', '"version": 99')
    np.savez(tmp_path / "future.npz", **arrays | {"certificate": np.array(header)})
    for name, reason in (
        ("other.npz", "no certificate of a model; pass one"),
        ("text", "no npz"),
        ("future.npz", "99"),
    ):
        with pytest.raises(ValueError, match=reason):
            Certificate.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        Certificate.load(tmp_path / "nothing")


def test_duals_are_kept_in_single_precision_where_that_costs_nothing():
    certificate = make_medium(1).solve(advanced=Advanced(enumeration=False)).certificate
    assert certificate.tree.dual_value.dtype == np.float32


def test_charges_take_half_the_space_where_nothing_is_lost():
    """In single precision if all of them fit, and read from either."""
    instance = small_tree(1)
    certificate = instance.solve(**CONFIGURATIONS["no enumeration"]).certificate
    assert certificate.splits
    single = [s._replace(t=s.t.astype(np.float32).astype(float)) for s in certificate.splits]
    for splits, dtype in ((certificate.splits, np.float64), (single, np.float32)):
        arrays = proof_arrays(certificate.tree, splits)
        assert arrays["splits.t"].dtype == dtype
        for before, after in zip(splits, proof_of(arrays)[1], strict=True):
            np.testing.assert_array_equal(after.t, before.t)
    arrays = {**certificate.to_arrays(), **proof_arrays(certificate.tree, single)}
    lowered = Certificate.from_arrays(arrays).verify(instance.X, instance.y)
    assert lowered.lower_bound >= certificate.lower_bound * (1 - 1e-5)
