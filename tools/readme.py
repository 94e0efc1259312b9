"""The description on a package index: README.md, with addresses in place of paths.

hatchling calls it when it builds (`[tool.hatch.metadata.hooks.custom]` of pyproject.toml). An index
has no files beside the page, so that pictures and links would lead nowhere. They lead to the files
of the version, at the address `Source` of pyproject.toml.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def with_addresses(text: str, source: str, version: str) -> str:
    """Return a page whose pictures and links are addresses at a place such as GitHub."""

    def address(found: re.Match[str]) -> str:
        mark, title, path = found.groups()
        return f"{mark}[{title}]({source}/{'raw' if mark else 'blob'}/v{version}/{path})"

    return LINK.sub(address, text)


class Description(MetadataHookInterface):
    """Sets `readme` of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        told = (root / "src" / "rankgrove" / "_version.py").read_text()
        version = re.search(r'__version__ = "(.+)"', told)
        assert version is not None
        text = (root / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_addresses(text, metadata["urls"]["Source"], version[1]),
        }
