"""Information criteria for the number of features (theory: criteria)."""

from math import inf, lgamma, log

from bestk.base.validation import require_choice

CRITERIA = ("aicc", "bic", "ebic")


def information_criterion(
    name: str, *, rss: float, n: int | None, size: int, extra: int, chosen: int, among: int
) -> float:
    """``n log(rss / n) + penalty`` of a Gaussian model with `size` chosen and `extra` parameters.

    With q = size + extra (noise variance, intercept) the penalties are

    - aicc: 2 q + 2 q (q + 1) / (n - q - 1), infinite where that is not positive;
    - bic: q log n;
    - ebic: q log n + 2 log C(among, chosen), which also pays for what was chosen, features or
      groups, among all of them.
    """
    require_choice("criterion", name, CRITERIA)
    if n is None:
        raise ValueError("the number of rows is not known; pass n to Problem.from_gram")
    q = size + extra
    fit = n * log(rss / n) if rss > 0 else -inf
    if name == "aicc":
        left = n - q - 1
        return fit + 2 * q + 2 * q * (q + 1) / left if left > 0 else inf
    choices = lgamma(among + 1) - lgamma(chosen + 1) - lgamma(among - chosen + 1)
    return fit + q * log(n) + (2 * choices if name == "ebic" else 0.0)
