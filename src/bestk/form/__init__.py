"""The problem in standard form (unit diagonal, unit y'y): units, the matrix, presolve."""
