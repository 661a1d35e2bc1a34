"""What a GPU adds: rates of its kernels, proofs that need it, large data."""
