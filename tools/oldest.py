"""Print pip constraints for the oldest dependencies: ``python -m tools.oldest > constraints.txt``.

Every minimum of pyproject.toml, those of the extras included, becomes an exact version. There is no
second list of versions: a minimum that is wrong fails in ``make test-oldest``.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MINIMUM = re.compile(r"(?P<name>[\w.-]+)>=(?P<version>[\w.]+)")


def requirements(project: Mapping[str, Any]) -> list[str]:
    """Return the requirements of a project and of its extras, without its own extras' names."""
    extras = project.get("optional-dependencies", {})
    every = [*project["dependencies"], *(line for lines in extras.values() for line in lines)]
    return [line for line in every if not line.startswith(f"{project['name']}[")]


def constraints(lines: Iterable[str]) -> list[str]:
    """Return requirements of the form ``name>=version`` as ``name==version``, sorted.

    Raises
    ------
    ValueError
        If a requirement has another form, or two of them have different minimums for one package.
    """
    versions: dict[str, str] = {}
    for line in lines:
        match = MINIMUM.fullmatch(line)
        if match is None:
            raise ValueError(
                f"pyproject.toml: {line!r} names no minimum; write it as name>=version"
            )
        name, version = match["name"], match["version"]
        if versions.setdefault(name, version) != version:
            raise ValueError(
                f"pyproject.toml: {name} has two minimums, {versions[name]} and {version}; "
                "write the same one in both places"
            )
    return sorted(f"{name}=={version}" for name, version in versions.items())


if __name__ == "__main__":
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    print("\n".join(constraints(requirements(settings["project"]))))
