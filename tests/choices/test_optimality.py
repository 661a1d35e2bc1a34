"""Models with structure are the best of all that are admissible, and bounds hold, always."""

import numpy as np
import pytest
from helpers import choices
from helpers.seeds import seeds
from scipy.optimize import LinearConstraint

from bestk import Advanced, solve
from bestk.structure.compose import NoModel


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


@seeds(3000, chunk=60)
def test_the_best_of_all_admissible_models(seed):
    check(seed)


@seeds(12)
def test_a_first_model_is_found_however_late(seed):
    """Constraints that most supports cannot satisfy: there is no model to begin with."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 16))
    y = X[:, :4] @ rng.normal(size=4) + rng.normal(size=60)
    first = np.r_[np.ones(8), np.zeros(8)]
    constraints = [
        LinearConstraint(np.ones(16), -0.1, 0.2),
        LinearConstraint(first, 0.3 + 0.1 * (seed % 3), np.inf),
    ]
    result = solve(X, y, 4, constraints=constraints)
    assert result.is_proven
    instance = choices.Instance(
        kind="plain", X=X, y=y, k=4,
        options={"alpha": 0.0, "fit_intercept": False, "constraints": constraints},
    )  # fmt: skip
    some = [np.sort(rng.choice(16, size=4, replace=False)) for _ in range(60)]
    assert all(choices.value(instance, one) >= result.lower_bound * (1 - 1e-9) for one in some)
    assert result.certificate.verify(X, y)
