"""Turn what users pass into clean arrays, or say what is wrong and how to mend it."""

from bestk.base.validation.arrays import (
    as_matrix,
    as_real,
    as_vector,
    as_weights,
    require_finite,
    require_rows,
    require_some_weight,
    require_unmasked,
    rows_in,
)
from bestk.base.validation.frames import (
    names_of,
    pandas_for,
    require_numeric_columns,
)
from bestk.base.validation.names import (
    as_features,
    require_distinct,
    require_names,
    require_same_names,
)
from bestk.base.validation.problems import (
    as_bounds,
    as_penalties,
    is_auto,
    require_consistent_gram,
)
from bestk.base.validation.scalars import (
    require_choice,
    require_count,
    require_device,
    require_flag,
    require_number,
    require_share,
    require_threads,
    require_writable,
)
from bestk.base.validation.words import few, hint_for, nearest
from bestk.base.words import counted

__all__ = [
    "as_bounds",
    "as_features",
    "as_matrix",
    "as_penalties",
    "as_real",
    "as_vector",
    "as_weights",
    "counted",
    "few",
    "hint_for",
    "is_auto",
    "names_of",
    "nearest",
    "pandas_for",
    "require_choice",
    "require_consistent_gram",
    "require_count",
    "require_device",
    "require_distinct",
    "require_finite",
    "require_flag",
    "require_names",
    "require_number",
    "require_numeric_columns",
    "require_rows",
    "require_same_names",
    "require_share",
    "require_some_weight",
    "require_threads",
    "require_unmasked",
    "require_writable",
    "rows_in",
]
