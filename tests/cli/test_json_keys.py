"""Every key that --json writes is explained in docs/cli.md."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.command_line import run, run_json

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
SECTION = PAGE.read_text("utf-8").partition("### JSON keys")[2].partition("### Exit codes")[0]
# Objects whose keys are names.
OF_NAMES = ("coef", "baseline", "missing", "packages", "optional", "variables")


def keys_in(value):
    if isinstance(value, list):
        return {key for item in value for key in keys_in(item)}
    if not isinstance(value, dict):
        return set()
    inner = (keys_in(item) for key, item in value.items() if key not in OF_NAMES)
    return set(value).union(*inner)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.standard_normal((60, 4)), columns=list("abcd"))
    frame["site"] = rng.choice(["Ulm", "Bonn", "Kiel"], 60)
    frame["y"] = frame["a"] - frame["b"] + (frame["site"] == "Ulm") + 0.1 * frame["c"]
    frame.loc[3, "d"] = np.nan
    frame.to_csv(folder / "data.csv", index=False)
    t = 0.01 * np.arange(200)
    pd.DataFrame({"t": t, "x": np.cos(t), "v": -np.sin(t)}).to_csv(folder / "run.csv", index=False)
    for command, kept in (("fit", "run.npz"), ("alternatives", "list.npz")):
        outcome = run(
            command, folder / "data.csv", "-k", 2, "--missing", "drop", "--save", folder / kept
        )
        assert outcome.exit_code == 0, outcome.output
    return folder


TABLE = ["data.csv", "--missing", "drop"]
ASKED = [*TABLE, "--constraint", "a >= 0.5", "--rule", "at most 1 of c, d"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", *ASKED, "-k", 2],
        ["alternatives", *ASKED, "-k", 2],
        ["path", *ASKED, "--max-k", 2],
        ["cv", *TABLE, "--max-k", 2],
        ["verify", "run.npz", *TABLE],
        ["verify", "list.npz", *TABLE],
        ["discover", "run.csv", "--degree", 1, "--max-k", 1],
        ["doctor"],
    ],
)
def test_keys_are_explained(folder, monkeypatch, arguments):
    monkeypatch.chdir(folder)
    found = keys_in(run_json(*arguments))
    assert found - set(re.findall(r"`(\w+)`", SECTION)) == set()
