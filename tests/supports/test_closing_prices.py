"""What enumerations cost: numbers of choices, the four parts of a scan, margins."""

import math
from itertools import combinations, product

import pytest

from bestk.base.constants import UNIT_ROUNDOFF
from bestk.base.tuning import Tuning, tuning
from bestk.devices.tasks import fits
from bestk.supports.enumeration import closing_cost, is_for_device
from bestk.supports.margins import margins
from bestk.supports.prices import (
    Prices,
    choices,
    device_seconds,
    prices_of,
    scan_seconds,
)


@pytest.mark.parametrize("m", [0, 1, 2, 7, 30, 200])
def test_choices_are_binomial_coefficients(m):
    for r in range(-4, min(m, 12) + 4):
        expected = math.comb(m, r) if r >= 0 else 0
        assert choices(m, r) == pytest.approx(expected, rel=1e-12)
        if 0 <= r <= m:
            assert choices(m, m - r) == pytest.approx(expected, rel=1e-12)


def test_choices_may_be_too_many_to_count():
    assert choices(10_000, 5_000) == math.inf


def price(**parts):
    return Prices(**dict.fromkeys(Prices._fields, 0.0) | parts)


@pytest.mark.parametrize(("m", "r"), [(m, r) for m in (3, 6, 9) for r in range(1, m)])
def test_each_part_is_counted_as_often_as_it_is_done(m, r):
    """With the supports themselves at hand: their beginnings of each length."""

    def begun(length):
        return sum(1 for _ in combinations(range(m), length)) if length >= 0 else 0

    inside = 4
    assert scan_seconds(price(per_support=1.0), m, inside, r) == pytest.approx(begun(r))
    assert scan_seconds(price(per_pair_row=1.0), m, inside, r) == pytest.approx(begun(r - 1))
    assert scan_seconds(price(per_first=1.0), m, inside, r) == pytest.approx(begun(r - 2))
    # Whatever r is, a scan begins once at least.
    once = max(begun(r - 3), 1)
    assert scan_seconds(price(per_beginning=1.0), m, inside, r) == pytest.approx(once)
    assert scan_seconds(price(per_update=1.0), m, inside, r) == m * m * (inside + 1)


@pytest.mark.parametrize("m", [5, 20, 90])
def test_a_scan_costs_the_sum_of_its_parts(m):
    prices = prices_of(tuning())
    for r in range(1, 5):
        parts = [price(**{name: getattr(prices, name)}) for name in Prices._fields]
        total = sum(scan_seconds(part, m, 2, r) for part in parts)
        assert scan_seconds(prices, m, 2, r) == pytest.approx(total, rel=1e-12)


def test_more_to_try_costs_more():
    prices = prices_of(tuning())
    for m, inside, r in product((4, 10, 40, 100), (0, 3, 9), (1, 2, 3, 5)):
        cost = scan_seconds(prices, m, inside, r)
        assert scan_seconds(prices, m + 1, inside, r) > cost > 0.0
        assert scan_seconds(prices, m, inside + 1, r) > cost
        if 2 * (r + 1) <= m:
            assert scan_seconds(prices, m, inside, r + 1) > cost


def test_prices_are_those_of_the_tuning():
    now = Tuning(
        per_beginning=1, per_first=2, per_pair_row=3, per_support=4, per_update=5,
        per_unit_multiply=6, per_device_support=7, per_device_row=8, per_device_first=9,
        per_device_beginning=10, per_device_node=11, device_threads=12,
    )  # fmt: skip
    assert prices_of(now) == tuple(range(1, 13))


def test_closing_a_node_costs_its_scan_and_little_else():
    around = tuning().per_closing
    scan = scan_seconds(prices_of(tuning()), 30, 2, 3)
    assert closing_cost(30, 2, 3) == pytest.approx(scan + around)
    for m, r in ((30, 0), (3, 3), (3, 5), (0, 1)):
        assert closing_cost(m, 2, r) == around
    assert closing_cost(5000, 0, 400) == math.inf


def test_margins_grow_with_the_model_and_the_error_of_the_data():
    for k in (1, 5, 50):
        shift, slack = margins(0.0, k)
        assert shift >= 8 * k * (k + 4) * UNIT_ROUNDOFF
        assert slack >= 16 * (k + 4) * UNIT_ROUNDOFF
        more, wider = margins(1e-9, k)
        assert more - shift == pytest.approx(2e-9 * k, rel=1e-6)
        assert wider - slack == pytest.approx(2e-9, rel=1e-4)
        assert margins(1e-9, k + 1) > (more, wider)
    assert max(margins(1e-15, 20)) < 1e-11


def test_a_device_is_asked_where_it_is_cheaper():
    prices = prices_of(tuning())
    assert is_for_device(400, 0, 5)
    assert closing_cost(400, 0, 5, device=True) < closing_cost(400, 0, 5) / 20
    for m, r in ((20, 3), (20, 10), (400, 2), (5, 5), (2000, 4), (1000, 12), (40, 20)):
        assert not is_for_device(m, 0, r)
        assert closing_cost(m, 0, r, device=True) == closing_cost(m, 0, r)
    for m, r in ((300, 2), (1025, 3), (1024, 12), (40, 20)):
        assert math.isinf(device_seconds(prices, m, 0, r))
    always = prices._replace(device_threads=0.0)
    for m, r in ((3, 3), (300, 4), (1024, 5), (100, 8), (40, 19), (1024, 12), (40, 20), (9, 2)):
        assert math.isfinite(device_seconds(always, m, 0, r)) == fits(m, r)
