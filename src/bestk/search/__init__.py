"""Branch and bound: the tree, what steers it, its record and its checkpoints."""
