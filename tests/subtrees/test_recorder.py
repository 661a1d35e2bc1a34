"""The record of a proof: single nodes and outcomes of units, end to end."""

import numpy as np
import pytest
from helpers.checks import assert_same

from bestk.results.certificate import ProofTree
from bestk.subtrees.recorder import Recorder
from bestk.subtrees.unit import BRANCHED, CLOSED, OPEN, PRUNED, Outcome, Sparse

FEATURES = np.array([3, 5, 8, 13, 21])


def sparse(rng, count, values=False):
    rows = [np.sort(rng.permutation(5)[: rng.integers(0, 4)]) for _ in range(count)]
    index = np.concatenate([np.zeros(0, int), *rows]).astype(np.int32)
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    numbers = rng.standard_normal(len(index)).astype(np.float32).astype(float)
    return Sparse(ends, index, numbers if values else np.zeros(0))


def outcome(rng, count, *, t=None):
    """Nodes of a unit: whatever they are, the record takes them as they come."""
    parent = np.array([-1, -1, *rng.integers(-1, 2, max(count - 2, 0))][:count], dtype=np.int32)
    return Outcome(
        parent=parent, feature=rng.integers(-1, 5, count).astype(np.int32),
        inside=rng.random(count) < 0.5,
        fate=rng.choice(np.array([PRUNED, BRANCHED, OPEN, CLOSED], dtype=np.int8), count),
        bounds=np.zeros(count), levels=np.zeros(count), proved=rng.random(count) < 0.7,
        duals=sparse(rng, count, values=True),
        fixed_in=sparse(rng, count), fixed_out=sparse(rng, count),
        open_nodes=np.zeros(0, dtype=np.int64), states=np.zeros((0, 5), dtype=np.int8), t=t,
        split_features=np.arange(5), hits=[], rounded=None, dropped=np.inf, multiplies=0.0,
        scanning=0.0, preparing=0.0,
    )  # fmt: skip


def add_one_by_one(recorder, unit, parent, split):
    """What `add_outcome` does, by means of `add`."""
    first = recorder.n_nodes
    for i in range(len(unit.parent)):
        rows = [part.row(i) for part in (unit.duals, unit.fixed_in, unit.fixed_out)]
        number = recorder.add(
            parent=parent if unit.parent[i] < 0 else first + int(unit.parent[i]),
            feature=-1 if unit.feature[i] < 0 else int(FEATURES[unit.feature[i]]),
            inside=bool(unit.inside[i]),
            split=split if unit.proved[i] else -1,
            dual=(FEATURES[unit.duals.features[rows[0]]], unit.duals.values[rows[0]]),
            fixed_in=FEATURES[unit.fixed_in.features[rows[1]]],
            fixed_out=FEATURES[unit.fixed_out.features[rows[2]]],
        )
        if unit.fate[i] == CLOSED:
            recorder.close_by_enumeration(number)
    return first


def filled(rng, add):
    """A record of single nodes and of units, the latter added by `add`."""
    recorder = Recorder(np.inf)
    for _ in range(3):
        recorder.add_split(FEATURES, rng.random(5))
    for _ in range(int(rng.integers(1, 6))):
        parent, split = int(rng.integers(0, recorder.n_nodes)), int(rng.integers(0, 3))
        if rng.random() < 0.4:
            recorder.add(parent=parent, feature=5, inside=True, split=split,
                         dual=(FEATURES[:2], np.array([0.5, 0.25])))  # fmt: skip
        else:
            add(recorder, outcome(rng, int(rng.integers(0, 8))), parent, split)
        if rng.random() < 0.3:
            recorder.close_by_enumeration(recorder.n_nodes - 1)
    return recorder


def add_at_once(recorder, unit, parent, split):
    return recorder.add_outcome(unit, parent, FEATURES, split)


@pytest.mark.parametrize("seed", range(40))
def test_a_unit_is_recorded_like_its_nodes_one_by_one(seed):
    at_once = filled(np.random.default_rng(seed), add_at_once)
    one_by_one = filled(np.random.default_rng(seed), add_one_by_one)
    assert at_once.n_nodes == one_by_one.n_nodes
    assert_same(at_once.tree(), one_by_one.tree())


@pytest.mark.parametrize("seed", range(20))
def test_numbers_of_nodes_are_their_rows(seed):
    rng = np.random.default_rng(seed)
    recorder = filled(rng, add_at_once)
    before = recorder.n_nodes
    unit = outcome(rng, 4)
    assert add_at_once(recorder, unit, 0, 1) == before
    tree = recorder.tree()
    assert len(tree.parent) == recorder.n_nodes == before + 4
    expected = np.where(unit.parent < 0, 0, unit.parent + before)
    np.testing.assert_array_equal(tree.parent[before:], expected)
    np.testing.assert_array_equal(tree.enumerated[before:], unit.fate == CLOSED)


@pytest.mark.parametrize("seed", range(20))
def test_a_record_survives_a_checkpoint(seed):
    rng = np.random.default_rng([seed, 2])
    recorder = filled(rng, add_at_once)
    back = Recorder(np.inf)
    back.restore(recorder.state(), 30)
    assert (back.n_nodes, len(back.splits)) == (recorder.n_nodes, len(recorder.splits))
    unit = outcome(rng, 5)
    for one in (recorder, back):  # both go on alike
        add_at_once(one, unit, 0, 2)
        one.close_by_enumeration(1 if one.n_nodes > 1 else 0)
    assert_same(back.tree(), recorder.tree())
    assert_same(back.proof(), recorder.proof())


def test_only_splits_in_use_are_part_of_the_proof():
    recorder = Recorder(np.inf)
    numbers = [recorder.add_split(FEATURES, np.full(5, float(i))) for i in range(4)]
    assert numbers == [0, 1, 2, 3]
    for split in (3, 1):
        recorder.add(parent=0, split=split, dual=(FEATURES[:1], np.ones(1)))
    tree, splits = recorder.proof()
    assert [float(split.t[0]) for split in splits] == [1.0, 3.0]
    assert tree.split.tolist() == [-1, 1, 0]


def test_a_new_start_forgets_what_came_after_its_root():
    rng = np.random.default_rng(0)
    recorder = Recorder(np.inf)
    root = recorder.add(parent=0, fixed_out=FEATURES[:1])
    recorder.close_by_enumeration(root)
    kept, nbytes = recorder.tree(), recorder.nbytes
    for _ in range(3):
        first = add_at_once(recorder, outcome(rng, 6), root, 0)
        recorder.close_by_enumeration(first + 2)
    recorder.forget_below(root)
    assert recorder.n_nodes == root + 1
    assert recorder.nbytes == nbytes
    assert recorder.enumerated == {root}
    assert_same(recorder.tree(), kept)
    assert add_at_once(recorder, outcome(rng, 2), root, 0) == root + 1


@pytest.mark.parametrize("seed", range(10))
def test_a_resumed_run_forgets_just_as_much(seed):
    """Its record is in one piece, which the root of the new start divides."""
    recorder = filled(np.random.default_rng([seed, 3]), add_at_once)
    for root in range(recorder.n_nodes):
        tree, back = recorder.tree(), Recorder(np.inf)
        back.restore(recorder.state(), 30)
        back.forget_below(root)
        assert back.n_nodes == root + 1
        kept = back.tree()
        for name in ("parent", "feature", "inside", "split", "enumerated"):
            np.testing.assert_array_equal(getattr(kept, name), getattr(tree, name)[: root + 1])
        for ends, *rows in (
            ("dual_ends", "dual_index", "dual_value"),
            ("in_ends", "in_index"),
            ("out_ends", "out_index"),
        ):
            np.testing.assert_array_equal(getattr(kept, ends), getattr(tree, ends)[: root + 1])
            for name in rows:
                part = getattr(tree, name)[: getattr(kept, ends)[-1]]
                np.testing.assert_array_equal(getattr(kept, name), part)
        assert back.add(parent=root) == root + 1


def test_beyond_its_limit_a_record_lets_go_of_everything():
    rng = np.random.default_rng(0)
    small = Recorder(20_000)
    split = small.add_split(FEATURES, np.ones(5))
    while small.enabled:
        before = small.nbytes
        number = add_at_once(small, outcome(rng, 50), 0, split)
        assert number >= 0
        assert small.nbytes > before or not small.enabled
    assert (small.n_nodes, small.nbytes, small.blocks, small.splits) == (0, 0, [], [])
    assert small.proof() is None
    assert add_at_once(small, outcome(rng, 3), 0, 0) == small.add(parent=0) == -1
    small.close_by_enumeration(5)
    assert small.enumerated == set()
    gone = Recorder(np.inf)
    gone.restore(small.state(), 30)
    assert not gone.enabled
    assert not Recorder(0.0).enabled


def test_dual_vectors_are_kept_in_single_precision_where_nothing_is_lost():
    for value, expected in ((0.5, np.float32), (0.1, np.float64)):
        recorder = Recorder(np.inf)
        recorder.add(parent=0, split=0, dual=(FEATURES[:1], np.array([value])))
        unit = outcome(np.random.default_rng(3), 4)
        unit = unit._replace(
            duals=unit.duals._replace(values=np.full_like(unit.duals.values, value))
        )
        add_at_once(recorder, unit, 0, 0)
        tree: ProofTree = recorder.tree()
        assert tree.dual_value.dtype == expected
        assert (tree.dual_value == value).all()


def test_bytes_of_units_are_counted():
    """At least those of the arrays that a certificate will have."""
    rng = np.random.default_rng(1)
    recorder = Recorder(np.inf)
    for _ in range(5):
        add_at_once(recorder, outcome(rng, 200), 0, 0)
    tree = recorder.tree()
    assert recorder.nbytes >= sum(getattr(tree, name).nbytes for name in vars(tree))
