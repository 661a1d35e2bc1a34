"""The paper's configuration: its tree, its rules, the same answers."""

import numpy as np
import pytest

import bestk
from bestk import Advanced, Problem, Status
from bestk.base.constants import FREE, IN, OUT
from bestk.datasets import make_synthetic
from bestk.form.standard_form import StandardForm
from bestk.search.branching import by_heuristic
from bestk.subtrees.frontier import Frontier, Node
from bestk.supports.beam import beam_supports, fit_supports

PAPER = {"search": "breadth-first", "advanced": Advanced.paper()}


@pytest.mark.parametrize("bound", ["admm", "fast", "subgradient"])
@pytest.mark.parametrize("rho", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(2))
def test_paper_and_default_reach_the_same_answer(bound, rho, seed):
    X, y, _ = make_synthetic(120, 30, 5, rho=rho, seed=seed)
    ours = bestk.solve(X, y, 5, alpha=1e-3)
    theirs = bestk.solve(X, y, 5, alpha=1e-3, bound=bound, **PAPER)
    assert ours.status is theirs.status is Status.OPTIMAL
    assert theirs.support.tolist() == ours.support.tolist()
    assert theirs.objective == pytest.approx(ours.objective, rel=1e-10)
    assert theirs.lower_bound <= ours.objective
    assert ours.lower_bound <= theirs.objective


def test_admm_needs_fewer_nodes_than_the_fast_bound_alone():
    """The paper's ablation."""
    nodes = {"fast": 0, "admm": 0}
    for seed in range(2):
        X, y, _ = make_synthetic(100, 40, 5, rho=0.7, snr=1.0, seed=seed)
        for bound in nodes:
            nodes[bound] += bestk.solve(X, y, 5, alpha=1e-3, bound=bound, **PAPER).n_nodes
    assert nodes["admm"] < nodes["fast"]


def paper_tree():
    X, y, _ = make_synthetic(60, 25, 5, rho=0.8, snr=1.0, seed=3)
    result = bestk.solve(X, y, 5, alpha=1e-3, bound="admm", **PAPER)
    assert len(result.certificate.tree) > 10
    return X, y, result


def test_paper_tree_branches_on_one_feature_at_a_time_level_by_level():
    _, _, result = paper_tree()
    tree, depth = result.certificate.tree, []
    assert len(tree.in_index) == len(tree.out_index) == 0
    for parent in tree.parent.tolist():
        depth.append(0 if parent < 0 else depth[parent] + 1)
    assert depth == sorted(depth)
    assert len(result.certificate.splits) == 1
    assert np.ptp(result.certificate.splits[0][1]) == 0.0


def test_paper_tree_takes_the_feature_whose_loss_increase_is_largest():
    """Recomputed on the data at every branched node: drop one coefficient, measure the loss."""
    X, y, result = paper_tree()
    problem = Problem.from_data(X, y, alpha=1e-3)
    form = StandardForm.of(problem, np.arange(25))
    tree = result.certificate.tree
    states = []
    for number, parent in enumerate(tree.parent):
        state = states[parent].copy() if parent >= 0 else np.zeros(25, dtype=np.int8)
        if tree.feature[number] >= 0:
            state[tree.feature[number]] = IN if tree.inside[number] else OUT
        states.append(state)
    branched = np.unique(tree.parent[tree.feature >= 0])
    for number in branched[:10]:
        state = states[number]
        inside = np.flatnonzero(state == IN)
        support = beam_supports(form, inside, 5, width=50, allowed=state != OUT)[0]
        coef = np.zeros(25)
        coef[support], loss = problem.fit(support)
        increase = {}
        for j in support[state[support] == FREE]:
            without = coef.copy()
            without[j] = 0.0
            increase[j] = problem.objective(without) - loss
        child = np.flatnonzero(tree.parent == number)[0]
        assert tree.feature[child] == max(increase, key=increase.get)


def test_branching_rule_is_the_papers_formula():
    """The free feature whose coefficient, set to zero and nothing refitted, costs most."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        X = rng.standard_normal((30, 8)) * 10.0 ** rng.integers(-2, 3, 8)
        y = rng.standard_normal(30) + X @ (rng.standard_normal(8) / np.linalg.norm(X, axis=0))
        form = StandardForm.of(Problem.from_data(X, y, alpha=0.1), np.arange(8))
        state = rng.choice(np.array([FREE, IN, OUT], dtype=np.int8), 8, p=[0.6, 0.2, 0.2])
        inside = np.flatnonzero(state == IN)
        k = len(inside) + 1 + min(1, np.count_nonzero(state == FREE) - 1)
        if not (state == FREE).any():
            continue
        feature, support = by_heuristic(form, state, k, 50)
        coefs, values = fit_supports(form, support[None])
        losses = []
        for position in range(len(support)):
            b = coefs[0].copy()
            b[position] = 0.0
            losses.append(1 - 2 * form.c[support] @ b + b @ form.A[np.ix_(support, support)] @ b)
        increase = np.where(state[support] == FREE, np.array(losses) - values[0], -np.inf)
        assert feature == support[increase.argmax()]
        assert state[feature] == FREE


def node(bound, number):
    nothing = np.zeros(0)
    return Node(bound, number, nothing, nothing, nothing, 0.0, 1.0)


@pytest.mark.parametrize(
    ("order", "expected"),
    [("breadth-first", [0, 1, 2, 3]), ("depth-first", [3, 2, 1, 0]), ("best-first", [2, 0, 3, 1])],
)
def test_queue_takes_nodes_in_its_order_and_knows_the_smallest_bound(order, expected):
    bounds = [0.2, 0.4, 0.1, 0.3]
    queue = Frontier(order)
    for number, bound in enumerate(bounds):
        queue.push(node(bound, number))
    left = set(range(4))
    for number in expected:
        assert queue.smallest_bound == min(bounds[i] for i in left)
        assert [n.number for n in queue.pop(1)] == [number]
        left.remove(number)
    assert len(queue) == 0
    assert queue.smallest_bound == np.inf
