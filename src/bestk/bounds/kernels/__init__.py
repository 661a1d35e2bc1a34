"""Compiled loops of the bounds: few, small, each with a plain NumPy twin in the tests.

All kernels work on the standard form ``1 - 2 c'b + b'A b`` with ``A_jj = 1`` (theory: form).
"""
