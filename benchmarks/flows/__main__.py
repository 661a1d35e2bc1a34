"""Every polynomial flow of the collection dysts: whose equations are found, and are they unique?

Rows are appended to benchmarks/results/flows.csv system by system, and a study that was interrupted
goes on where it stopped; delete the file to start anew. At the end, or alone with --report, the
rows become benchmarks/results/flows.md, which the documentation includes.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import comb, log
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy.signal import savgol_filter
from sklearn.preprocessing import PolynomialFeatures

import bestk
from bestk.datasets import make_synthetic
from bestk.problem.regression import Problem
from bestk.results.result import PERFECT_FIT, Result

from ..dynamics.trajectories import DEGREE, derivatives, terms
from ..harness import machine
from ..harness.environments import VENVS, python_of, run_script
from ..harness.tables import RESULTS
from . import report

ROWS_PER_PERIOD, PERIODS = 500, 10
"""Of the dominant period of each flow, as dysts gives it."""
NOISES = (0.0, 0.002, 0.01)
LARGEST_K, MOST_MODELS = 6, 1e9
"""Sizes up to this one, as long as there are no more models of that size."""
ALPHAS = (1e-5, 1e-2)
THRESHOLDS = 10 ** np.linspace(-3, 1.5, 25)
SOLVE_LIMIT = 2.0
# The built-in licence of Gurobi ends at 200 variables, and each term takes two.
LICENSED_TERMS = 100
PEERS = ["STLSQ", "SSR", "MIOSR"]
QUICK = ("Lorenz", "Rossler", "SprottK", "HyperXu")


class Split(NamedTuple):
    """Libraries of terms (rows, p) and derivatives (rows, dims), to fit and to choose by."""

    X: np.ndarray
    Y: np.ndarray
    X_valid: np.ndarray
    Y_valid: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Flow:
    """A system, its true coefficients (dims, p), and its states without noise."""

    name: str
    coef: np.ndarray = field(repr=False)
    dt: float
    states: np.ndarray = field(repr=False)

    @property
    def term_names(self) -> np.ndarray:
        return PolynomialFeatures(DEGREE).fit(self.states[:1]).get_feature_names_out()

    def observed(self, noise: float) -> Split:
        """Noise in shares of the mean RMS of the states; two thirds to fit, one to choose by."""
        scale = np.sqrt(np.mean(self.states**2, axis=0)).mean()
        rng = np.random.default_rng(1)
        states = self.states + rng.normal(0.0, noise * scale, self.states.shape)
        n_rows = len(states) * 2 // 3
        train, valid = states[:n_rows], states[n_rows:]
        slopes = derivatives if noise > 0.0 else _differences
        return Split(
            X=terms(train),
            Y=slopes(train, self.dt),
            X_valid=terms(valid),
            Y_valid=slopes(valid, self.dt),
        )


def _differences(states: np.ndarray, dt: float) -> np.ndarray:
    """Differences of order eight: where there is no noise, there is nothing to smooth."""
    return savgol_filter(states, 9, 8, deriv=1, delta=dt, axis=0)


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


@dataclass(frozen=True, kw_only=True)
class Row:
    """One equation, found by one method; the columns of the file."""

    system: str
    states: int
    candidates: int
    """Terms in the library."""
    noise: float
    method: str
    equation: int
    truth: str
    found: str = ""
    recovered: bool = False
    """Whether found and truth are the same terms."""
    offered: bool = False
    """Whether some model that the method offered has just the true terms."""
    k: int = 0
    alpha: float = np.nan
    objective: float = np.nan
    gap: float = np.nan
    is_open: bool = False
    """Whether the model was not proven."""
    solves: int = 0
    proven: int = 0
    """Solves with gap exactly 0."""
    perfect: int = 0
    """Other solves that ended with a fit perfect to six digits."""
    slowest: float = np.nan
    """Seconds of the slowest solve."""
    slowest_k: int = 0
    runner_up: str = ""
    ratio: float = np.nan
    """Objective of the runner-up over that of the model."""
    runner_up_gap: float = np.nan
    seconds: float = np.nan
    """Of the method, for all equations of the system."""
    remark: str = ""


COLUMNS = list(Row.__dataclass_fields__)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--systems", nargs="+", metavar="NAME", help="default: all that qualify")
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--quick", action="store_true", help="four systems, one level of noise")
    parser.add_argument("--report", action="store_true", help="measure nothing, write the pages")
    parser.add_argument("--jobs", type=int, default=2, help="systems at once, each on one thread")
    arguments = parser.parse_args()
    folder = RESULTS / "quick" if arguments.quick else RESULTS
    path = folder / "flows.csv"
    if not arguments.report:
        names = arguments.systems or (QUICK if arguments.quick else None)
        noises = NOISES[1:2] if arguments.quick else NOISES
        study(names, noises, arguments.peers, arguments.jobs, path)
    report.write(path)


def study(names, noises: tuple[float, ...], peers: list[str], jobs: int, path: Path) -> None:
    """Measure the systems that the file does not hold yet, those with the fewest terms first."""
    known = {row["system"] for row in report.read(path)} if path.exists() else set()
    flows = sorted(load(names), key=lambda flow: flow.coef.size)
    missing = [flow for flow in flows if flow.name not in known]
    if not missing:
        return
    python_of("pysindy")
    note(path, machine.describe(1)[:3] + [f"{jobs} systems at once, each on one thread"])
    with parallel_config("loky", n_jobs=jobs, inner_max_num_threads=1):
        done = Parallel(return_as="generator_unordered")(
            delayed(measure)(flow, noises, peers) for flow in missing
        )
        for i, rows in enumerate(done, start=1):
            append(path, rows)
            print(f"  {i} of {len(missing)}: {report.one_line(rows)}", flush=True)


def load(names=None) -> list[Flow]:
    """The flows that qualify; dysts is asked once, and the answer lies beside it."""
    python = python_of("dysts")
    file = VENVS / "dysts" / f"flows {DEGREE} {ROWS_PER_PERIOD} {PERIODS}.npz"
    if not file.exists():
        print("integrating the flows of dysts (once; a minute)")
        with tempfile.TemporaryDirectory(prefix="bestk-bench-") as folder:
            script, answer = "peers/dysts_export.py", Path(folder) / "answer.json"
            numbers = (DEGREE, ROWS_PER_PERIOD, PERIODS)
            done = run_script(python, script, *numbers, file, answer, threads=1, patience=900.0)
        if "error" in done:
            raise RuntimeError(f"dysts: {done['error']}")
    with np.load(file) as data:
        found = [entry.removesuffix("/coef") for entry in data.files if entry.endswith("/coef")]
        unknown = set(names or ()) - set(found)
        if unknown:
            raise ValueError(f"no polynomial flow of dysts: {', '.join(sorted(unknown))}")
        return [
            Flow(
                name=name,
                coef=data[f"{name}/coef"],
                dt=float(data[f"{name}/dt"]),
                states=data[f"{name}/states"],
            )
            for name in names or found
        ]


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


def note(path: Path, lines: list[str]) -> None:
    """Comment lines, with the heads of the columns if the file is new."""
    is_new = not path.exists()
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", newline="") as file:
        file.writelines(f"# {line}\n" for line in lines)
        if is_new:
            csv.writer(file, lineterminator="\n").writerow(COLUMNS)


def append(path: Path, rows: list[Row]) -> None:
    with open(path, "a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows([_cell(getattr(row, column)) for column in COLUMNS] for row in rows)


def _cell(value) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.6g}"
    return str(value)


if __name__ == "__main__":
    main()
