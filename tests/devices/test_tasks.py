"""How tasks become batches: every prefix once, whatever fits into one of them."""

from itertools import combinations

import numpy as np
import pytest
from helpers.seeds import seeds

from bestk.devices.tasks import (
    LANES,
    MOST_FEATURES,
    MOST_PREFIX,
    Task,
    batches,
    fits,
    prefix_of,
    width_for,
)


@seeds(40)
def test_every_prefix_is_in_one_batch(seed):
    rng = np.random.default_rng(seed)
    tasks = []
    for _ in range(rng.integers(1, 5)):
        m = int(rng.integers(3, 90))
        tasks.append(Task(np.eye(m), int(rng.integers(3, min(m, 5) + 1))))
    most = int(rng.choice([1, 7, 100, 10**6]))
    found = [set() for _ in tasks]
    widths = []
    for batch in batches(tasks, lambda width, q: most):
        assert batch.n_items <= most
        widths.append(batch.width)
        for task, rank, size, at_most in batch.segments:
            m, r = len(tasks[task].M), tasks[task].r
            assert r == batch.prefix + 3
            for at in range(rank, rank + size):
                prefix = tuple(prefix_of(at, batch.prefix, m))
                assert prefix not in found[task]
                found[task].add(prefix)
                after = m - 1 - max(prefix, default=-1)
                assert after <= at_most <= batch.most <= batch.width
                assert after > batch.width // 2 or batch.width == LANES
    for prefixes, (M, r) in zip(found, tasks, strict=True):
        every = combinations(range(len(M)), r - 3)
        assert prefixes == {p for p in every if max(p, default=-1) < len(M) - 3}
    assert sorted(widths, reverse=True) == widths


def test_prefixes_are_numbered_by_their_last_feature():
    ranked = [tuple(prefix_of(rank, 3, 9)) for rank in range(84)]
    assert ranked == sorted(combinations(range(9), 3), key=lambda prefix: prefix[::-1])
    assert prefix_of(0, 0, 5) == []


@pytest.mark.parametrize(
    ("n_features", "r", "possible"),
    [
        (3, 3, True), (10, 2, False), (10, 11, False), (MOST_FEATURES, 5, True),
        (MOST_FEATURES + 1, 3, False), (40, MOST_PREFIX + 3, True), (40, MOST_PREFIX + 4, False),
        (MOST_FEATURES, 12, False),
    ],
)  # fmt: skip
def test_what_a_device_can_be_asked(n_features, r, possible):
    assert fits(n_features, r) is possible


def test_there_are_few_widths():
    assert [width_for(n) for n in (1, LANES, LANES + 1, 200)] == [LANES, LANES, 2 * LANES, 256]
