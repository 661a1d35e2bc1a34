"""Structures as a whole: what can be met, against all choices of groups."""

import re
from itertools import chain, combinations

import numpy as np
import pytest
from helpers.seeds import seeds

from bestk import rules
from bestk.base.structure import Row, Structure
from bestk.structure.compose import (
    describe,
    possible,
    require_possible,
    structure_of,
    whole_groups,
)

NONE = np.zeros(0, dtype=np.intp)
KINDS = ("rule", "k", "include", "exclude", "free")


def choices(m):
    return chain.from_iterable(combinations(range(m), size) for size in range(m + 1))


def random_rules(rng, m):
    """Rules that contradict each other about half of the time."""
    made = []
    for _ in range(rng.integers(1, 6)):
        some = rng.choice(m, size=rng.integers(2, m + 1), replace=False).tolist()
        count = int(rng.integers(1, len(some) + 1))
        match rng.integers(5):
            case 0:
                made.append(rules.at_most(count - 1, some))
            case 1 | 2:
                made.append(rules.at_least(count, some))
            case 3:
                made.append(rules.implies(some[0], some[1:]))
            case 4:
                made.append(rules.implies(some[0], some[1:], any=True))
    return made


def random_question(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(2, 8))
    structure = structure_of(m, None, rules=random_rules(rng, m))
    order = rng.permutation(m)
    ends = np.sort(rng.integers(0, m // 2 + 1, size=3))
    parts = [np.sort(part).astype(np.intp) for part in np.split(order, ends)[:3]]
    return structure, int(rng.integers(m + 1)), *parts


def is_allowed(structure, Z, k, include, exclude, free, kept=None):
    """By the definition; ``kept`` are the rules that count, all of them by default."""
    Z = set(Z)
    broken = {structure.rows[i].rule for i in structure.broken(np.array(sorted(Z), dtype=np.intp))}
    return (
        not (broken if kept is None else broken & kept)
        and {*include, *free} <= Z
        and not Z & set(exclude)
        and len(Z - set(free)) <= k
    )


@seeds(600, chunk=100)
def test_what_is_possible_is_what_some_choice_satisfies(seed):
    structure, k, include, exclude, free = random_question(seed)
    m = structure.n_groups
    exists = any(is_allowed(structure, Z, k, include, exclude, free) for Z in choices(m))
    if exists:
        require_possible(structure, k, include, exclude, free)
        return
    with pytest.raises(ValueError, match=r"^no model satisfies: ") as caught:
        require_possible(structure, k, include, exclude, free)
    check_irreducible(structure, k, include, exclude, free, str(caught.value))


def check_irreducible(structure, k, include, exclude, free, message):
    """What a message names cannot be met; without any one of it, it can."""
    text = message.removeprefix("no model satisfies: ").removesuffix(
        "; leave out or change one of these"
    )
    named = re.findall(r'"([^"]*)"', text)
    text = re.sub(r'"[^"]*"(, )?', "", text)
    parts = [("rule", structure.words.index(words)) for words in named]
    parts += [("k", k) for _ in re.findall(r"k = \d+", text)]
    for kind in ("include", "exclude", "free"):
        for names in re.findall(rf"{kind} ((?:x\d+(?:, )?)+)", text):
            parts += [(kind, int(name)) for name in re.findall(r"x(\d+)", names)]
    assert len(parts) == len(set(parts))
    m = structure.n_groups

    def exists(some):
        of = {kind: {v for other, v in some if other == kind} for kind in KINDS}
        required = of["include"] | of["free"]
        for Z in choices(m):
            size = k + len(set(Z) & set(free)) if of["k"] else m  # free ones stay uncounted
            if is_allowed(structure, Z, size, required, of["exclude"], (), of["rule"]):
                return True
        return False

    assert not exists(parts), message
    for part in parts:
        assert exists([other for other in parts if other != part]), (message, part)


@seeds(200, chunk=100)
def test_a_search_that_ends_early_never_denies_what_is_possible(seed):
    structure, _, include, exclude, _ = random_question(seed)
    found = [
        possible(structure.rows, structure.n_groups, include, exclude, step_limit=limit)
        for limit in (0, 1, 2, 4, 8, 16, 1000)
    ]
    assert found[0]
    assert sorted(found, reverse=True) == found
    exists = any(
        is_allowed(structure, Z, structure.n_groups, include, exclude, ())
        for Z in choices(structure.n_groups)
    )
    assert found[-1] == exists


@pytest.mark.parametrize(
    ("made", "k", "include", "message"),
    [
        ([rules.at_least(3, ["a", "b", "c"])], 2, [], '"at least 3 of a, b, c", k = 2'),
        (
            [
                rules.exclusive("a", "b"),
                rules.at_most(3, ["a", "b", "c", "d"]),
                rules.implies("a", "b"),
            ],
            4,
            [0],
            '"at most 1 of a, b", "a only with b", include a',
        ),
        ([rules.at_most(1, ["c", "d"])], 2, [0, 1, 3], "k = 2, include a, b, d"),
        ([rules.at_most(0, ["d"])], 4, [0, 3], '"at most 0 of d", include d'),
    ],
)
def test_messages_name_what_contradicts_itself(made, k, include, message):
    structure = structure_of(4, tuple("abcd"), rules=made)
    with pytest.raises(ValueError, match=re.escape(f"no model satisfies: {message}; leave out")):
        require_possible(structure, k, np.array(include, dtype=np.intp), NONE, NONE)


def test_free_groups_are_chosen_and_not_counted():
    structure = structure_of(3, tuple("abc"), rules=[rules.at_least(3, ["a", "b", "c"])])
    require_possible(structure, 1, NONE, NONE, np.array([0, 2]))
    without = structure_of(3, tuple("abc"), rules=[rules.at_most(1, ["a", "c"])])
    with pytest.raises(ValueError, match='"at most 1 of a, c", free a, c;'):
        require_possible(without, 3, NONE, NONE, np.array([0, 2]))
    with pytest.raises(ValueError, match=r"satisfies: include b, exclude b;"):
        require_possible(without, 3, np.array([1]), np.array([1]), NONE)


@pytest.mark.parametrize("parts", [1, 7])
def test_counting_decides_where_trying_would_take_forever(parts):
    """At least 14 of 7000, all together or in parts, but at most 13 of them."""
    p, some = 7000, np.split(np.arange(7000), parts)
    structure = structure_of(p, None, rules=[rules.at_least(14 // parts, part) for part in some])
    with pytest.raises(ValueError, match="k = 13"):
        require_possible(structure, 13, NONE, NONE, NONE)
    require_possible(structure, 14, NONE, NONE, NONE)


def test_long_chains_of_needs_are_followed():
    m = 300
    chain_of_needs = [rules.implies(j, j + 1) for j in range(m - 1)]
    structure = structure_of(m, None, rules=chain_of_needs)
    first = np.array([0])
    assert not possible(structure.rows, m, first, [m - 1], step_limit=1)
    require_possible(structure, m, first, NONE, NONE)
    with pytest.raises(ValueError, match=f"k = {m - 1}, include x0;"):
        require_possible(structure, m - 1, first, NONE, NONE)


def test_no_structure_without_a_word_about_it():
    assert structure_of(3, None) is None


def test_a_structure_is_plain_data():
    names = ("a", "b", "c", "d", "e")
    structure = structure_of(
        5,
        names,
        groups={"u": ["b", "e"]},
        rules=[rules.implies("u", ["a", "c"]), rules.at_least(1, ["d"])],
        constraints=["a + b <= 1"],
    )
    assert structure.groups.tolist() == [0, 1, 2, 3, 1]
    assert structure.has_groups
    assert all(isinstance(row, Row) for row in structure.rows)
    assert [(*map(list, row[:2]), *row[2:]) for row in structure.rows] == [
        ([1], [0], 0, 0),
        ([1], [2], 0, 0),
        ([], [3], -1, 1),
    ]
    again = Structure.from_arrays(structure.to_arrays())
    assert (
        describe(again)
        == describe(structure)
        == [
            "u: 2 features",
            "u only with a and c",
            "at least 1 of d",
            "a + b <= 1",
        ]
    )
    assert again.matrix.tolist() == [[1, 1, 0, 0, 0]]
    assert whole_groups(structure, np.array([4, 0])).tolist() == [0, 1, 4]
    assert whole_groups(structure, NONE).tolist() == []


def test_only_constraints_leave_every_feature_on_its_own():
    structure = structure_of(3, None, constraints="x0 = x1")
    assert not structure.has_groups
    assert structure.rows == structure.words == ()
    assert structure.matrix.tolist() == [[1, -1, 0]]


def test_many_groups_are_cut_in_descriptions():
    lines = describe(structure_of(50, None, groups=np.repeat(np.arange(25), 2)))
    assert len(lines) == 21
    assert lines[0] == "group 0: 2 features"
    assert lines[-1] == "... and 5 more groups"
