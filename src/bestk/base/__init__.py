"""What every room may use: constants, settings, checks of input, threads, fingerprints of data."""
