"""The grid of a cross-validation: python cv_run.py N P RHO K THREADS ANSWER.json."""

import time

from benchmarks.harness.process import answer
from bestk import SparseRidgeCV
from bestk.datasets import make_synthetic

ALPHAS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
FOLDS = 5


def main(n, p, rho, k, threads):
    X, y, _ = make_synthetic(n, p, k, rho=rho)
    model = SparseRidgeCV(
        ks=range(1, k + 1), alphas=ALPHAS, cv=FOLDS, fit_intercept=False, time_limit=20.0
    )
    warm = make_synthetic(4000, 120, 8, rho=0.9)
    model.fit(warm.X, warm.y)
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    validation = model.cross_validation_
    models = {
        f"{fold} {alpha} {result.k}": [
            result.support.tolist(),
            result.coef[result.support].tolist(),
        ]
        for alpha, paths in zip(ALPHAS, validation.paths, strict=True)
        for fold, path in enumerate(paths)
        for result in path.values()
    }
    return {
        "seconds": seconds,
        "proven": f"{validation.share_proven:.1%}",
        "fits": len(models),
        "models": models,
    }


if __name__ == "__main__":
    answer(main)
