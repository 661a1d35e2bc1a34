"""How much work a proof may ask for: a forged one may ask for years."""

from dataclasses import dataclass, field
from time import perf_counter

from bestk.base.validation import require_flag, require_number
from bestk.verification.forecast import Work, in_words
from bestk.verification.limits import limits


class TooLong(ValueError):
    """A verification was not begun, or given up: nothing is said about the claim.

    The message says how long it would take and how to allow that.
    """


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """``max_seconds`` from the start on, if given; ``allow_long``: whatever is forecast."""

    max_seconds: float | None = None
    allow_long: bool = False
    started: float = field(default_factory=perf_counter)

    def __post_init__(self) -> None:
        require_flag("allow_long", self.allow_long)
        if self.max_seconds is not None:
            require_number("max_seconds", self.max_seconds, least=0.0, finite=False)

    def require(self, work: Work, n_threads: int, has_device: bool) -> None:
        """Before the work begins: is it hopeless?"""
        most = limits().forecast_seconds if self.max_seconds is None else self.max_seconds
        seconds = work.seconds(n_threads, has_device)
        if self.allow_long or seconds <= most:
            return
        raise TooLong(
            f"this proof asks for {work}: about {in_words(seconds)}. Allowed: {in_words(most)}. "
            "Nothing was checked. If you trust where the proof comes from, allow more time with "
            "max_seconds= (bestk verify --max-seconds), or any time with allow_long=True "
            "(--allow-long)"
        )

    def check(self) -> None:
        """Between pieces of the work: is there time left?"""
        if self.max_seconds is not None and perf_counter() - self.started > self.max_seconds:
            raise TooLong(
                f"the verification was given up after {in_words(self.max_seconds)}, and says "
                "nothing about the claim; raise max_seconds= (bestk verify --max-seconds)"
            )


ANY_TIME = Allowance(allow_long=True)
