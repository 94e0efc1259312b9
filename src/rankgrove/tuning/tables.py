"""Tables in Markdown, and p-values as text."""

from __future__ import annotations

from collections.abc import Sequence


def markdown(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown with aligned columns."""
    cells = [[str(cell) for cell in row] for row in [header, *rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(header))]
    lines = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    rule = "|" + "|".join("-" * (w + 2) for w in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def p_text(p: float) -> str:
    """Return a p-value as text: ``.0312``, ``< .0001``."""
    return "< .0001" if p < 1e-4 else f"{p:.4f}".replace("0.", ".", 1)
