"""Better models on the way: beam search at the root, rounding of relaxations below it."""

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from bestk.base.constants import FREE, IN
from bestk.base.state import State
from bestk.base.tuning import tuning
from bestk.form.standard_form import StandardForm
from bestk.subtrees.frontier import Node
from bestk.supports.beam import beam_supports, fit_supports, improve_by_swaps
from bestk.supports.incumbent import Incumbent


class Improver:
    """Offers supports to the incumbent; exact fits decide. ``seen`` are those rounded before.

    Searching ends early at the `deadline`, but has a second for a first model.
    """

    def __init__(self, incumbent: Incumbent, *, deadline: float) -> None:
        self.incumbent = incumbent
        self.deadline = max(deadline, perf_counter() + tuning().first_model_seconds)
        self.seen: set[bytes] = set()

    def stop(self) -> bool:
        return perf_counter() >= self.deadline

    @property
    def nbytes(self) -> int:
        return 200 * len(self.seen)

    def state(self) -> State:
        rows = [np.frombuffer(row, dtype=np.intp) for row in sorted(self.seen)]
        return State({}, {"seen": np.array(rows, dtype=np.intp)})

    def restore(self, state: State) -> None:
        seen = state.arrays["seen"]
        if seen.size:
            self.seen = {row.tobytes() for row in state.integers("seen", None, None)}

    def search(self, form: StandardForm, inside: np.ndarray, k: int, width: int) -> None:
        """Beam search and swaps from a set of features, and from the best model so far.

        That one may be of another size or penalty: as it is, it would hide what k allows.
        """
        if form.p <= k:
            self.incumbent.offer(form.features)  # nothing to choose
            return
        known = np.flatnonzero(np.isin(form.features, self.incumbent.support))
        self._grow(form, inside, inside, k, width)
        if len(inside) < len(known) <= k:
            self._grow(form, np.union1d(known, inside), inside, k, width=1)

    def _grow(
        self, form: StandardForm, start: np.ndarray, inside: np.ndarray, k: int, width: int
    ) -> None:
        found = beam_supports(form, start, k, width=width, stop=self.stop)[0]
        self.polish(form, found, inside)

    def round(self, form: StandardForm, inside: np.ndarray, k: int, nodes: Sequence[Node]) -> None:
        """Complete IN by the largest relaxed coefficients; swaps where that beats the incumbent."""
        supports = [s for node in nodes if (s := self._rounded(node, k)) is not None]
        if not supports:
            return
        _, values = fit_supports(form, np.array(supports))
        best = int(values.argmin())
        if values[best] < self.incumbent.value - 1e-12:
            self.polish(form, supports[best], inside)

    def _rounded(self, node: Node, k: int) -> np.ndarray | None:
        """The support that a node's relaxation suggests, if it is a new one."""
        inside = np.flatnonzero(node.state == IN)
        r = k - len(inside)
        candidates = node.state[node.nonzeros] == FREE
        index, size = node.nonzeros[candidates], np.abs(node.values[candidates])
        if len(index) < r:
            return None
        support = np.sort(np.concatenate([inside, index[np.argsort(-size, kind="stable")[:r]]]))
        if support.tobytes() in self.seen:
            return None
        self.seen.add(support.tobytes())
        return support

    def polish(self, form: StandardForm, support: np.ndarray, inside: np.ndarray) -> None:
        """Offer a support after swaps of its features, those `inside` excepted."""
        everything = np.ones(form.p, dtype=bool)
        better = improve_by_swaps(form, support, inside, everything, self.stop)
        self.incumbent.offer(form.features[better])
