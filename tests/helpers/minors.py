"""Matrices of which some small parts are not positive definite: what devices are asked about."""

from itertools import combinations

import numpy as np

from bestk.devices.tasks import Task


def random_task(rng, *, features=(3, 12), most_r=6) -> Task:
    """Products of random columns, alike or copied, and a gain that the best sets nearly reach."""
    m = int(rng.integers(features[0], features[1] + 1))
    r = int(rng.integers(3, min(m, most_r) + 1))
    X = rng.standard_normal((m + 8, m)) + rng.choice([0.0, 0.5, 3.0]) * rng.standard_normal(
        (m + 8, 1)
    )
    if rng.random() < 0.3:
        a, b = rng.permutation(m)[:2]
        X[:, a] = X[:, b] + rng.choice([0.0, 1e-5, 1e-2]) * X[:, a]
    X /= np.linalg.norm(X, axis=0)
    y = X[:, :3].sum(axis=1) * rng.choice([0.0, 1.0]) + rng.standard_normal(m + 8)
    d = X.T @ (y / np.linalg.norm(y))
    H = X.T @ X - 1e-12 * np.eye(m)
    sets = list(combinations(range(m), r))
    some = [sets[i] for i in rng.permutation(len(sets))[:50]]
    gains = [d[list(S)] @ np.linalg.lstsq(H[np.ix_(S, S)], d[list(S)], rcond=None)[0] for S in some]
    needed = max(gains) * (1.0 + rng.choice([-0.3, -1e-3, 1e-9, 1e-3, 0.3]))
    return Task(H - np.outer(d, d) / needed, r)


def triples_of(M) -> set[tuple[int]]:
    """The first features of triples that are not positive definite, many at a time."""
    found = set()
    M = np.triu(M) + np.triu(M, 1).T
    for s in range(len(M) - 2):
        rest = M[s + 1 :, s + 1 :] - np.outer(M[s, s + 1 :], M[s, s + 1 :]) / M[s, s]
        v = rest.diagonal()
        pairs = rest**2 >= np.outer(v, v)
        if M[s, s] <= 0 or (v <= 0).any() or np.triu(pairs, 1).any():
            found.add((s,))
    return found
