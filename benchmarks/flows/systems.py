"""The flows of dysts that polynomials describe, and noisy data of them."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.signal import savgol_filter
from sklearn.preprocessing import PolynomialFeatures

from ..dynamics.trajectories import DEGREE, Split, derivatives
from ..harness.environments import VENVS, python_of, run_script

ROWS_PER_PERIOD, PERIODS = 500, 10
"""Of the dominant period of each flow, as dysts gives it."""


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A system, its true coefficients (dims, p), and its states without noise."""

    name: str
    coef: np.ndarray = field(repr=False)
    dt: float
    states: np.ndarray = field(repr=False)

    @property
    def term_names(self) -> np.ndarray:
        return PolynomialFeatures(DEGREE).fit(self.states[:1]).get_feature_names_out()

    def observed(self, noise: float) -> Split:
        """Noise in shares of the mean RMS of the states; two thirds to fit, one to choose by."""
        scale = np.sqrt(np.mean(self.states**2, axis=0)).mean()
        rng = np.random.default_rng(1)
        states = self.states + rng.normal(0.0, noise * scale, self.states.shape)
        slopes = derivatives if noise > 0.0 else _differences
        return Split.of(states, len(states) * 2 // 3, self.dt, slopes)


def _differences(states: np.ndarray, dt: float) -> np.ndarray:
    """Differences of order eight: where there is no noise, there is nothing to smooth."""
    return savgol_filter(states, 9, 8, deriv=1, delta=dt, axis=0)


def load(names: Sequence[str] | None = None) -> list[Flow]:
    """The flows that qualify; dysts is asked once, and the answer lies beside it."""
    python = python_of("dysts")
    file = VENVS / "dysts" / f"flows {DEGREE} {ROWS_PER_PERIOD} {PERIODS}.npz"
    if not file.exists():
        print("integrating the flows of dysts (once; a minute)")
        with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
            script, answer = "peers/dysts_export.py", Path(folder) / "answer.json"
            numbers = (DEGREE, ROWS_PER_PERIOD, PERIODS)
            done = run_script(python, script, *numbers, file, answer, threads=1, patience=900.0)
        if "error" in done:
            raise RuntimeError(f"dysts: {done['error']}")
    with np.load(file) as data:
        found = [entry.removesuffix("/coef") for entry in data.files if entry.endswith("/coef")]
        unknown = set(names or ()) - set(found)
        if unknown:
            raise ValueError(f"no polynomial flow of dysts: {', '.join(sorted(unknown))}")
        return [
            Flow(
                name=name,
                coef=data[f"{name}/coef"],
                dt=float(data[f"{name}/dt"]),
                states=data[f"{name}/states"],
            )
            for name in names or found
        ]
