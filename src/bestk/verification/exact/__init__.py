"""Everything once more in rational numbers: no rounding, no assumptions; for small problems."""
