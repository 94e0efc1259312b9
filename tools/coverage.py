"""Print the share of lines that the last ``make test`` ran: ``python -m tools.coverage``.

``--files`` lists the files with lines that were not run, those with most lines first. SlipCover
measures the coverage; pyproject.toml says which files count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / ".venv" / "coverage.json"


def total(result: Mapping[str, Any]) -> str:
    """Return the sentence about all files."""
    summary = result["summary"]
    n_lines = summary["covered_lines"] + summary["missing_lines"]
    return (
        f"coverage: {summary['percent_covered']:.1f} % of {n_lines:,} lines of src/rankgrove "
        "(kernel files and processes that tests start are not counted)"
    )


def files(result: Mapping[str, Any]) -> list[str]:
    """Return a line for every file with lines that were not run, those with most lines first."""
    missing = {name: file["missing_lines"] for name, file in result["files"].items()}
    order = sorted(missing, key=lambda name: (-len(missing[name]), name))
    return [
        f"{len(missing[name]):5}  {name}: {ranges(missing[name])}"
        for name in order
        if missing[name]
    ]


def ranges(lines: list[int]) -> str:
    """Return line numbers as text, consecutive ones as a range: 3, 7-9."""
    parts: list[list[int]] = []
    for line in sorted(lines):
        if parts and line == parts[-1][1] + 1:
            parts[-1][1] = line
        else:
            parts.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Print the coverage of the last `make test`.")
    parser.add_argument("--files", action="store_true", help="list the files and their lines")
    options = parser.parse_args()
    if not RESULT.is_file():
        raise SystemExit(f"{RESULT.relative_to(ROOT)} does not exist: run make test first")
    measured = json.loads(RESULT.read_text())
    if options.files:
        print("\n".join(files(measured)))
    print(total(measured))
