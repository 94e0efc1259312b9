"""Make the pictures of how-tos by their own examples: ``python -m tools.pictures [PAGE...]``.

The Python examples of a page run, at full size, in an empty folder; the pictures that the page
shows are copied to docs/assets.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import tempfile
from pathlib import Path

from tools.pages import ROOT

PAGES = ("docs/howto/clicks.md", "docs/howto/calibration.md")
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"!\[[^\]]+\]\(([^)]+\.png)\)")


def make(page: Path) -> list[Path]:
    """Run a page's examples; return the pictures that were made."""
    text = page.read_text()
    wanted = {Path(name).name: (page.parent / name).resolve() for name in SHOWN.findall(text)}
    names: dict[str, object] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for code in CODE.findall(text):
            exec(compile(code, page.name, "exec"), names)
        for name, target in wanted.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(name, target)
    return list(wanted.values())


if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        for made in make((ROOT / page).resolve()):
            print(made.relative_to(ROOT))
