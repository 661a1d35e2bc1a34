"""Cross-validation: the public name of :mod:`bestk.selection.cross_validation`."""

from bestk.selection.cross_validation import (
    CrossValidation,
    cross_validate_batches,
    cross_validate_table,
)

__all__ = ["CrossValidation", "cross_validate_batches", "cross_validate_table"]
