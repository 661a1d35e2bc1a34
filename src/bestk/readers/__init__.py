"""Tables of named columns, in one file or many, as batches of rows; one module per format."""

from bestk.readers.data import (
    Data,
    NamedColumns,
    choose_columns,
    open_data,
    read_trajectory,
    require_columns,
)
from bestk.readers.files import DataError
from bestk.readers.missing import LeftOut
from bestk.readers.parts import TablePart

__all__ = [
    "Data",
    "DataError",
    "LeftOut",
    "NamedColumns",
    "TablePart",
    "choose_columns",
    "open_data",
    "read_trajectory",
    "require_columns",
]
