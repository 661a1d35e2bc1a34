"""The tests of the pinned version of PySINDy, from its source archive; wheels do not hold them."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..harness.environments import VENVS, python_of

ENVIRONMENT = "pysindy_tests"
RELEASE = "pysindy==2.1.0"
SHA256 = "369659db632e72e670b64cfd79fd3c0b9efc8e3a36f0c35f4f11b844e863bb08"
"""Of the source archive: pip refuses any other."""
FOLDER = VENVS / ENVIRONMENT / "pysindy"
"""Inside the environment, so that git ignores it and both are made anew together."""


def folder_of_tests() -> Path:
    """A folder with ``test`` and ``pyproject.toml`` of PySINDy; fetched on first use."""
    python = python_of(ENVIRONMENT)
    if not FOLDER.exists():
        with tempfile.TemporaryDirectory(prefix="bestk-bench-", dir=FOLDER.parent) as folder:
            unpack(_archive(python, Path(folder)), Path(folder) / "whole")
            (Path(folder) / "whole").rename(FOLDER)  # never a part of it
    return FOLDER


def _archive(python: Path, folder: Path) -> Path:
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{RELEASE} --hash=sha256:{SHA256}\n")
    pip = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    only_sources = ["--no-deps", "--no-binary", "pysindy", "--require-hashes"]
    subprocess.run([*pip, *only_sources, "-r", wanted, "-d", folder], check=True)
    (archive,) = folder.glob("*.tar.gz")
    return archive


def unpack(archive: Path, folder: Path) -> None:
    """Write the tests and the settings of pytest below ``folder``, and nothing else."""
    with tarfile.open(archive) as tar:
        for member, path in _wanted(tar):
            target = folder / path
            if not target.resolve().is_relative_to(folder.resolve()):
                raise ValueError(
                    f"{archive.name} holds {member.name}, which leads out of its folder"
                )
            content = tar.extractfile(member)
            assert content is not None
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())


def _wanted(tar: tarfile.TarFile) -> Iterator[tuple[tarfile.TarInfo, Path]]:
    """Plain files of interest, and their paths below the archive's only folder."""
    for member in tar:
        parts = Path(member.name).parts[1:]
        if member.isfile() and (parts[:1] == ("test",) or parts == ("pyproject.toml",)):
            yield member, Path(*parts)
