"""A question: what is asked of the data, and what marks it."""

from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.optimize import LinearConstraint

from bestk import Certificate, Problem, rules
from bestk.base.fingerprint import fingerprint
from bestk.base.question import Question
from bestk.base.structure import Structure
from bestk.form.presolve import Presolved
from bestk.structure.compose import structure_of

ASKED = Question(
    k=3,
    alpha=0.5,
    fit_intercept=True,
    include=np.array([1]),
    exclude=np.array([4, 5]),
    lower=np.array([-1.0, -np.inf]),
    upper=np.array([0.0, np.inf]),
)
OTHERS = {
    "k": 4,
    "alpha": 0.5 + 2**-50,
    "fit_intercept": False,
    "include": np.array([2]),
    "exclude": np.array([4]),
    "lower": np.array([-1.0, -2.0]),
    "upper": np.array([1.0, np.inf]),
    "is_box_assumed": True,
    "free": np.array([7]),
    "structure": structure_of(2, None, groups=[0, 0]),
}


@pytest.mark.parametrize("part", [part.name for part in fields(Question)])
def test_every_part_of_a_question_changes_its_fingerprint(part):
    other = replace(ASKED, **{part: OTHERS[part]})
    assert fingerprint("rows 3", other) != fingerprint("rows 3", ASKED)
    assert other.plain() != ASKED.plain()


def test_fingerprints_are_those_of_certificates_written_before():
    assert fingerprint("rows 3", ASKED) == (
        "dafbedfdf4766b2b618a438dc5aaddf6e9c99affdd10696e8e804bf7e5db7a57"
    )
    assert fingerprint("rows 4", ASKED) != fingerprint("rows 3", ASKED)


def test_a_certificate_is_a_question_with_an_answer():
    X, y = np.eye(6)[:, :4] + 0.1, np.arange(6.0)
    presolved = Presolved.of(Problem.from_data(X, y, alpha=0.2, bounds=(-3, 3)), [1], [2])
    certificate = presolved.problem.solve(2, include=[1], exclude=[2]).certificate
    assert isinstance(certificate, Certificate)
    assert isinstance(certificate, Question)
    assert Question.plain(certificate) == presolved.question(2).plain()
    assert certificate.fingerprint == fingerprint(presolved.problem.digest, certificate)


STRUCTURED = {
    "groups": [0, 0, 1],
    "rules": [rules.at_most(1, [0, 2])],
    "constraints": LinearConstraint([1.0, 0.0, 2.0], 0.0, 1.0),
}


@pytest.mark.parametrize(
    "other",
    [
        {"groups": [0, 1, 1]},
        {"rules": [rules.at_most(0, [0, 2])]},
        {"rules": [rules.at_least(1, [0, 2])]},
        {"constraints": LinearConstraint([1.0, 0.0, 2.0], 0.0, 2.0)},
        {"constraints": LinearConstraint([1.0, 0.0, 2.5], 0.0, 1.0)},
        {"constraints": None},
    ],
)
def test_every_part_of_a_structure_changes_the_fingerprint(other):
    one, two = (
        replace(ASKED, structure=structure_of(3, None, **parts))
        for parts in (STRUCTURED, STRUCTURED | other)
    )
    assert fingerprint("rows 3", one) != fingerprint("rows 3", two)
    assert one.plain() != two.plain()


def test_words_and_names_do_not_mark_a_structure():
    one = structure_of(3, ("a", "b", "c"), **STRUCTURED)
    two = structure_of(3, ("d", "e", "f"), **STRUCTURED)
    assert one.words != two.words
    assert one.identity() == two.identity()


def test_a_structure_in_arrays_is_the_same():
    one = structure_of(3, ("a", "b", "c"), **STRUCTURED)
    two = Structure.from_arrays(one.to_arrays())
    assert two.identity() == one.identity()
    assert (two.words, two.group_names) == (one.words, one.group_names)
    assert two.constraint_words == one.constraint_words
    assert Structure.from_arrays({}) is None
