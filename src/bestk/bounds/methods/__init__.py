"""Four ways to find a dual vector. None of them proves anything: `certify` does."""

from typing import Protocol

from bestk.base.threads import Workers
from bestk.bounds.certify import certify
from bestk.bounds.methods.admm import Admm
from bestk.bounds.methods.descent import Descent
from bestk.bounds.methods.fast import Fast
from bestk.bounds.methods.subgradient import Subgradient
from bestk.bounds.node_batch import NodeBatch, as_recorded
from bestk.bounds.split import Split
from bestk.form.standard_form import StandardForm


class Method(Protocol):
    def search(self, batch: NodeBatch, k: int, cutoff: float) -> None:
        """Improve batch.duals in place; stop early on nodes whose bound reaches cutoff."""


def make_method(name: str, form: StandardForm, split: Split, workers: Workers) -> Method:
    methods: dict[str, type[Descent | Admm | Fast | Subgradient]] = {
        "descent": Descent,
        "admm": Admm,
        "fast": Fast,
        "subgradient": Subgradient,
    }
    return methods[name](form, split, workers)


def bound_nodes(
    method: Method,
    form: StandardForm,
    split: Split,
    batch: NodeBatch,
    k: int,
    cutoff: float,
    fixing: bool,
    workers: Workers,
) -> None:
    """Bound every node of the batch: fills batch.bounds; batch.states gain the fixings."""
    method.search(batch, k, cutoff)
    batch.duals = as_recorded(batch.duals, split.t)
    certify(form, split.t, batch, k, cutoff, fixing, workers)
