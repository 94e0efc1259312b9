"""Make the pictures of pages by their own examples: ``python -m tools.pictures [PAGE...]``.

The Python examples of a how-to run, at full size, in an empty folder; the pictures that the page
shows are copied to docs/assets. The picture of README.md is the report page of ``rankgrove demo``,
as Chromium draws it (playwright, Pillow).
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.pages import ROOT

README = "README.md"
DEMO = ROOT / "docs" / "assets" / "demo-report.png"
WIDTH = 1280  # of the window
PAGES = (README, "docs/howto/clicks.md", "docs/howto/calibration.md")
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


def draw_demo() -> list[Path]:
    """Run the demo; draw the top of its page, down to the end of the section on measures."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "rankgrove", "demo"], cwd=folder, check=True)
        draw(Path(folder, "demo", "report.html"), DEMO)
    return [DEMO]


def draw(page: Path, target: Path) -> None:
    """Draw a report page, down to the end of its first section."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as tools:
        browser = tools.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        view = browser.new_page(
            viewport={"width": WIDTH, "height": 1600},
            color_scheme="light",
            device_scale_factor=1.25,
        )
        view.goto(page.as_uri())
        box = view.locator("section").first.bounding_box()
        assert box is not None
        view.screenshot(
            path=target, clip={"x": 0, "y": 0, "width": WIDTH, "height": box["y"] + box["height"]}
        )
        browser.close()
    with Image.open(target) as picture:
        picture.convert("RGB").quantize(method=Image.Quantize.MAXCOVERAGE).save(
            target, optimize=True
        )


if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        for made in draw_demo() if page == README else make((ROOT / page).resolve()):
            print(made.relative_to(ROOT))
