"""Write the tables of docs/published-figures.md: ``python -m tools.published``.

The figures are in ``papers/rankgrove_papers/published``; the text around them is the page's.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "published-figures.md"
BLOCK = re.compile(r"<!-- begin (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def filled(page: str) -> str:
    """Return the page with its tables and lists as they are made from the figures."""
    from rankgrove_papers.published import figures

    texts = {
        "reasons": "\n".join(f"- ({key}) {text}" for key, text in figures.REASONS.items()),
        "figures": figures.table(),
        "sources": figures.sources_list(),
    }
    return BLOCK.sub(lambda m: f"<!-- begin {m[1]} -->\n{texts[m[1]]}\n<!-- end -->", page)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "papers"))
    PAGE.write_text(filled(PAGE.read_text()))
