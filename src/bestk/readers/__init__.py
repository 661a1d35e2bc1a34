"""Files of named columns as batches of rows."""

from bestk.readers.data import (
    Data,
    DataError,
    choose_columns,
    open_data,
    read_trajectory,
    require_columns,
)

__all__ = ["Data", "DataError", "choose_columns", "open_data", "read_trajectory", "require_columns"]
