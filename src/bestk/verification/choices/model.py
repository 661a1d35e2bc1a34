"""Does the model of a certificate obey its structure?"""

import numpy as np

from bestk.base.validation import counted
from bestk.results.certificate import Certificate
from bestk.verification.evidence import Evidence
from bestk.verification.limits import limits

# Constraints hold up to this share of their parts: coefficients are rounded, and so are fits.
_SLACK = 1e-8
# The same beside coefficients of usual size: one that should be zero may not quite be.
_NOISE = 1e-10


def usual_sizes(evidence: Evidence) -> np.ndarray:
    """How large coefficients are: those that explain all of y, or as large as the largest is."""
    sizes = np.zeros(len(evidence.position))
    largest = max(1.0, float(np.abs(evidence.form_coef).max(initial=0.0)))
    sizes[evidence.live] = largest / evidence.to_form
    return sizes


def flaws_of_model(certificate: Certificate, sizes: np.ndarray | float) -> list[str]:
    """Reasons why the chosen groups, or the coefficients, are not admissible.

    `sizes` are usual ones of coefficients.
    """
    c, structure, choices = certificate, certificate.structure, certificate.choices
    assert structure is not None
    assert choices is not None
    reasons = []
    chosen = np.asarray(choices.chosen, dtype=np.int64)
    n_counted = len(np.setdiff1d(chosen, structure.groups_of(c.free)))
    if n_counted > c.k:
        reasons.append(f"the model uses {counted(n_counted, 'group')}, more than k = {c.k}")
    if np.setdiff1d(structure.groups_of(c.given), chosen).size:
        reasons.append("the model lacks a group that is included or free")
    if np.intersect1d(structure.groups_of(c.exclude), chosen).size:
        reasons.append("the model uses an excluded group")
    if np.setdiff1d(np.flatnonzero(c.coef), structure.features_of(chosen)).size:
        reasons.append("the model has coefficients outside of its groups")
    if structure.broken(chosen):
        reasons.append(f"the model breaks the rules: {_named(structure, chosen)}")
    value = structure.matrix @ c.coef
    parts = np.abs(structure.matrix) @ np.abs(c.coef)
    used = np.isin(structure.groups, chosen)
    noise = _NOISE * (np.abs(structure.matrix) @ (used * sizes))
    for side, excess in (
        (structure.lower, structure.lower - value),
        (structure.upper, value - structure.upper),
    ):
        size = parts + np.abs(np.where(np.isfinite(side), side, 0.0))
        broken = np.flatnonzero(~(excess <= _SLACK * size + noise))
        for i in broken[: limits().failures].tolist():
            reasons.append(f"the model is out of constraint {i} by {excess[i]:.3g}")
    return reasons


def _named(structure, chosen) -> str:
    """The rules that are broken, in the words of users where there are any."""
    rules = sorted({int(structure.rows[i].rule) for i in structure.broken(chosen)})
    words, most = structure.words, limits().failures
    named = [words[i] if 0 <= i < len(words) else f"rule {i}" for i in rules[:most]]
    return "; ".join([*named, *([f"and {len(rules) - most} more"] if len(rules) > most else [])])
