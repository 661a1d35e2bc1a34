"""``python -m bestk`` is the command ``bestk``."""

from bestk.cli.app import app

if __name__ == "__main__":  # workers import this module, too
    app(prog_name="bestk")
