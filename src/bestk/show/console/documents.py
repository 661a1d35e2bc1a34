"""JSON documents of the command ``bestk``; docs/cli.md explains their keys.

With ``--json`` exactly one JSON object goes to standard output, all messages to standard error. A
number that is not finite is null.
"""

import json
import math
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bestk.readers.data import Data
    from bestk.results.result import Result
    from bestk.rivals.models import NearModel, NearOptimal
    from bestk.selection.cross_validation import CrossValidation
    from bestk.selection.path import Path
    from bestk.sindy import Discovery


def write_json(document: dict[str, Any]) -> None:
    typer.echo(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    """What JSON can hold: NumPy's numbers become Python's, and those that are not finite null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def data_document(data: "Data") -> dict[str, Any]:
    """What any document tells about text and missing values, if there are any."""
    document: dict[str, Any] = {"baseline": data.baseline} if data.baseline else {}
    if data.left_out.n_rows:
        left_out = {"rows": data.left_out.n_rows, "missing": dict(data.left_out.values)}
        document["left_out"] = left_out
    return document


def model_document(result: "Result") -> dict[str, Any]:
    from bestk import __version__
    from bestk.results.criteria import CRITERIA

    return {
        "k": result.k,
        "alpha": result.alpha,
        "support": result.names,
        "coef": {result.name(j): result.coef[j] for j in result.support},
        "intercept": result.intercept,
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "explained_gap": result.explained_gap,
        "status": str(result.status),
        "proven": result.is_proven,
        "conditional": result.is_conditional,
        "at_bounds": [result.name(j) for j in result.at_bounds],
        "assumptions": result.assumptions,
        "r2": result.r2,
        "n_samples": result.n_samples,
        "n_features": len(result.coef),
        "n_nodes": result.n_nodes,
        "seconds": result.seconds,
        "criteria": {name: result.criterion(name) for name in CRITERIA},
        "version": __version__,
        **_structure_document(result),
    }


def _structure_document(result: "Result") -> dict[str, Any]:
    from bestk.results.result import active_constraints

    structure = result.structure
    if structure is None:
        return {}
    parts = zip(
        structure.constraint_words,
        (structure.matrix @ result.coef).tolist(),
        active_constraints(result).tolist(),
        result.multipliers.tolist(),
        strict=True,
    )
    keys = ("words", "value", "active", "multiplier")
    return {
        "groups": result.group_names,
        "n_groups": structure.n_groups,
        "rules": list(structure.words),
        "constraints": [dict(zip(keys, part, strict=True)) for part in parts],
        "kkt_residual": result.kkt_residual,
    }


def list_document(found: "NearOptimal") -> dict[str, Any]:
    from bestk import __version__

    best = model_document(found.best)
    del best["version"]
    names, structure = found.names, found.structure
    asked = {}
    if structure is not None:
        asked = {"rules": list(structure.words), "constraints": list(structure.constraint_words)}
    return {
        "k": found.k,
        "alpha": found.alpha,
        "threshold": found.threshold,
        "within": found.within,
        "exactly_k": found.only_k,
        "complete": found.complete,
        "complete_below": found.complete_below,
        "conditional": found.best.is_conditional,
        "status": str(found.status),
        "best": best,
        "models": [
            {
                "support": list(model.names),
                "coef": dict(zip(model.names, model.values.tolist(), strict=True)),
                "intercept": model.intercept,
                "objective": model.objective,
                "worse_by": worse_by(found, model),
                "borderline": model.is_borderline,
                **_groups_of(found, model),
            }
            for model in found.models
        ],
        "necessary": [names[j] for j in found.necessary],
        "possible": [names[j] for j in found.possible],
        "useless": [names[j] for j in found.useless],
        "copies": [[names[a], names[b]] for a, b in found.copies],
        "n_samples": found.n_samples,
        "n_features": found.n_features,
        "n_nodes": found.n_nodes,
        "seconds": found.seconds,
        "version": __version__,
        **asked,
    }


def _groups_of(found: "NearOptimal", model: "NearModel") -> dict[str, list[str]]:
    structure = found.structure
    if structure is None:
        return {}
    return {"groups": [structure.group_names[g] for g in structure.groups_of(model.support)]}


def worse_by(found: "NearOptimal", model: "NearModel") -> float:
    """Relative to the best objective; of a perfect fit nothing is."""
    best = found.best.objective
    return max(model.objective / best - 1.0, 0.0) if best > 0 else math.nan


def path_document(path: "Path", criterion: str) -> dict[str, Any]:
    from bestk import __version__

    return {
        "criterion": criterion,
        "chosen": model_document(path.best(criterion)),
        "proven": path.is_proven,
        "conditional": path.is_conditional,
        "results": [model_document(result) for result in path.results],
        "version": __version__,
    }


def cv_document(
    validation: "CrossValidation", result: "Result", rule: str, seed: int
) -> dict[str, Any]:
    from bestk import __version__

    model = model_document(result)
    table = [
        {"alpha": alpha, "k": k, "mean": mean, "standard_error": error}
        for alpha, means, errors in zip(
            validation.alphas, validation.mean, validation.standard_error, strict=True
        )
        for k, mean, error in zip(validation.ks, means, errors, strict=True)
    ]
    return {
        "chosen": {"alpha": result.alpha, "k": result.k},
        "rule": rule,
        "measure": validation.measure,
        "folds": validation.errors.shape[2],
        "seed": seed,
        "table": table,
        "share_proven": validation.share_proven,
        "model": model,
        "proven": validation.is_proven and model["proven"],
        "conditional": validation.is_conditional or model["conditional"],
        "version": __version__,
    }


def discovery_document(found: "Discovery", validation: float) -> dict[str, Any]:
    from bestk import __version__

    equations = []
    for i, (result, other) in enumerate(zip(found.results, found.runners_up, strict=True)):
        model = model_document(result)
        del model["version"]
        runner_up = None
        if other is not None:
            runner_up = {
                "support": other.names,
                "objective": other.objective,
                "lower_bound": other.lower_bound,
                "margin": found.margins[i],
                "proven": other.is_proven,
            }
        names = {"state": found.states[i], "equation": found.equations[i]}
        equations.append(names | model | {"runner_up": runner_up})
    table = [
        {"state": state, "alpha": alpha, "k": k, "score": score}
        for state, rows in zip(found.states, found.scores, strict=True)
        for alpha, row in zip(found.alphas, rows, strict=True)
        for k, score in zip(found.ks, row, strict=True)
    ]
    return {
        "equations": equations,
        "states": list(found.states),
        "n_terms": len(found.terms),
        "n_trajectories": len(found.trajectories.x),
        "validation": validation,
        "criterion": found.criterion,
        "table": table,
        "share_proven": found.share_proven,
        "horizon": found.horizons,
        "proven": found.is_proven and found.is_grid_proven,
        "version": __version__,
    }


def doctor_document(machine: dict[str, Any], checks: "Iterable[Any]") -> dict[str, Any]:
    """A machine and its self-test."""
    test = [
        {
            "name": check.name,
            "passed": check.passed,
            "problem": check.problem,
            "seconds": check.seconds,
        }
        for check in checks
    ]
    return machine | {"self_test": test, "healthy": all(check["passed"] for check in test)}
