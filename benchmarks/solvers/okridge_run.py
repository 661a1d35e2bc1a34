"""okridge, the paper's own code. Its losses leave out y'y; it is added here."""

from okridge.tree import BNBTree

from benchmarks.harness.answering import Answer, run


def solve(X, y, question):
    tree = BNBTree(X, y, lambda2=question.alpha)
    loss, coef, _, bound, _ = tree.solve(
        k=question.k, gap_tol=question.gap, time_limit=question.time_limit
    )
    yy = y @ y
    return Answer(
        coef=coef, objective=loss + yy, lower_bound=bound + yy, nodes=tree.number_of_nodes
    )


if __name__ == "__main__":
    run(solve, "okridge")
