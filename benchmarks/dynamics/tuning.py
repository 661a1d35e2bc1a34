"""A tuning loop that every method shares: candidates, AICc on validation data, a clock.

Imports NumPy alone, for it also runs in the environments of the peers.
"""

import json
import time
from pathlib import Path

import numpy as np


class Loop:
    """Collects the candidates of one method and keeps the best, equation by equation.

    ``pooled`` keeps one candidate for all equations instead. Fits are started only while the
    slowest so far would still end within the limit, so that a loop overruns by one fit at most.
    """

    def __init__(self, data, pooled=False):
        self.data = data
        self.pooled = pooled
        dims, p = data["Y"].shape[1], data["X"].shape[1]
        self.scores = np.full(dims, np.inf)
        self.coef = np.zeros((dims, p))
        self.choice = [{}] * dims
        self.solves = []
        self.fits = self.skipped = self.failed = 0
        self.started = self.lap = time.perf_counter()
        self.ended = None
        self.slowest = 0.0

    @property
    def seconds(self):
        return (self.ended or time.perf_counter()) - self.started

    def has_time(self):
        """Whether one more fit may start; counts those that may not."""
        if self.seconds + self.slowest <= self.data["loop_limit"]:
            self.lap = time.perf_counter()
            return True
        self.skipped += 1
        return False

    def fitted(self, fits=1):
        self.fits += fits
        self.slowest = max(self.slowest, time.perf_counter() - self.lap)

    def offer(self, coef, choice):
        """A candidate (dims, p) for all equations; choice names the settings that led to it."""
        if self.pooled:
            score = self._score(coef, slice(None))
            if score < self.scores[0]:
                self.scores[:], self.coef[:], self.choice = score, coef, [choice] * len(coef)
        else:
            for equation in range(len(coef)):
                self.offer_equation(equation, coef[equation], choice)

    def offer_equation(self, equation, coef, choice):
        score = self._score(coef, equation)
        if score < self.scores[equation]:
            self.scores[equation], self.coef[equation] = score, coef
            self.choice[equation] = choice

    def _score(self, coef, equations):
        """AICc = 2 K + m ln(RSS / m) + 2 (K + 1)(K + 2) / max(m - K - 2, 1) on m numbers."""
        target = self.data["Y_valid"][:, equations]
        residual = target - self.data["X_valid"] @ coef.T
        m, K = target.size, np.count_nonzero(coef)
        rss = max(float(np.vdot(residual, residual)), np.finfo(float).tiny)
        return 2 * K + m * np.log(rss / m) + 2 * (K + 1) * (K + 2) / max(m - K - 2, 1)


def run(methods, data_file, answer_file):
    """Run the loops that the data file asks for; the answer grows by one method at a time.

    A method is a function of the data and of the loops that ran before it, and returns a Loop.
    """
    with np.load(data_file) as file:
        data = {name: file[name] for name in file.files}
    done, answers = {}, {}
    for name in data["methods"].tolist():
        loop = done[name] = methods[name](data, done)
        loop.ended = time.perf_counter()
        answers[name] = {
            "seconds": loop.seconds,
            "coef": loop.coef.tolist(),
            "choice": loop.choice,
            "fits": loop.fits,
            "skipped": loop.skipped,
            "failed": loop.failed,
            "solves": loop.solves,
        }
        Path(answer_file).write_text(json.dumps(answers))
