"""Four ways to find a dual vector; none of them proves anything."""

from typing import Protocol

from bestk.base.threads import Workers
from bestk.bounds.methods.admm import Admm
from bestk.bounds.methods.descent import Descent
from bestk.bounds.methods.fast import Fast
from bestk.bounds.methods.subgradient import Subgradient
from bestk.bounds.node_batch import NodeBatch
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
