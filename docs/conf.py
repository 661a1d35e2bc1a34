"""Sphinx settings. `make docs` builds with warnings as errors."""

import bestk

project = "bestk"
author = "bestk developers"
copyright = "2026, bestk developers"
release = version = bestk.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_title = f"bestk {release}"
