"""A cluster of Dask as a place for pure calls, and its collections, without importing Dask."""
