"""Sphinx settings. `make docs` builds with warnings as errors."""

from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder

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
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",  # formulas without a network
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "auto_examples/*.py", "auto_examples/*.ipynb"]

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
highlight_language = "none"  # blocks that name no language are outputs

autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = False
napoleon_custom_sections = [("Attributes", "params_style")]  # a list, as parameters are
napoleon_use_param = False  # types are prose here: their words are no names to link
napoleon_use_rtype = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"demo\.py$",
    "within_subsection_order": ExplicitOrder(
        [
            "diabetes_interactions.py",
            "breast_cancer.py",
            "longley.py",
            "schools.py",
            "cross_validation.py",
            "clinical_table.py",
            "lasso_and_best_subset.py",
            "digits.py",
            "spectra.py",
            "time_limit.py",
            "open_gap.py",
            "governing_equations.py",
            "control_inputs.py",
            "pde.py",
            "*",  # an example that is not named here comes last
        ]
    ),
    "abort_on_example_error": True,
    "doc_module": ("bestk",),
    "backreferences_dir": None,
    "reference_url": {"bestk": None},
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "show_signature": False,
    "write_computation_times": False,
}

html_theme = "furo"
pygments_dark_style = "a11y-dark"  # as a11y-light, the theme's light one
html_title = f"bestk {release}"
html_static_path = ["_static"]
html_css_files = ["bestk.css"]
templates_path = ["_templates"]
html_sidebars = {
    "**": [  # those of the theme, and versions
        "sidebar/brand.html",
        "sidebar/search.html",
        "versions.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#5fb7ee", "color-brand-content": "#5fb7ee"},
}


def _write_sample_report(app, exception):
    """The report that the quickstart links to, made by the version that is documented."""
    if exception is None and app.builder.name == "html":
        from sklearn.datasets import load_diabetes

        X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        path = bestk.solve_path(X, y, ks=range(1, 9), fit_intercept=True)
        options = {"title": "Diabetes: the best models", "target": "progression"}
        path.to_html(Path(app.outdir) / "report.html", criterion="bic", X=X, y=y, **options)


def setup(app):
    app.connect("build-finished", _write_sample_report)
