"""The command line as a function, and its models compared with those of the library."""

import json

import pytest
from typer.testing import CliRunner

import bestk
from bestk.cli.app import app

N, P = 80, 8


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def run_json(*arguments, code=0):
    outcome = run(*arguments, "--json")
    assert outcome.exit_code == code, outcome.output
    return json.loads(outcome.stdout)


def fit(file, *options, **more):
    return run_json("fit", file, "--target", "price", "--drop", "count", *options, **more)


def same_model(document, result):
    assert document["support"] == result.names
    for name, j in zip(result.names, result.support, strict=True):
        assert document["coef"][name] == pytest.approx(result.coef[j], rel=1e-8)
    assert document["intercept"] == pytest.approx(result.intercept, rel=1e-8)
    assert document["objective"] == pytest.approx(result.objective, rel=1e-10)
    assert document["k"] == result.k
    assert document["alpha"] == result.alpha


def solve(frame, k=3, **options):
    X = frame.drop(columns=["price", "count"])
    return bestk.solve(X, frame["price"], k, **{"fit_intercept": True, **options})
