"""Same trees? What seeded problems of all kinds give, in a file to compare with later.

    python -m benchmarks.trees save before.json
    python -m benchmarks.trees compare before.json

For each problem: nodes, objective, bound, support, status and a digest of every array of the
certificate. A change that is meant to keep the search as it is leaves all of them as they are, on
the same machine and with the same number of threads. Only the public interface is used, so that
older code can be asked, too.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bestk
from bestk.datasets import make_dynamics, make_synthetic

Cases = Iterator[tuple[str, Callable[[], Any]]]


def digest(certificate: Any) -> dict[str, str]:
    """A short digest of each array of a certificate."""
    if certificate is None:
        return {}
    arrays = certificate.to_arrays()
    return {
        name: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
        for name, array in sorted(arrays.items())
    }


def clusters_of(certificate: Any) -> int:
    """How many clusters the splits of a proof have: do cluster bounds take part in it?"""
    return 0 if certificate is None else sum(len(split.clusters) for split in certificate.splits)


def summary(result: Any) -> dict[str, Any]:
    return {
        "status": result.status.name,
        "support": result.support.tolist(),
        "objective": float(result.objective).hex(),
        "lower_bound": float(result.lower_bound).hex(),
        "nodes": result.n_nodes,
        "assumptions": list(result.assumptions),
        "clusters": clusters_of(result.certificate),
        "certificate": digest(result.certificate),
    }


def summaries(answer: Any) -> list[dict[str, Any]]:
    """Of a result, of several, or of whatever holds some."""
    if isinstance(answer, bestk.Result):
        return [summary(answer)]
    if isinstance(answer, dict | bestk.Path):
        answer = list(answer.values())
    return [row for each in answer for row in summaries(each)]


def polynomial(load: Any, degree: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    X, y = load(return_X_y=True)
    terms = PolynomialFeatures(degree, include_bias=False).fit_transform(
        StandardScaler().fit_transform(X)
    )
    return StandardScaler().fit_transform(terms), y.astype(float)


def tall() -> Cases:
    for n, p, k, rho, seed in (
        (200, 30, 5, 0.5, 0), (120, 60, 6, 0.5, 1), (150, 60, 6, 0.9, 2), (1000, 60, 10, 0.9, 3),
        (2000, 300, 10, 0.9, 4), (600, 200, 8, 0.5, 5), (10000, 100, 10, 0.9, 6),
        (150, 100, 6, 0.9, 7),
    ):  # fmt: skip
        X, y, _ = make_synthetic(n, p, k=k, rho=rho, seed=seed)
        yield (
            f"tall {n} {p} {rho}",
            lambda X=X, y=y, k=k: bestk.solve(X, y, k, alpha=1e-3, node_limit=3000),
        )
    X, y, _ = make_synthetic(150, 50, k=6, rho=0.9, seed=8)
    weight = np.random.default_rng(8).uniform(0.0, 2.0, len(y))
    yield "tall, no penalty", lambda: bestk.solve(X, y, 6)
    yield (
        "tall, weights and intercept",
        lambda: bestk.solve(X + 3.0, y + 7.0, 6, sample_weight=weight, fit_intercept=True),
    )
    yield (
        "tall, include and exclude",
        lambda: bestk.solve(X, y, 6, include=[3, 4], exclude=[10, 20]),
    )
    yield "tall, single precision", lambda: bestk.solve(X.astype(np.float32), y, 5, alpha=0.1)
    yield "tall, zero y", lambda: bestk.solve(X, np.zeros(len(y)), 3)
    yield "tall, all features", lambda: bestk.solve(X[:, :12], y, 12)
    for search in ("breadth-first", "depth-first"):
        yield (
            f"tall, {search}",
            lambda search=search: bestk.solve(X, y, 5, alpha=0.1, search=search),
        )
    branching = bestk.Advanced(enumeration=False)
    for bound in ("admm", "fast", "subgradient"):
        yield (
            f"tall, {bound}",
            lambda bound=bound: bestk.solve(
                X[:, :30], y, 4, alpha=0.1, bound=bound, node_limit=400, advanced=branching
            ),
        )
    paper = bestk.Advanced.paper()
    yield (
        "tall, paper",
        lambda: bestk.solve(
            X[:, :25],
            y,
            3,
            alpha=0.1,
            bound="admm",
            search="breadth-first",
            advanced=paper,
            node_limit=200,
        ),
    )
    plain = bestk.Advanced(enumeration=False, fixing=False)
    yield (
        "tall, no enumeration",
        lambda: bestk.solve(X, y, 5, alpha=0.1, advanced=plain, node_limit=2000),
    )
    yield (
        "from products",
        lambda: bestk.Problem.from_gram(X.T @ X, X.T @ y, y @ y, 150, alpha=0.5).solve(6),
    )
    parts = [(X[i : i + 40], y[i : i + 40]) for i in range(0, 150, 40)]
    yield (
        "from batches",
        lambda: bestk.Problem.from_batches(parts, alpha=0.5, fit_intercept=True).solve(6),
    )
    yield (
        "runner-up",
        lambda: (problem := bestk.Problem.from_data(X, y, alpha=0.5)).runner_up(problem.solve(5)),
    )


def square() -> Cases:
    for n, p, rho in ((100, 100, 0.1), (300, 300, 0.9), (220, 200, 0.5), (1100, 1000, 0.1)):
        X, y, _ = make_synthetic(n, p, k=6, rho=rho, seed=n)
        yield (
            f"square {n} {p} {rho}",
            lambda X=X, y=y: bestk.solve(X, y, 6, alpha=0.1, node_limit=600),
        )
    X, y, _ = make_synthetic(100, 130, k=4, rho=0.5, seed=9)
    yield "more features than rows", lambda: bestk.solve(X, y, 3, alpha=0.5, node_limit=300)


def wide() -> Cases:
    for n, p, rho, alpha, size in (
        (100, 400, 0.1, 0.1, 1.5), (60, 300, 0.5, 1.0, 1.5), (200, 1000, 0.1, 10.0, 1.5),
        (200, 3000, 0.1, 1.0, 1.5),
    ):  # fmt: skip
        X, y, _ = make_synthetic(n, p, k=5, rho=rho, seed=p)
        yield (
            f"wide {n} {p}, box",
            lambda X=X, y=y, alpha=alpha, size=size: bestk.solve(
                X, y, 5, alpha=alpha, bounds=(-size, size), node_limit=500
            ),
        )
    X, y, _ = make_synthetic(80, 400, k=4, rho=0.3, seed=11)
    yield (
        "wide, automatic box",
        lambda: bestk.solve(X, y, 4, alpha=1.0, bounds="auto", node_limit=500),
    )
    yield "wide, no box", lambda: bestk.solve(X, y, 4, alpha=20.0, node_limit=300)
    yield "wide, no penalty, box", lambda: bestk.solve(X, y, 3, bounds=(-1.2, 1.2), node_limit=200)
    yield (
        "wide, intercept",
        lambda: bestk.solve(
            X + 1.0, y + 5.0, 3, alpha=1.0, fit_intercept=True, bounds=(-2, 2), node_limit=300
        ),
    )
    branching = bestk.Advanced(enumeration=False)
    for bound in ("admm", "fast", "subgradient"):
        yield (
            f"wide, {bound}",
            lambda bound=bound: bestk.solve(
                X,
                y,
                3,
                alpha=1.0,
                bounds=(-1.5, 1.5),
                bound=bound,
                node_limit=60,
                advanced=branching,
            ),
        )
    yield (
        "wide path",
        lambda: bestk.solve_path(X, y, range(1, 5), alpha=1.0, bounds="auto", node_limit=200),
    )


def boxed() -> Cases:
    X, y, _ = make_synthetic(150, 50, k=6, rho=0.7, seed=12)
    yield "nonnegative", lambda: bestk.solve(X, y, 5, alpha=0.1, bounds=(0, np.inf))
    yield "box", lambda: bestk.solve(X, y, 5, alpha=0.1, bounds=(-0.8, 0.9))
    yield "box, no penalty", lambda: bestk.solve(X, y, 5, bounds=(-0.8, 0.9))
    yield "automatic box", lambda: bestk.solve(X, y, 5, bounds="auto")
    branching = bestk.Advanced(enumeration=False)
    for name, bounds in (
        ("nonnegative", (0, np.inf)),
        ("box", (-0.8, 0.9)),
        ("half open", (-0.7, np.inf)),
    ):
        yield (
            f"{name}, no enumeration",
            lambda bounds=bounds: bestk.solve(
                X, y, 5, alpha=0.1, bounds=bounds, advanced=branching, node_limit=1000
            ),
        )
    X, y, _ = make_synthetic(1000, 1000, k=10, rho=0.9, seed=13)
    yield (
        "square in a box",
        lambda: bestk.solve(X, y, 10, alpha=1.0, bounds=(-2, 2), node_limit=300),
    )
    X, y, _ = make_synthetic(1100, 1000, k=10, rho=0.5, seed=14)
    yield "narrowed box", lambda: bestk.solve(X, y, 10, alpha=0.01, node_limit=400)


def clusters() -> Cases:
    X, y, _ = make_synthetic(1000, 200, k=10, rho=0.9, seed=15)
    for k in (4, 6):
        yield f"blocks, k = {k}", lambda k=k: bestk.solve(X, y, k, alpha=1e-3, node_limit=400)
    yield "blocks, path", lambda: bestk.solve_path(X, y, range(1, 6), alpha=1e-3, node_limit=200)
    X2, y2, _ = make_synthetic(10000, 100, k=10, rho=0.9, seed=16)
    yield "blocks, 10000 100", lambda: bestk.solve_path(X2, y2, (5, 7), alpha=1e-3, node_limit=400)


def collinear() -> Cases:
    for system in ("lorenz", "hopf"):
        data = make_dynamics(system, 4.0, degree=5, noise=0.002)
        for i in range(2):
            yield (
                f"{system} {i}",
                lambda data=data, i=i: bestk.solve(data.X, data.derivatives[:, i], 3, alpha=1e-5),
            )
    data = make_dynamics("mhd", 1.0, degree=4, noise=0.01)
    yield "mhd", lambda: bestk.solve(data.X, data.derivatives[:, 0], 2, alpha=1e-3)
    yield (
        "grid",
        lambda: bestk.Problem.from_data(data.X, data.derivatives[:, 1]).solve_grid(
            (1, 2, 3), (0.01, 0.1, 1.0)
        ),
    )
    X, y, _ = make_synthetic(80, 20, k=4, rho=0.5, seed=17)
    X = np.hstack([X, X[:, :5], -2.0 * X[:, 5:8], np.zeros((80, 1)), np.ones((80, 1))])
    yield "copies", lambda: bestk.solve(X, y, 4)
    yield "copies, penalty", lambda: bestk.solve(X, y, 4, alpha=0.1)
    branching = bestk.Advanced(enumeration=False)
    yield (
        "copies, no enumeration",
        lambda: bestk.solve(X, y, 4, alpha=0.1, advanced=branching, node_limit=1000),
    )
    yield "copies, box", lambda: bestk.solve(X, y, 4, bounds=(-0.5, 0.5))


def equations() -> Cases:
    from bestk.datasets import simulate
    from bestk.sindy import discover

    states = simulate("lorenz", 4.0, noise=0.002)
    yield "discovery", lambda: discover(states, 0.002, degree=3).results


def tables() -> Cases:
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

    X, y = polynomial(load_diabetes, 2)
    for k in (5, 10):
        yield (
            f"diabetes, degree 2, k = {k}",
            lambda k=k: bestk.solve(X, y, k, alpha=1.0, fit_intercept=True),
        )
    yield (
        "diabetes, path",
        lambda: bestk.solve_path(X, y, range(1, 9), alpha=1.0, fit_intercept=True),
    )
    X3, y3 = polynomial(load_wine, 2)
    yield "wine, degree 2", lambda: bestk.solve(X3, y3, 6, alpha=1.0, fit_intercept=True)
    X4, y4 = load_breast_cancer(return_X_y=True)
    yield (
        "breast cancer",
        lambda: bestk.solve(X4, y4.astype(float), 8, alpha=1.0, fit_intercept=True),
    )


def validation() -> Cases:
    X, y, _ = make_synthetic(120, 30, k=4, rho=0.5, seed=18)

    def paths(X: np.ndarray, **options: Any) -> Any:
        model = bestk.SparseRidgeCV(ks=range(1, 5), alphas=[0.1, 1.0], cv=4, **options).fit(X, y)
        return [*(path for row in model.cross_validation_.paths for path in row), model.result_]

    yield "cross-validation", lambda: paths(X)
    W = np.random.default_rng(19).standard_normal((120, 250)) + X[:, :1]
    yield "cross-validation, wide", lambda: paths(W, bounds=(-1, 1), node_limit=40)


def checkpoints() -> Cases:
    def resumed(
        X: np.ndarray, y: np.ndarray, k: int, stops: tuple[int, ...], **options: Any
    ) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "run.ckpt"
            results = [bestk.solve(X, y, k, checkpoint=str(file), node_limit=stops[0], **options)]
            for limit in stops[1:]:
                results.append(bestk.resume(str(file), X, y, node_limit=limit))
        return results

    branching = bestk.Advanced(enumeration=False)
    X, y, _ = make_synthetic(150, 60, k=6, rho=0.9, seed=20)
    yield "resumed", lambda: resumed(X, y, 6, (1, 100, 500, 900), alpha=1e-3, advanced=branching)
    X2, y2, _ = make_synthetic(1000, 200, k=10, rho=0.9, seed=21)
    X1, y1, _ = make_synthetic(1100, 1000, k=10, rho=0.5, seed=14)
    yield "resumed, narrowed box", lambda: resumed(X1, y1, 10, (150, 300, 400), alpha=0.01)
    yield (
        "resumed, depth-first",
        lambda: resumed(X, y, 6, (150, 400), alpha=1e-3, search="depth-first"),
    )
    yield "resumed, blocks", lambda: resumed(X2, y2, 6, (60, 200, 300), alpha=1e-3)
    X3, y3, _ = make_synthetic(100, 400, k=4, rho=0.1, seed=22)
    yield (
        "resumed, wide",
        lambda: resumed(X3, y3, 4, (30, 60, 200), alpha=1.0, bounds="auto", advanced=branching),
    )


STUDIES = (
    tall,
    square,
    wide,
    boxed,
    clusters,
    collinear,
    equations,
    tables,
    validation,
    checkpoints,
)


def measured(only: str = "") -> dict[str, list[dict[str, Any]]]:
    found = {}
    for study in STUDIES:
        for name, ask in study():
            if only in name:
                found[name] = summaries(ask())
                print(f"{name}: {[row['nodes'] for row in found[name]]}", flush=True)
    return found


def differences(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    lines = []
    for name in now:
        old, new = before.get(name), now[name]
        if old is None or len(old) != len(new):
            lines.append(f"{name}: not the same number of results")
            continue
        for i, (a, b) in enumerate(zip(old, new, strict=True)):
            other = [key for key in a if key != "certificate" and a[key] != b[key]]
            keys = {*a["certificate"], *b["certificate"]}
            arrays = [x for x in sorted(keys) if a["certificate"].get(x) != b["certificate"].get(x)]
            if other or arrays:
                values = ", ".join(f"{key} {a[key]} -> {b[key]}" for key in other)
                proof = f"{b['clusters']} clusters in the proof"
                changed = ", ".join(arrays) or "the same"
                lines.append(f"{name} [{i}], {proof}: {values}; arrays {changed}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("save", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="problems whose name contains this")
    options = parser.parse_args()
    now = measured(options.only)
    if options.what == "save":
        options.file.write_text(json.dumps(now, indent=1))
        return 0
    before = json.loads(options.file.read_text())
    lines = differences(before, now)
    print("\n".join(lines))
    print(f"{len(now)} problems, {sum(map(len, now.values()))} results, {len(lines)} differ")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
