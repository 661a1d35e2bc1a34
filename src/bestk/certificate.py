"""Proofs as data: the public name of :mod:`bestk.results.certificate`."""

from bestk.results.certificate import Certificate, ProofTree, SplitRecord

__all__ = ["Certificate", "ProofTree", "SplitRecord"]
