"""Every example of the gallery runs to its end, proves what it says, and leaves no file behind."""

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# What an example must have printed: the proven facts that its text is about.
FACTS = {
    "breast_cancer": ["best 5:    mean perimeter, mean concave points, worst radius"],
    "clinical_table": [
        "'limited_yes']",  # one level without the others
        "{'sparseridge__k': 4} ['chronic', 'incentive', 'most_paid', 'limited']",
        "100% of the fits are proven optimal",
        "honest on average: True",
    ],
    "control_inputs": [
        "v' = -1.459 x^3",  # without the current
        "as good up to rounding",  # with a constant one
        "v' = -1.002 x - 0.2998 v + 0.5002 u - 0.2002 x u - 0.798 x^3",
        "['20.0', '20.0', '20.0', '20.0']",
        "error of the prediction: 0.1%",
    ],
    "cross_validation": ["100% of the fits are proven optimal", "one-se  k = 6", "Proven:"],
    "diabetes_interactions": ["all sizes proven: True", "BIC chooses k = 7"],
    "digits": ["nonnegative  squares", "10 of 10 proven"],
    "governing_equations": ["60 units: 3 of 3 right", "terms per equation: [2, 2, 3]"],
    "lasso_and_best_subset": [
        "the lasso takes more: True",
        "much noise: lasso before best subset: True",
        "little noise: best subset before lasso: True",
        "['x6', 'x12', 'x18', 'x24']",
        "proven best       ['x0', 'x1']",
    ],
    "longley": ["bic: k = 4, GNP, UNEMP, ARMED, YEAR"],
    "open_gap": [
        "the same model: True",
        "81 terms: optimal",
        "k = 4: optimal",
        "k = 5: conditional",
        "proven: False, proven in the box: True",
        "gap not larger: True",
    ],
    "pde": ["8 of 19 thresholds give the same equation", "optimal, gap 0, R² 0.999994"],
    "schools": ["Proven:", "any five         12528.1415  0.8616  0.0  optimal"],
    "spectra": [
        "lower bound  0\n",  # raw absorbances
        "bounds=auto  conditional",
        "bounds=None  optimal",
        "one-se: k = 5, alpha = 3",
        "100% of the fits are proven optimal",
        "alpha 0     node limit  gap 100%",
        "PLS before the others: True",
        "within 5% of each other: True",
        "1942 nm: 1942-1944",
        "models within 2%, complete: True",
        "in all of them: ['1942 nm']",
        "optimal, 2.8% above",
        "one-se: k = 4, alpha = 0",
        "filters within 5% of PLS: True",
        "filters 1 nm off: 1.31",
        "4 models, complete: True",
        "in all of them: []",
        "20 of 20 resamples searched, 20 proven optimal",
        "Verified, rounding accounted for",
    ],
    "time_limit": ["stopped by the callback", "optimal: gap", "same features: True"],
}


def test_all_examples_are_here():
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"demo"}
    assert scripts == set(FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_example(name, tmp_path, monkeypatch, capsys):
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figures = []

    def show():
        figures.extend(plt.get_fignums())
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()  # a picture that cannot be drawn fails here

    monkeypatch.setattr(plt, "show", show)
    monkeypatch.chdir(tmp_path)
    try:
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    finally:
        plt.close("all")
    printed = capsys.readouterr().out
    for fact in FACTS[name]:
        assert fact in printed
    assert figures
    assert not list(tmp_path.iterdir())


def test_the_demo_finds_the_lorenz_equations(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "demo.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(r"x' = -9\.99\d x \+ 9\.99\d y +x' = -10 x \+ 10 y", printed)
    assert "Every equation is proven the best of its size." in printed
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
