"""bestk to the paper's gap, or with ``honest`` to the gap relative to the whole objective.

``M`` is a box |b| <= M, on which the claim is then conditional, ``start`` a warm start. Further
options are those of bestk.solve; ``advanced`` holds the fields of bestk.Advanced.
"""

import numpy as np

import bestk
from benchmarks.harness.answering import Answer, run


def solve(X, y, question):
    options = dict(question.options)
    honest = options.pop("honest", False)
    if "M" in options:
        M = options.pop("M")
        options["bounds"] = (-M, M)
    if "start" in options:
        options["initial_support"] = np.flatnonzero(options.pop("start"))
    advanced = bestk.Advanced(**options.pop("advanced", {}))
    result = bestk.solve(
        X,
        y,
        k=question.k,
        alpha=question.alpha,
        gap_tol=question.gap,
        time_limit=question.time_limit,
        callback=None if honest else lambda state: state.explained_gap <= question.gap,
        n_threads=question.threads,
        advanced=advanced,
        **options,
    )
    return Answer(
        coef=result.coef,
        objective=result.objective,
        lower_bound=result.lower_bound,
        nodes=result.n_nodes,
        notes={"status": result.status.name},
    )


if __name__ == "__main__":
    run(solve, "bestk", "scipy", "numba")
