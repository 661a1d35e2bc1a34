"""The study of PySINDy's own tests: its archive, its two runs, its explanations and its page."""

import io
import json
import os
import subprocess
import sys
import tarfile

import numpy as np
import pytest

from benchmarks.harness import rows
from benchmarks.harness.machine import ROOT
from benchmarks.harness.study import RESULTS
from benchmarks.pysindy_tests import report
from benchmarks.pysindy_tests.explanations import EXPLANATIONS, Explanation, Failure, explain
from benchmarks.pysindy_tests.rows import Row, paired
from benchmarks.pysindy_tests.sources import unpack
from benchmarks.pysindy_tests.told import LIMIT

KEPT = RESULTS / "pysindy_tests.csv"


def row(test="test/test_a.py::test_b[c]", uses="STLSQ", before="passed", after="passed", reason=""):
    return Row(
        test=test, uses=uses, before=before, after=after, equations=3, proven=2, reason=reason
    )


# The archive -----------------------------------------------------------------------------------


@pytest.fixture
def archive(tmp_path):
    """Makes an archive of files with their contents, or of links with None."""

    def make(files):
        path = tmp_path / "pysindy-0.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                if content is None:
                    member.type, member.linkname = tarfile.SYMTYPE, "/etc/hostname"
                    tar.addfile(member)
                else:
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        return path

    return make


def test_only_tests_and_settings_are_unpacked(archive, tmp_path):
    files = {
        "p-0/test/conftest.py": b"# a",
        "p-0/test/utils/test_x.py": b"# b",
        "p-0/test/link.py": None,
        "p-0/pyproject.toml": b"# c",
        "p-0/docs/pyproject.toml": b"# d",
        "p-0/pysindy/test/e.py": b"# e",
    }
    folder = tmp_path / "out"
    unpack(archive(files), folder)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {"test/conftest.py", "test/utils/test_x.py", "pyproject.toml"}
    assert (folder / "test" / "utils" / "test_x.py").read_bytes() == b"# b"


def test_an_archive_that_leads_out_of_its_folder_is_refused(archive, tmp_path):
    with pytest.raises(ValueError, match="leads out of its folder"):
        unpack(archive({"p-0/test/../../evil.py": b"# x"}), tmp_path / "out")
    assert not (tmp_path / "evil.py").exists()


# The runs --------------------------------------------------------------------------------------


def test_what_became_of_each_test_is_recorded(tmp_path):
    (tmp_path / "test_x.py").write_text(
        "import pytest\n"
        "def test_good(): pass\n"
        "def test_bad(): raise ValueError('no\\nmore')\n"
        "@pytest.mark.skip\n"
        "def test_left_out(): pass\n"
        "@pytest.fixture\n"
        "def late(): yield; raise KeyError('late')\n"
        "def test_ends_badly(late): pass\n"
    )
    script = (
        "import json, pytest; from benchmarks.pysindy_tests.pytest_run import Recorder\n"
        "recorder = Recorder(None)\n"
        "pytest.main(['-q', '-p', 'no:cacheprovider', '-c', 'none.ini'], plugins=[recorder])\n"
        "print(); print(json.dumps(recorder.tests))"
    )
    (tmp_path / "none.ini").write_text("[pytest]\n")
    words = [sys.executable, "-c", script]
    own = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=own, capture_output=True, text=True, check=True)
    found = {
        name.split("::")[1]: (entry["outcome"], entry["reason"])
        for name, entry in json.loads(done.stdout.splitlines()[-1]).items()
    }
    assert found == {
        "test_good": ("passed", ""),
        "test_bad": ("failed", "ValueError: no"),
        "test_left_out": ("skipped", ""),
        "test_ends_badly": ("failed", "KeyError: 'late'"),
    }


def test_runs_are_paired_by_order():
    before = [
        {"test": "a.py::test_x[STLSQ]", "outcome": "passed", "reason": ""},
        {"test": "a.py::test_y", "outcome": "failed", "reason": "Before: 1"},
    ]
    extra = {"uses": ["STLSQ", "default"], "equations": 3, "proven": 2}
    after = [
        {"test": "a.py::test_x[OKRidge]", "outcome": "failed", "reason": "After: 2", **extra},
        {"test": "a.py::test_y", "outcome": "failed", "reason": "", **extra},
    ]
    first, second = paired(before, after)
    assert (first.test, first.uses, first.reason) == (
        "a.py::test_x[STLSQ]",
        "STLSQ default",
        "After: 2",
    )
    assert second.reason == "Before: 1"
    assert first.is_lost
    assert not second.is_lost
    with pytest.raises(ValueError, match="do not have the same tests"):
        list(paired(before, after[::-1]))
    with pytest.raises(ValueError, match="do not have the same tests"):
        list(paired(before, after[:1]))


@pytest.fixture
def stand_ins(monkeypatch):
    """OKRidge in the place of PySINDy's optimizers, for one test."""
    ps = pytest.importorskip("pysindy")
    # PySINDy imports MIOSR only where Gurobi is; here a class with its parameters will do.
    monkeypatch.setattr(ps.optimizers, "MIOSR", PlainMIOSR, raising=False)
    for module, names in ((ps._core, ["STLSQ"]), (ps, ["STLSQ"]), (ps.optimizers, ["STLSQ"])):
        for name in names:
            monkeypatch.setattr(module, name, getattr(module, name))  # to be put back
    monkeypatch.setattr(ps, "MIOSR", PlainMIOSR, raising=False)
    from benchmarks.pysindy_tests.stand_ins import StandIns
    from bestk.sindy import OKRidge

    monkeypatch.setattr(OKRidge, "fit", OKRidge.fit)
    watched = StandIns()
    watched.install()
    return watched


class PlainMIOSR:
    def __init__(self, target_sparsity=5, alpha=0.01, constraint_lhs=None):
        pass


def test_parameters_that_both_have_are_passed_on(stand_ins):
    import pysindy as ps

    from bestk.sindy import OKRidge

    stand_ins.begin("test_anything")
    optimizer = ps.STLSQ(0.3, alpha=2.0, max_iter=5, unbias=True)
    assert type(optimizer) is OKRidge
    expected = {"alpha": 2.0, "unbias": True, "time_limit": LIMIT}
    assert optimizer.get_params() == OKRidge(**expected).get_params()
    limits = np.ones((1, 6))
    optimizer = ps.optimizers.MIOSR(7, constraint_lhs=limits)
    assert (optimizer.k, optimizer.total_k, optimizer.alpha) == (7, 7, 0.0)
    assert optimizer.constraint_lhs is limits
    assert stand_ins.uses == {"STLSQ", "MIOSR"}
    with pytest.raises(TypeError):
        ps.STLSQ(nonsense=1)
    stand_ins.begin("test_diffusion_pde")
    assert ps.STLSQ(threshold=0.2).k == 1


def test_a_test_knows_what_it_uses(stand_ins):
    import pysindy as ps

    stand_ins.begin("test_a")
    X = np.random.default_rng(0).standard_normal((30, 4))
    ps.SINDy(feature_library=ps.PolynomialLibrary(degree=1)).fit(X[:, :2], t=0.1)
    assert (stand_ins.uses, stand_ins.equations, stand_ins.proven) == ({"default"}, 2, 2)
    made = ps.STLSQ()
    stand_ins.begin("test_b", [X, {}, (made, {})])
    assert stand_ins.uses == {"STLSQ"}
    stand_ins.begin("test_c", [ps.optimizers.MIOSR, ps.STLSQ])
    assert (stand_ins.uses, stand_ins.equations) == ({"MIOSR", "STLSQ"}, 0)
    stand_ins.begin("test_d", [X])
    assert stand_ins.uses == set()


# Explanations ----------------------------------------------------------------------------------

KNOWN = (
    Explanation("A", "Because of a.", (Failure("::test_a", "no a"), Failure("::test_z", "no z"))),
    Explanation("B", "Because of b.", (Failure("::test_b[1]", "no b"),)),
)


def test_lost_tests_are_matched_with_what_is_known():
    lost = {"before": "passed", "after": "failed"}
    a = row("x.py::test_a[2]", reason="Error: no a here", **lost)
    b = row("x.py::test_b[1]", reason="no b", **lost)
    other_error = row("x.py::test_b[1]", reason="something else", **lost)
    other_test = row("x.py::test_b[2]", reason="no b", **lost)
    fails_anyway = row("x.py::test_z", before="failed", after="failed", reason="no z")
    found = explain([a, b, other_error, other_test, fails_anyway, row()], KNOWN)
    assert found.rows == {"A": [a], "B": [b]}
    assert found.unexplained == [other_error, other_test]
    assert found.outdated == [Failure("::test_z", "no z")]


@pytest.mark.skipif(not KEPT.exists(), reason="not measured yet")
def test_what_was_measured_is_explained_and_told():
    found = explain(rows.read(KEPT, Row))
    assert found.unexplained == []
    assert found.outdated == []
    assert all(found.rows.values())
    ours = [row for row in rows.read(KEPT, Row) if row.is_ours]
    passed = sum(row.after == "passed" for row in ours)
    words = f"{passed} of the {len(ours)} tests"
    assert words in (ROOT / "docs" / "coming_from" / "pysindy.md").read_text()


# The page --------------------------------------------------------------------------------------


def page(measured, monkeypatch):
    monkeypatch.setattr(report, "EXPLANATIONS", KNOWN)
    monkeypatch.setattr(report, "explain", lambda lost: explain(lost, KNOWN))
    return "\n".join([*report.findings(measured), *report.tables(measured)])


def test_page_of_all_that_can_happen(monkeypatch):
    measured = [
        row(),
        row(uses="default MIOSR"),
        row("x.py::test_a", "default", after="failed", reason="no a"),
        row("x.py::test_c", "STLSQ", after="failed", reason="a | b"),
        row("x.py::test_d", "MIOSR", before="failed", reason="once"),
        row("x.py::test_e", "", after="skipped"),
        row("x.py::test_f", "", before="skipped", after="skipped"),
    ]
    text = page(measured, monkeypatch)
    assert "5 of 7 tests pass, 1 fail and 1 are skipped." in text
    assert "takes part in 5 tests. 4 of them pass as they are, and 2 of these also" in text
    assert "2 do not: 1 are unexplained." in text
    assert "fitted to 15 equations in these tests. 10 were proven" in text
    assert "ended the others, in `test/test_a.py::test_b[c]`, " in text
    assert "Fail as they are and pass with OKRidge: `x.py::test_d`." in text
    assert "Change although OKRidge takes no part in them: `x.py::test_e`." in text
    assert "no test `::test_z` fails with `no z`" in text
    assert "| SINDy without an optimizer | 1 | 1 | 0 |" in text
    assert "| tests that name STLSQ | 2 | 2 | 1 |" in text
    assert "| tests that name MIOSR | 2 | 1 | 1 |" in text
    assert "| all of these | 5 | 4 | 2 |" in text
    assert "| nowhere | 2 | 1 | 0 |" in text
    assert "**A** (1). Because of a." in text
    assert "**B**" not in text
    unexplained = text[text.index("## Unexplained") :]
    assert "| `x.py::test_c` | `a \\| b` |" in unexplained
    assert "`x.py::test_e`" in unexplained
    assert "| `x.py::test_d` | `once` |" in text[text.index("## Fail as they are") :]


def test_page_without_anything_to_complain_about(monkeypatch):
    known = [
        row(f"x.py{failure.test}", after="failed", reason=failure.words)
        for one in KNOWN
        for failure in one.failures
    ]
    text = page([row(), *known], monkeypatch)
    assert "3 do not: all explained below." in text
    for words in ("Unexplained", "Outdated", "Fail as they are", "Change although"):
        assert words not in text


def test_titles_of_explanations_are_distinct():
    assert len({one.title for one in EXPLANATIONS}) == len(EXPLANATIONS)
