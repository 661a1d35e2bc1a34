"""``python -m bestk`` is the command ``bestk``."""

from bestk.cli.app import app

app(prog_name="bestk")
