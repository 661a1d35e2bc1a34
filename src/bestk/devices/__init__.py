"""Devices that try all supports of a node: what they are asked, and how one is opened."""
