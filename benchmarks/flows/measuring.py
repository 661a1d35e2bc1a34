"""All methods on one flow: what each offers, what is chosen from that, and how unique it is."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from math import comb
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bestk
from bestk import Problem
from bestk.datasets import make_synthetic
from bestk.results.result import Result

from ..dynamics import choosing
from ..dynamics.trajectories import LICENSED_TERMS, Split
from ..harness.environments import python_of, run_script
from .rows import Row
from .systems import Flow

LARGEST_K, MOST_MODELS = 6, 1e9
"""Sizes up to this one, as long as there are no more models of that size."""
ALPHAS = (1e-5, 1e-2)
THRESHOLDS = 10 ** np.linspace(-3, 1.5, 25)
SOLVE_LIMIT = 2.0


def sizes(n_terms: int) -> list[int]:
    """The numbers of terms that methods with a size to choose are asked for."""
    return [k for k in range(1, LARGEST_K + 1) if comb(n_terms, k) <= MOST_MODELS]


class PeerFailed(Exception):
    """A peer's process ended without an answer."""


class Candidates(NamedTuple):
    """What a method has to choose from, for all equations at once."""

    alpha: np.ndarray
    """(models,)"""
    coef: np.ndarray
    """(models, dims, p)"""
    seconds: float
    results: list[list[Result]] | None = None
    """With their proofs, by model and equation."""


def applies(method: str, flow: Flow) -> bool:
    return method != "MIOSR" or flow.coef.shape[1] <= LICENSED_TERMS


def measure(flow: Flow, noises: tuple[float, ...], methods: list[str]) -> list[Row]:
    """All methods on all levels of noise; bestk also by other criteria than the peers."""
    splits = [flow.observed(noise) for noise in noises]
    rows: list[Row] = []
    if "bestk" in methods:
        tiny = make_synthetic(200, 40, k=5)
        bestk.solve(tiny.X, tiny.y, k=5, gap_tol=0.0, n_threads=1)  # compiles, unless done before
        for noise, split in zip(noises, splits, strict=True):
            problems = _problems(split)
            found = _bestk(problems)
            rows += judge(flow, noise, "bestk", split, found, problems)
            for criterion in OTHER_CRITERIA:
                rows += judge(flow, noise, f"bestk, {criterion}", split, found)
    peers = [method for method in methods if method != "bestk"]
    try:
        for (i, method), candidates in _peers(flow, splits, peers) if peers else ():
            rows += judge(flow, noises[i], method, splits[i], candidates)
    except PeerFailed as failure:
        first = {"system": flow.name, "states": len(flow.coef), "candidates": flow.coef.shape[1]}
        unknown = {"noise": noises[0], "equation": 0, "truth": ""}
        rows.append(Row(**first, **unknown, method="PySINDy", remark=str(failure)))
    return rows


def _problems(split: Split) -> list[Problem]:
    first = Problem.from_data(split.X, split.Y[:, 0], n_threads=1)
    return [first.with_target(y) for y in split.Y.T]


def _bestk(problems: list[Problem]) -> Candidates:
    options = {"gap_tol": 0.0, "time_limit": SOLVE_LIMIT, "n_threads": 1}
    start = time.perf_counter()
    ks = sizes(problems[0].n_features)
    grids = [problem.solve_grid(ks, ALPHAS, **options) for problem in problems]
    seconds = time.perf_counter() - start
    by_equation = [[r for path in grid.values() for r in path.results] for grid in grids]
    results = [list(equations) for equations in zip(*by_equation, strict=True)]
    coef = np.array(
        [[_refitted(*pair) for pair in zip(problems, row, strict=True)] for row in results]
    )
    return Candidates(np.array([row[0].alpha for row in results]), coef, seconds, results)


def _refitted(problem: Problem, result: Result) -> np.ndarray:
    """Coefficients without the penalty, as all optimizers of PySINDy give them by default."""
    coef = np.zeros(problem.n_features)
    coef[result.support] = problem.fit(result.support)[0]
    return coef


def _peers(
    flow: Flow, splits: list[Split], wanted: list[str]
) -> Iterator[tuple[tuple[int, str], Candidates]]:
    """((run, method), candidates) of PySINDy's optimizers."""
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        data, answer = Path(folder) / "data.npz", Path(folder) / "answer.json"
        np.savez(
            data,
            X=[split.X for split in splits],
            Y=[split.Y for split in splits],
            methods=wanted,
            ks=sizes(flow.coef.shape[1]),
            alphas=ALPHAS,
            thresholds=THRESHOLDS,
            solve_limit=SOLVE_LIMIT,
        )
        script = "peers/pysindy_candidates_run.py"
        python = python_of("pysindy")
        done = run_script(python, script, data, folder, answer, threads=1, patience=1800.0)
        if "error" in done:
            raise PeerFailed(done["error"])
        for key, seconds in done.items():
            run, method = key.split()
            with np.load(Path(folder) / f"{key}.npz") as file:
                yield (int(run), method), Candidates(file["alpha"], file["coef"], seconds)


def judge(
    flow: Flow,
    noise: float,
    method: str,
    split: Split,
    candidates: Candidates,
    problems: list[Problem] | None = None,
) -> Iterator[Row]:
    """Choose a model of each equation on the validation rows; compare with the truth.

    By EBIC, or as the name of the method says.
    """
    names = flow.term_names
    score = OTHER_CRITERIA.get(method.removeprefix("bestk, "), choosing.ebic)
    for i, truth in enumerate(flow.coef):
        coefs = candidates.coef[:, i]
        best = int(np.argmin(score(coefs, split.X_valid, split.Y_valid[:, i])))
        coef, alpha = coefs[best], float(candidates.alpha[best])
        same = ((coefs != 0) == (truth != 0)).all(axis=1)
        residual = split.Y[:, i] - split.X @ coef
        proofs = {}
        if candidates.results is not None and problems is not None:
            results = [equations[i] for equations in candidates.results]
            proofs = _proofs(problems[i], results, best, names)
        yield Row(
            system=flow.name,
            states=len(flow.coef),
            candidates=len(truth),
            noise=noise,
            method=method,
            equation=i,
            truth=_terms(truth, names),
            found=_terms(coef, names),
            recovered=bool(same[best]),
            offered=bool(same.any()),
            k=int(np.count_nonzero(coef)),
            alpha=alpha,
            objective=float(residual @ residual + alpha * coef @ coef),
            seconds=candidates.seconds,
            **proofs,
        )


def _proofs(problem: Problem, results: list[Result], best: int, names: np.ndarray) -> dict:
    """Columns about what bestk proved, and about the best model that lacks a term."""
    chosen = results[best]
    slowest = max(results, key=lambda result: result.seconds)
    options = {"gap_tol": 0.0, "time_limit": SOLVE_LIMIT, "n_threads": 1}
    other = problem.with_alpha(chosen.alpha).runner_up(chosen, **options)
    columns = {
        "gap": chosen.gap,
        "solves": len(results),
        "proven": sum(result.gap == 0.0 for result in results),
        "perfect": sum(result.is_proven and result.gap > 0.0 for result in results),
        "is_open": not chosen.is_proven,
        "slowest": slowest.seconds,
        "slowest_k": slowest.k,
    }
    if other is not None:
        columns["runner_up"] = _terms(other.coef, names)
        columns["ratio"] = other.objective / max(chosen.objective, np.finfo(float).tiny)
        columns["runner_up_gap"] = other.gap
    return columns


OTHER_CRITERIA = {
    "AICc": choosing.aicc,
    "BIC": choosing.bic,
    "rows worth": choosing.by_rows_worth,
}
"""Scores by which the models of bestk are chosen again; "rows worth" is what discover does."""


def _terms(coef: np.ndarray, names: np.ndarray) -> str:
    return "; ".join(names[coef != 0])
