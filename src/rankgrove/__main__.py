"""``python -m rankgrove`` is the command ``rankgrove``."""

from rankgrove.cli.start import run

if __name__ == "__main__":
    run()
