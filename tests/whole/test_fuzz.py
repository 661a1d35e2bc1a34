"""A short, seeded part of `make fuzz`; and the fuzzer notices what it should."""

from collections import Counter
from dataclasses import replace

import fuzz
import pytest
from helpers.engines import Hostile

from bestk.subtrees.engines import Serial, Threads
from bestk.subtrees.unit import CLOSED


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_no_findings(first):
    _, findings = fuzz.check_many(range(first, first + 100))
    assert not [finding for finding in findings if finding.kind != "refused"]


# A charge of zero times infinity, an active-set solver that gave up, charges and duals at the level
# of rounding, single precision in batches, a root that resisted enumeration, a tree given up for a
# start that proved less, an unfinished list with a model and a part of it.
EARLIER = [490, 2433, 10545, 20062, 20173, 21398, 41126, 43992, 1001149, 1012274, 1025745, 2000308,
           2003003, 2006736, 2051607]  # fmt: skip


@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("seed", EARLIER)
def test_earlier_findings_are_gone(seed, units):
    assert not fuzz.check(seed, units)


def test_units_of_all_sizes_run_on_all_engines(monkeypatch):
    """Some problems have units whoever runs them, some units have charges of their own."""
    explored, sizes, engines = Counter(), Counter(), Counter()

    def counting_put(self, subproblem, unit):
        engines[type(self).__name__] += 1
        sizes[unit.budget.nodes] += 1
        put[type(self)](self, subproblem, unit)

    def counting_get(self, stop):
        outcome = get[type(self)](self, stop)
        explored["own"] += outcome is not None and outcome.t is not None
        explored["closed"] += outcome is not None and CLOSED in outcome.fate
        return outcome

    put = {engine: engine.put for engine in (Serial, Threads, Hostile)}
    get = {engine: engine.get for engine in put}
    for engine in put:
        monkeypatch.setattr(engine, "put", counting_put)
        monkeypatch.setattr(engine, "get", counting_get)
    tried, findings = fuzz.check_many(range(5000, 5300))
    assert not [finding for finding in findings if finding.kind != "refused"]
    assert set(engines) == {"Serial", "Threads", "Hostile"}
    assert set(sizes) >= {1, 2, 3, 4, 5}
    assert min(explored["own"], explored["closed"], *engines.values()) > 5
    assert min(tried[f"({engine})"] for engine in fuzz.ENGINES) > 20


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


def test_a_dual_vector_of_zeros_is_a_proof_too():
    """A node that it proves was recorded without its split, and the certificate refused."""
    assert not fuzz.check(6301)
