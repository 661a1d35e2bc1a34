"""Everything that must hold for a tiny problem with structure, whatever its seed."""

import numpy as np
import pytest

from bestk import Advanced, near_optimal, solve
from bestk.structure.compose import NoModel
from helpers import choices


def settings(seed: int) -> dict:
    """Switches that lead through all parts of the search, and limits."""
    rng = np.random.default_rng([seed, 7])
    return {
        "gap_tol": float(rng.choice([1e-4, 0.0, 1e-7])),
        "search": str(rng.choice(["best-first", "breadth-first", "depth-first"])),
        "node_limit": [None, None, None, 0, 1, 3][rng.integers(6)],
        "n_threads": int(rng.integers(1, 3)),
        "advanced": Advanced(
            fixing=bool(rng.random() < 0.7),
            enumeration=bool(rng.random() < 0.4),
            split=str(rng.choice(["optimised", "uniform"])),
            batch_size=[None, 1, 3][rng.integers(3)],
        ),
    }


def zero_is_out(structure) -> bool:
    return bool(((structure.lower > 0.0) | (structure.upper < 0.0)).any())


def check(seed: int, **more) -> None:
    instance = choices.make(seed)
    if choices.sides(instance)[1] & (choices.sides(instance)[0] | choices.sides(instance)[2]):
        return  # in and out at once, which has a test of its own
    best, options = choices.optimum(instance), settings(seed) | more
    if instance.problem().yy <= 0.0 and zero_is_out(instance.structure):
        with pytest.raises(ValueError, match="y has no variation"):
            solve(instance.X, instance.y, instance.k, **instance.options, **options)
        return
    try:
        result = solve(instance.X, instance.y, instance.k, **instance.options, **options)
    except NoModel:
        limited = options["node_limit"] is not None and instance.options.get("constraints")
        assert best == np.inf or limited
        return
    scale = max(result.yy, np.sum(instance.y**2) * 1e-12, 1e-60)
    slack = 1e-7 * (best + scale) + 1e-12 * np.sum(instance.y**2)
    assert result.lower_bound <= best + slack
    assert result.objective >= best - slack
    assert result.lower_bound <= result.objective
    assert not result.structure.broken(result.chosen)
    assert set(np.flatnonzero(result.coef)) <= set(result.structure.features_of(result.chosen))
    if options["node_limit"] is None:
        assert result.is_proven or result.status.name == "NUMERICAL_LIMIT"
        assert result.objective <= best * (1.0 + 2 * options["gap_tol"]) + slack
    verified = result.certificate.verify(
        instance.X, instance.y, instance.options.get("sample_weight")
    )
    assert verified or choices.is_beyond_the_verifier(instance), (instance, verified)
    assert verified.lower_bound <= best + slack


def listed(seed: int):
    """(instance, list, values of all admissible choices); None where there is none."""
    rng, instance = np.random.default_rng([seed, 11]), choices.make(seed)
    included, excluded, free = choices.sides(instance)
    if excluded & (included | free) or instance.problem().yy <= 0.0:
        return None
    values = {tuple(z.tolist()): choices.value(instance, z) for z in choices.admissible(instance)}
    try:
        found = near_optimal(
            instance.X, instance.y, instance.k, within=float(rng.choice([0.0, 0.1, 1.0])),
            **instance.options,
        )  # fmt: skip
    except NoModel:
        assert min(values.values(), default=np.inf) == np.inf
        return None
    return instance, found, values


def check_list(seed: int) -> None:
    """Lists are complete and irreducible, and their certificates verify."""
    case = listed(seed)
    if case is None:
        return
    instance, found, values = case
    structure, slack = instance.structure, 1e-6 * (found.threshold + found.yy)
    sets = [set(structure.groups_of(model.support).tolist()) for model in found.models]
    if not found.complete:
        assert found.best.status.name != "OPTIMAL" or found.best.gap > 0.0 or slack > 0.0
        return
    for chosen, value in values.items():
        contains = any(one <= set(chosen) for one in sets)
        assert contains or value >= found.threshold - slack
        assert not contains or value <= found.threshold + slack
    for i, one in enumerate(sets):
        assert not any(other < one for other in sets)
        assert not structure.broken(np.array(sorted(one), dtype=int)), i
    weight = instance.options.get("sample_weight")
    verified = found.certificate.verify(instance.X, instance.y, weight)
    assert verified or choices.is_beyond_the_verifier(instance), (instance, verified)
