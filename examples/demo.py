"""One synthetic instance of the OKRidge paper, solved to proven optimality: the gap closing.

Run with ``make demo`` or ``python examples/demo.py [n p rho]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import bestk
from bestk.datasets import make_synthetic

K = 10
ALPHA = 1e-3
PICTURE = Path("demo_gap.png")


def main(n: int = 1500, p: int = 1000, rho: float = 0.9) -> None:
    print(f"n = {n} rows, p = {p} features, neighbours correlated {rho}, {K} of them matter")
    X, y, coef = make_synthetic(n, p, K, rho=rho)
    result = bestk.solve(X, y, k=K, alpha=ALPHA, progress=True)

    print()
    print(result)
    truth = np.flatnonzero(coef)
    print(f"true features {truth.tolist()}: {np.isin(truth, result.support).sum()} of {K} found")
    print()
    chart(result.history)
    if draw(result.history, PICTURE):
        print(f"\npicture: {PICTURE}")


def chart(history: np.ndarray, rows: int = 12, width: int = 40) -> None:
    """The gap as bars on a logarithmic scale, at up to ``rows`` moments of the run."""
    gap = gaps(history)
    moments = np.unique(np.linspace(0, len(history) - 1, rows).round().astype(int))
    positive = gap[gap > 0]
    lowest = np.log10(positive.min()) - 0.3 if positive.size else -6.0
    highest = max(np.log10(positive.max()) if positive.size else 0.0, lowest + 1.0)
    print("  seconds     nodes    objective        bound      gap")
    for i in moments:
        share = (np.log10(gap[i]) - lowest) / (highest - lowest) if gap[i] > 0 else 0.0
        bar = "█" * max(round(width * share), 0)
        print(
            f"{history['seconds'][i]:9.3f} {history['nodes'][i]:9d} "
            f"{history['incumbent'][i]:12.6g} {history['bound'][i]:12.6g} {gap[i]:8.2%} {bar}"
        )


def draw(history: np.ndarray, path: Path) -> bool:
    """Incumbent and bound over time; False without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    seconds = history["seconds"]
    figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(6.4, 5.2))
    above.step(seconds, history["incumbent"], where="post", label="best model found")
    above.step(seconds, history["bound"], where="post", label="proven lower bound")
    above.fill_between(
        seconds, history["bound"], history["incumbent"], step="post", alpha=0.15, linewidth=0
    )
    above.set_ylabel("objective")
    above.legend(frameon=False)
    below.step(seconds, np.maximum(gaps(history), 1e-16), where="post", color="black")
    below.set(yscale="log", xlabel="seconds", ylabel="gap")
    figure.align_ylabels()
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return True


def gaps(history: np.ndarray) -> np.ndarray:
    """(incumbent - bound) / incumbent, 0 where the fit is perfect."""
    incumbent, bound = history["incumbent"], history["bound"]
    excess = np.maximum(incumbent - bound, 0.0)
    return np.divide(excess, incumbent, out=np.zeros_like(excess), where=incumbent > 0)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    main(*map(int, arguments[:2]), *map(float, arguments[2:3]))
