"""All methods on one flow: what each offers, what is chosen from that, and how unique it is."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from math import comb, log
from pathlib import Path
from typing import NamedTuple

import numpy as np

import bestk
from bestk import Problem
from bestk.datasets import make_synthetic
from bestk.results.gaps import PERFECT_FIT
from bestk.results.result import Result

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


def measure(flow: Flow, noises: tuple[float, ...], peers: list[str]) -> list[Row]:
    """All methods on all levels of noise."""
    tiny = make_synthetic(200, 40, k=5)
    bestk.solve(tiny.X, tiny.y, k=5, gap_tol=0.0, n_threads=1)  # compiles, unless done before
    splits = [flow.observed(noise) for noise in noises]
    rows: list[Row] = []
    for noise, split in zip(noises, splits, strict=True):
        problems = _problems(split)
        rows += judge(flow, noise, "bestk", split, _bestk(problems), problems)
    try:
        for (i, method), candidates in _peers(flow, splits, peers):
            rows += judge(flow, noises[i], method, splits[i], candidates)
    except PeerFailed as failure:
        rows.append(replace(rows[0], method="PySINDy", recovered=False, remark=str(failure)))
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
    licensed = flow.coef.shape[1] <= LICENSED_TERMS
    methods = [method for method in wanted if licensed or method != "MIOSR"]
    with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
        data, answer = Path(folder) / "data.npz", Path(folder) / "answer.json"
        np.savez(
            data,
            X=[split.X for split in splits],
            Y=[split.Y for split in splits],
            methods=methods,
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
    """Choose a model of each equation by EBIC on the validation rows; compare with the truth."""
    names = flow.term_names
    for i, truth in enumerate(flow.coef):
        coefs = candidates.coef[:, i]
        best = int(np.argmin(_ebic(coefs, split.X_valid, split.Y_valid[:, i])))
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


def _ebic(coefs: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """K ln m + m ln(RSS / m) + 2 ln C(p, K), of models (n, p) on m rows."""
    m, K = len(y), np.count_nonzero(coefs, axis=1)
    # A fit that is perfect to six digits is as good as any other.
    rss = np.maximum(np.sum((y - coefs @ X.T) ** 2, axis=1), PERFECT_FIT * (y @ y))
    choices = np.array([log(comb(coefs.shape[1], k)) for k in K.tolist()])
    return K * log(m) + m * np.log(rss / m) + 2 * choices


def _terms(coef: np.ndarray, names: np.ndarray) -> str:
    return "; ".join(names[coef != 0])
