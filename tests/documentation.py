"""Reading the documentation: its pages, the examples on them, and running these.

A comment before an example says where it cannot run: ``<!-- not run: why -->``, or that it needs
a package that may be absent: ``<!-- needs torch -->``.
"""

from __future__ import annotations

import functools
import glob
import importlib.util
import re
import shlex
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.command import run_here
from tests.conftest import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = re.compile(
    r"(?:^<!-- (?P<mark>not run|needs)(?::| )(?P<what>[^\n]*?) -->\n+)?"
    r"^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.S | re.M,
)
# Words that begin commands which are not ours to run: they set up, or want a server.
ELSEWHERE = ("make", "pip", "curl", "dask")
# Sizes at which every example takes a second or two.
SMALLER = {
    r"n_trees=(\d+)": 12,
    r'"n_trees": (\d+)': 12,
    r"--queries (\d+)": 40,
    r"--target-queries (\d+)": 30,
    r"--models (\d+)": 2,
    r"--trials (\d+)": 2,
    r"make_\w+\((\d+),": 40,
    r"sessions=([\d_]+)": 2000,
    r"--sessions (\d+)": 2000,
    r"samples=(\d+)": 3,
    r"--samples (\d+)": 3,
    r"make_domains\(\d+, (\d+),": 40,
}
# Arguments for what takes long at its defaults.
ADDED = {
    r'rg\.AdaRank\(("\w+")\)': r"rg.AdaRank(\1, n_rounds=8)",
    r"minutes=10": "n_fits=10",
    r"--minutes 10": "--fits 10",
}


class Example(NamedTuple):
    """A block of code of a page, and the mark before it."""

    language: str
    text: str
    mark: str | None
    what: str | None


def name_of(page: Path) -> str:
    """Return how a page is called in tests."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def examples(page: Path) -> list[Example]:
    """Return the examples of a page, those in a language that runs or can be parsed."""
    found = [Example(**one.groupdict()) for one in EXAMPLE.finditer(page.read_text())]
    return [one for one in found if one.language in ("python", "sh", "json", "toml")]


def is_there(package: str) -> bool:
    """Tell whether a package is installed."""
    return importlib.util.find_spec(package) is not None


def smaller(text: str) -> str:
    """Return an example with its sizes made small, and defaults that take long, too."""

    def cut(most: int, found: re.Match[str]) -> str:
        start, end = (place - found.start() for place in found.span(1))
        return f"{found[0][:start]}{min(most, int(found[1]))}{found[0][end:]}"

    for pattern, most in SMALLER.items():
        text = re.sub(pattern, functools.partial(cut, most), text)
    for pattern, instead in ADDED.items():
        text = re.sub(pattern, instead, text)
    return text


def run(example: Example, names: dict[str, object]) -> str:
    """Run an example in the folder we are in; return what commands printed."""
    if example.mark == "not run" or (example.what and not is_there(example.what)):
        return ""
    text = smaller(example.text)
    if example.language == "python":
        exec(compile(text, "example", "exec"), names)
        return ""
    return "".join(run_line(line) for line in text.replace("\\\n", " ").splitlines())


def run_line(line: str) -> str:
    """Run a line of a shell example; ours in this process, which is quicker."""
    words = shlex.split(line, comments=True)
    if not words or words[0] in ELSEWHERE:
        return ""
    if words[0] != "rankgrove":
        return subprocess.run(line, shell=True, check=True, capture_output=True, text=True).stdout
    given = [name for word in words[1:] for name in sorted(glob.glob(word)) or [word]]
    out, _ = run_here(*given)
    return out
