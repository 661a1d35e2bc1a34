"""What tests force upon the package: all changes to its tuning constants are made here.

Small problems then do what only large ones do: work by rows, bound by clusters, narrow boxes, share
enumerations. The fixture `force` has all of these; those that several files need have fixtures of
their own in conftest.py. Everything is as it was when the test, or the block of `forced`, ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bestk.bounds import wide as wide_bounds
from bestk.bounds.methods import Admm, Descent, Subgradient
from bestk.form import matrix as search_matrix
from bestk.problem import rows
from bestk.readers import data as readers
from bestk.search import automatic_box, bounder, tree
from bestk.selection import shared_enumeration
from bestk.supports import enumeration as search_enumeration
from bestk.verification import cover, evidence, splits
from bestk.verification import enumeration as verifier_enumeration
from bestk.verification.numerics import matrices as verifier_matrix
from bestk.verification.numerics import wide as verifier_wide


class Force:
    """Changes of constants, taken back by `patch`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def _set(self, owner, **constants) -> None:
        for name, value in constants.items():
            if value is not None:
                self._patch.setattr(owner, name, value)

    # The search

    def wide_search(self) -> None:
        """The search takes every problem for wide and works by rows."""
        self._set(search_matrix, FEWEST_WIDE=1, WIDE_FROM=0.0)

    def stored_search(self) -> None:
        """The search takes no problem for wide: all products are stored."""
        self._set(search_matrix, FEWEST_WIDE=10**9)

    def cores(self, *, first: int, per_choice: int, entrants: int, many: int) -> None:
        """Sizes of the cores on which bounds of wide forms are computed."""
        self._set(wide_bounds, _FIRST=first, _PER_CHOICE=per_choice, _ENTRANTS=entrants, _MANY=many)

    def tiny_cores(self) -> None:
        """Every problem is wide, and cores are so small that they have to grow."""
        self.wide_search()
        self.cores(first=2, per_choice=0, entrants=1, many=4)

    def cluster_bounds(self) -> None:
        """Bounds by clusters take over, however little they gain."""
        self._set(tree, _BLOCKS_BELOW=2.0, _HOPE=1e9)

    def narrowed_at_once(self) -> None:
        """Boxes are narrowed after the first batch, whatever that costs."""
        self._set(bounder, _NARROW_AFTER=0.0)

    def never_narrowed(self) -> None:
        self._set(bounder, _NARROW_AFTER=float("inf"))

    def box_factor(self, factor: float) -> None:
        """How much larger than its first model an automatic box is."""
        self._set(automatic_box, FACTOR=factor)

    def methods(
        self,
        *,
        admm: int | None = None,
        subgradient: int | None = None,
        closeness: float | None = None,
        sweeps: int | None = None,
    ) -> None:
        """How long ADMM and subgradients run, and how close descent comes in how many sweeps."""
        self._set(Admm, iterations=admm)
        self._set(Subgradient, iterations=subgradient)
        self._set(Descent, closeness=closeness, sweeps=sweeps)

    def enumeration(
        self,
        *,
        per_support: float | None = None,
        max_hits: int | None = None,
        worth_fitting: int | None = None,
        few: int | None = None,
        most_free: int | None = None,
    ) -> None:
        """Limits of the search's enumeration."""
        self._set(
            search_enumeration, _PER_SUPPORT=per_support, MAX_HITS=max_hits,
            _WORTH_FITTING=worth_fitting, _FEW=few, _MOST_FREE=most_free,
        )  # fmt: skip

    def sharing(
        self,
        *,
        least: float | None = None,
        close: float | None = None,
        useless: float | None = None,
    ) -> None:
        """When an enumeration is shared: least cost, ratio of penalties, gap that bounds leave."""
        self._set(shared_enumeration, _LEAST=least, _CLOSE=close, _USELESS=useless)

    # The verifier

    def wide_verifier(self) -> None:
        """The verifier takes every problem for wide, in parts as small as they can be."""
        self._set(verifier_matrix, FEWEST_WIDE=1, WIDE_FROM=0.0, _GATHERED=40)
        self._set(splits, _PART=3)
        self._set(verifier_enumeration, _MANY=1)
        self._set(cover, _WAITING=50)
        self.verifier_parts(block=40, gains=20)

    def wide_matrices_of_the_verifier(self) -> None:
        """The verifier takes every problem for wide, in parts of the usual size."""
        self._set(verifier_matrix, FEWEST_WIDE=1, WIDE_FROM=0.0)

    def wide_from(self, ratio: float) -> None:
        """How many features per row the verifier calls wide."""
        self._set(verifier_matrix, WIDE_FROM=ratio)

    def verifier_parts(self, *, block: int, gains: int) -> None:
        """Sizes of the parts in which the verifier works by columns."""
        self._set(verifier_wide, _BLOCK=block)
        self._set(splits, _GAINS=gains)

    def verifier_forms_products_of(self, n_features: int) -> None:
        """Most features of which the verifier forms products on wide data."""
        self._set(verifier_matrix, _FEW=n_features, _SHARE=0.0)

    def verifier_keeps(self, n_bytes: int) -> None:
        """Most bytes of batches that the verifier keeps as rows."""
        self._set(evidence, KEPT_BYTES=n_bytes)

    # Data

    def no_triangles(self) -> None:
        """Batches are summed up as products alone."""
        self._set(rows, _TRIANGLE_UP_TO=0)

    def reading(self, *, batch_bytes: int | None = None, text_bytes: int | None = None) -> None:
        """Sizes of the batches and blocks of text that are read from files."""
        self._set(readers, BATCH_BYTES=batch_bytes, _TEXT_BYTES=text_bytes)


@contextmanager
def forced() -> Iterator[Force]:
    """`Force` for a block of a test, or where there is no fixture."""
    with pytest.MonkeyPatch.context() as patch:
        yield Force(patch)
