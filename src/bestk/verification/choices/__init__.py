"""Proofs about structures: nodes decide on groups, rules cut cells, constraints have multipliers.

``cover`` is the door. Everything here is computed from the certificate's structure and the data;
the search's own propagation, coordinates and fits are not looked at.
"""
