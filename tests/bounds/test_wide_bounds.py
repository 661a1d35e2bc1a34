"""Bounds of forms by rows: they hold at every node, and prove what all features do."""

import numpy as np
import pytest
from helpers.forcing import forced
from helpers.forms import is_by_rows
from helpers.instances import REGIMES, make_node
from helpers.nodes import root_batch
from helpers.seeds import seeds

import bestk
from bestk import Advanced, Problem, Status
from bestk.base.constants import IN, OUT
from bestk.base.threads import Workers
from bestk.bounds.methods import bound_nodes, make_method
from bestk.bounds.split import first_split
from bestk.datasets import make_synthetic
from bestk.form.presolve import Presolved

ONE = Workers(1)


@seeds(8, chunk=8)
@pytest.mark.parametrize("method", ["descent", "admm", "fast", "subgradient"])
@pytest.mark.parametrize("regime", REGIMES)
def test_bounds_and_fixings_by_rows_hold_at_every_node(seed, regime, method, tiny_cores):
    case = make_node(seed + 30_000, regime)
    if case is None:
        return
    form = case.form
    assert is_by_rows(form)
    split = first_split(form)
    for cutoff in (case.optimum * 0.5, case.optimum * (1.0 - 1e-9), 2.0):
        batch = root_batch(case.state[None])
        searching = make_method(method, form, split, ONE)
        bound_nodes(searching, form, split, batch, case.k, cutoff, True, ONE)
        assert batch.bounds[0] <= case.optimum + case.slack
        after = batch.states[0]
        for support, value in case.values.items():
            chosen = np.isin(np.arange(form.p), support)
            kept = (chosen | (after != IN)).all() and (~chosen | (after != OUT)).all()
            assert kept or value >= cutoff - case.slack


@pytest.mark.parametrize("seed", range(6))
def test_a_core_that_grows_proves_what_all_features_do(seed):
    """At a size where cores are much smaller than the problem, and have to be begun anew."""
    data = make_synthetic(40, 300, 4, rho=0.3, seed=seed)
    problem = Problem.from_data(data.X, data.y, alpha=1.0, bounds=(-2.0, 2.0))
    stored = Presolved.of(problem).form
    with forced() as force:
        force.wide_search()
        force.cores(first=8, per_choice=1, entrants=4, many=30 if seed % 2 else 1000)
        force.methods(closeness=1e-6, sweeps=4000)
        problem = Problem.from_data(data.X, data.y, alpha=1.0, bounds=(-2.0, 2.0))
        form = Presolved.of(problem).form
        assert is_by_rows(form)
        split = first_split(form)
        rng = np.random.default_rng(seed)
        states = np.zeros((5, form.p), dtype=np.int8)
        for row in range(1, 5):
            states[row, rng.permutation(form.p)[:60]] = OUT
            states[row, rng.permutation(form.p)[:row]] = IN
        bounds = {}
        for name, here in (("by rows", form), ("stored", stored)):
            batch = root_batch(states)
            method = make_method("descent", here, split, ONE)
            bound_nodes(method, here, split, batch, 4, 0.6, False, ONE)
            bounds[name] = batch.bounds
    np.testing.assert_allclose(bounds["by rows"], bounds["stored"], atol=2e-4)


@pytest.mark.parametrize("seed", range(4))
def test_a_box_bounds_without_any_penalty(seed):
    """alpha = 0 and p > n: A is singular, and the box is all that charges a feature."""
    data = make_synthetic(25, 40, 2, rho=0.1, snr=50.0, seed=seed)
    options = {"k": 2, "bounds": (-1.5, 1.5), "advanced": Advanced(enumeration=False)}
    result = bestk.solve(data.X, data.y, **options)
    assert result.status is Status.OPTIMAL
    assert result.certificate.verify(data.X, data.y)
    assert result.n_nodes < 100
    unbounded = bestk.solve(data.X, data.y, **(options | {"bounds": None, "node_limit": 200}))
    assert unbounded.status is Status.NODE_LIMIT
    assert unbounded.lower_bound == 0.0
