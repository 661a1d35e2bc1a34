"""Checkpoints that no run has left: what would reach compiled loops is refused, and named."""

import json
import re

import fuzz_files
import numpy as np
import pytest

import bestk

UNITS, BATCHES, BOX, GROUPS, LIST, N_BEST = fuzz_files.CHECKPOINTS


def forged(kind, path, changes):
    """The checkpoint of a run with other values; names are those in the file, or in its header."""
    entries = fuzz_files.entries_of(fuzz_files.valid(kind))
    header = json.loads(str(entries["checkpoint"]))
    for name, change in changes.items():
        part, _, own = name.partition(".")
        if name in entries:
            array = entries[name].copy()
            entries[name] = change(array) if callable(change) else np.full_like(array, change)
        elif part in header["parts"]:
            assert own in header["parts"][part]
            header["parts"][part][own] = change
        else:
            assert own in header[part]
            header[part][own] = change
    entries["checkpoint"] = np.array(json.dumps(header))
    path.write_bytes(fuzz_files.archive_of(entries))
    return path


def go_on(kind, path):
    if kind in (LIST, N_BEST):
        return fuzz_files.asked(kind, checkpoint=path)
    return bestk.resume(path, *fuzz_files.harder())


def last(value):
    def change(array):
        array.reshape(-1)[-1] = value
        return array

    return change


def column(number, value):
    def change(array):
        array[:, number] = value
        return array

    return change


FORGED = [
    (UNITS, "nodes.nonzeros", 10**6),
    (UNITS, "nodes.nonzeros", -1),
    (UNITS, "nodes.states", 7),
    (UNITS, "nodes.states", 1),
    (UNITS, "nodes.states", lambda array: array[:, :-1]),
    (UNITS, "nodes.ends", 5),
    (UNITS, "nodes.values", np.nan),
    (UNITS, "nodes.plain", column(0, np.nan)),
    (UNITS, "nodes.plain", column(1, 1e6)),
    (UNITS, "nodes.plain", column(1, 0.5)),
    (UNITS, "nodes.plain", column(4, 99)),
    (UNITS, "flight.terms", column(2, 1e12)),
    (UNITS, "flight.plain", column(4, -1)),
    (UNITS, "flight.batches", 3),
    (UNITS, "flight.states", 2),
    (UNITS, "flight.charges", -1.0),
    (UNITS, "flight.shares", lambda array: array[1:]),
    (UNITS, "flight.splits", 2**40),
    (UNITS, "tree.features", last(10**9)),
    (UNITS, "tree.features", lambda array: array[::-1]),
    (UNITS, "tree.support", lambda array: np.arange(6)),
    (UNITS, "tree.support", last(10**9)),
    (UNITS, "tree.inside", lambda array: np.array([99])),
    (UNITS, "tree.root_number", 10**6),
    (UNITS, "tree.n_nodes", -1),
    (UNITS, "tree.proven", float("nan")),
    (UNITS, "tree.is_open", 1),
    (UNITS, "bounder.first", lambda array: array[1:]),
    (UNITS, "bounder.split", np.inf),
    (UNITS, "bounder.split_number", 10**6),
    (UNITS, "bounder.bounding", "much"),
    (UNITS, "recorder.tree.parent", last(10**6)),
    (UNITS, "recorder.tree.split", last(10**6)),
    (UNITS, "recorder.tree.dual_index", last(10**6)),
    (UNITS, "recorder.tree.dual_ends", last(10**6)),
    (UNITS, "recorder.tree.feature", lambda array: array.astype(float)),
    (UNITS, "watch.seconds", -1.0),
    (UNITS, "watch.history", lambda array: array[:, :3]),
    (UNITS, "closing.saved", 5),
    (UNITS, "question.k", -1),
    (UNITS, "question.include", ["x1"]),
    (UNITS, "advanced.fixing", {}),
    (UNITS, "options.n_threads", "two"),
    (BATCHES, "nodes.nonzeros", 24),
    (BOX, "nodes.states", lambda array: np.full((2, 24), 3, dtype=np.int8)),
    (GROUPS, "nodes.states", 5),
    (GROUPS, "nodes.states", 2),
    (GROUPS, "nodes.nonzeros", 10**6),
    (GROUPS, "nodes.multipliers", lambda array: array[:, :0]),
    (GROUPS, "nodes.plain", column(3, 99)),
    (GROUPS, "nodes.splits", 10**6),
    (GROUPS, "tree.chosen", lambda array: np.array([0, 1, 2])),
    (GROUPS, "tree.chosen", last(99)),
    (GROUPS, "tree.seen", lambda array: array[:, 1:]),
    (GROUPS, "record.numbers", last(10**6)),
    (GROUPS, "record.broken", lambda array: np.array([[0, 99]])),
    (GROUPS, "structure.structure.groups", last(99)),
    (GROUPS, "structure.structure.sides", last(99)),
    (GROUPS, "structure.structure.matrix", np.nan),
    (LIST, "list.first", last(10**6)),
    (LIST, "list.members", lambda array: np.array([[0, 1, 99]])),
    (LIST, "list.found", lambda array: np.array([[0, 1, 2, 3, 4]])),
    (LIST, "list.size", 99),
    (LIST, "list.name", "none"),
    (LIST, "nodes.nonzeros", 10**6),
    (N_BEST, "nodes.states", 9),
    (N_BEST, "list.members", 10**6),
]


@pytest.mark.parametrize(("kind", "name", "change"), FORGED)
def test_what_no_run_has_left_is_refused_and_named(kind, name, change, tmp_path):
    path = forged(kind, tmp_path / "run.ckpt", {name: change})
    with pytest.raises(ValueError, match=r"run\.ckpt is a broken checkpoint: .*; solve again") as e:
        go_on(kind, path)
    assert re.sub(r"^(structure|question|advanced|options)\.", "", name) in str(e.value)


@pytest.mark.parametrize("kind", fuzz_files.CHECKPOINTS)
def test_what_runs_have_left_is_not(kind, tmp_path):
    found = go_on(kind, forged(kind, tmp_path / "run.ckpt", {}))
    best = getattr(found, "best", found)
    assert best.is_proven
    assert best.objective == pytest.approx(fuzz_files.optimum(kind), rel=1e-12)
    assert found.certificate.verify(*fuzz_files.harder())


@pytest.mark.parametrize("kind", [UNITS, BATCHES, BOX, LIST, N_BEST])
def test_nodes_with_nothing_to_decide_are_closed(kind, tmp_path):
    """Compiled loops would branch on no feature at all."""
    found = go_on(kind, forged(kind, tmp_path / "run.ckpt", {"nodes.states": 2}))
    if found.certificate.verify(*fuzz_files.harder()):  # which tries all that such nodes leave out
        best = getattr(found, "best", found)
        assert best.lower_bound <= fuzz_files.optimum(kind) * (1 + 1e-9)


@pytest.mark.parametrize("kind", [UNITS, BATCHES, GROUPS])
def test_a_forged_bound_is_believed_but_its_certificate_is_not(kind, tmp_path):
    """A run trusts its checkpoint; only the verifier can tell."""
    claims = {"tree.dropped": float("inf"), "nodes.plain": column(0, 2.0)}
    claims["tree.chosen" if kind == GROUPS else "tree.support"] = lambda array: array[:1]
    if kind == UNITS:
        claims["flight.plain"] = column(0, 2.0)
    result = go_on(kind, forged(kind, tmp_path / "run.ckpt", claims))
    assert result.is_proven  # which it only claims
    assert result.objective > 1.1 * fuzz_files.optimum(kind)
    verdict = result.certificate.verify(*fuzz_files.harder())
    assert not verdict
    assert any("lower bound" in failure for failure in verdict.failures), verdict.failures
