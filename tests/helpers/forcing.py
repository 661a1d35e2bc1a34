"""What tests force upon the package: all changes to its tuning constants are made here.

Small problems then do what only large ones do: work by rows, bound by clusters, narrow boxes, share
enumerations. The fixture `force` has all of these; those that several files need have fixtures of
their own in conftest.py. Everything is as it was when the test, or the block of `forced`, ends.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from bestk.base.tuning import tuned
from bestk.verification.limits import limited


def _given(constants: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in constants.items() if value is not None}


class Force:
    """Changes of constants, taken back when `stack` is closed."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def _tune(self, **constants: Any) -> None:
        self._stack.enter_context(tuned(**_given(constants)))

    def _limit(self, **constants: Any) -> None:
        self._stack.enter_context(limited(**_given(constants)))

    # The search

    def wide_search(self) -> None:
        """The search takes every problem for wide and works by rows."""
        self._tune(fewest_wide=1, wide_from=0.0)

    def stored_search(self) -> None:
        """The search takes no problem for wide: all products are stored."""
        self._tune(fewest_wide=10**9)

    def cores(self, *, first: int, per_choice: int, entrants: int, many: int) -> None:
        """Sizes of the cores on which bounds of wide forms are computed."""
        self._tune(
            core_first=first, core_per_choice=per_choice, core_entrants=entrants, core_many=many
        )

    def tiny_cores(self) -> None:
        """Every problem is wide, and cores are so small that they have to grow."""
        self.wide_search()
        self.cores(first=2, per_choice=0, entrants=1, many=4)

    def cluster_bounds(self) -> None:
        """Bounds by clusters take over, however little they gain."""
        self._tune(clusters_below=2.0, hope=1e9)

    def narrowed_at_once(self) -> None:
        """Boxes are narrowed after the first few nodes, whatever that costs."""
        self._tune(narrow_after=0.0)
        self.units(nodes=4, in_flight=2)

    def never_narrowed(self) -> None:
        self._tune(narrow_after=float("inf"))

    def box_factor(self, factor: float) -> None:
        """How much larger than its first model an automatic box is."""
        self._tune(box_factor=factor)

    def units(
        self, *, nodes: int, in_flight: int | None = None, close: float | None = None
    ) -> None:
        """Nodes of a unit, units in flight, and model seconds of enumerations in units."""
        self._tune(
            unit_nodes=nodes,
            first_unit_nodes=nodes,
            units_in_flight=in_flight,
            unit_close=close,
            unit_close_bounds=None if close is None else 0.0,
        )

    def units_from(self, n_nodes: int) -> None:
        """Nodes of a tree from which on subtrees are units; fewer are bounded in batches."""
        self._tune(units_from=n_nodes)

    def on_cluster(self, *, units_here: int = 0, call: float = 1.0, scan: float = 0.0) -> None:
        """All units but some, and all enumerations, go to a cluster, if there is one."""
        self._tune(units_here=units_here, call_seconds=call, cluster_scan=scan)

    def closed_in_units_only(self) -> None:
        """No node is closed by enumeration but inside a unit, and never all that is open."""
        self._tune(close_below=0.0, close_always=0.0, per_closing=1e3)

    def closed_on_device(self, *, most: float = 1e9, batch: float = 0.0, lag: float = 0.0) -> None:
        """A device closes whatever it can be asked with up to `most` supports, a CPU nothing.

        About `batch` times as many supports go there together. `lag` times as many model
        seconds as supports are spent on units before they land. All that is open is never closed.
        """
        self.closed_in_units_only()
        self._tune(
            per_device_support=1.0, per_device_row=0.0, per_device_first=0.0,
            per_device_beginning=0.0, per_device_node=0.0, device_close=most, device_bounds=0.0,
            device_batch=batch * most, device_threads=1.0, device_lag=lag, per_support=1e3,
            per_closing=0.0, units_per_node=0.0, preparing_counts=0.0, piece_seconds=1e18,
            longest_piece=1e18,
        )  # fmt: skip

    def sums_on_device(self) -> None:
        """Sums of products of any size are worth sending rows to a device."""
        self._tune(device_sums=0.0, device_columns=1)

    def factors_on_device(self) -> None:
        """A device factors matrices of any size, and multiplies with wide data."""
        self._tune(device_factors=1, device_products=0)

    def closed_by_device_at_once(self) -> None:
        """The root goes to the device, whatever it takes."""
        self.closed_on_device()
        self._tune(close_always=1e18)

    def scans_before_bounds(self) -> None:
        """Units scan a node whenever they may, and bound it only if that did not close it."""
        self._tune(per_unit_multiply=1.0)

    def shared_charges(self) -> None:
        """Subtrees of any size share charges that improve at every step, weakest nodes first."""
        self._tune(
            own_features=0, ascent_share=0.0, per_cube=0.0, per_node=0.0, weakest_first_below=2.0
        )

    def own_charges(self) -> None:
        """Every unit looks for charges of its own, and takes what it finds."""
        self._tune(own_always=float("inf"), own_from=-float("inf"))

    def methods(
        self,
        *,
        admm: int | None = None,
        subgradient: int | None = None,
        closeness: float | None = None,
        sweeps: int | None = None,
    ) -> None:
        """How long ADMM and subgradients run, and how close descent comes in how many sweeps."""
        self._tune(
            admm_iterations=admm,
            subgradient_iterations=subgradient,
            closeness=closeness,
            sweeps=sweeps,
        )

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
        self._tune(
            per_support=per_support,
            most_hits=max_hits,
            worth_fitting=worth_fitting,
            few_hits=few,
            most_free=most_free,
        )

    def sharing(
        self,
        *,
        least: float | None = None,
        close: float | None = None,
        useless: float | None = None,
    ) -> None:
        """When an enumeration is shared: least cost, ratio of penalties, gap that bounds leave."""
        self._tune(share_least=least, share_close=close, share_useless=useless)

    # The verifier

    def verified_on_device(self) -> None:
        """The verifier asks a device, if there is one, for all that it can be asked."""
        self._limit(device_supports=0, thread_supports=0, looped_features=0)

    def wide_verifier(self) -> None:
        """The verifier takes every problem for wide, in parts as small as they can be."""
        self._limit(
            fewest_wide=1,
            wide_from=0.0,
            gathered_entries=40,
            gains_features=3,
            listed_features=1,
            waiting_bytes=50,
        )
        self.verifier_parts(block=40, gains=20)

    def wide_matrices_of_the_verifier(self) -> None:
        """The verifier takes every problem for wide, in parts of the usual size."""
        self._limit(fewest_wide=1, wide_from=0.0)

    def wide_from(self, ratio: float) -> None:
        """How many features per row the verifier calls wide."""
        self._limit(wide_from=ratio)

    def verifier_parts(self, *, block: int, gains: int) -> None:
        """Sizes of the parts in which the verifier works by columns."""
        self._limit(wide_entries=block, gains_entries=gains)

    def verifier_forms_products_of(self, n_features: int) -> None:
        """Most features of which the verifier forms products on wide data."""
        self._limit(formed_features=n_features, formed_share=0.0)

    def verifier_keeps(self, n_bytes: int) -> None:
        """Most bytes of batches that the verifier keeps as rows."""
        self._limit(kept_bytes=n_bytes)

    def verifier_calls_for_every_split(self) -> None:
        """The verifier takes no split and no cell for small."""
        self._limit(looped_features=-1)

    def verifier_takes_few_nodes(self) -> None:
        """The verifier works on a few nodes at a time, and threads on fewer still."""
        self._limit(nodes=5, part=2, tasks=2, thread_supports=20)

    # Data

    def no_triangles(self) -> None:
        """Batches are summed up as products alone."""
        self._tune(triangle_features=0)

    def reading(self, *, batch_bytes: int | None = None, text_bytes: int | None = None) -> None:
        """Sizes of the batches and blocks of text that are read from files."""
        self._tune(batch_bytes=batch_bytes, text_bytes=text_bytes)

    def parts(self, *, n_bytes: int, columns: int, block_bytes: int) -> None:
        """Sizes of the parts of tables, and of what is decoded of them at a time."""
        self._tune(part_bytes=n_bytes, part_columns=columns, block_bytes=block_bytes)


@contextmanager
def forced() -> Iterator[Force]:
    """`Force` for a block of a test, or where there is no fixture."""
    with ExitStack() as stack:
        yield Force(stack)
