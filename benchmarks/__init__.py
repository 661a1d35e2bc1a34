"""Benchmarks: bestk against its peers, each in a process of its own. See CONTRIBUTING.md."""
