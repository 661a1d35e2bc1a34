"""bestk to the paper's gap, or with ``honest`` to the gap relative to the whole objective.

Further options are those of bestk.solve; ``advanced`` holds the fields of bestk.Advanced.
"""

import bestk
from benchmarks.runner import Answer, run


def solve(X, y, question):
    options = dict(question.options)
    honest = options.pop("honest", False)
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
