"""A short, seeded part of `make fuzz`; and the fuzzer notices what it should."""

from dataclasses import replace

import fuzz
import pytest


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_no_findings(first):
    _, findings = fuzz.check_many(range(first, first + 100))
    assert not [finding for finding in findings if finding.kind != "refused"]


# A charge of zero times infinity, an active-set solver that gave up, charges and duals at the level
# of rounding, single precision in batches, a root that resisted enumeration.
EARLIER = [490, 10545, 20173, 21398, 41126, 43992, 1001149, 1012274, 1025745, 2000308, 2003003,
           2006736, 2051607]  # fmt: skip


@pytest.mark.parametrize("seed", EARLIER)
def test_earlier_findings_are_gone(seed):
    assert not fuzz.check(seed)


@pytest.mark.parametrize(
    ("lie", "kind"),
    [
        (lambda r: replace(r, lower_bound=1.01 * r.objective), "wrong bound"),
        (lambda r: replace(r, objective=0.9 * r.objective), "wrong model"),
        (lambda r: replace(r, objective=1.1 * r.objective), "wrong status"),
    ],
)
def test_false_claims_are_findings(lie, kind, monkeypatch):
    solved = fuzz.solved

    def lying(*arguments):
        result, verification = solved(*arguments)
        return lie(result), verification

    monkeypatch.setattr(fuzz, "solved", lying)
    kinds = {finding.kind for seed in range(30) for finding in fuzz.check(seed)}
    assert kind in kinds


def test_exceptions_are_findings(monkeypatch):
    monkeypatch.setattr(fuzz, "solved", lambda *arguments: 1 / 0)
    (finding,) = fuzz.check(3)
    assert finding.kind == "crash"
    assert "ZeroDivisionError" in finding.text
