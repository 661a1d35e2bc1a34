"""Models with structure are the best of all that are admissible, and bounds hold, always."""

import numpy as np
from helpers import choices
from helpers.choice_checks import check
from helpers.seeds import seeds
from scipy.optimize import LinearConstraint

from bestk import solve


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
