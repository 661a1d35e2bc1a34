"""bestk on problems with the same data: python bestk_run.py DATA.npz ASKED.json ANSWER.json.

After a small problem of each kind and one round that does not count, unless it is long, all
are solved in turns up to `RUNS` times; medians count. What ends with a proof is verified each time.
"""

import json
import os
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import LinearConstraint

import bestk
from benchmarks.structure.peers.asking import Model, claim, read, versions

RUNS = 5
ENOUGH = 10.0
"""Seconds of measuring after which no further round is begun."""


def solve(asked):
    options = {"alpha": asked.alpha, "gap_tol": asked.gap, "time_limit": asked.limit}
    if asked.structure == "across":
        return together(asked, options)
    X, y = asked.X, asked.Y[:, 0]
    options |= {"fit_intercept": asked.fit_intercept, "n_threads": asked.threads}
    if asked.structure == "groups":
        options["groups"] = asked.groups
    elif asked.structure == "within":
        options["constraints"] = LinearConstraint(asked.lhs, asked.rhs, asked.rhs)
    else:
        import pandas as pd

        X = pd.DataFrame(X, columns=list(asked.names))
        if asked.structure != "none":
            options["rules"] = [bestk.rules.hierarchy(asked.structure)]
    return bestk.solve(X, y, asked.k, **options)


def together(asked, options):
    from bestk.sindy import OKRidge

    optimizer = OKRidge(
        k=asked.X.shape[1],
        total_k=asked.k,
        constraint_lhs=asked.lhs,
        constraint_rhs=asked.rhs,
        **options,
    )
    return optimizer.fit(asked.X, asked.Y).result_


def verify(asked, result):
    """On the data as they are; equations that were solved together are stacked."""
    if asked.structure == "across":
        X, y = asked.matrix, asked.target
    else:
        X, y = asked.X, asked.Y[:, 0]
    return result.certificate.verify(X, y, n_threads=asked.threads)


def measured(action, *arguments):
    start = time.perf_counter()
    result = action(*arguments)
    return time.perf_counter() - start, result


def one_round(questions):
    """(seconds, result, seconds to verify, verification) of each."""
    found = []
    for asked in questions:
        seconds, result = measured(solve, asked)
        is_proven = result.status.name == "OPTIMAL" and result.certificate is not None
        checked = measured(verify, asked, result) if is_proven else (float("nan"), None)
        found.append((seconds, result, *checked))
    return found


def pin(threads):
    """Solvers that are not told a number of threads take one for each core that they may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def main(data_file, asked_file):
    questions = read(data_file, asked_file)
    one_round([replace(asked, k=min(2, asked.k)) for asked in questions])
    seconds, first = measured(one_round, questions)
    rounds = [first] if seconds > ENOUGH else []
    begun = time.perf_counter()
    while seconds <= ENOUGH and len(rounds) < RUNS:
        rounds.append(one_round(questions))
        if time.perf_counter() - begun > ENOUGH:
            break
    return [answer(asked, [one[i] for one in rounds]) for i, asked in enumerate(questions)]


def answer(asked, runs):
    _, result, _, verification = runs[-1]
    coef = np.zeros(len(asked.groups))
    coef[result.support] = result.coef[result.support]
    model = Model(
        coef=coef,
        objective=result.objective,
        lower_bound=result.lower_bound,
        nodes=result.n_nodes,
        notes=result.status.name,
    )
    verified = "" if verification is None else "yes"
    if verification is not None and not verification.is_valid:
        verified = "NO: " + "; ".join(verification.failures[:1])
    return claim(asked, model, median(run[0] for run in runs), len(runs)) | {
        "support": result.support.tolist(),
        "coef": result.coef[result.support].tolist(),
        "verify": median(run[2] for run in runs),
        "verified": verified,
        "versions": versions("bestk", "scipy", "numba"),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # of gaps that are left: rows show them
    *files, answer_file = sys.argv[1:]
    pin(read(*files)[0].threads)
    Path(answer_file).write_text(json.dumps(main(*files)))
