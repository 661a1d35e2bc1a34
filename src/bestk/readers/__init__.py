"""Files of named columns as batches of rows; one module per format."""

from bestk.readers.data import Data, choose_columns, open_data, read_trajectory, require_columns
from bestk.readers.source import DataError

__all__ = ["Data", "DataError", "choose_columns", "open_data", "read_trajectory", "require_columns"]
