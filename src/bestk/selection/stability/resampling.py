"""Random resamples of rows, as counts: how often each row is drawn."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bestk.base.validation import require_choice, require_count, require_share

KINDS = ("bootstrap", "subsample", "block")


@dataclass(frozen=True, kw_only=True, eq=False)
class Resampling:
    """Resamples of n rows, each with a seed of its own: any of them can be drawn, in any order.

    Attributes
    ----------
    kind : {"bootstrap", "subsample", "block"}
        How rows are drawn, see :func:`resample_weights`.
    n : int
        Rows to draw from.
    size : int
        Rows of a resample, counted as often as they are drawn.
    block_length : int or None
        Rows of a block; None for kinds without blocks.
    seeds : (n_resamples, 4) array
        The seed of each resample.
    """

    kind: str
    n: int
    size: int
    block_length: int | None = None
    seeds: np.ndarray = field(repr=False)

    @classmethod
    def of(
        cls,
        n: int,
        n_resamples: int,
        *,
        resample: str = "bootstrap",
        fraction: float = 0.5,
        block_length: int | None = None,
        random_state: Any = None,
    ) -> "Resampling":
        """Checked arguments; see :func:`resample_weights`."""
        n = require_count("n", n, least=1)
        n_resamples = require_count("n_resamples", n_resamples, least=1)
        require_choice("resample", resample, KINDS)
        fraction = require_share("fraction", fraction, such_as=0.5)
        if resample == "block":
            block_length = _block_length(block_length, n)
        elif block_length is not None:
            raise ValueError(
                f'block_length is for resample="block", not for {resample!r}; leave it out'
            )
        seeds = _generator(random_state).integers(2**32, size=(n_resamples, 4), dtype=np.uint32)
        size = max(1, round(fraction * n)) if resample == "subsample" else n
        return cls(kind=resample, n=n, size=size, block_length=block_length, seeds=seeds)

    def __len__(self) -> int:
        return len(self.seeds)

    @property
    def share(self) -> float:
        """Rows of a resample relative to the rows there are."""
        return self.size / self.n

    def counts(self, number: int) -> np.ndarray:
        """(n,) array of whole numbers: how often resample `number` has each row."""
        rng = np.random.default_rng(self.seeds[number])
        if self.kind == "subsample":
            drawn = rng.choice(self.n, self.size, replace=False, shuffle=False)
        elif self.kind == "block":
            assert self.block_length is not None
            starts = rng.integers(self.n, size=-(-self.n // self.block_length))
            blocks = starts[:, None] + np.arange(self.block_length)
            drawn = blocks.ravel()[: self.n] % self.n
        else:
            drawn = rng.integers(self.n, size=self.n)
        return np.bincount(drawn, minlength=self.n).astype(np.float64)


def resample_weights(
    n: int,
    n_resamples: int = 100,
    *,
    resample: str = "bootstrap",
    fraction: float = 0.5,
    block_length: int | None = None,
    random_state: Any = None,
) -> np.ndarray:
    """(n_resamples, n) array: how often each of n rows is in each resample.

    These are the weights of the rows in :func:`bestk.stability` with the same arguments (there
    they are multiplied by ``sample_weight``). A larger `n_resamples` begins with the same ones.

    Parameters
    ----------
    n, n_resamples : int
        Rows there are, and resamples to draw.
    resample : {"bootstrap", "subsample", "block"}
        "bootstrap" draws n rows with replacement. "subsample" draws ``round(fraction * n)`` rows
        without replacement. "block" is the circular block bootstrap for time series: blocks of
        `block_length` consecutive rows begin at random, the first row follows the last one, and the
        last block is cut so that there are n rows. So every row is equally likely.
    fraction : float
        Share of the rows for "subsample", between 0 and 1.
    block_length : int or None
        For "block", at most n; by default the cube root of n, rounded.
    random_state : int, numpy.random.Generator or None
        The same number gives the same resamples; None gives others each time.
    """
    resampling = Resampling.of(
        n,
        n_resamples,
        resample=resample,
        fraction=fraction,
        block_length=block_length,
        random_state=random_state,
    )
    return np.array([resampling.counts(i) for i in range(len(resampling))])


def _block_length(value: int | None, n: int) -> int:
    if value is None:
        return max(1, round(n ** (1 / 3)))
    value = require_count("block_length", value, least=1)
    if value > n:
        raise ValueError(f"block_length must be at most the number of rows, {n}; got {value}")
    return value


def _generator(random_state: Any) -> np.random.Generator:
    if random_state is None or isinstance(random_state, np.random.Generator):
        return np.random.default_rng(random_state)
    if isinstance(random_state, np.random.RandomState):  # which scikit-learn passes on
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    try:
        seed = require_count("random_state", random_state, least=0, most=np.inf)
        return np.random.default_rng(seed)
    except TypeError:
        raise TypeError(
            "random_state must be a whole number >= 0, a numpy.random.Generator or None; "
            f"got {random_state!r}"
        ) from None


def weighted(counts: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    return counts if weight is None else counts * weight
