"""Tables of named columns, in one file or many, as batches of rows; one module per format."""

from bestk.readers.data import Data, choose_columns, open_data, read_trajectory, require_columns
from bestk.readers.files import DataError

__all__ = [
    "Data",
    "DataError",
    "choose_columns",
    "open_data",
    "read_trajectory",
    "require_columns",
]
