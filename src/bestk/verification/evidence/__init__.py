"""What the verifier knows of the data: evidence for or against what a certificate says."""

from bestk.verification.evidence.given import (
    OTHER_DATA,
    checked_batches,
    checked_gram,
    checked_rows,
)
from bestk.verification.evidence.objective import EmptyModel, finite
from bestk.verification.evidence.problem import Evidence, Model, NoVariation, Unfit
from bestk.verification.evidence.sources import (
    Collected,
    from_batches,
    from_gram,
    from_rows,
    full_gram,
)

__all__ = [
    "OTHER_DATA",
    "Collected",
    "EmptyModel",
    "Evidence",
    "Model",
    "NoVariation",
    "Unfit",
    "checked_batches",
    "checked_gram",
    "checked_rows",
    "finite",
    "from_batches",
    "from_gram",
    "from_rows",
    "full_gram",
]
