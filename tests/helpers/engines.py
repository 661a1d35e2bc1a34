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
        self.n_units, self.n_repeated, self.n_lost = 0, 0, 0
        self.most_in_flight = 0
        self._units, self._outcomes = [], []

    def put(self, subproblem, unit):
        self._units.append((subproblem, unit))
        self._outcomes.append(None)
        self.most_in_flight = max(self.most_in_flight, len(self._units))

    def get(self, stop):
        """Some units, the youngest ones as likely as the oldest, until that one is done."""
        while self._outcomes[0] is None:
            if stop():
                return None
            self._explore(int(self.rng.integers(len(self._units))))
        del self._units[0]
        return self._outcomes.pop(0)

    def _explore(self, i):
        subproblem, unit = self._units[i]
        self.n_units += 1
        if self.rng.random() < 0.3:
            self.n_lost += 1
            assert explore(sent(subproblem), sent(unit), STOPPED) is None
        if self._outcomes[i] is not None:
            self.n_repeated += 1
        self._outcomes[i] = sent(explore(sent(subproblem), sent(unit)))

    def end(self):
        done = self._outcomes
        self._units, self._outcomes = [], []
        return done


@contextmanager
def exploring_with(engine):
    """Every search inside the block uses this engine."""
    with patch.object(tree, "engine_for", lambda workers: engine):
        yield engine
