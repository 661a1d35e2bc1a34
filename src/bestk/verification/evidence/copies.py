"""Features that a certificate leaves out because they repeat others: do they?"""

import numpy as np

from bestk.verification.evidence.problem import Unfit
from bestk.verification.numerics.rounding import UNIT
from bestk.verification.numerics.rows import Rows

# A feature repeats another one if their directions differ by less than this.
_COPY = 1e-13


def copies(certificate, features, A, rows, eps, assumptions) -> np.ndarray:
    """Mask over the problem's features that repeat another one; Unfit where one does not."""
    dropped = np.zeros(len(certificate.coef), dtype=bool)
    if len(certificate.copies) == 0:
        return dropped
    if certificate.alpha > 0.0:
        raise Unfit(
            "the certificate leaves out copies of features, which is valid without a penalty only, "
            "and alpha is positive"
        )
    position = {int(j): i for i, j in enumerate(features)}
    original = {int(j): int(other) for j, other in certificate.copies}
    unbounded = np.isinf(certificate.lower) & np.isinf(certificate.upper)
    for j, other in original.items():
        where = f"feature {j} as a copy of {other}"
        refused = f"feature {j} may not be left out as a copy of {other}"
        if j in certificate.given or not (unbounded[j] and unbounded[other]):
            raise Unfit(f"{refused}: it is included, or one of them has bounds")
        if j not in position:
            continue  # useless anyway
        if other not in position:
            raise Unfit(f"{refused}: feature {other} cannot be in any model")
        _require_kept(original, j)
        if rows is None:
            both = np.array([position[j], position[other]])
            if 1.0 - abs(A.block(both)[0, 1]) > 8.0 * (eps + UNIT):
                raise Unfit(f"{refused}: their products differ")
            assumptions.append(f"{where}: as far as products can tell")
        elif not _is_exact_copy(rows, j, other):
            if _distance(rows, j, other) > _COPY:
                raise Unfit(f"{refused}: their columns differ")
            assumptions.append(f"{where}: they agree to {_COPY:g}, not exactly")
        dropped[j] = True
    return dropped


def _require_kept(original: dict[int, int], feature: int) -> None:
    """Each chain of copies must end at a feature that stays."""
    seen = {feature}
    while feature in original:
        feature = original[feature]
        if feature in seen:
            raise Unfit(
                f"feature {feature} may not be left out as a copy of others that are copies of it"
            )
        seen.add(feature)


def _is_exact_copy(rows: Rows, j: int, other: int) -> bool:
    """Is x_i o_m = x_m o_i for all rows i, exactly? m is the row with the largest o."""
    used = slice(None) if rows.weight is None else rows.weight > 0.0
    x, o = (
        np.ldexp(rows.X[used, feature].astype(np.float64), -int(rows.exponent[feature]))
        for feature in (j, other)
    )
    m = int(np.argmax(np.abs(o)))
    left, right = _exact_product(x, o[m]), _exact_product(o, x[m])
    return bool((left[0] == right[0]).all() and (left[1] == right[1]).all())


def _exact_product(a, b) -> tuple[np.ndarray, np.ndarray]:
    """(product, its rounding error), Veltkamp and Dekker: their sum is exact."""
    splitter = 2.0**27 + 1.0
    a1 = splitter * a - (splitter * a - a)
    b1 = splitter * b - (splitter * b - b)
    a2, b2, product = a - a1, b - b1, a * b
    return product, a2 * b2 - (((product - a1 * b1) - a2 * b1) - a1 * b2)


def _distance(rows: Rows, j: int, other: int) -> float:
    a, b = rows.columns(np.array([j, other])).M.T
    a, b = a / np.sqrt(a @ a), b / np.sqrt(b @ b)
    difference = a - np.sign(a @ b) * b
    return float(np.sqrt(difference @ difference))
