"""The compiled part of a tree over choices: what becomes of each node."""
