"""The commands of ``bestk``, a module for each; ``trying`` has warmup and demo."""
