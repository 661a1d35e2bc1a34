"""The Lorenz equations, found in noisy measurements and proven the best of their size.

Run with ``make demo`` or ``python examples/demo.py``.
"""

from __future__ import annotations

from math import comb
from pathlib import Path
from time import perf_counter

from bestk.datasets import simulate
from bestk.sindy import discover

TRUTH = ["x' = -10 x + 10 y", "y' = 28 x - y - x z", "z' = -8/3 z + x y"]
NOISE, STEP = 0.002, 0.002
PICTURE = Path("demo.png")


def main() -> None:
    states = simulate("lorenz", 12.0, noise=NOISE, dt=STEP)
    print(f"{len(states)} measurements of x, y and z with {NOISE:.1%} noise. What law moves them?")
    print("(The very first run compiles for up to a minute.)")
    start = perf_counter()
    found = discover(states, STEP, degree=5, names=["x", "y", "z"])
    seconds = perf_counter() - start

    print(f"\nFound and proven in {seconds:.1f} s:\n")
    width = max(map(len, found.equations)) + 4
    print(f"  {'found':<{width}}true")
    for equation, truth in zip(found.equations, TRUTH, strict=True):
        print(f"  {equation:<{width}}{truth}")
    print()
    for state, result, worse in zip(found.states, found.results, found.distances, strict=True):
        models = sum(comb(len(found.terms), size) for size in range(result.k + 1))
        print(
            f"  {state}': the best of {models:,} models with at most {result.k} of "
            f"{len(found.terms)} terms, gap {result.gap:g}; next best {worse}"
        )
    head, text = found.verdict
    print(f"\n{head}\n{text}")
    print(f"A simulation from the first row follows the data for {found.horizon():.3g} time units.")
    try:
        found.plot(PICTURE)
    except ImportError as error:
        print(error)
    else:
        print(f"picture: {PICTURE}")


if __name__ == "__main__":
    main()
