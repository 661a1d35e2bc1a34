"""Compiled loops that every room may use, against plain NumPy."""

import numpy as np
import pytest

from bestk.base.fingerprint import DataDigest, digest, rows_digest

MASK = 2**64 - 1


def mixed(first, count, salt):
    """Numbers for the indices first, first + 1, ..., with Python's whole numbers."""
    found = []
    for index in range(first + 1, first + count + 1):
        x = index * salt & MASK
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
        x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
        found.append(x ^ x >> 31)
    return found


def plain_digest(X, first_row=0):
    rows = mixed(first_row, len(X), 0x9E3779B97F4A7C15)
    columns = mixed(0, X.shape[1], 0xD1B54A32D192ED03)
    total = 0
    for i, row in enumerate((X + 0.0).view(np.uint64).tolist()):  # -0.0 is 0.0
        for j, bits in enumerate(row):
            total += (bits ^ bits >> 32) * ((rows[i] ^ columns[j]) | 1)
    return total & MASK


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("order", ["C", "F"])
def test_digest_is_a_weighted_sum_of_bits(seed, order):
    rng = np.random.default_rng(seed)
    X = np.array(rng.standard_normal((7, 4)) * (rng.random((7, 4)) < 0.7), order=order)
    X[1, 2] = -0.0
    assert digest(X, 5) == plain_digest(np.ascontiguousarray(X), 5)
    assert digest(X[:3]) + digest(X[3:], 3) & MASK == digest(X)
    assert digest(X[::-1].copy()) != digest(X)


def test_batches_have_the_digest_of_their_rows():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((9, 3)), rng.standard_normal(9)
    parts = DataDigest()
    for part in (slice(0, 2), slice(2, 9)):
        parts.add(X[part], y[part])
    assert str(parts) == rows_digest(X, y)
