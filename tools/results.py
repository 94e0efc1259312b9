"""Put tables and figures into docs/results.md: ``python -m tools.results FOLDER``.

FOLDER was written by ``rankgrove reproduce NAME --scale full --out FOLDER``. Text between
``<!-- begin NAME -->`` and ``<!-- end -->`` is replaced, with the command and the date; the text
around it is written by hand.
"""

from __future__ import annotations

import re
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

from tools.pages import ROOT

PAGE = ROOT / "docs" / "results.md"
PICTURES = ROOT / "docs" / "assets" / "results"
BLOCK = re.compile(r"<!-- begin ([\w-]+) -->\n.*?<!-- end -->", re.DOTALL)
PICTURE = re.compile(r"!\[(.*?)\]\((.*?)\)")


def block(name: str, folder: Path) -> str | None:
    """Return an experiment's part of the page, or None if it was not run."""
    for scale in ("full", "small"):
        file = folder / f"{name}-{scale}.md"
        if file.exists():
            date = datetime.fromtimestamp(file.stat().st_mtime, UTC).date()
            head = f"`rankgrove reproduce {name} --scale {scale} --out results`, {date}"
            text = file.read_text().split("\n", 1)[1].strip()
            text = re.sub(r"^### (.*)$", r"**\1**", text, flags=re.MULTILINE)
            text = PICTURE.sub(lambda m: _picture(folder, m[1], m[2]), text)
            return f"<!-- begin {name} -->\n{head}\n\n{text}\n<!-- end -->"
    return None


def _picture(folder: Path, title: str, file: str) -> str:
    """Copy a picture into the documentation; return its Markdown."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder / file, PICTURES / file)
    return f"![{title}](assets/results/{file})"


def refresh(folder: Path) -> list[str]:
    """Replace all parts that the folder has results for; return their names."""
    done = []

    def replaced(match: re.Match[str]) -> str:
        new = block(match[1], folder)
        if new is None:
            return match[0]
        done.append(match[1])
        return new

    text = BLOCK.sub(replaced, PAGE.read_text())
    PAGE.write_text(text)
    return done


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: python -m tools.results FOLDER (of rankgrove reproduce --out FOLDER)")
    print("\n".join(refresh(Path(sys.argv[1]))))
