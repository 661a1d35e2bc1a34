"""Information criteria by their formulas."""

import math

import pytest

from bestk.results.criteria import information_criterion


@pytest.mark.parametrize("rss", [0.5, 7.0])
@pytest.mark.parametrize(("n", "size", "p"), [(30, 3, 10), (100, 0, 50), (12, 5, 5)])
def test_criteria_by_their_formulas(rss, n, size, p):
    q = size + 2
    values = {
        name: information_criterion(name, rss=rss, n=n, size=size, extra=2, chosen=size, among=p)
        for name in ("aicc", "bic", "ebic")
    }
    fit = n * math.log(rss / n)
    assert values["aicc"] == pytest.approx(fit + 2 * q + 2 * q * (q + 1) / (n - q - 1))
    assert values["bic"] == pytest.approx(fit + q * math.log(n))
    assert values["ebic"] == pytest.approx(values["bic"] + 2 * math.log(math.comb(p, size)))


def test_criteria_of_hopeless_cases():
    arguments = {"n": 5, "size": 4, "extra": 1, "chosen": 4, "among": 8}
    assert information_criterion("aicc", rss=1.0, **arguments) == math.inf
    with pytest.raises(ValueError, match="criterion must be one of"):
        information_criterion("aic", rss=1.0, **arguments)
    with pytest.raises(ValueError, match="number of rows"):
        information_criterion("bic", rss=1.0, **{**arguments, "n": None})
