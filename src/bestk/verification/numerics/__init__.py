"""Numbers the verifier can vouch for: sums, products, factors and scans with their rounding."""
