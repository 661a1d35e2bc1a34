"""What a notebook shows, asked of a real kernel: kinds of output, one display that is rewritten."""

import asyncio

import pytest

pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
# Warnings of Jupyter's own packages are not ours.
pytestmark = pytest.mark.filterwarnings("default")

SETUP = """
import time
import bestk
from sklearn.datasets import load_diabetes

X, y = load_diabetes(return_X_y=True, as_frame=True)
A, b, _ = bestk.datasets.make_synthetic(150, 100, k=12, rho=0.9)
slow = {"progress": True, "node_limit": 3, "callback": lambda snapshot: time.sleep(0.4)}
result = bestk.solve(X, y, k=3, fit_intercept=True)
"""
SHOWN = {
    "result": "result",
    "path": "bestk.solve_path(X, y, ks=[1, 2], fit_intercept=True)",
    "cross-validation": "bestk.SparseRidgeCV(ks=[1, 2]).fit(X, y).cross_validation_",
    "list": "bestk.near_optimal(X, y, k=3, fit_intercept=True, within=0.1)",
    "unfinished list": "bestk.near_optimal(A, b, k=9, within=0.5, node_limit=1)",
    "stability": "bestk.stability(X, y, k=2, n_resamples=5, random_state=0)",
    "verification": "result.certificate.verify(X, y)",
    "formula": "result.to_latex()",
    "page": "result.to_html('report.html')",
    "picture": "bestk.plots.coefficients(bestk.solve_path(X, y, ks=[1, 2, 3]))",
    "estimator": "bestk.SparseRidge(k=3).fit(X, y)",
    "live path": "none = bestk.solve_path(A, b, ks=[7, 8, 9], alpha=1e-3, **slow)",
    "live list": "none = bestk.near_optimal(A, b, k=9, alpha=1e-3, **slow)",
    "interrupted": "bestk.solve(A, b, k=12, alpha=1e-3, progress=True)",
    "still there": "result.names",
    "equations": """
from bestk.datasets import simulate
from bestk.sindy import discover

found = discover(simulate("lorenz", 2.0), 0.002, degree=2, names=["x", "y", "z"], ks=[2, 3])
found""",
    "picture of equations": "found.plot()",
}


class Client(nbclient.NotebookClient):
    """Keeps the kinds of all messages, and presses the button that interrupts the kernel."""

    def process_message(self, message, cell, cell_index):
        cell.metadata.setdefault("messages", []).append(message["msg_type"])
        pages = cell.metadata.setdefault("pages", [])
        if message["msg_type"] in ("display_data", "update_display_data"):
            pages.append(message["content"]["data"].get("text/html", ""))
            if cell.metadata.get("interrupt") and "proven bound" in pages[-1]:
                cell.metadata.interrupt = False
                self.pressed = asyncio.ensure_future(self.km.interrupt_kernel())
        return super().process_message(message, cell, cell_index)


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The cells of a notebook that has been executed, by name."""
    cells = {name: nbformat.v4.new_code_cell(code) for name, code in SHOWN.items()}
    cells["interrupted"].metadata["interrupt"] = True
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(SETUP), *cells.values()])
    folder = tmp_path_factory.mktemp("notebook")
    resources = {"metadata": {"path": str(folder)}}
    Client(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    assert (folder / "report.html").exists()
    return cells


def only_output(cell):
    (output,) = cell.outputs
    return output.data


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("result", "Proven optimal."),
        ("path", "Every size is proven optimal."),
        ("cross-validation", "Every fit is proven optimal."),
        ("list", "Proven complete."),
        ("unfinished list", "The list may be incomplete (node limit)."),
        ("stability", "Every model is proven optimal."),
        ("equations", "Every equation is proven the best of its size."),
    ],
)
def test_results_are_tables_and_their_text_is_what_print_shows(cells, name, words):
    data = only_output(cells[name])
    assert words in data["text/html"]
    assert "<table>" in data["text/html"]
    assert "array(" not in data["text/plain"]
    assert "\n" in data["text/plain"]


def test_an_unfinished_list_does_not_say_what_all_models_have_in_common(cells):
    data = only_output(cells["unfinished list"])
    assert "in every model found" in data["text/html"]
    assert "necessary" not in data["text/plain"]
    assert "useless" not in data["text/plain"]


def test_a_verification_is_shown_as_print_shows_it(cells):
    assert only_output(cells["verification"])["text/plain"].startswith("Verified, rounding")


def test_formulas_are_set(cells):
    assert only_output(cells["formula"])["text/latex"].startswith(r"$\displaystyle y = ")


def test_a_page_is_not_shown_as_text(cells):
    data = only_output(cells["page"])
    assert data["text/plain"].endswith("characters, written to report.html>")
    assert "text/html" not in data


def test_estimators_have_the_box_of_scikit_learn(cells):
    assert "sk-estimator" in only_output(cells["estimator"])["text/html"]


@pytest.mark.parametrize("name", ["picture", "picture of equations"])
def test_pictures_come_once(cells, name):
    assert sum("image/png" in output.data for output in cells[name].outputs) == 1


@pytest.mark.parametrize("name", ["live path", "live list"])
def test_searches_share_one_output_that_is_rewritten_and_cleared(cells, name):
    cell = cells[name]
    assert only_output(cell)["text/html"] == ""
    assert cell.metadata.messages.count("display_data") == 1
    assert cell.metadata.messages.count("update_display_data") > 2
    assert any("proven bound" in page for page in cell.metadata.pages)


def test_an_interrupt_gives_the_best_model_and_a_bound(cells):
    display, result = cells["interrupted"].outputs
    assert display.data["text/html"] == ""
    assert "Stopped early (interrupted)" in result.data["text/html"]
    assert "lower bound" in result.data["text/plain"]
    assert only_output(cells["still there"])["text/plain"] == "['bmi', 'bp', 's5']"
