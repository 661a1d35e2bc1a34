"""All models that PySINDy offers: python pysindy_candidates_run.py DATA.npz FOLDER ANSWER.json.

The data hold X (runs, n, p) and Y (runs, n, dims). For run r and a method, FOLDER/r METHOD.npz gets
alpha (models,) and coef (models, dims, p); who chooses among them is not decided here. Runs in an
environment of its own, with gurobipy and its built-in licence for MIOSR.
"""

import json
import sys
import time
import warnings
from itertools import product
from pathlib import Path

import gurobipy as gp
import numpy as np
from pysindy.optimizers import MIOSR, SSR, STLSQ


def stlsq(X, Y, data):
    for alpha, threshold in product(data["alphas"].tolist(), data["thresholds"].tolist()):
        yield alpha, STLSQ(threshold=threshold, alpha=alpha).fit(X, Y).coef_


def ssr(X, Y, data):
    """Every model on the way from all terms to one."""
    for alpha in data["alphas"].tolist():
        optimizer = SSR(alpha=alpha, max_iter=X.shape[1] - 1, unbias=False).fit(X, Y)
        for coef in optimizer.history_:
            yield alpha, coef


def miosr(X, Y, data):
    """All equations with at most k terms each; the first penalty only, for it takes longest."""
    alpha = float(data["alphas"][0])
    for k in data["ks"].tolist():
        coef = np.zeros((Y.shape[1], X.shape[1]))
        for i in range(len(coef)):
            optimizer = MIOSR(
                group_sparsity=(k,),
                target_sparsity=None,
                alpha=alpha,
                regression_timeout=float(data["solve_limit"]),
            )
            coef[i] = optimizer.fit(X, Y[:, [i]]).coef_[0]
        yield alpha, coef


METHODS = {"STLSQ": stlsq, "SSR": ssr, "MIOSR": miosr}


def main(data_file, folder, answer_file):
    with np.load(data_file) as file:
        data = {name: file[name] for name in file.files}
    gp.setParam("OutputFlag", 0)
    gp.setParam("Threads", 1)
    seconds = {}
    for run, (X, Y) in enumerate(zip(data["X"], data["Y"], strict=True)):
        for name in data["methods"].tolist():
            start = time.perf_counter()
            alphas, coefs = zip(*METHODS[name](X, Y, data), strict=True)
            seconds[f"{run} {name}"] = time.perf_counter() - start
            np.savez(Path(folder) / f"{run} {name}.npz", alpha=alphas, coef=coefs)
    Path(answer_file).write_text(json.dumps(seconds))


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # thresholds that remove every term are part of the grid
    main(*sys.argv[1:])
