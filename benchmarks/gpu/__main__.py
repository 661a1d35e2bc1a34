"""What a GPU adds; writes benchmarks/results/gpu.md.

Needs a device and CuPy. Times are of one run after kernels are compiled; objectives and gaps are
recomputed here. The output of ``make test-gpu`` is part of the page.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import bestk
from benchmarks.gpu.large import LARGEST, SQUARE, square_rows, tall_rows
from benchmarks.gpu.proofs import proof_rows, table
from benchmarks.gpu.rates import scan_rows, verifier_rows
from benchmarks.harness.machine import describe

RESULTS = Path(__file__).parents[1] / "results"
TESTS = [
    "tests/devices",
    "tests/form/test_dense_on_device.py",
    "tests/problem/test_sums_on_device.py",
    "tests/verification/test_on_device.py",
]
PARTS = ("tests", "rates", "proofs", "square", "tall", "largest")


def lines_of(rows: Iterable[dict[str, object]]) -> list[str]:
    """A table, printed row by row as it is made."""
    lines: list[str] = []
    for row in rows:
        print(row, flush=True)
        if not lines:
            lines = ["| " + " | ".join(row) + " |", "|" + " --- |" * len(row)]
        lines.append("| " + " | ".join(str(value) for value in row.values()) + " |")
    return [*lines, ""]


def tests() -> list[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "cuda", "-q", *TESTS]
    done = subprocess.run(command, capture_output=True, text=True)
    print(done.stdout[-2000:], flush=True)
    return ["```", *done.stdout.strip().splitlines()[-8:], "```", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--quick", action="store_true", help="small ones, to see that it works")
    asked = parser.parse_args()
    sizes = SQUARE[:1] if asked.quick else SQUARE
    made = {
        "tests": ("make test-gpu", tests),
        "rates": (
            "Supports a second",
            lambda: [
                "The search: prefixes eliminated, scanned and judged, launches included.", "",
                *lines_of(scan_rows(0.5 if asked.quick else 3.0)),
                "The verifier, in double precision:", "", *lines_of(verifier_rows()),
            ],
        ),
        "proofs": ("Proofs", lambda: lines_of(proof_rows(asked.quick))),
        "square": ("n = p in a box", lambda: lines_of(square_rows(sizes))),
        "largest": ("The largest", lambda: lines_of(square_rows(LARGEST))),
        "tall": ("A million rows", lambda: lines_of(tall_rows(asked.quick))),
    }  # fmt: skip
    X, y = table("wine", 2)()
    warm = bestk.solve(X, y, 6, alpha=1.0, device="cuda")  # compiles
    head = ["# On a GPU", "", *(f"- {line}" for line in describe(os.cpu_count() or 1))]
    head += [f"- engine: {warm.engine}", ""]
    target = (RESULTS / "quick" if asked.quick else RESULTS) / "gpu.md"
    target.parent.mkdir(exist_ok=True)
    sections = sections_of(target.read_text()) if target.exists() else {}
    for part in asked.parts:
        title, make = made[part]
        sections[title] = "\n".join(make())
        titles = [title for title, _ in made.values() if title in sections]
        texts = [f"## {title}\n\n{sections[title]}" for title in titles]
        target.write_text("\n".join([*head, *texts]))


def sections_of(page: str) -> dict[str, str]:
    """What the page says already, by title: parts may be measured one at a time."""
    _, *rest = page.split("\n## ")
    return {title: text for title, _, text in (part.partition("\n\n") for part in rest)}


if __name__ == "__main__":
    main()
