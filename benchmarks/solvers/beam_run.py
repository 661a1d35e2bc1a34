"""bestk's beam search and swaps alone, without any proof: the model its own search starts from.

A node limit of zero stops bestk.solve between this model and the root bound. It costs the Gram
matrix, a beam of 20 supports per size (bestk's default; ``width`` is another) and swaps of single
features. The record of a proof is left out, since that would hash the data.
"""

import bestk
from benchmarks.harness.answering import Answer, run


def solve(X, y, question):
    result = bestk.solve(
        X,
        y,
        k=question.k,
        alpha=question.alpha,
        node_limit=0,
        n_threads=question.threads,
        advanced=bestk.Advanced(beam_width=question.options.get("width", 20), record=False),
    )
    return Answer(coef=result.coef, objective=result.objective)


if __name__ == "__main__":
    run(solve, "bestk", "scipy", "numba")
