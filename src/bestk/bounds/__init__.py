"""Lower bounds: splits of the matrix, searches for dual vectors, what a dual vector proves."""
