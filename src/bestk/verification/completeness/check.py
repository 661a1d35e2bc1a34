"""One verification of a list, from the first look at the certificate to the result."""

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bestk.base.fingerprint import fingerprint
from bestk.base.structure import Row, Structure
from bestk.base.validation import counted, require_device
from bestk.base.words import printable
from bestk.results.certificate import Certificate
from bestk.results.completeness import CompletenessCertificate, SizeProof
from bestk.verification import evidence as data
from bestk.verification.allowance import Allowance
from bestk.verification.completeness.models import (
    containments,
    flaws_of,
    malformed,
    seconds_of_models,
)
from bestk.verification.completeness.sources import Batches, Gram, Rows
from bestk.verification.cover import Cover, cover
from bestk.verification.evidence import Evidence, NoVariation, Unfit
from bestk.verification.forecast import Work, work_of
from bestk.verification.limits import limits
from bestk.verification.nodes import FloatNodes
from bestk.verification.numerics.rounding import UNIT
from bestk.verification.proving import FloatBackEnd, enumeration_for, proven_of_choices
from bestk.verification.supports.on_device import open_scan
from bestk.verification.threads import threads_for
from bestk.verification.wellformed import flaws

# How far a claim may exceed what is verified, of the threshold and of y'y: both were rounded.
_TOLERANCE, _OF_SIZE = 4e-9, 4e-12
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

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        lines = [f"{'Verified' if self.is_valid else 'NOT verified'}, rounding accounted for"]
        lines += [f"  failure: {printable(failure)}" for failure in self.failures]
        others = ", and no other below the threshold" if self.is_valid else ""
        lines += [
            f"  models       {self.n_models}{others}",
            f"  threshold    {self.threshold:.10g}",
            f"  nodes        {self.n_nodes}",
            f"  supports     {self.n_supports} tried one by one",
            f"  seconds      {self.seconds:.3g}",
        ]
        return "\n".join(lines + [f"  assumption: {text}" for text in self.assumptions])


class ListCheck:
    def __init__(
        self,
        certificate: CompletenessCertificate,
        source: "Rows | Batches | Gram",
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
        work = Work(0.0, 0.0, seconds_of_models(self.certificate.models, self.source.n_rows))
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
            self.failures.append(data.OTHER_DATA)
            return False
        if not (np.isfinite(c.threshold) and c.threshold >= 0.0):
            self.failures.append(f"the threshold is {c.threshold}, not a number from 0 on")
        self.failures += malformed(c, p)
        if self.failures:
            return False
        for proof in c.proofs:
            found = flaws(self._of_size(proof))
            self.failures += [
                f"the proof for size {proof.size} is malformed: {flaw}" for flaw in found
            ]
        if self.failures:
            return False
        if fingerprint(self.source.digest(), c) != c.fingerprint:
            self.failures.append(data.OTHER_DATA)
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
        losses = self.source.losses(c.models)
        for i, model in enumerate(c.models):
            self.failures += [f"model {i}: {flaw}" for flaw in flaws_of(model, c)]
            loss = losses[i] + c.alpha * float(np.sum(model.values**2))
            if not loss <= most:
                self.failures.append(
                    f"model {i} has the objective {loss:.12g}, above the threshold"
                )
        sets = [
            m.support if c.structure is None else c.structure.groups_of(m.support) for m in c.models
        ]
        self.failures += containments([frozenset(one.tolist()) for one in sets])

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
                self.failures.append(
                    "y does not vary, and the empty model, which fits it, is not listed"
                )
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
            self.failures.append(
                f"a listed model has fewer than {counted(proof.size, 'feature')}, which the proof "
                "is about"
            )
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
        if isinstance(self.source, Gram):
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
        seen, n_looked_at = set(waiting), 0
        while waiting:
            if len(seen) > limits().parts:
                self.failures.append(
                    f"the largest models have more than {limits().parts} parts, too many to look at"
                )
                return
            self.allowance.require(Work(0.0, 0.0, 1e-7 * n_looked_at), 1, False)
            self.allowance.check()
            n_looked_at += len(wanted)
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
                self.failures.append(
                    f"a model of {counted(size, 'feature')} is below the threshold, and not listed"
                )

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
                self.failures.append(
                    f"model {support} has features that are constant, excluded or copies of others"
                )
            known.append(place[place >= 0])
        return known

    def all_sizes(self) -> None:
        """Is there a proof for each size for which one is needed?"""
        c = self.certificate
        sizes = [proof.size for proof in c.proofs]
        if len(set(sizes)) < len(sizes):
            self.failures.append("there are two proofs for models of one size")
        if c.only_k or c.largest is not None or c.structure is not None:
            if sizes != [c.k]:
                self.failures.append(f"there is no proof for models of {counted(c.k, 'feature')}")
            return
        if any(len(np.setdiff1d(model.support, c.given)) == 0 for model in self._listed):
            return  # every support contains this one
        for size in range(len(c.include), min(c.k, self.source.n_features) + 1):
            if size not in sizes and not any(
                smaller < size and self.n_left.get(smaller, 1) <= 0 for smaller in sizes
            ):
                self.failures.append(f"there is no proof for models of {counted(size, 'feature')}")
