"""Models with structure are the best of all that are admissible, and bounds hold, always."""

import numpy as np
from helpers import choices
from helpers.seeds import seeds

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


def check(seed: int, **more) -> None:
    instance = choices.make(seed)
    if choices.sides(instance)[1] & (choices.sides(instance)[0] | choices.sides(instance)[2]):
        return  # in and out at once, which has a test of its own
    best, options = choices.optimum(instance), settings(seed) | more
    try:
        result = solve(instance.X, instance.y, instance.k, **instance.options, **options)
    except ValueError as error:
        if not isinstance(error, NoModel):
            assert "y has no variation" in str(error)
            return
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
    assert verified, (instance, verified)
    assert verified.lower_bound <= best + slack


@seeds(3000, chunk=60)
def test_the_best_of_all_admissible_models(seed):
    check(seed)
