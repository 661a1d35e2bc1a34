"""Units of work: a subtree, explored as a pure function of small data, on whatever engine."""
