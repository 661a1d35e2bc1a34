"""Start-up: python startup_run.py ANSWER.json, in a new process each time.

Seconds for `import bestk`, and for the first solve after it (kernels compile, or load from cache).
"""

import time

from benchmarks.harness.process import answer


def main() -> dict[str, float]:
    start = time.perf_counter()
    import bestk

    imported = time.perf_counter()
    from bestk.datasets import make_synthetic

    data = make_synthetic(1000, 100, rho=0.9)
    made = time.perf_counter()
    bestk.solve(data.X, data.y, k=10, alpha=1e-3)
    solved = time.perf_counter()

    return {"import": imported - start, "solve": solved - made, "both": solved - start}


if __name__ == "__main__":
    answer(main)
