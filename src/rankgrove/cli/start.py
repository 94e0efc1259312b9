"""The command's entry point: reports in one line if rankgrove's own files cannot be read."""

from __future__ import annotations

import sys


def run() -> None:
    """Load the command line and run it."""
    try:
        from rankgrove.cli import main
    except OSError as error:
        from rankgrove.files import why

        print(f"error: rankgrove cannot be loaded: {error.filename}: {why(error)}", file=sys.stderr)
        sys.exit(2)
    main.run()
