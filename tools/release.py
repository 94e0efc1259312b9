"""Whether this checkout can be released: ``python -m tools.release check v1.0.0``.

`notes` prints the changelog's section of the version, for the release page.
"""

from __future__ import annotations

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Addresses under this name are reserved for examples, and lead nowhere.
PLACEHOLDER = "example.org"


def version_of(root: Path) -> str:
    """Return the version of the package."""
    text = (root / "src" / "rankgrove" / "_version.py").read_text()
    match = re.search(r'__version__ = "(.+)"', text)
    if match is None:
        raise SystemExit("src/rankgrove/_version.py names no version")
    return match[1]


def notes(root: Path, version: str) -> str:
    """Return what the changelog says of a version, without the heading; "" if there is nothing."""
    text = (root / "CHANGELOG.md").read_text()
    match = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    return match[1].strip() if match else ""


def faults(root: Path, tag: str) -> list[str]:
    """Return what stands against a release under a tag, one sentence each."""
    version = version_of(root)
    found = []
    if tag != f"v{version}":
        found.append(f"the tag {tag} is not v{version}, as src/rankgrove/_version.py has it")
    papers = tomllib.loads((root / "papers" / "pyproject.toml").read_text())["project"]
    if (papers["version"], papers["dependencies"]) != (version, [f"rankgrove=={version}"]):
        found.append(f"papers/pyproject.toml: the version, and that of rankgrove, is not {version}")
    if f"\nversion: {version}\n" not in (root / "CITATION.cff").read_text():
        found.append(f"CITATION.cff: the version is not {version}")
    if f'version: "{version}"' not in (root / "conda" / "recipe.yaml").read_text():
        found.append(f"conda/recipe.yaml: the version is not {version}")
    heading = re.search(
        rf"^## {re.escape(version)}\b(.*)$", (root / "CHANGELOG.md").read_text(), re.M
    )
    if heading is None or not notes(root, version):
        found.append(f"CHANGELOG.md has no section on {version}")
    elif "unreleased" in heading[1]:
        found.append(f"CHANGELOG.md calls {version} unreleased: write the date instead")
    elif (date := re.search(r"\d{4}-\d\d-\d\d", heading[1])) is None:
        found.append(f"CHANGELOG.md has no date (YYYY-MM-DD) after {version}")
    elif f"\ndate-released: {date[0]}\n" not in (root / "CITATION.cff").read_text():
        found.append(f"CITATION.cff has no line 'date-released: {date[0]}', as CHANGELOG.md has it")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    held = sorted(name for name, url in project["urls"].items() if PLACEHOLDER in url)
    if held:
        found.append(f"pyproject.toml: these URLs are placeholders: {', '.join(held)}")
    if PLACEHOLDER in (root / "conda" / "recipe.yaml").read_text():
        found.append("conda/recipe.yaml has a placeholder for the address of the source")
    return found


def main() -> None:
    """Check, or print the notes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["check", "notes"])
    parser.add_argument("tag", help="the tag of the release, such as v1.0.0")
    given = parser.parse_args()
    if given.what == "notes":
        print(notes(ROOT, given.tag.removeprefix("v")))
        return
    found = faults(ROOT, given.tag)
    if found:
        sys.exit("not ready for a release:\n" + "\n".join(f"- {fault}" for fault in found))
    print(f"{given.tag} can be released")


if __name__ == "__main__":
    main()
