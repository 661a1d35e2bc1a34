"""Lists of near-optimal models: what they cost, and whether they are the right ones."""
