"""Runs with structure: threads, limits, checkpoints, Ctrl-C, and what they refuse."""

from math import comb

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import LinearConstraint

import bestk
from bestk import Status, resume, rules, solve
from bestk.runs.checkpoint import Checkpoint
from bestk.storage import load, save

K = 5


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(70, 24))
    X[:, 1:] += 0.8 * X[:, :-1]
    return X, X @ (rng.normal(size=24) * (rng.random(24) < 0.4)) + 2.0 * rng.normal(size=70)


STRUCTURES = {
    "groups": {"groups": [j // 2 for j in range(24)]},
    "rules": {"rules": [rules.at_most(2, range(8)), rules.implies(9, [3, 4])]},
    "constraints": {"constraints": LinearConstraint(np.r_[np.ones(12), np.zeros(12)], 0.1, 0.1)},
    "boxes": {"groups": [j // 2 for j in range(24)], "bounds": (-1.5, 2.0)},
}
OPTIONS = {"gap_tol": 1e-6, "advanced": bestk.Advanced(enumeration=False)}


def same(one, two) -> bool:
    pairs = zip(
        one.certificate.to_arrays().items(), two.certificate.to_arrays().items(), strict=True
    )
    return all(a == b and np.array_equal(x, y) for (a, x), (b, y) in pairs)


@pytest.fixture(params=STRUCTURES)
def structure(request):
    return STRUCTURES[request.param]


def test_the_number_of_threads_does_not_matter(data, structure):
    one, two = (solve(*data, K, n_threads=n, **structure, **OPTIONS) for n in (1, 2))
    assert one.n_nodes > 3
    assert (one.n_nodes, one.objective) == (two.n_nodes, two.objective)
    assert same(one, two)


def test_a_run_goes_on_where_it_ended(data, structure, tmp_path):
    whole = solve(*data, K, **structure, **OPTIONS)
    path = tmp_path / "run.ckpt"
    part = solve(*data, K, **structure, **OPTIONS, node_limit=2, checkpoint=path)
    assert part.status is Status.NODE_LIMIT
    assert part.lower_bound <= whole.objective
    rest = resume(path, *data)
    assert (rest.n_nodes, rest.objective) == (whole.n_nodes, whole.objective)
    assert rest.lower_bound == whole.lower_bound
    assert rest.certificate.verify(*data)
    assert same(rest, whole)


def test_a_run_that_has_not_begun_goes_on_as_well(data, structure, tmp_path):
    path = tmp_path / "run.ckpt"
    solve(*data, K, **structure, **OPTIONS, node_limit=0, checkpoint=path)
    assert Checkpoint.read(path).structure is not None
    assert same(resume(path, *data), solve(*data, K, **structure, **OPTIONS))


def test_structure_may_be_repeated_but_not_changed(data, tmp_path):
    path, rule = tmp_path / "run.ckpt", STRUCTURES["rules"]["rules"]
    solve(*data, K, rules=rule, node_limit=2, checkpoint=path)
    with pytest.raises(ValueError, match="other data or another problem"):
        resume(path, *data, rules=rule[:1])
    assert resume(path, *data, rules=rule).is_proven


def test_other_data_are_refused(data, tmp_path):
    path = tmp_path / "run.ckpt"
    solve(*data, K, **STRUCTURES["rules"], node_limit=2, checkpoint=path)
    with pytest.raises(ValueError, match="other data"):
        resume(path, data[0] + 1.0, data[1])


def test_limits_leave_a_bound_that_holds(data, structure):
    whole = solve(*data, K, **structure, **OPTIONS)
    bounds = []
    for limit in (0, 1, 3, 9):
        part = solve(*data, K, **structure, **OPTIONS, node_limit=limit)
        assert part.lower_bound <= whole.objective * (1 + 1e-9)
        assert part.objective >= whole.lower_bound * (1 - 1e-9)
        assert part.certificate.verify(*data)
        bounds.append(part.lower_bound)
    assert bounds == sorted(bounds)


def test_ctrl_c_gives_the_best_model_so_far(data, structure):
    def interrupt(snapshot):
        if snapshot.n_nodes > 2:
            raise KeyboardInterrupt

    result = solve(*data, K, **structure, **OPTIONS, callback=interrupt)
    assert result.status is Status.INTERRUPTED
    assert 0.0 < result.lower_bound <= result.objective


def test_a_result_with_structure_in_a_file(data, structure, tmp_path):
    result = solve(*data, K, **structure)
    save(result, tmp_path / "run.npz")
    again = load(tmp_path / "run.npz")
    assert again.structure.identity() == result.structure.identity()
    assert again.chosen.tolist() == result.chosen.tolist()
    assert again.multipliers.tolist() == result.multipliers.tolist()
    assert again.certificate.verify(*data)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "cuda"}, "device cannot be used"),
        ({"bound": "admm"}, "bound cannot be used"),
        ({"bounds": "auto"}, 'bounds="auto" cannot be used'),
        ({"include": [0], "exclude": [1]}, "both include and exclude"),
        (
            {"initial_support": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]},
            "7 groups, but k = 5",
        ),
    ],
)
def test_what_does_not_go_together_is_said(data, options, words):
    with pytest.raises(ValueError, match=words):
        solve(*data, K, groups=[j // 2 for j in range(24)], **options)


def test_a_start_that_breaks_a_rule_is_named(data):
    with pytest.raises(ValueError, match="breaks a rule: at most 1 of"):
        solve(*data, K, rules=[rules.exclusive(0, 1)], initial_support=[0, 1])


def test_a_start_is_used(data):
    best = solve(*data, K, **STRUCTURES["rules"])
    first = solve(*data, K, **STRUCTURES["rules"], initial_support=best.support, node_limit=0)
    assert first.objective <= best.objective


def test_without_structure_nothing_is_searched_over_choices(data):
    plain = solve(*data, K)
    assert plain.structure is None
    assert plain.certificate.choices is None


def test_rules_that_hold_anyway_change_nothing(data):
    plain = solve(*data, K, gap_tol=0.0)
    same_model = solve(*data, K, gap_tol=0.0, rules=[rules.at_most(24, range(24))])
    assert plain.support.tolist() == same_model.support.tolist()
    assert same_model.objective == pytest.approx(plain.objective, rel=1e-12)


def test_everything_takes_structure(data):
    X, y = data
    rule = [rules.exclusive(0, 1), rules.exclusive(2, 3)]
    path = bestk.solve_path(X, y, ks=range(1, 5), rules=rule)
    problem = bestk.Problem.from_data(X, y)
    for k, result in path.items():
        assert not result.structure.broken(result.chosen)
        assert problem.solve(k, rules=rule).objective == pytest.approx(result.objective, rel=1e-4)
    other = problem.runner_up(path[4])
    assert other.lower_bound >= path[4].lower_bound
    assert not other.structure.broken(other.chosen)
    assert set(other.support) != set(path[4].support)
    model = bestk.SparseRidge(k=4, rules=rule).fit(X, y)
    assert not {0, 1} <= set(model.support_)
    assert model.near_optimal(within=0.01).complete
    chosen = bestk.SparseRidgeCV(ks=range(1, 4), rules=rule, cv=3).fit(X, y)
    assert not chosen.result_.structure.broken(chosen.result_.chosen)
    stable = bestk.stability(X, y, k=3, rules=rule, n_resamples=5, random_state=0)
    assert stable is not None
    assert bestk.beam_search(X, y, 4, rules=rule).objective >= path[4].lower_bound


def test_sizes_that_satisfy_nothing_are_left_out_of_a_path(data):
    path = bestk.solve_path(*data, ks=range(4), rules=[rules.at_least(2, range(10))])
    assert list(path) == [2, 3]
    with pytest.raises(ValueError, match="no model satisfies"):
        bestk.solve_path(*data, ks=[0, 1], rules=[rules.at_least(2, range(10))])


def test_names_of_groups_are_names_everywhere():
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.normal(size=(60, 6)), columns=list("abcdef"))
    y = X["a"] + X["b"] - X["e"] + rng.normal(size=60)
    groups = {"pair": ["a", "b"], "other": ["c", "d"]}
    problem = bestk.Problem.from_data(X, y)
    result = problem.solve(2, groups=groups, include=["pair"], exclude="other")
    assert {"a", "b"} <= set(result.names)
    assert not {"c", "d"} & set(result.names)
    other = problem.runner_up(result, include=["pair"], exclude=["other"])
    assert {"a", "b"} <= set(other.names)
    assert other.names != result.names
    found = bestk.near_optimal(X, y, 2, groups=groups, within=0.5)
    assert found.contains(["pair", "e"])
    assert all({"a", "b"} <= set(model.names) for model in found.filter(include=["pair"]))
    assert all(found.count(model) == 1 for model in found.filter(max_size=1))
    start = problem.solve(2, groups=groups, initial_support=["pair"], node_limit=0)
    assert start.objective <= problem.objective(np.zeros(6))


def test_cross_validation_leaves_out_sizes_that_rules_forbid(data):
    rule = [rules.at_least(2, [0, 1, 2])]
    model = bestk.SparseRidgeCV(ks=[1, 2, 3], rules=rule, cv=3).fit(*data)
    assert model.cross_validation_.ks.tolist() == [2, 3]
    with pytest.raises(rules.NoModel, match="no model satisfies"):
        bestk.SparseRidgeCV(ks=[0, 1], rules=rule, cv=3).fit(*data)
    constraint = LinearConstraint(np.ones(24), 1.0, 1.0)
    with pytest.raises(rules.NoModel, match="leave that size out"):
        bestk.SparseRidgeCV(ks=[0, 1], constraints=constraint, cv=3).fit(*data)


def test_lists_with_large_groups_are_verified_at_once():
    rng = np.random.default_rng(0)
    z = rng.normal(size=300)
    X, y = rng.normal(size=(300, 40)) + z[:, None], z + 0.1 * rng.normal(size=300)
    found = bestk.near_optimal(X, y, k=1, groups=[0] * 28 + [1] * 12, within=5.0)
    assert len(found) == 2
    assert found.certificate.verify(X, y)


def test_ebic_pays_for_groups_that_were_chosen(data):
    X, y = data
    result = solve(X, y, 2, groups=[j // 2 for j in range(24)])
    q = len(result.support) + 1
    fit = len(y) * np.log(result.rss / len(y)) + q * np.log(len(y))
    assert result.criterion("ebic") == pytest.approx(fit + 2 * np.log(comb(12, 2)))


@pytest.mark.parametrize("name", ["rules", "constraints", "bounds"])
def test_features_that_depend_on_those_of_other_groups_are_said(name):
    """In exact arithmetic what rounding left of a sum of columns could be fitted, too."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((12, 4))
    X[:, 3] = 0.3 * X[:, 0] - 1.7 * X[:, 1]
    y = X @ rng.standard_normal(4) + rng.standard_normal(12)
    asked = {
        "rules": {"rules": [rules.at_least(1, [0, 3])]},
        "constraints": {"constraints": LinearConstraint([1.0, 1.0, 0.0, 1.0], 0.5, 0.5)},
        "bounds": {"groups": ["a", "b", "c", "d"], "bounds": (-0.2, 5.0)},
    }[name]
    (text,) = solve(X, y, 4, **asked).assumptions
    assert text.startswith("Some features depend on others")
    assert solve(X, y, 4, alpha=0.1, **asked).assumptions == ()
    X[:, 3] += rng.standard_normal(12)
    assert solve(X, y, 4, **asked).assumptions == ()
