"""Look into the sdist and the wheel of a folder, install each in a new environment, and try it."""

import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

DATA = (
    "bestk/py.typed", "bestk/devices/scan.cu", "bestk/verification/supports/pairs.cu",
    "bestk/show/_explorer.js", "bestk/show/_explorer.css", "bestk/show/_report.css",
)  # fmt: skip
SOURCES = (
    "src/bestk/__init__.py",
    "tests/conftest.py",
    "docs/conf.py",
    "pyproject.toml",
    "LICENSE",
)
NEVER = (".venv", "__pycache__", ".nbi", ".nbc", "_build/", ".ipynb", "auto_examples")
SOLVE = (
    "import sys, numpy as np, bestk; assert bestk.__file__.startswith(sys.prefix), bestk.__file__; "
    "X = np.random.default_rng(0).standard_normal((30, 8)); "
    "r = bestk.solve(X, X[:, 2] - X[:, 5], 2); assert r.names == ['x2', 'x5'], r; "
    "print(bestk.__file__, r.status)"
)


def check_names(wheel: Path, sdist: Path) -> None:
    """All data files are there, and nothing that was built or does not belong to users."""
    with zipfile.ZipFile(wheel) as file:
        in_wheel = file.namelist()
    with tarfile.open(sdist) as file:
        in_sdist = [name.partition("/")[2] for name in file.getnames()]
    roots = {name.partition("/")[0] for name in in_wheel}
    own = {"bestk", wheel.name.removesuffix("-py3-none-any.whl") + ".dist-info"}
    wrong = [f"wheel: {name} does not belong there" for name in sorted(roots - own)]
    wrong += [f"wheel: {name} is missing" for name in DATA if name not in in_wheel]
    expected = [*SOURCES, *(f"src/{name}" for name in DATA)]
    wrong += [f"sdist: {name} is missing" for name in expected if name not in in_sdist]
    for name in [*in_wheel, *in_sdist]:
        wrong += [f"{name} must not be there" for part in NEVER if part in name]
    if wrong:
        sys.exit("\n".join(wrong))
    print(f"{wheel.name}: {len(in_wheel)} files; {sdist.name}: {len(in_sdist)} files")


def try_out(archive: Path) -> None:
    # Not the sources that a PYTHONPATH may name.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python, command = f"{folder}/bin/python", f"{folder}/bin/bestk"
        install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([python, *install, archive.resolve()], check=True, env=environment)
        for words in ([python, "-c", SOLVE], [command, "--version"], [command, "doctor", "-q"]):
            subprocess.run(words, check=True, cwd=folder, env=environment)
    print(f"{archive.name}: installed and tried")


folder = Path(sys.argv[1])
[wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
check_names(wheel, sdist)
for archive in (wheel, sdist):
    try_out(archive)
