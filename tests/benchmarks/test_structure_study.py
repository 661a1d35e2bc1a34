"""The study of structure on tiny problems, without peers: what it asks, judges, and tells."""

from argparse import Namespace
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from benchmarks.harness.referee import refitted
from benchmarks.structure import bestk_run, measuring, problems
from benchmarks.structure.judging import judged
from benchmarks.structure.peers.asking import Asked, refit
from benchmarks.structure.problems import Data, Problem, data_of, divisors, energy, factors, lorenz
from benchmarks.structure.report import best_known
from benchmarks.structure.study import StructureStudy
from bestk.datasets import make_dynamics


def asked(problem, data, **changes):
    """The question as a solver file reads it."""
    matrix, target = data.stacked()
    arrays = {name: getattr(data, name) for name in ("X", "Y", "groups", "lhs", "rhs")}
    told = {"names": data.names, "parents": data.parents, "fit_intercept": data.fit_intercept}
    usual = {"gap": 1e-4, "peer_gap": 1e-4, "threads": 1, "box": 1e3}
    own = {name: getattr(problem, name) for name in ("structure", "k", "alpha", "limit")}
    question = arrays | told | usual | own | changes
    return Asked(matrix=matrix, target=target, **question)


def answered(problem, data):
    """The claim of bestk, solved here."""
    question = asked(problem, data)
    (claim,) = [bestk_run.answer(question, [run]) for run in bestk_run.one_round([question])]
    return claim


@pytest.fixture
def tiny_products():
    """Four columns and their products, 14 terms, with names as scikit-learn writes them."""
    from sklearn.preprocessing import PolynomialFeatures

    rng = np.random.default_rng(1)
    terms = PolynomialFeatures(2, include_bias=False)
    X = terms.fit_transform(rng.standard_normal((60, 4)))
    y = 3.0 + X[:, 5] + X[:, 12] + 0.5 * X[:, 0] + 0.3 * rng.standard_normal(60)
    names = list(terms.get_feature_names_out(["a", "b", "c", "d"]))
    return Data(
        X=X,
        Y=y[:, None],
        fit_intercept=True,
        names=names,
        groups=np.arange(14),
        parents=divisors(terms.powers_),
    )


# The problems ----------------------------------------------------------------------------------


def test_parents_are_the_terms_with_one_factor_less():
    powers = np.array([[1, 0], [0, 1], [2, 0], [1, 1], [2, 1]])
    assert divisors(powers) == [[], [], [0], [0, 1], [2, 3]]
    data = problems.products("diabetes", 2, "strong")
    assert data.X.shape == (442, 65)
    child = data.names.index("bmi bp")
    assert [data.names[j] for j in data.parents[child]] == ["bmi", "bp"]


def test_factors_are_seeded():
    data = factors(200, 0.9)
    assert data.X.shape == (200, 90)
    assert np.bincount(data.groups).tolist() == [1, 2, 3, 4, 5] * 6
    np.testing.assert_array_equal(data.X, factors(200, 0.9).X)
    assert (data.X.sum(axis=0) > 0).all()


@pytest.mark.parametrize("degree", [2, 3])
def test_the_truth_satisfies_the_constraints(degree):
    truth = make_dynamics("lorenz", 0.1, degree=degree).coef
    within, across = lorenz(degree, "within", 0.1), lorenz(degree, "across", 0.1)
    assert within.lhs @ truth[0] == 0.0
    assert across.lhs.shape == (10, truth.size)
    np.testing.assert_array_equal(across.lhs @ truth.ravel(), 0.0)


def test_energy_rows_make_the_quadratic_part_orthogonal_to_the_state():
    monomials = [(0, 0), (0, 1), (1, 1)]
    C = energy(monomials, 2)
    Q = np.linalg.svd(C)[2][len(C) :]  # coefficients that satisfy all rows
    for coef in Q:
        for x in np.random.default_rng(0).standard_normal((5, 2)):
            terms = [x[i] * x[j] for i, j in monomials]
            assert abs(x @ (coef.reshape(2, 3) @ terms)) < 1e-12


# Answers, against all models -------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["none", "weak", "strong"])
def test_hierarchies(tiny_products, kind):
    problem, data = Problem("hierarchy", "tiny 2", kind, 3, 0.5), tiny_products
    verdict, _, _ = judged(problem, data, claim := answered(problem, data))
    assert verdict.complaint == ""
    assert claim["verified"] == "yes"
    test = {"none": lambda _: True, "weak": any, "strong": all}[kind]
    X, y = data.stacked()
    best = min(
        refitted(X, y, np.array(support), 0.5)
        for size in (1, 2, 3)
        for support in combinations(range(14), size)
        if all(test(p in support for p in data.parents[j]) for j in support if data.parents[j])
    )
    assert verdict.objective == pytest.approx(best, rel=1.1e-4)
    assert verdict.lower_bound <= best * (1.0 + 1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_factors(alpha):
    problem, data = Problem("factors", "tiny 80", "groups", 2, alpha), factors(80, 0.5, 6, 2)
    verdict, _, _ = judged(problem, data, claim := answered(problem, data))
    assert (verdict.complaint, claim["verified"], verdict.size) == ("", "yes", 2)
    X, y = data.stacked()
    best = min(
        refitted(X, y, np.flatnonzero(np.isin(data.groups, pair)), alpha)
        for pair in combinations(range(6), 2)
    )
    assert verdict.objective == pytest.approx(best, rel=1.1e-4)
    assert verdict.lower_bound <= best * (1.0 + 1e-9)


@pytest.mark.parametrize(("structure", "k"), [("within", 2), ("across", 4)])
def test_constraints(structure, k):
    problem = Problem("constraints", "lorenz 2", structure, k, 1e-3)
    data = lorenz(2, structure, duration=0.2)
    verdict, violation, _ = judged(problem, data, claim := answered(problem, data))
    assert (verdict.complaint, claim["verified"]) == ("", "yes")
    assert verdict.size <= k
    assert violation < 1e-9


# Judging ---------------------------------------------------------------------------------------


def test_wrong_answers_are_refused(tiny_products):
    data = tiny_products
    problem = Problem("hierarchy", "tiny 2", "strong", 2, 0.5)
    X, y = data.stacked()

    def complaint(support, problem=problem, data=data, **changes):
        coef = np.linalg.lstsq(X[:, support], y, rcond=None)[0]
        b = np.zeros(14)
        b[support] = coef
        value = float(np.sum((y - X @ b) ** 2) + 0.5 * b @ b)
        claim = {"support": support, "coef": coef.tolist(), "objective": value, "nodes": 1}
        claim |= {"lower_bound": value, "seconds": 1.0} | changes
        return judged(problem, data, claim).verdict.complaint

    product = data.names.index("a b")
    assert complaint([0, 1]) == ""
    assert complaint([0, product]) == "a b without its parents"
    assert complaint([0, product], problem._replace(structure="weak")) == ""
    assert complaint([2, product], problem._replace(structure="weak")) != ""
    assert complaint([0, 1, 2]) == "3 groups"
    assert complaint([0, 1, 2], data=replace(data, groups=np.arange(14) // 3)) == ""
    assert "claims objective" in complaint([0, 1], objective=0.0)
    assert "above" in complaint([0, 1], lower_bound=1e9)
    lhs = np.eye(1, 14)
    bound = replace(data, lhs=lhs, rhs=np.zeros(1))
    assert "violated" in complaint([0, 1], data=bound)
    assert complaint([1, 2], data=bound) == ""


def test_an_error_is_a_complaint(tiny_products):
    problem = Problem("hierarchy", "tiny 2", "strong", 2, 0.5)
    assert judged(problem, tiny_products, {"error": "no"}).verdict.complaint == "no"


# Rows and the page -----------------------------------------------------------------------------


@pytest.fixture
def study(monkeypatch, tmp_path):
    """A study of two problems, one process, whose peer answers here."""
    some = [Problem("factors", "independent 200", "groups", 2, alpha, 5.0) for alpha in (0.0, 1.0)]
    monkeypatch.setattr("benchmarks.structure.study.problems", lambda quick: some[: 1 + quick])
    monkeypatch.setattr(StructureStudy, "results", tmp_path)
    monkeypatch.setattr(StructureStudy, "figures", tmp_path)
    return StructureStudy()


def test_rows_stay_and_become_a_page(study, monkeypatch, tmp_path):
    path = tmp_path / "structure.csv"
    arguments = Namespace(parts=problems.PARTS, peers=[], threads=1, quick=False)
    study.measure_missing(path, arguments)
    before = path.read_text()
    study.measure_missing(path, arguments)
    assert path.read_text() == before
    problem = Problem("factors", "independent 200", "groups", 2, 0.0, 5.0)
    question = asked(problem, data_of(problem))
    coef = refit(question, [3, 4])
    told = {
        "seconds": 0.1,
        "runs": 3,
        "support": np.flatnonzero(coef).tolist(),
        "coef": coef[coef != 0].tolist(),
        "objective": float(np.sum((question.target - question.matrix @ coef) ** 2)),
        "lower_bound": None,
        "nodes": 0,
    }
    seen = {}

    def run_script(python, script, *files, **options):
        seen[script] = files
        return [told]

    monkeypatch.setattr(measuring, "python_of", lambda name: None)
    monkeypatch.setattr(measuring, "run_script", run_script)
    arguments.peers = ["abess"]
    study.measure_missing(path, arguments)
    assert list(seen) == ["structure/peers/abess_run.py"]
    study.write(path, tmp_path)
    page = path.with_suffix(".md").read_text()
    assert "| independent 200 | groups | 2 | 0 | abess |" in page
    assert "abess, which proves nothing, finds the best known model of 0 of 1" in page
    assert "BLAS is pinned" in page
    assert "Answers that cannot be accepted: none." in page
    assert "benchmarks/trees.py" in page


def test_a_failure_is_told(study, monkeypatch, tmp_path):
    monkeypatch.setattr(measuring, "run_script", lambda *args, **options: {"error": "no solver"})
    arguments = Namespace(parts=problems.PARTS, peers=[], threads=1, quick=True)
    path = tmp_path / "structure.csv"
    study.measure_missing(path, arguments)
    study.write(path, tmp_path)
    assert "no solver" in path.with_suffix(".md").read_text()
    assert best_known(study.reviewed(list(study.measure(arguments, [])))) == {}


def test_every_problem_has_data_and_a_name():
    names = {str(problem) for problem in problems.problems()}
    assert len(names) == len(problems.problems())
    assert {problem.part for problem in problems.problems(quick=True)} == set(problems.PARTS)
