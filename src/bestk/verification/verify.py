"""Check a certificate on the data, with none of the code that made it.

Every number a certificate contains is only a hint: a dual vector, a split, a decision. What they
prove is computed here, from the data, with its own rounding analysis (docs/certificates.md).
Nothing in this package imports the search.
"""

import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from bestk.base.cluster.collections import blocks_of, is_collection
from bestk.base.fingerprint import DataDigest, fingerprint, gram_digest, rows_digest
from bestk.base.validation import counted, require_device, require_flag
from bestk.base.words import printable
from bestk.results.certificate import Certificate
from bestk.verification import evidence as data
from bestk.verification.allowance import Allowance
from bestk.verification.choices import model as chosen
from bestk.verification.cover import Cover, cover
from bestk.verification.evidence import (
    OTHER_DATA,
    Evidence,
    NoVariation,
    Unfit,
    checked_batches,
    checked_gram,
    checked_rows,
    finite,
)
from bestk.verification.exact.form import ExactForm, exact_objective, exact_products, floor_float
from bestk.verification.forecast import forecast, work_of
from bestk.verification.limits import limits
from bestk.verification.nodes import FloatNodes
from bestk.verification.numerics.matrices import Stored
from bestk.verification.numerics.rounding import UNIT
from bestk.verification.proving import (
    PERFECT,
    TOLERANCE,
    FloatBackEnd,
    enumeration_for,
    proven_of_choices,
    target_of,
)
from bestk.verification.supports.on_device import open_scan
from bestk.verification.threads import threads_for
from bestk.verification.wellformed import flaws

_ROUNDINGS = 32
# What these roundings may hide, a share of y'y: coefficients that cancel must not hide everything.
_MOST_LOST = 1e-6


class LongVerification(UserWarning):
    """A verification will take long; the message says how long."""


@dataclass(frozen=True, kw_only=True)
class Verification:
    """What was verified of a certificate.

    ``objective`` and ``lower_bound`` are recomputed from the data: the certificate's model has this
    objective, and no admissible model is below this bound. ``assumptions`` are what the proof rests
    on besides the data; usually there are none. ``n_supports`` were tried one by one.
    """

    is_valid: bool
    failures: tuple[str, ...] = ()
    objective: float = float("nan")
    lower_bound: float = 0.0
    gap: float = float("nan")
    n_nodes: int = 0
    n_leaves: int = 0
    n_splits: int = 0
    n_supports: int = 0
    assumptions: tuple[str, ...] = ()
    exact: bool = False
    seconds: float = 0.0

    def __bool__(self) -> bool:
        return self.is_valid

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        how = "in rational numbers" if self.exact else "rounding accounted for"
        lines = [f"{'Verified' if self.is_valid else 'NOT verified'}, {how}"]
        lines += [f"  failure: {printable(failure)}" for failure in self.failures]
        lines += [
            f"  objective    {self.objective:.10g}",
            f"  lower bound  {self.lower_bound:.10g}",
            f"  gap          {100 * self.gap:.3g}%",
            f"  nodes        {self.n_nodes} ({self.n_leaves} leaves, {self.n_splits} splits)",
            f"  supports     {self.n_supports} tried one by one",
            f"  seconds      {self.seconds:.3g}",
        ]
        return "\n".join(lines + [f"  assumption: {text}" for text in self.assumptions])


def verify(
    certificate: Certificate,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    exact: bool = False,
    n_threads: int | None = None,
    device: str = "cpu",
    max_seconds: float | None = None,
    allow_long: bool = False,
) -> Verification:
    """Does the claim of a certificate hold for these rows?

    Raises only for X, y or weights that are no data at all, and TooLong for a proof that asks for
    more work than is allowed; whatever is wrong with the certificate, or between the two, is a
    failure of the verification.

    Parameters
    ----------
    certificate : Certificate
    X, y, sample_weight : array-like
        The data of the run. Dask collections come here one partition at a time.
    exact : bool
        Compute in rational numbers: no rounding, no assumptions. Small problems only.
    n_threads : int or None
        All cores by default. Results do not depend on it.
    device : {"cpu", "cuda", "cuda:1", ...}
        A GPU that tries supports, for proofs that would take a CPU hours; needs ``bestk[gpu]``.
        Without one, a warning says beforehand how long it will take, if that is long.
    max_seconds : float or None
        Give up after this time, and do not begin where more is forecast. By default a proof that is
        forecast to take more than an hour is refused: a forged one may ask for years.
    allow_long : bool
        Begin whatever is forecast.
    """
    require_flag("exact", exact)
    if is_collection(X):
        if exact:
            raise ValueError("exact=True is for arrays; pass X.compute() and y.compute()")
        rows = blocks_of(X, y, sample_weight).computed()
        return verify_batches(
            certificate, rows, n_threads=n_threads, device=device,
            max_seconds=max_seconds, allow_long=allow_long,
        )  # fmt: skip
    X, y, weight = checked_rows(X, y, sample_weight)
    if exact:
        _require_plain(certificate)
        _require_small(X)
    allowance = Allowance(max_seconds=max_seconds, allow_long=allow_long)
    check = _Check(certificate, exact, device, allowance)
    if X.shape[1] != _n_features(certificate):
        return check.failed(OTHER_DATA)
    if not check.is_wellformed(lambda: rows_digest(X, y, weight)):
        return check.result()
    if exact:
        return check.exactly(X, y, weight)
    with threads_for(n_threads) as pool:
        return check.run(lambda: data.from_rows(certificate, X, y, weight), pool)


def verify_gram(
    certificate: Certificate,
    G: Any,
    c: Any,
    yy: float,
    *,
    n_threads: int | None = None,
    device: str = "cpu",
    max_seconds: float | None = None,
    allow_long: bool = False,
) -> Verification:
    """:func:`verify` for a problem that was given as G = X'X, c = X'y and yy = y'y."""
    G, c, yy = checked_gram(G, c, yy)
    allowance = Allowance(max_seconds=max_seconds, allow_long=allow_long)
    check = _Check(certificate, False, device, allowance)
    if len(c) != _n_features(certificate):
        return check.failed(OTHER_DATA)
    if not check.is_wellformed(lambda: gram_digest(G, c, yy)):
        return check.result()
    with threads_for(n_threads) as pool:
        products = data.full_gram(G, c, yy)
        return check.run(lambda: data.from_gram(certificate, products), pool, products)


def verify_batches(
    certificate: Certificate,
    batches: Iterable[tuple[Any, ...]],
    *,
    n_threads: int | None = None,
    device: str = "cpu",
    max_seconds: float | None = None,
    allow_long: bool = False,
) -> Verification:
    """:func:`verify` for rows that come as blocks (X, y) or (X, y, weight), in one pass.

    Rows are kept as long as 256 MiB in double precision suffice. Of more only sums of products are,
    and nearly dependent features are judged less closely.
    """
    allowance = Allowance(max_seconds=max_seconds, allow_long=allow_long)
    check = _Check(certificate, False, device, allowance)
    digest = DataDigest()
    rows = checked_batches(batches)
    if not check.is_wellformed(None):
        return check.result()
    with threads_for(n_threads) as pool:
        try:
            known = data.from_batches(certificate, rows, digest)
        except (Unfit, NoVariation) as reason:
            if not check.is_same(str(digest)):
                return check.result()
            return check.stopped(reason)
        if not check.is_same(str(digest)):
            return check.result()
        return check.run(lambda: known, pool)


def _n_features(certificate: Certificate) -> int:
    return int(np.size(certificate.coef))


def _require_plain(certificate: Certificate) -> None:
    if certificate.structure is not None:
        raise ValueError(
            "exact=True cannot be used with groups, rules or constraints yet; leave it out"
        )


def _require_small(X: np.ndarray) -> None:
    n, p = X.shape
    if p > limits().exact_features or n * p > limits().exact_entries:
        raise ValueError(
            f"exact=True is for at most {limits().exact_features} features and "
            f"{limits().exact_entries} entries of X, which has {n} rows and {p} features; leave it "
            "out"
        )


class _Check:
    """One verification, from the first look at the certificate to the result."""

    def __init__(
        self, certificate: Certificate, exact: bool, device: str, allowance: Allowance
    ) -> None:
        self.certificate, self.exact, self.allowance = certificate, exact, allowance
        self.device = None if require_device(device) == "cpu" else open_scan(device)
        self.start = time.perf_counter()
        self.failures: list[str] = []
        self.is_malformed = True
        self.found: dict[str, Any] = {}
        self.sizes: np.ndarray | float = 0.0  # usual ones of coefficients, as far as known

    def failed(self, *reasons: str) -> Verification:
        self.failures += reasons
        return self.result()

    def result(self) -> Verification:
        tree = self.certificate.tree
        seconds = time.perf_counter() - self.start
        if not self.is_malformed:
            self.found["n_nodes"], self.found["n_leaves"] = len(tree), int(tree.is_leaf.sum())
            self.found["n_splits"] = len(self.certificate.splits)
            rounding = self.found.get("assumptions", ())
            self.found["assumptions"] = (*self.certificate.assumptions, *rounding)
        return Verification(
            is_valid=not self.failures,
            failures=tuple(self.failures),
            exact=self.exact,
            seconds=seconds,
            **self.found,
        )

    def is_wellformed(self, digest) -> bool:
        self.failures += [f"the certificate is malformed: {f}" for f in flaws(self.certificate)]
        self.is_malformed = bool(self.failures)
        return not self.failures and (digest is None or self.is_same(digest()))

    def is_same(self, digest: str) -> bool:
        if fingerprint(digest, self.certificate) != self.certificate.fingerprint:
            self.failures.append(OTHER_DATA)
        return not self.failures

    def run(self, make_evidence, pool, products=None) -> Verification:
        """In floating point. `products`: the Gram matrix of [X y], if that is what was given."""
        try:
            evidence = make_evidence()
        except (Unfit, NoVariation) as reason:
            return self.stopped(reason)
        evidence = replace(evidence, allowance=self.allowance)
        self.sizes = chosen.usual_sizes(evidence)
        self._foresee(evidence, 1 if pool is None else pool._max_workers)
        try:
            proven, self.found["n_supports"] = self._proven(evidence, pool, products)
        except Unfit as reason:
            return self.failed(str(reason))
        # Products of a few doubles, rounded down.
        value = float(proven.value) * evidence.unit * (1.0 - 8 * UNIT)
        size = float(1.0 + np.abs(evidence.form_coef).sum())
        objective = self._objective(evidence)
        self.found["assumptions"] = tuple(sorted(set(evidence.assumptions)))
        # Whoever evaluates the model in double precision is off by a few roundings of its terms.
        root = _ROUNDINGS * UNIT * size
        lost = min(4 * evidence.eps * size * size, TOLERANCE)
        lost += min(root * (2.0 * float(np.sqrt(objective / evidence.unit)) + root), _MOST_LOST)
        self._conclude(proven, value, objective, evidence.unit, lost)
        return self.result()

    def _proven(self, evidence: Evidence, pool, products) -> tuple[Cover, int]:
        """(what the tree proves, a share of y'y; the number of supports that were tried)"""
        c = self.certificate
        if c.structure is not None:
            return proven_of_choices(c, evidence, pool, products)
        enumeration = enumeration_for(c, evidence, pool, self.device, products)
        nodes = FloatNodes(c, evidence, pool)
        proven = cover(c, FloatBackEnd(evidence, nodes, enumeration))
        return proven._replace(value=min(float(proven.value), 2.0)), enumeration.n_supports

    def _foresee(self, evidence: Evidence, n_threads: int) -> None:
        """Refuse what takes too long, and warn of a long time without a device."""
        is_wide = evidence.rows is not None and not isinstance(evidence.A, Stored)
        n_rows = evidence.rows.n_rows if is_wide and evidence.rows is not None else None
        work, has_device = work_of(self.certificate, n_rows), self.device is not None
        self.allowance.require(work, n_threads, has_device)
        words = None if self.device else forecast(self.certificate, n_threads, n_rows)
        if words is not None:
            warnings.warn(words, LongVerification, stacklevel=5)

    def _objective(self, evidence: Evidence) -> float:
        """f of the model: in extended precision, or exactly where that has too few digits."""
        rows, model, c = evidence.rows, evidence.model, self.certificate
        if rows is None or model is None or model.value >= evidence.objective * (1.0 - 1e-11):
            return evidence.objective
        if rows.n_rows * (len(model.features) + 1) > limits().exact_entries:
            return evidence.objective
        try:
            return float(exact_objective(c, rows.X, rows.y, rows.weight))
        except OverflowError:  # of coefficients that nobody believes in
            return evidence.objective

    def exactly(self, X, y, weight) -> Verification:
        """In rational numbers."""
        c = self.certificate
        G, denominator = exact_products(X, y, weight, c.fit_intercept, range(X.shape[1]))
        try:
            objective = finite(exact_objective(c, X, y, weight))
            if G[-1, -1] == 0:
                squares = y.astype(np.float64) ** 2 * (1.0 if weight is None else weight)
                raise NoVariation(objective, float(np.sum(squares)))
            form = ExactForm(c, G, denominator)
        except (Unfit, NoVariation) as reason:
            return self.stopped(reason)
        form.allowance = self.allowance
        form.target = Fraction(target_of(c, float(form.unit)))
        proven = cover(c, form)
        value = floor_float(Fraction(min(proven.value, 2)) * form.unit)
        self.found["n_supports"] = form.n_supports
        self._conclude(proven, value, objective, float(form.unit), 0.0)
        return self.result()

    def stopped(self, reason: Exception) -> Verification:
        """Before the tree is looked at: it cannot be, or a bound of zero is all there is."""
        if not isinstance(reason, NoVariation):
            return self.failed(str(reason))
        objective, size = reason.args
        self.found.update(objective=objective, lower_bound=0.0, gap=0.0)
        self.failures += _flaws_of_model(self.certificate, self.sizes)
        claims = (self.certificate.objective, self.certificate.lower_bound)
        if self.certificate.structure is not None and len(self.certificate.structure.matrix):
            return self._unscaled(objective, PERFECT * size)
        if not all(abs(claim) <= PERFECT * size for claim in (objective, *claims)):
            self.failures.append(
                "y does not vary, so objective and lower bound of the certificate must be zero"
            )
        return self.result()

    def _unscaled(self, objective: float, least: float) -> Verification:
        """y has no variation, and constraints may exclude zero: only a bound of zero is proven."""
        c = self.certificate
        self.found["gap"] = min(1.0, objective / least) if least > 0.0 else float(objective > 0.0)
        if not abs(objective - c.objective) <= TOLERANCE * objective + least:
            self.failures.append(
                f"the objective of the model is {objective:.12g}, not {c.objective:.12g}"
            )
        if not c.lower_bound <= least:
            self.failures.append("y does not vary, so no lower bound above zero can be proven")
        return self.result()

    def _conclude(self, proven: Cover, value: float, objective: float, yy: float, lost: float):
        """Compare what was verified with what is claimed. `lost`: rounding of f, over yy."""
        c = self.certificate
        least = PERFECT * yy
        value = max(0.0, min(value, objective))
        self.failures += proven.failures
        self.found.update(
            objective=objective, lower_bound=value, gap=(objective - value) / max(objective, least)
        )
        self.failures += _flaws_of_model(c, self.sizes)
        slack = TOLERANCE * max(objective, least) + lost * yy
        if not abs(objective - c.objective) <= slack:
            self.failures.append(
                f"the objective of the model is {objective:.12g} on these data, not "
                f"{c.objective:.12g} as claimed"
            )
        if c.lower_bound > max(c.objective, 0.0) * (1.0 + 1e-12) + 1e-3 * least:
            self.failures.append(
                f"the lower bound that is claimed, {c.lower_bound:.12g}, is above the objective"
            )
        if not value >= c.lower_bound - TOLERANCE * max(c.lower_bound, least):
            self.failures.append(
                f"the lower bound is proven only to {value:.12g}, not to {c.lower_bound:.12g}; "
                f"{proven.weakest}"
            )


def _flaws_of_model(c: Certificate, sizes: np.ndarray | float) -> list[str]:
    """Does the model of the certificate obey its constraints?"""
    reasons = [] if c.structure is None else chosen.flaws_of_model(c, sizes)
    used = np.setdiff1d(np.union1d(np.flatnonzero(c.coef), c.include), c.free)
    if c.structure is None and len(used) > c.k:
        reasons.append(f"the model uses {counted(len(used), 'feature')}, more than k = {c.k}")
    if np.any(c.coef[c.exclude] != 0.0):
        reasons.append("the model uses an excluded feature")
    slack = 1e-12 * np.abs(c.coef)
    if ((c.coef < c.lower - slack) | (c.coef > c.upper + slack)).any():
        reasons.append("a coefficient of the model is out of its bounds")
    if c.intercept != 0.0 and not c.fit_intercept:
        reasons.append("the model has an intercept, the problem has none")
    return reasons
