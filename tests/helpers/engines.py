"""Engines that do what an engine may do, and a way to make the search use them."""

import pickle
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from bestk.search import tree
from bestk.subtrees.explore import explore

STOPPED = np.ones(1, dtype=np.int8)


def sent(thing):
    """As it comes out at the other end of a wire."""
    return pickle.loads(pickle.dumps(thing))


class Hostile:
    """Runs units in any order, some of them twice, loses some, and sends everything by wire."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 91])
        self.n_units, self.n_repeated, self.n_lost, self.n_rounds = 0, 0, 0, 0

    def run(self, subproblem, units, stop):
        self.n_rounds += 1
        outcomes = [None] * len(units)
        for i in self.rng.permutation(len(units)).tolist():
            if stop():
                continue
            self.n_units += 1
            if self.rng.random() < 0.3:
                self.n_lost += 1
                assert explore(sent(subproblem), sent(units[i]), STOPPED) is None
            if self.rng.random() < 0.3:
                self.n_repeated += 1
                explore(subproblem, units[i])
            outcomes[i] = sent(explore(sent(subproblem), sent(units[i])))
        return outcomes


@contextmanager
def exploring_with(engine):
    """Every search inside the block uses this engine."""
    with patch.object(tree, "engine_for", lambda workers: engine):
        yield engine
