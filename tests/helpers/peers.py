"""Code for other programs, run here, in the program's own environment, or in R.

Numbers and texts that it leaves behind come back, whichever it was.
"""

import os
import shutil
import subprocess
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.harness.environments import interpreter
from helpers import apart, pages


class Peer(NamedTuple):
    """A module that must be there, and the environment that has it if ours does not."""

    module: str
    environment: str = ""


PEERS = {
    "scikit-learn": Peer("sklearn"),
    "PySINDy": Peer("pysindy", "pysindy"),
    "MIOSR": Peer("gurobipy", "pysindy"),
    "abess": Peer("abess", "abess"),
    "l0bnb": Peer("l0bnb", "l0bnb"),
    "okridge": Peer("okridge", "okridge"),
}

# After a block of R: every vector of numbers or texts, a line each. ls() passes over dotted names.
LEAVE = """
.lines <- character()
for (.name in ls()) {
  .value <- get(.name)
  if (is.numeric(.value) && is.vector(.value)) .texts <- format(.value, digits = 17, trim = TRUE)
  else if (is.character(.value) && is.vector(.value)) .texts <- dQuote(.value, FALSE)
  else next
  .lines <- c(.lines, paste(c(.name, .texts), collapse = "\\t"))
}
writeLines(.lines, "left.tsv")
"""


def run_python(name, code, page, line, namespace):
    """Run a peer's block; returns why it could not be run, or an empty text."""
    peer = PEERS[name]
    if find_spec(peer.module) is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its warnings are its own
            pages.run_block("python", code, page, line, namespace)
        return ""
    python = interpreter(peer.environment) if peer.environment else None
    if python is None:
        return f"{name} cannot be imported (make test-peers has environments for other programs)"
    given, script, left = (Path(file).resolve() for file in ("given.npz", "block.py", "left.npz"))
    apart.write(given, namespace)
    script.write_text(code, encoding="utf-8")
    _run([python, "-P", apart.__file__, given, script, left], f"{page.name}, line {line}")
    namespace.update(apart.read(left))
    return ""


def run_r(package, code, page, line, namespace):
    """The same for a block of R, which finds files of the page but not its namespace."""
    command = shutil.which("Rscript")
    if command is None:
        return f"{package} needs R"
    if not _has_package(command, package):
        return f"R lacks {package}"
    script = Path("block.R")
    script.write_text(code + LEAVE, encoding="utf-8")
    _run([command, "--vanilla", script], f"{page.name}, line {line}")
    for row in Path("left.tsv").read_text(encoding="utf-8").splitlines():
        name, *values = row.split("\t")
        texts = values[0].startswith('"')
        vector = [value.strip('"') if texts else float(value) for value in values]
        several = vector if texts else np.array(vector)
        namespace[name.replace(".", "_")] = several if len(vector) > 1 else vector[0]
    return ""


@cache
def _has_package(command, package):
    asked = [
        command,
        "--vanilla",
        "-e",
        f'quit(status = !requireNamespace("{package}", quietly = TRUE))',
    ]
    return subprocess.run(asked, capture_output=True).returncode == 0


def _run(words, where):
    # Another interpreter keeps to its own packages.
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([*map(str, words)], env=own, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{where}\n{done.stdout}\n{done.stderr}"
