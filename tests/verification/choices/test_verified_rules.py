"""Cells under rules against all sets of groups, tried one by one."""

import numpy as np
from helpers.choice_prover import FREE, IN, OUT, enumerated, make_asked
from helpers.seeds import seeds

from bestk.verification.choices.rules import close, list_choices, root_cell, rules_of


def cell_of(seed):
    """(question, rules, a random cell inside the root)"""
    asked, rng = make_asked(seed, constraints=False), np.random.default_rng(seed)
    certificate = enumerated(asked, (), np.zeros(asked.X.shape[1]))
    cell = root_cell(certificate)
    assert np.array_equal(cell, asked.root())
    free = rng.permutation(np.flatnonzero(cell == FREE))[: rng.integers(0, 3)]
    cell[free] = rng.choice([IN, OUT], len(free))
    return asked, rules_of(certificate), cell


def as_sets(choices):
    return {frozenset(Z) for Z in choices}


@seeds(600, chunk=100)
def test_closing_a_cell_loses_no_choice(seed):
    asked, rules, cell = cell_of(seed)
    before, closed = as_sets(asked.choices(cell)), cell.copy()
    if close(rules, closed):
        assert as_sets(asked.choices(closed)) == before
        again = closed.copy()
        assert close(rules, again)
        assert np.array_equal(again, closed)
        decided = cell != FREE
        assert np.array_equal(closed[decided], cell[decided])
    else:
        assert not before


@seeds(600, chunk=100)
def test_listed_choices_are_those_that_no_other_contains(seed):
    asked, rules, cell = cell_of(seed)
    expected = as_sets(asked.choices(cell))
    if not close(rules, cell):
        return
    chosen, count, _ = list_choices(rules, cell, 10_000, 100_000)
    inside = np.flatnonzero(cell == IN).tolist()
    found = [frozenset([*inside, *(g for g in row.tolist() if g >= 0)]) for row in chosen]
    assert len(found) == count == len(set(found))
    assert set(found) <= expected
    assert all(any(other >= Z for other in found) for Z in expected)


def test_a_limit_on_choices():
    asked = make_asked(0, constraints=False)
    _, rules, cell = cell_of(0)
    assert asked.structure.n_groups > 1
    assert list_choices(rules, cell, 0, 100)[1] <= 0
    assert list_choices(rules, cell, 100, 0)[1] == -1
