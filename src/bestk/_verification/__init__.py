"""The parts of the verifier. Nothing in here shares code with the search."""
