"""Print the oldest versions that pyproject.toml allows, as requirements for pip."""

import re
import tomllib
from pathlib import Path

# What the tests use.
EXTRAS = ("sindy", "plots", "io", "dask", "sympy")
TOOLS = ("hypothesis", "pytest", "pytest-xdist", "polars", "statsmodels")
# Of packages that are not ours to choose: later ones warn about those above, and tests allow no
# warnings.
BESIDE = ("click==8.2.1", "pyparsing==3.1.4")

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))
project = project["project"]
extras = project["optional-dependencies"]
wanted = [*project["dependencies"], *(text for extra in EXTRAS for text in extras[extra])]
wanted += [text for text in extras["dev"] if re.split(r"[\[<>=]", text)[0] in TOOLS]
print("\n".join([*(text.replace(">=", "==") for text in wanted), *BESIDE]))
