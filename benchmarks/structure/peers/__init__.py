"""Solvers that know some structure, one short file each; they run in environments of their own."""
