"""Is a list of models complete? Checked on the data, with none of the code that made it.

For every size a tree covers all supports. Each leaf is proven not to be below the threshold, or
tried support by support, but for what contains a support of the list. So no support is below the
threshold that does not contain one of the list, and the models of the list are evaluated on the
data. That the supports of the list are irreducible follows: a smaller one below the threshold would
have to contain a listed one itself.

Or one tree shows which supports of k features are below the threshold. Any smaller one is a part of
these, so the largest parts without a listed support are bounded one by one.
"""

import time
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np

from bestk.base.collections import is_collection
from bestk.base.fingerprint import fingerprint, gram_digest, rows_digest
from bestk.base.structure import Row, Structure
from bestk.base.validation import as_matrix, as_vector, as_weights, require_device, require_finite
from bestk.results.certificate import Certificate
from bestk.results.completeness import CompletenessCertificate, ListedModel, SizeProof
from bestk.verification import evidence as data
from bestk.verification.allowance import Allowance
from bestk.verification.cover import Cover, cover
from bestk.verification.evidence import Evidence, NoVariation, Unfit
from bestk.verification.forecast import Work, work_of
from bestk.verification.limits import limits
from bestk.verification.nodes import FloatNodes
from bestk.verification.numerics.matrices import is_wide
from bestk.verification.numerics.rounding import LONG, UNIT
from bestk.verification.on_device import open_scan
from bestk.verification.verify import (
    FloatBackEnd,
    enumeration_for,
    proven_of_choices,
    threads_for,
)
from bestk.verification.wellformed import flaws

# How far a claim may exceed what is verified, of the threshold and of y'y: both were rounded.
_TOLERANCE, _OF_SIZE = 4e-9, 4e-12
_OTHER_DATA = "the data or the problem are not those of the certificate (fingerprint)"
# Reasons that are listed.
_MOST = 20


@dataclass(frozen=True, kw_only=True)
class ListVerification:
    """What was verified of a list of models.

    ``n_models`` were evaluated on the data, ``n_supports`` tried one by one, and ``threshold`` is
    what is proven for all others.
    """

    is_valid: bool
    failures: tuple[str, ...]
    threshold: float
    n_models: int
    n_nodes: int
    n_supports: int
    assumptions: tuple[str, ...]
    seconds: float

    def __bool__(self) -> bool:
        return self.is_valid

    def __str__(self) -> str:
        lines = [f"{'Verified' if self.is_valid else 'NOT verified'}, rounding accounted for"]
        lines += [f"  failure: {failure}" for failure in self.failures]
        others = ", and no other below the threshold" if self.is_valid else ""
        lines += [
            f"  models       {self.n_models}{others}",
            f"  threshold    {self.threshold:.10g}",
            f"  nodes        {self.n_nodes}",
            f"  supports     {self.n_supports} tried one by one",
            f"  seconds      {self.seconds:.3g}",
        ]
        return "\n".join(lines + [f"  assumption: {text}" for text in self.assumptions])


def verify_list(
    certificate: CompletenessCertificate,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    n_threads: int | None = None,
    device: str = "cpu",
    max_seconds: float | None = None,
    allow_long: bool = False,
) -> ListVerification:
    """Does the claim of a list hold for these rows? Parameters as in `verify`."""
    if is_collection(X):
        raise TypeError("lists of models are verified on arrays; pass X.compute() and y.compute()")
    X = as_matrix("X", X)
    y = as_vector("y", y, length=X.shape[0], of="rows of X")
    weight = as_weights(sample_weight, X.shape[0])
    require_finite("X", X)
    require_finite("y", y)
    allowance = Allowance(max_seconds=max_seconds, allow_long=allow_long)
    return _ListCheck(certificate, _Rows(X, y, weight), allowance).run(n_threads, device)


def verify_list_gram(
    certificate: CompletenessCertificate,
    G: Any,
    c: Any,
    yy: float,
    *,
    n_threads: int | None = None,
    device: str = "cpu",
    max_seconds: float | None = None,
    allow_long: bool = False,
) -> ListVerification:
    """:func:`verify_list` for a problem that was given as G = X'X, c = X'y and yy = y'y."""
    G = np.asarray(as_matrix("G", G), dtype=np.float64)
    if G.shape[0] != G.shape[1]:
        raise ValueError(f"G must be square (X'X), got shape {G.shape}")
    c = np.asarray(as_vector("c", c, length=len(G), of="columns of G"), dtype=np.float64)
    require_finite("G", G)
    require_finite("c", c)
    allowance = Allowance(max_seconds=max_seconds, allow_long=allow_long)
    return _ListCheck(certificate, _Gram(G, c, float(yy)), allowance).run(n_threads, device)


class _Rows(NamedTuple):
    """Data as rows."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None

    @property
    def n_features(self) -> int:
        return self.X.shape[1]

    @property
    def n_wide(self) -> int | None:
        """Rows of wide data, whose products are not formed."""
        return len(self.X) if is_wide(*self.X.shape) else None

    def digest(self) -> str:
        return rows_digest(self.X, self.y, self.weight)

    def evidence(self, claim: Certificate) -> Evidence:
        return data.from_rows(claim, self.X, self.y, self.weight)

    def size(self, fit_intercept: bool) -> float:
        """The sum of squares of y, about its mean if there is an intercept."""
        y, w = self.y.astype(LONG), 1.0 if self.weight is None else self.weight
        total = len(y) if self.weight is None else self.weight.sum()
        centre = np.sum(w * y) / total if fit_intercept and total > 0 else 0.0
        return float(np.sum(w * (y - centre) ** 2))

    def loss(self, model: ListedModel) -> float:
        fitted = model.intercept + self.X[:, model.support].astype(LONG) @ model.values.astype(LONG)
        residual = self.y.astype(LONG) - fitted
        return float(np.sum(residual**2 if self.weight is None else self.weight * residual**2))


class _Gram(NamedTuple):
    """Data as sums of products."""

    G: np.ndarray
    c: np.ndarray
    yy: float

    @property
    def n_features(self) -> int:
        return len(self.c)

    @property
    def n_wide(self) -> int | None:
        return None

    def digest(self) -> str:
        return gram_digest(self.G, self.c, self.yy)

    def evidence(self, claim: Certificate) -> Evidence:
        return data.from_gram(claim, data.full_gram(self.G, self.c, self.yy))

    def size(self, fit_intercept: bool) -> float:
        return self.yy

    def loss(self, model: ListedModel) -> float:
        S, b = model.support, model.values.astype(LONG)
        return float(self.yy + b @ (self.G[np.ix_(S, S)].astype(LONG) @ b - 2.0 * self.c[S]))


class _ListCheck:
    def __init__(
        self,
        certificate: CompletenessCertificate,
        source: "_Rows | _Gram",
        allowance: Allowance,
    ) -> None:
        self.certificate, self.source, self.allowance = certificate, source, allowance
        self.start, self.failures = time.perf_counter(), list[str]()
        self.n_nodes = self.n_supports = 0
        self.assumptions: set[str] = set()
        self.threshold = np.inf
        self.n_left: dict[int, int] = {}  # by size: features that the largest models lack

    def run(self, n_threads: int | None, device: str) -> ListVerification:
        scan = None if require_device(device) == "cpu" else open_scan(device)
        if self.is_wellformed():
            with threads_for(n_threads) as pool:
                self.foresee(1 if pool is None else pool._max_workers, scan is not None)
                self.models()
                for proof in self.certificate.proofs:
                    self.size(proof, pool, scan)
            self.all_sizes()
        return self.result()

    def foresee(self, n_threads: int, has_device: bool) -> None:
        """Refuse proofs that take too long together."""
        work = Work(0.0, 0.0, _seconds_of_models(self.certificate.models))
        for proof in self.certificate.proofs:
            work = work.joined(work_of(self._of_size(proof), self.source.n_wide))
        self.allowance.require(work, n_threads, has_device)

    def result(self) -> ListVerification:
        return ListVerification(
            is_valid=not self.failures,
            failures=tuple(self.failures[:_MOST]),
            threshold=min(self.threshold, float(self.certificate.threshold)),
            n_models=len(self.certificate.models),
            n_nodes=self.n_nodes,
            n_supports=self.n_supports,
            assumptions=tuple(sorted(self.assumptions)),
            seconds=time.perf_counter() - self.start,
        )

    def is_wellformed(self) -> bool:
        c, p = self.certificate, self.source.n_features
        if len(np.atleast_1d(c.lower)) != p:
            self.failures.append(_OTHER_DATA)
            return False
        if not (np.isfinite(c.threshold) and c.threshold >= 0.0):
            self.failures.append(f"the threshold is {c.threshold}")
        for i, model in enumerate(c.models):
            support = np.asarray(model.support)
            plain = support.ndim == 1 and (support.size == 0 or support.dtype.kind in "iu")
            if not plain or np.shape(model.values) != support.shape:
                self.failures.append(f"model {i} is malformed")
            elif support.size and not (support.min() >= 0 and support.max() < p):
                self.failures.append(f"model {i} has features out of range")
            elif (np.diff(support) <= 0).any():
                self.failures.append(f"model {i} lists its features out of order or twice")
            elif not np.isfinite([*np.asarray(model.values, float), model.intercept]).all():
                self.failures.append(f"model {i} has coefficients that are not finite")
        for i, support in enumerate(c.largest or ()):
            support = np.asarray(support)
            if support.ndim != 1 or (support.size and support.dtype.kind not in "iu"):
                self.failures.append(f"the largest support {i} is malformed")
            elif support.size and not (support.min() >= 0 and support.max() < p):
                self.failures.append(f"the largest support {i} has features out of range")
        if c.structure is not None:
            groups = np.asarray(c.structure.groups)
            if groups.shape != (p,) or groups.dtype.kind not in "iu":
                self.failures.append("groups do not number every feature's group")
        if self.failures:
            return False
        for proof in c.proofs:
            found = flaws(self._of_size(proof))
            self.failures += [f"models of size {proof.size}: {flaw}" for flaw in found]
        if self.failures:
            return False
        if fingerprint(self.source.digest(), c) != c.fingerprint:
            self.failures.append(_OTHER_DATA)
        return not self.failures

    def _of_size(self, proof: SizeProof) -> Certificate:
        """The claim for one size in the words of a certificate of one model, which is empty."""
        c = self.certificate
        return Certificate(
            k=proof.size,
            alpha=c.alpha,
            fit_intercept=c.fit_intercept,
            include=c.include,
            exclude=c.exclude,
            lower=c.lower,
            upper=c.upper,
            is_box_assumed=c.is_box_assumed,
            free=c.free,
            structure=self._without_listed(),
            choices=proof.choices,
            fingerprint=c.fingerprint,
            coef=np.zeros(self.source.n_features),
            intercept=0.0,
            objective=float(c.threshold),
            lower_bound=float(c.threshold),
            copies=c.copies,
            splits=proof.splits,
            tree=proof.tree,
        )

    def _without_listed(self) -> Structure | None:
        """The structure where no choice may contain all groups of a listed model."""
        structure = self.certificate.structure
        if structure is None:
            return None
        nothing, rows = np.zeros(0, dtype=np.int64), list(structure.rows)
        for model in self.certificate.models:
            groups = structure.groups_of(np.asarray(model.support, dtype=np.int64))
            rows.append(Row(groups, nothing, len(groups) - 1, len(structure.words)))
        words = (*structure.words, "none of the listed models")
        return replace(structure, rows=tuple(rows), words=words)

    # The models of the list ---------------------------------------------------------------------

    def models(self) -> None:
        c = self.certificate
        most = c.threshold * (1.0 + _TOLERANCE) + _OF_SIZE * self.source.size(c.fit_intercept)
        for i, model in enumerate(c.models):
            self.failures += [f"model {i}: {flaw}" for flaw in self._flaws(model)]
            loss = self.source.loss(model) + c.alpha * float(np.sum(model.values**2))
            if not loss <= most:
                self.failures.append(
                    f"model {i} has the objective {loss:.12g}, above the threshold"
                )
        sets = [
            m.support if c.structure is None else c.structure.groups_of(m.support) for m in c.models
        ]
        self.failures += _containments([frozenset(one.tolist()) for one in sets])

    def _flaws(self, model) -> list[str]:
        c, found = self.certificate, []
        if c.structure is not None:
            found += self._flaws_of_choice(model, c.structure)
        elif (counted := len(np.setdiff1d(model.support, c.free))) > c.k:
            found.append(f"it has {counted} features, more than k = {c.k}")
        if len(np.setdiff1d(c.include, model.support)):
            found.append("it lacks an included feature")
        if len(np.intersect1d(c.exclude, model.support)):
            found.append("it has an excluded feature")
        slack = 1e-12 * np.abs(model.values)
        low, high = c.lower[model.support], c.upper[model.support]
        if ((model.values < low - slack) | (model.values > high + slack)).any():
            found.append("a coefficient is out of its bounds")
        if model.intercept != 0.0 and not c.fit_intercept:
            found.append("it has an intercept, the problem has none")
        return found

    def _flaws_of_choice(self, model, structure: Structure) -> list[str]:
        """Does a model with structure obey it?"""
        c, found = self.certificate, []
        groups = structure.groups_of(model.support)
        counted = len(np.setdiff1d(groups, structure.groups_of(c.free)))
        if len(structure.features_of(groups)) != len(model.support):
            found.append("it has a part of a group")
        if counted > c.k:
            found.append(f"it has {counted} groups, more than k = {c.k}")
        if np.setdiff1d(c.free, model.support).size:
            found.append("it lacks a free group")
        if structure.broken(groups):
            found.append("it breaks a rule")
        C, size = structure.matrix[:, model.support], np.abs(model.values).max(initial=0.0)
        value, parts = C @ model.values, np.abs(C) @ (np.abs(model.values) + 1e-2 * size)
        for i in range(len(C)):
            ends = [
                abs(end) for end in (structure.lower[i], structure.upper[i]) if np.isfinite(end)
            ]
            slack = 1e-8 * (parts[i] + max(ends, default=0.0))
            if not structure.lower[i] - slack <= value[i] <= structure.upper[i] + slack:
                found.append(f"it is out of constraint {i}")
        return found

    # All others ---------------------------------------------------------------------------------

    def size(self, proof: SizeProof, pool, scan) -> None:
        """No other model of at most so many features is below the threshold."""
        claim = self._of_size(proof)
        self.n_nodes += len(proof.tree)
        try:
            evidence = replace(self.source.evidence(claim), allowance=self.allowance)
        except NoVariation:
            self.n_left[proof.size] = 0
            if not any(len(np.setdiff1d(m.support, claim.given)) == 0 for m in self._listed):
                self.failures.append("y has no variation: the empty model should be listed")
            return
        except Unfit as reason:
            self.failures.append(str(reason))
            return
        if claim.structure is not None:
            self.choices(proof, claim, evidence, pool)
            return
        self.n_left[proof.size] = len(evidence.live) - evidence.k
        largest, listed = self.certificate.largest, [model.support for model in self._listed]
        known = self._known(evidence, listed if largest is None else largest)
        exactly = largest is not None or self.certificate.only_k
        if exactly and any(len(support) != evidence.k for support in known):
            self.failures.append(f"a support has fewer features than models of {proof.size} may")
            return
        enumeration = enumeration_for(claim, evidence, pool, scan, known=known)
        nodes = FloatNodes(claim, evidence, pool)
        proven = cover(claim, FloatBackEnd(evidence, nodes, enumeration))
        self.n_supports += enumeration.n_supports
        least = self._compare(proof, proven, evidence)
        if largest is not None:
            self._parts(largest, listed, evidence, enumeration.judge, least)

    def choices(self, proof: SizeProof, claim: Certificate, evidence: Evidence, pool) -> None:
        """No other choice of groups that the structure allows is below the threshold."""
        products = None
        if isinstance(self.source, _Gram):
            products = data.full_gram(self.source.G, self.source.c, self.source.yy)
        try:
            proven, tried = proven_of_choices(claim, evidence, pool, products)
        except Unfit as reason:
            self.failures.append(str(reason))
            return
        self.n_supports += tried
        self._compare(proof, proven, evidence)

    def _compare(self, proof: SizeProof, proven: Cover, evidence: Evidence) -> float:
        """What is proven with what is claimed; the least that is accepted."""
        value = float(proven.value) * evidence.unit * (1.0 - 8 * UNIT)
        self.assumptions.update(evidence.assumptions)
        self.failures += [f"models of size {proof.size}: {text}" for text in proven.failures]
        least = self.certificate.threshold * (1.0 - _TOLERANCE) - _OF_SIZE * evidence.unit
        if value < least:
            self.failures.append(
                f"models of size {proof.size}: others are proven only to be above {value:.12g}, "
                f"not above {self.certificate.threshold:.12g}; {proven.weakest}"
            )
            self.threshold = min(self.threshold, value)
        return least

    def _parts(self, largest, listed, evidence: Evidence, judge, least: float) -> None:
        """Every part of a largest support that contains no listed one is above the threshold."""
        wanted = [frozenset(support.tolist()) for support in listed]
        fixed = frozenset(self.certificate.given.tolist())
        parts: set[frozenset[int]] = set()
        waiting = [frozenset(support.tolist()) for support in largest]
        seen = set(waiting)
        while waiting:
            if len(seen) > limits().parts:
                self.failures.append("the largest models have too many parts to look at")
                return
            support = waiting.pop()
            inside = next((one for one in wanted if one <= support), None)
            if inside is None:
                parts.add(support)
                continue
            for j in inside - fixed:
                if support - {j} not in seen:
                    seen.add(support - {j})
                    waiting.append(support - {j})
        groups: dict[int, list[np.ndarray]] = {}
        for part in parts:
            place = np.sort(evidence.position[np.array(sorted(part), dtype=np.int64)])
            groups.setdefault(int((place >= 0).sum()), []).append(place[place >= 0])
        for size, rows in sorted(groups.items()):
            bounds = judge.bounds(np.array(rows)) if size else np.ones(1)
            if (bounds * evidence.unit * (1.0 - 8 * UNIT) < least).any():
                self.failures.append(f"a model of {size} features is below the threshold, unlisted")

    @property
    def _listed(self):
        return self.certificate.models

    def _known(self, evidence: Evidence, supports) -> list[np.ndarray]:
        """Supports as live positions. Of features that cannot enter a model, or repeat others,
        only included ones may be listed: without them a support would stand for too many.
        """
        known = []
        for support in supports:
            place = evidence.position[support]
            if not np.isin(support[place < 0], self.certificate.given).all():
                self.failures.append(f"a model has features that no model needs: {support}")
            known.append(place[place >= 0])
        return known

    def all_sizes(self) -> None:
        """Is there a proof for each size for which one is needed?"""
        c = self.certificate
        sizes = [proof.size for proof in c.proofs]
        if len(set(sizes)) < len(sizes):
            self.failures.append("there are two proofs for one size")
        if c.only_k or c.largest is not None or c.structure is not None:
            if sizes != [c.k]:
                self.failures.append(f"there is no proof for models of {c.k} features")
            return
        if any(len(np.setdiff1d(model.support, c.given)) == 0 for model in self._listed):
            return  # every support contains this one
        for size in range(len(c.include), c.k + 1):
            if size not in sizes and not any(
                smaller < size and self.n_left.get(smaller, 1) <= 0 for smaller in sizes
            ):
                self.failures.append(f"there is no proof for models of {size} features")


def _seconds_of_models(models: tuple[ListedModel, ...]) -> float:
    """How long it takes to evaluate models and to compare them with each other, about."""
    n, largest = len(models), max((len(model.support) for model in models), default=0)
    return 1e-4 * n + 1e-7 * n * min(n, 2 ** min(largest, 60))


def _containments(supports: list[frozenset[int]]) -> list[str]:
    """Supports of the list (or choices of groups) that contain others, or stand there twice."""
    known, sizes = set(supports), sorted({len(support) for support in supports})
    found = []
    if len(known) < len(supports):
        found.append("a model is listed twice")
    for i, support in enumerate(supports):
        smaller = [size for size in sizes if size < len(support)]
        if sum(comb(len(support), size) for size in smaller) > len(known):  # too many to form
            has_other = any(other < support for other in known)
        else:
            has_other = any(
                frozenset(part) in known for size in smaller for part in combinations(support, size)
            )
        if has_other:
            found.append(f"model {i} contains another one of the list")
    return found
