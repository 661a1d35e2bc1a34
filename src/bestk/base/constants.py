"""Numbers that many modules share."""

UNIT_ROUNDOFF = 2.0**-53
"""Largest relative error of one rounding in double precision."""

FREE, IN, OUT = 0, 1, 2
"""What a node says of a feature: undecided, in every support, in none."""
