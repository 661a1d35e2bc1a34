"""Equations under rules and constraints, within an equation and across them."""

from itertools import combinations, combinations_with_replacement, permutations

import numpy as np
import pytest

from bestk import rules
from bestk.datasets import make_dynamics, simulate
from bestk.sindy import OKRidge, discover

STATES = ("x", "y", "z")
TERMS = ("1", "x", "y", "z", "x^2", "x y", "x z", "y^2", "y z", "z^2")


def energy_preserving() -> np.ndarray:
    """Rows over (equation, term): quadratic terms add up to zero in d/dt (x^2 + y^2 + z^2)."""
    rows = []
    for one in combinations_with_replacement(STATES, 3):
        row = np.zeros((3, len(TERMS)))
        for i, j, k in set(permutations(one)):
            product = sorted([j, k], key=STATES.index)
            term = f"{j}^2" if j == k else " ".join(product)
            row[STATES.index(i), TERMS.index(term)] = 1.0
        rows.append(row.ravel())
    return np.array(rows)


@pytest.fixture(scope="module")
def data():
    return make_dynamics("lorenz", duration=4.0, degree=2)


def test_a_constraint_within_an_equation(data):
    optimizer = OKRidge(k=[2, 3, 2], constraints={0: "x + y = 0"}, feature_names=TERMS)
    optimizer.fit(data.X, data.derivatives)
    assert optimizer.coef_[0, 1] == pytest.approx(-optimizer.coef_[0, 2], rel=1e-12)
    assert all(result.is_proven for result in optimizer.results_)


def test_rules_of_single_equations(data):
    own = {1: [rules.hierarchy("strong")]}
    optimizer = OKRidge(k=[2, 4, 2], rules=own, feature_names=TERMS).fit(data.X, data.derivatives)
    chosen = set(optimizer.results_[1].names)
    assert "x z" not in chosen or {"x", "z"} <= chosen
    assert optimizer.results_[0].structure is None


@pytest.mark.parametrize("order", ["target", "feature"])
def test_constraints_across_equations(data, order):
    lhs = energy_preserving()
    given = lhs
    if order == "feature":
        given = lhs.reshape(-1, 3, len(TERMS)).swapaxes(1, 2).reshape(len(lhs), -1)
    optimizer = OKRidge(
        k=len(TERMS), total_k=7, constraint_lhs=given, constraint_rhs=np.zeros(len(lhs)),
        constraint_order=order, feature_names=TERMS,
    ).fit(data.X, data.derivatives)  # fmt: skip
    assert np.abs(lhs @ optimizer.coef_.ravel()).max() < 1e-12
    assert [sorted(result.names) for result in optimizer.results_] == [
        ["x", "y"],
        ["x", "x z", "y"],
        ["x y", "z"],
    ]
    assert optimizer.result_.is_proven
    assert optimizer.objective_ == pytest.approx(sum(r.objective for r in optimizer.results_))
    X = np.kron(np.eye(3), data.X)
    assert optimizer.result_.certificate.verify(X, data.derivatives.T.ravel())


def test_inequalities_across_equations(data):
    row = np.zeros((1, 3 * len(TERMS)))
    row[0, TERMS.index("x")] = 1.0  # of the first equation, at most -12
    optimizer = OKRidge(
        k=3, constraint_lhs=row, constraint_rhs=[-12.0], equality=False, feature_names=TERMS
    ).fit(data.X, data.derivatives)
    assert optimizer.coef_[0, TERMS.index("x")] == pytest.approx(-12.0)
    assert optimizer.result_.multipliers[0] != 0.0


def test_large_stacks_are_solved_from_products(data, monkeypatch):
    import bestk.sindy.stacked as stacked

    lhs = energy_preserving()
    options = {"k": 4, "total_k": 7, "constraint_lhs": lhs, "constraint_rhs": np.zeros(len(lhs))}
    rows = OKRidge(**options).fit(data.X, data.derivatives)
    monkeypatch.setattr(stacked, "_MOST_ENTRIES", 0)
    products = OKRidge(**options).fit(data.X, data.derivatives)
    assert np.allclose(rows.coef_, products.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"constraint_lhs": np.ones((1, 7)), "constraint_rhs": [0.0]}, "7 columns"),
        ({"constraint_lhs": np.ones((1, 30))}, "needs constraint_rhs"),
        ({"constraint_lhs": np.ones((1, 30)), "constraint_rhs": [0.0, 1.0]}, "constraint_rhs"),
        (
            {"constraint_lhs": np.ones((1, 30)), "constraint_rhs": [0.0], "alpha": [0.1, 1.0, 1.0]},
            "alpha must be the same for all",
        ),
        ({"constraints": "x + y = 0", "unbias": True}, "unbias=True does not go with constraints"),
        ({"constraints": "x + y = 0", "normalize_columns": True}, "normalize_columns=True"),
        (
            {"constraint_lhs": np.ones((1, 30)), "constraint_rhs": [0.0], "constraint_order": "z"},
            "constraint_order must be one of",
        ),
    ],
)
def test_what_does_not_fit_is_said(data, options, words):
    with pytest.raises(ValueError, match=words):
        OKRidge(k=2, feature_names=TERMS, **options).fit(data.X, data.derivatives)


def test_discover_passes_on_what_is_asked():
    states = simulate("lorenz", 3.0, noise=0.002)
    common = {"degree": 2, "names": STATES, "ks": range(1, 5)}
    found = discover(
        states, 0.002, constraints={0: "x + y = 0"}, bounds={2: (-3.0, 3.0)}, free={1: ["1"]},
        **common,
    )  # fmt: skip
    assert found.coef[0, 1] == pytest.approx(-found.coef[0, 2], rel=1e-9)
    lists = found.near_optimal(within=0.5)
    assert all(
        model.coef[1] == pytest.approx(-model.coef[2], abs=1e-9) for model in lists["x"].models
    )
    lhs = energy_preserving()
    tied = discover(states, 0.002, constraint_lhs=lhs, constraint_rhs=np.zeros(len(lhs)), **common)
    assert np.abs(lhs @ tied.coef.ravel()).max() < 1e-12
    assert len({result.alpha for result in tied.results}) == 1
    with pytest.raises(ValueError, match="constraints tie these equations"):
        tied.near_optimal()


@pytest.mark.parametrize("unit", [1.0, 1e-4, 1e-8])
@pytest.mark.parametrize("seed", range(8))
def test_what_is_said_of_a_small_equation_beside_a_large_one(seed, unit):
    """Its bound holds while the others stay, and its message does not say more."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 5))
    noise = rng.standard_normal((30, 2))
    Y = (X @ rng.standard_normal((5, 2)) + noise) * [1.0, unit]
    lhs = np.zeros((1, 10))
    lhs[0, 0], lhs[0, 5] = unit, -1.0
    optimizer = OKRidge(k=2, constraint_lhs=lhs, constraint_rhs=[0.0]).fit(X, Y)
    tied, least = unit * optimizer.coef_[0, 0], np.inf
    for pair in combinations(range(5), 2):
        rest = [j for j in pair if j > 0]
        if 0 in pair or tied == 0.0:
            target = Y[:, 1] - X[:, 0] * tied
            b = np.linalg.lstsq(X[:, rest], target, rcond=None)[0]
            least = min(least, float(np.sum((target - X[:, rest] @ b) ** 2)))
    result = optimizer.results_[1]
    assert result.lower_bound <= least * (1 + 1e-9)
    for one in optimizer.results_:
        assert "the objectives of all equations together" in one.message
