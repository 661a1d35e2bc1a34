"""Models with structure: a tree that decides on groups, under rules and linear constraints."""
