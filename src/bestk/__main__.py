"""``python -m bestk`` is the command ``bestk``."""

from bestk.cli import app

app(prog_name="bestk")
