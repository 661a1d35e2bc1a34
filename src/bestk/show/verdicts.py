"""What is proven, in a sentence or two at the head of a page."""

from bestk.results.status import Status
from bestk.show.html import tag
from bestk.show.plots import percent
from bestk.show.structure import n_units, unit_of

# What a proof inside a box leaves open.
_OUTSIDE = (
    "Models with larger coefficients were not looked at: give bounds that you trust, or a "
    "larger box, to learn more."
)


def verdict(result):
    """What is proven; gaps are rounded up, since the sentence must hold."""
    if result.status is Status.PERFECT_FIT:
        return _banner(True, "Perfect fit.", result.status.advice)
    gap = percent(result.gap)
    where = "inside the box " if result.is_conditional else ""
    total, unit = n_units(result.structure, len(result.coef)), unit_of(result.structure)
    text = f"No admissible model with at most {result.k} of {total} {unit}s {where}"
    text += f"is better by more than {gap}." if result.gap > 0 else "has a smaller objective."
    remark = f" {result.bound_remark}" if result.at_bounds else ""
    if result.is_proven:
        return _banner(True, "Proven optimal.", text + remark)
    if result.is_closed:
        return _banner(False, "Conditional.", f"{text} {_OUTSIDE}{remark}")
    head = f"Stopped early ({result.status}): the gap is {gap}."
    if result.lower_bound <= 0.0:
        text = f"Nothing is proven yet about models with at most {result.k} of {total} {unit}s"
        text += f" {where}".rstrip() + ": the lower bound is 0."
    return _banner(False, head, f"{text} {result.status.advice}{remark}")


def path_verdict(path):
    proven = sum(result.is_proven for result in path.results)
    if path.is_closed and not path.is_proven:
        text = f"Each model is the best of its size inside the box that was chosen. {_OUTSIDE}"
        return _banner(False, "Conditional.", text)
    head = "Every size is proven optimal." if path.is_proven else "Not every size is proven."
    text = f"{proven} of {len(path)} models are proven optimal"
    if not path.is_proven:
        advice = next(r.status.advice for r in path.results if not r.is_closed)
        text += f"; the largest gap is {percent(path.gaps.max())}. {advice}"
    else:
        text += ", each with its own bound."
    return _banner(path.is_proven, head, text)


def cv_verdict(cv):
    if cv.is_closed and not cv.is_proven:
        text = f"Each model is the best of its size inside the box chosen for it. {_OUTSIDE}"
        return _banner(False, "Conditional.", text)
    proven = [result.is_proven for folds in cv.paths for path in folds for result in path.results]
    head = "Every fit is proven optimal." if cv.is_proven else "Not every fit is proven."
    text = f"{sum(proven)} of {len(proven)} fits are proven optimal"
    text += f"; the largest gap is {percent(cv.gaps.max())}."
    if not cv.is_proven:
        text += " Raise the limits, or read the errors as those of the best models found."
    return _banner(cv.is_proven, head, text)


def stability_verdict(found):
    head = "Every model is proven optimal." if found.is_proven else "Not every model is proven."
    return _banner(found.is_proven, head, f"{found.claim}.")


def discovery_verdict(found):
    return _banner(found.is_proven, *found.verdict)


def _banner(proven, head, text):
    return tag(
        "p", tag("strong", head), " ", text, class_="verdict proven" if proven else "verdict"
    )
