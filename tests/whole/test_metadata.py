"""What several files say about the package is the same everywhere."""

import re
import tomllib
from pathlib import Path

from packaging.version import Version

import bestk

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_citation_has_the_version():
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {bestk.__version__}\n" in citation
    assert f"\nlicense: {PROJECT['license']}\n" in citation


def test_the_changelog_knows_the_version():
    """A release is its first section, with a date; before that, the section is *Unreleased*."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    sections = re.findall(r"^## \[(.+?)\](?: - (\d{4}-\d\d-\d\d))?$", changelog, re.MULTILINE)
    assert len(sections) == len(re.findall(r"^## ", changelog, re.MULTILINE))
    version = Version(bestk.__version__)
    name, date = sections[0]
    if version.is_prerelease:
        assert (name, date) == ("Unreleased", "")
        del sections[0]
    else:
        assert name == bestk.__version__
    releases = [Version(name) for name, _ in sections]
    assert all(date for _, date in sections)
    assert releases == sorted(releases, reverse=True)
    assert all(release <= version for release in releases)


def test_integration_runs_on_the_interpreters_that_are_named():
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert re.search(r"python: \[(.*)\]", workflow)[1] == ", ".join(f'"{one}"' for one in named)
    assert PROJECT["requires-python"] == f">={named[0]}"
