"""The recorded tree: enough, without the solver, to check that nothing was overlooked."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from instances import Instance, make, standard_form

from bestk import Advanced, Problem, Status, tree
from bestk.certificate import Reason, Recorder
from bestk.scaling import StandardForm

SLACK = 1e-9


def nodes_of(certificate):
    """(IN, OUT) of every record before its own fixings, as sets of problem features.

    Records without a parent are the root, rebuilt on fewer features after each but the last: the
    fixings of the earlier ones hold for all that follows.
    """
    root = set(certificate.include.tolist()), set(certificate.exclude.tolist())
    states = []
    for record in certificate.records:
        if record.parent < 0:
            inside, outside = (set(s) for s in root)
        else:
            parent = certificate.records[record.parent]
            inside, outside = (set(s) for s in states[record.parent])
            inside |= set(parent.fixed_in.tolist())
            outside |= set(parent.fixed_out.tolist())
            (inside if record.inside else outside).add(record.feature)
        states.append((inside, outside))
        if record.parent < 0:
            root = inside | set(record.fixed_in.tolist()), outside | set(record.fixed_out.tolist())
    return states


def bound_of(problem, certificate, record, inside, outside):
    """h(g) by the formula (theory eq. 3), phi per feature, phi of the free ones ranked, and r."""
    features, t, _, _ = certificate.splits[record.split]
    form = StandardForm.of(problem, features)
    index, values = record.dual
    g = np.zeros(form.p)
    g[np.searchsorted(features, index)] = values
    u = form.c - form.A @ g + t * g
    with np.errstate(divide="ignore", invalid="ignore"):
        v = np.clip(np.where(t > 0, u / t, np.sign(u) * np.inf), form.lo, form.hi)
        phi = np.where(u == 0.0, 0.0, v * (2 * u - t * v))
    phi[np.isnan(phi)] = np.inf
    phi = dict(zip(features.tolist(), phi.tolist(), strict=True))
    r = certificate.k - len(inside)
    free = sorted((phi[j] for j in phi if j not in inside | outside), reverse=True)
    value = 1.0 - g @ (form.c - u) - sum(phi.get(j, 0.0) for j in inside) - sum(free[:r])
    return value, phi, free, r


def has_blocks(certificate, record):
    return len(certificate.splits[record.split].clusters) > 0


def check_block_record(problem, certificate, record, inside, outside):
    """The bound of a block split (theory eq. 14), and its fixings, by trying every support."""
    features, t, clusters, matrices = certificate.splits[record.split]
    form = StandardForm.of(problem, features)
    T = np.diag(t)
    for cluster, matrix in zip(clusters, matrices, strict=True):
        T[np.ix_(cluster, cluster)] = matrix
    Q = form.A - T
    assert np.linalg.eigvalsh(Q)[0] >= -SLACK
    index, dual = record.dual
    g = np.zeros(form.p)
    g[np.searchsorted(features, index)] = dual
    u = form.c - Q @ g
    inside = set(np.searchsorted(features, sorted(inside)).tolist())
    allowed = [j for j in range(form.p) if features[j] not in outside]
    values = {}
    for size in range(len(inside), min(certificate.k, len(allowed)) + 1):
        for support in combinations(allowed, size):
            if inside <= set(support):
                S = list(support)
                gain = u[S] @ np.linalg.solve(T[np.ix_(S, S)], u[S])
                values[support] = 1.0 - g @ Q @ g - gain
    if not values:
        return
    assert record.bound <= min(values.values()) + SLACK
    for j in np.searchsorted(features, record.fixed_out):
        lowest = min((v for support, v in values.items() if j in support), default=np.inf)
        assert lowest >= record.cutoff - SLACK


def check_records(problem, certificate):
    """Every bound and every fixing follows from the recorded dual vector."""
    states = nodes_of(certificate)
    for number, (record, (inside, outside)) in enumerate(
        zip(certificate.records, states, strict=True)
    ):
        assert record.parent < number
        if has_blocks(certificate, record):
            check_block_record(problem, certificate, record, inside, outside)
            continue
        value, phi, free, r = bound_of(problem, certificate, record, inside, outside)
        assert record.bound <= value + SLACK
        if np.isfinite(value) and np.isfinite(record.bound):
            assert record.bound == pytest.approx(value, abs=1e-6 * (1 + abs(value)))
        assert not set(record.fixed_in.tolist()) & (inside | outside)
        assert not set(record.fixed_out.tolist()) & (inside | outside)
        for j in record.fixed_out.tolist():
            assert value + free[r - 1] - phi[j] >= record.cutoff - SLACK
        for j in record.fixed_in.tolist():
            following = free[r] if r < len(free) else 0.0
            assert value + phi[j] - following >= record.cutoff - SLACK


def check_cover(problem, certificate, result, loss):
    """Each support of size k ends in a leaf, or against a fixing, that shows it is no better."""
    yy, proven = problem.yy, result.lower_bound / problem.yy
    children = {}
    for number, record in enumerate(certificate.records):
        children.setdefault(record.parent, []).append(number)
    roots = children.pop(-1, [])
    allowed = [j for j in range(problem.n_features) if j not in certificate.exclude]
    size = min(certificate.k, len(allowed))
    for support in combinations(allowed, size):
        if not set(certificate.include.tolist()) <= set(support):
            continue
        claim = _claim(certificate, roots, children, set(support))
        if claim is None:  # enumerated: compared with the incumbent on the data
            assert loss(support) >= result.objective * (1 - 1e-9) - SLACK * yy
        else:
            assert claim >= proven - SLACK
            assert loss(support) / yy >= claim - SLACK


def _claim(certificate, roots, children, support):
    """What the tree proves about a support: a number, or None for 'enumerated'."""
    records, reasons = certificate.records, certificate.reasons
    if not roots or reasons.get(-1) is Reason.ENUMERATED:
        contradicted = [records[i].cutoff for i in roots if _is_fixed_away(records[i], support)]
        assert reasons.get(-1) is Reason.ENUMERATED
        return contradicted[0] if contradicted else None
    best = -np.inf
    # The tree hangs on the last root with a diagonal; what other roots say holds for all of it.
    trees = [i for i in roots if not has_blocks(certificate, records[i])]
    closed_before_it = reasons.get(-1) is Reason.BOUND
    for number in roots if closed_before_it else [i for i in roots if i != trees[-1]]:
        best = max(best, records[number].bound)
        if _is_fixed_away(records[number], support):
            return records[number].cutoff
    if closed_before_it:
        return best
    number = trees[-1]
    while True:
        record = records[number]
        best = max(best, record.bound)
        reason = reasons.get(number, Reason.BOUND)  # still open at the end: its bound holds
        if reason is Reason.BOUND:
            # Fixings of a leaf closed by its bound are not needed.
            return best if best > -np.inf and not _overfull(certificate, number) else record.cutoff
        if _is_fixed_away(record, support):
            return record.cutoff
        if reason is Reason.ENUMERATED:
            return None
        below = children[number]
        assert len(below) == 2
        feature = records[below[0]].feature
        assert feature == records[below[1]].feature
        assert {records[i].inside for i in below} == {True, False}
        number = next(i for i in below if records[i].inside == (feature in support))


def _is_fixed_away(record, support):
    return not set(record.fixed_in.tolist()) <= support or bool(
        set(record.fixed_out.tolist()) & support
    )


def _overfull(certificate, number):
    """More than k features are IN once the fixings are made: every support is fixed away."""
    record, (inside, _) = certificate.records[number], nodes_of(certificate)[number]
    return len(inside | set(record.fixed_in.tolist())) > certificate.k


def small_tree(seed):
    rng = np.random.default_rng(seed)
    p, k = int(rng.integers(7, 11)), int(rng.integers(2, 5))
    X = rng.standard_normal((int(rng.integers(p, 20)), p)) + rng.standard_normal((1, p))
    y = rng.standard_normal(len(X)) + X[:, 0]
    options = {"alpha": 0.1} if seed % 2 else {}
    if seed % 3 == 1:
        options["bounds"] = (-0.3, 0.4)
    if seed % 4 == 2:
        options["include"] = [3]
    if seed % 5 == 2:
        options["exclude"] = [5]
    return Instance(regime="plain", X=X, y=y, k=k, options=options)


CONFIGURATIONS = {
    "default": {"advanced": Advanced()},
    "no enumeration": {"advanced": Advanced(enumeration=False)},
    "loose": {"advanced": Advanced(enumeration=False), "gap_tol": 0.1},
    "paper": {"advanced": Advanced.paper(), "search": "breadth-first", "bound": "admm"},
    "fast": {"advanced": Advanced(enumeration=False, rebuild=False), "bound": "fast"},
    "depth-first": {"advanced": Advanced(enumeration=False), "search": "depth-first"},
}


@pytest.mark.parametrize("seed", range(12))
def test_recorded_tree_of_block_bounds_proves_the_bound(seed, monkeypatch):
    monkeypatch.setattr(tree, "_BLOCKS_BELOW", 2.0)
    monkeypatch.setattr(tree, "_HOPE", 1e9)
    test_recorded_tree_proves_the_bound(seed, "no enumeration")


@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("seed", range(12))
def test_recorded_tree_proves_the_bound(seed, name):
    instance = small_tree(seed)
    result = instance.solve(**CONFIGURATIONS[name])
    options = {n: v for n, v in instance.options.items() if n in ("alpha", "bounds")}
    problem = Problem.from_data(instance.X, instance.y, **options)
    check_records(problem, result.certificate)
    check_cover(problem, result.certificate, result, instance.loss)


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_recorded_trees_of_every_regime_prove_the_bound(first):
    for seed in range(first, first + 50):
        instance = make(seed)
        form = standard_form(instance)
        if form is None or instance.regime in ("near_collinear", "monomials"):
            continue
        result = instance.solve(advanced=Advanced(enumeration=False))
        if result.n_nodes and form.p == instance.X.shape[1]:
            check_records(form.problem, result.certificate)
            check_cover(form.problem, result.certificate, result, instance.loss)


def tampered(certificate, number, **changes):
    records = list(certificate.records)
    records[number] = replace(records[number], **changes)
    return replace(certificate, records=records)


def test_checks_notice_a_bound_or_a_fixing_that_does_not_follow():
    instance = small_tree(6)
    result = instance.solve(advanced=Advanced(enumeration=False))
    problem, certificate = standard_form(instance).problem, result.certificate
    last = len(certificate.records) - 1
    check_records(problem, certificate)
    too_high = tampered(certificate, last, bound=certificate.records[last].bound + 1e-3)
    with pytest.raises(AssertionError):
        check_records(problem, too_high)
    too_bold = tampered(certificate, 0, fixed_out=np.arange(problem.n_features))
    with pytest.raises(AssertionError):
        check_records(problem, too_bold)


def test_checks_notice_a_missing_branch():
    instance = small_tree(6)
    result = instance.solve(advanced=Advanced(enumeration=False))
    problem, certificate = standard_form(instance).problem, result.certificate
    check_cover(problem, certificate, result, instance.loss)
    cut = replace(certificate, records=certificate.records[:-1])
    with pytest.raises(AssertionError):
        check_cover(problem, cut, result, instance.loss)


def test_certificate_repeats_the_question():
    instance = small_tree(2)
    result = instance.solve()
    certificate = result.certificate
    assert certificate.k == instance.k
    assert certificate.include.tolist() == instance.options["include"]
    assert certificate.exclude.tolist() == instance.options["exclude"]


def test_leaves_are_counted():
    instance = small_tree(6)
    result = instance.solve(advanced=Advanced(enumeration=False))
    certificate = result.certificate
    closed = [r for r in certificate.reasons.values() if r is not Reason.BRANCHED]
    assert certificate.n_leaves == len(closed) > 0


def test_recording_can_be_switched_off():
    instance = small_tree(0)
    result = instance.solve(advanced=Advanced(record=False))
    assert result.certificate is None


def test_recording_stops_when_it_grows_too_large(monkeypatch):
    monkeypatch.setattr(Recorder.__init__, "__defaults__", (1000.0,))
    instance = small_tree(6)
    result = instance.solve(advanced=Advanced(enumeration=False))
    assert result.certificate is None
    assert result.status is Status.OPTIMAL
