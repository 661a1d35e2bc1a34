"""Random problems of every kind against brute force, and every certificate against the verifier.

    python tests/fuzz.py --seconds 600        # or: make fuzz
    python tests/fuzz.py --seed 1234          # one instance, to look at a finding

Each seed decides a problem, its options, how it is given (rows, batches, Gram matrix), the switches
of the search and its limits, and whether search or verifier work by rows, as they do on wide data,
or boxes are narrowed at once, as they are in large trees. It decides how small units of work are,
when these close nodes by enumeration and look for charges of their own, and on which engine they
run: serial, threads, or one that does all that an engine may do; some have a device beside it, in
NumPy or the kernels themselves, compiled as plain C++. A finding is an exception, a bound
above the true optimum, a model worse than claimed, a certificate that does not verify, or a false
one that does; for some seeds also a list of near-optimal models that lacks one or has one too many.
Every second seed also decides a problem with groups, rules and constraints, against brute force
over all choices and active sets.
Where a Gram matrix is all that is known and features are nearly dependent, the result states an
assumption; a verifier that does not follow is counted as a refusal. A tenth of the time goes to
changed files, see fuzz_files.py.
"""

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from time import perf_counter

import fuzz_files
import numpy as np
from helpers import choice_checks
from helpers.devices import Plain, using
from helpers.emulator import COMPILER, Emulator
from helpers.engines import Hostile, exploring_with
from helpers.forcing import forced
from helpers.instances import REGIMES, Instance, make, make_tree, tolerance
from helpers.lists import check_list

from bestk import Advanced, Problem, Result, Status, near_optimal
from bestk.devices.scanner import Scanner
from bestk.verification.verify import verify_batches

_PIECE = 100
# The share of the time that goes to changed files.
_OF_FILES = 0.1


@dataclass(frozen=True, kw_only=True)
class Finding:
    seed: int
    kind: str
    text: str


def varied(seed: int, units: bool = True) -> tuple[Instance, dict, str]:
    """(instance, settings, source) of a seed: what `make` varies, and types, switches, limits.

    With `units` some of them are larger, and searched in the way that has units of work.
    """
    rng = np.random.default_rng([seed, 77])
    instance = make(seed, REGIMES[rng.integers(len(REGIMES))])
    options = instance.options
    if rng.random() < 0.3:
        options["fit_intercept"] = True
    if rng.random() < 0.1 and instance.regime in ("plain", "wide", "square"):
        instance.X = instance.X.astype(np.float32)
    if rng.random() < 0.1 and instance.X.dtype == np.float64:
        instance.X = np.asfortranarray(instance.X)
    source = rng.choice(["rows", "rows", "rows", "batches", "gram"])
    if source == "gram":
        options.pop("fit_intercept", None)
    settings = {
        "gap_tol": float(rng.choice([1e-4, 0.0, 0.05])),
        "search": str(rng.choice(["best-first", "best-first", "breadth-first", "depth-first"])),
        "bound": str(rng.choice(["descent", "descent", "descent", "admm", "fast", "subgradient"])),
        "node_limit": [None, None, None, 0, 1, 5][rng.integers(6)],
        "n_threads": 1,
        "advanced": Advanced(
            fixing=bool(rng.random() < 0.8),
            enumeration=bool(rng.random() < 0.5),
            split=str(rng.choice(["optimised", "uniform"])),
            branching=str(rng.choice(["relaxation", "relaxation", "heuristic"])),
            rebuild=bool(rng.random() < 0.8),
            batch_size=[None, 1, 2][rng.integers(3)],
        ),
    }
    if units and has_tree(seed):
        kept = {name: options[name] for name in ("fit_intercept",) if name in options}
        instance = make_tree(seed)
        instance.options |= kept
        advanced = replace(settings["advanced"], branching="relaxation")
        settings |= {"bound": "descent", "advanced": advanced}
    return instance, settings, str(source)


def has_tree(seed: int) -> bool:
    return bool(np.random.default_rng([seed, 81]).random() < 0.2)


@contextmanager
def like_large_ones(seed: int, may_be_wide: bool):
    """What large problems do, on small ones, for some seeds."""
    rng = np.random.default_rng([seed, 78])
    with forced() as force:
        if rng.random() < 0.3 and may_be_wide:
            force.wide_search()
            force.wide_matrices_of_the_verifier()
        if rng.random() < 0.3:
            force.narrowed_at_once()
        yield


ENGINES = ("serial", "serial", "threads", "hostile")


def engine_of(seed: int) -> str:
    return str(np.random.default_rng([seed, 80]).choice(ENGINES))


@contextmanager
def in_units(seed: int):
    """Units of any size on any engine, for most seeds; yields settings that this takes."""
    rng, engine = np.random.default_rng([seed, 79]), engine_of(seed)
    with forced() as force:
        force.units_from(int(np.random.default_rng([seed, 84]).choice([0, 0, 3, 40])))
        if rng.random() < 0.7:
            close = [None, 0.0, 1e-5][rng.integers(3)]
            force.units(
                nodes=int(rng.integers(1, 6)), in_flight=int(rng.integers(1, 5)), close=close
            )
        if rng.random() < 0.7:
            force.closed_in_units_only()
        if rng.random() < 0.5:
            force.own_charges()
        elif rng.random() < 0.4:
            force.shared_charges()
        if rng.random() < 0.3:
            force.scans_before_bounds()
        more = {"n_threads": 2} if engine == "threads" else {}
        with ExitStack() as stack:
            if engine == "hostile":
                stack.enter_context(exploring_with(Hostile(seed)))
            device = device_of(seed)
            if device is not None:
                most = float(np.random.default_rng([seed, 83]).choice([10.0, 100.0, 1e9]))
                force.closed_on_device(most=most)
                stack.enter_context(using(device))
                more |= {"device": "cuda"}
            yield more


def device_of(seed: int):
    """A device for some seeds: in NumPy, or the kernels themselves where a compiler is at hand."""
    drawn = np.random.default_rng([seed, 82]).random()
    if drawn > 0.2:
        return None
    return emulated() if drawn < 0.1 and COMPILER else Plain()


@cache
def emulated() -> Scanner:
    folder = tempfile.TemporaryDirectory()
    scanner = Scanner(Emulator(Path(folder.name)))
    scanner.folder = folder  # type: ignore[attr-defined]  # kept as long as the scanner
    return scanner


def centred(instance: Instance) -> Instance:
    """The same problem without an intercept, for brute force."""
    options = dict(instance.options)
    if not options.pop("fit_intercept", False):
        return instance
    weight = np.asarray(options.get("sample_weight", np.ones(len(instance.y))))
    share = (weight / weight.sum())[:, None]
    X, y = instance.X.astype(float), instance.y.astype(float)[:, None]
    # Twice: what rounding left of the mean. Constants become exact zeros.
    X, y = (Z - (share * Z).sum(axis=0) for Z in (X, y))
    X, y = (Z - (share * Z).sum(axis=0) for Z in (X, y))
    origin = np.abs(instance.X.astype(float)).max(axis=0)
    X[:, np.abs(X).max(axis=0) <= 1e-14 * origin] = 0.0
    if np.abs(y).max() <= 1e-14 * np.abs(instance.y.astype(float)).max():
        y[:] = 0.0
    return replace(instance, X=X, y=y[:, 0], options=options)


def solved(instance: Instance, settings: dict, source: str):
    """(result, verification) of an instance that is given in one of several ways."""
    options = dict(instance.options)
    choice = {name: options.pop(name) for name in ("include", "exclude") if name in options}
    X, y = instance.X, instance.y
    if source == "rows":
        problem = Problem.from_data(X, y, **options)
        result = problem.solve(instance.k, **choice, **settings)
        return result, result.certificate.verify(X, y, options.get("sample_weight"), n_threads=1)
    weight = options.pop("sample_weight", np.ones(len(y)))
    if source == "batches":
        parts = np.array_split(np.arange(len(y)), min(3, len(y)))
        batches = [(X[rows], y[rows], weight[rows]) for rows in parts]
        problem = Problem.from_batches(batches, **options)
        result = problem.solve(instance.k, **choice, **settings)
        return result, verify_batches(result.certificate, batches, n_threads=1)
    X, y = X.astype(float), y.astype(float)
    G, c, yy = X.T @ (weight[:, None] * X), X.T @ (weight * y), float(y @ (weight * y))
    problem = Problem.from_gram(G, c, yy, len(y), **options)
    result = problem.solve(instance.k, **choice, **settings)
    return result, result.certificate.verify_gram(G, c, yy, n_threads=1)


def slack_of(instance: Instance, result: Result, optimum: float, source: str) -> float:
    """How well brute force knows the optimum, and sums of products the data."""
    slack = tolerance(instance, optimum, result.yy)
    if source == "rows":
        return slack
    if source == "gram" and result.assumptions:
        return np.inf  # the rows of brute force know what products do not
    # Products are known to a few roundings of the sizes of all terms, squared.
    terms = np.linalg.norm(instance.X.astype(float), axis=0) @ np.abs(result.coef)
    return slack + 1e-9 * result.yy + 1e-13 * terms**2


def check(seed: int, units: bool = True) -> list[Finding]:
    """Findings of a seed; with `units` these are of any size and run on any engine."""
    instance, settings, source = varied(seed, units)
    try:
        optimum = centred(instance).brute_force()
        may_be_wide = source == "rows" and instance.regime != "tree"
        sized = in_units(seed) if units else nullcontext({})
        with like_large_ones(seed, may_be_wide), sized as more:
            settings |= more
            found = _findings(
                instance, settings, source, *solved(instance, settings, source), optimum
            )
            found = [*found, *_findings_of_list(seed, instance, settings, source)]
            return [
                Finding(seed=seed, kind=kind, text=f"{instance.regime}, {source}: {text}")
                for kind, text in found
            ]
    except Exception:  # whatever it is, it is a finding
        return [Finding(seed=seed, kind="crash", text=traceback.format_exc())]


def _findings(instance, settings, source, result, verification, optimum):
    slack = slack_of(instance, result, optimum, source)
    if result.lower_bound > optimum + slack:
        yield "wrong bound", f"claims {result.lower_bound!r}, the optimum is {optimum!r}"
    if result.objective < optimum - slack:
        yield "wrong model", f"reports {result.objective!r}, the optimum is {optimum!r}"
    reach = settings["gap_tol"] * max(result.objective, 1e-12 * result.yy)
    if result.status is Status.OPTIMAL and result.objective > optimum + reach + slack:
        yield "wrong status", f"OPTIMAL at {result.objective!r}, the optimum is {optimum!r}"
    finished = result.is_proven or result.status is Status.NUMERICAL_LIMIT
    if not finished and settings["node_limit"] is None:
        yield "wrong status", f"{result.status} without a limit"
    if not verification:
        conditional = source == "gram" and result.assumptions
        yield "refused" if conditional else "not verified", "; ".join(verification.failures)
    if verification.lower_bound > optimum + slack:
        yield "wrong verification", f"{verification.lower_bound!r}, the optimum is {optimum!r}"
    if source == "rows" and result.yy > 0:
        lie = max(optimum * 1.001, optimum + 2 * slack) + 1e-9 * result.yy
        false = replace(result.certificate, lower_bound=lie, objective=max(lie, result.objective))
        weight = instance.options.get("sample_weight")
        if false.verify(instance.X, instance.y, weight, n_threads=1):
            yield "wrong verification", f"accepts {lie!r}, the optimum is {optimum!r}"


def _findings_of_list(seed, instance, settings, source):
    """Of all near-optimal models, for some seeds whose supports are few."""
    rng = np.random.default_rng([seed, 84])
    if source != "rows" or instance.regime == "tree" or rng.random() > 0.3:
        return
    settings = settings | {"within": float(rng.choice([0.0, 0.02, 0.3, 2.0])), "gap_tol": 0.0}
    options = instance.options
    found = near_optimal(instance.X, instance.y, instance.k, **options, **settings)
    try:
        check_list(centred(instance), found)
    except AssertionError as error:
        yield "wrong list", f"{error}"
    undecided = (Status.PERFECT_FIT, Status.NUMERICAL_LIMIT)
    if not found.complete and settings["node_limit"] is None and found.status not in undecided:
        yield "wrong status", f"a list ended with {found.status} without a limit"
    if found.certificate is not None:
        weight = options.get("sample_weight")
        verdict = found.certificate.verify(instance.X, instance.y, weight, n_threads=1)
        if not verdict:
            yield "not verified", "a list: " + "; ".join(verdict.failures)


def check_structure(seed: int) -> list[Finding]:
    """Findings of a problem with groups, rules and constraints; for some seeds of a list."""
    try:
        choice_checks.check(seed)
        if seed % 3 == 0:
            choice_checks.check_list(seed)
    except AssertionError:
        return [Finding(seed=seed, kind="structure", text=traceback.format_exc())]
    except Exception:
        return [Finding(seed=seed, kind="crash", text=traceback.format_exc())]
    return []


def check_many(seeds: range) -> tuple[Counter, list[Finding]]:
    """(what was tried, findings)."""
    tried, findings = Counter(), []
    for seed in seeds:
        instance, _, source = varied(seed)
        tried[instance.regime] += 1
        tried[f"({source})"] += 1
        tried[f"({engine_of(seed)})"] += 1
        findings += check(seed)
        if seed % 2 == 0:
            tried["structure"] += 1
            findings += check_structure(seed)
    return tried, findings


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--seconds", type=float, default=600.0)
    arguments.add_argument("--start", type=int, default=0, help="first seed")
    arguments.add_argument("--count", type=int, default=10**9, help="most instances")
    arguments.add_argument("--seed", type=int, help="only this one")
    arguments.add_argument("--workers", type=int, default=2)
    chosen = arguments.parse_args()
    if chosen.seed is not None:
        print(varied(chosen.seed))
        for finding in [*check(chosen.seed), *check_structure(chosen.seed)]:
            print(finding.kind, finding.text, sep=": ")
        return 0
    in_files = fuzz_files.fuzz_for(_OF_FILES * chosen.seconds, chosen.start)
    started, tried, findings = perf_counter(), Counter(), []
    seconds = (1.0 - _OF_FILES) * chosen.seconds
    first, last = chosen.start, chosen.start + chosen.count
    with ProcessPoolExecutor(chosen.workers) as pool:
        while first < last and perf_counter() - started < seconds:
            pieces = [
                range(a, min(a + _PIECE, last))
                for a in range(first, min(first + 4 * chosen.workers * _PIECE, last), _PIECE)
            ]
            for counts, found in pool.map(check_many, pieces):
                tried += counts
                findings += found
                for finding in found:
                    print(f"seed {finding.seed}: {finding.kind}: {finding.text}", flush=True)
            first = pieces[-1].stop
    n = sum(tried[regime] for regime in (*REGIMES, "tree", "structure"))
    kinds = Counter(finding.kind for finding in findings)
    crashes, refused = kinds.pop("crash", 0), kinds.pop("refused", 0)
    wrong = sum(kinds.values())
    print(f"{n} instances in {perf_counter() - started:.0f} s, seeds {chosen.start} to {first - 1}")
    print("by kind: " + ", ".join(f"{name} {count}" for name, count in sorted(tried.items())))
    print(f"crashes: {crashes}, wrong claims: {wrong} {dict(kinds) if kinds else ''}")
    print(f"refused because of a stated assumption: {refused}")
    return 1 if crashes + wrong + in_files else 0


if __name__ == "__main__":
    sys.exit(main())
