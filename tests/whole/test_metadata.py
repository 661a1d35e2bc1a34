"""What several files say about the package is the same everywhere."""

import re
import tomllib
from pathlib import Path

import bestk

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_citation_has_the_version():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {bestk.__version__}\n" in citation
    assert f"\nlicense: {PROJECT['license']}\n" in citation


def test_integration_runs_on_the_interpreters_that_are_named():
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert re.search(r"python: \[(.*)\]", workflow)[1] == ", ".join(f'"{one}"' for one in named)
    assert PROJECT["requires-python"] == f">={named[0]}"
