"""Output in notebooks: small tables, and a line of text that is overwritten."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape

_TABLE = "border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums"
_CELL = "padding: 3px 10px; border-top: 1px solid rgba(128, 140, 155, .3); white-space: nowrap"
_MUTED = "opacity: .7; font-size: 12px"


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


def html_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[object]], note: str = ""
) -> str:
    """Return a small table as HTML; the first column is text, the others are numbers.

    All texts are escaped.
    """
    parts = [f'<div style="margin: 4px 0"><b>{escape(title)}</b>']
    parts.append(f'<table style="{_TABLE}">')
    if header:
        cells = "".join(_cell("th", name, k) for k, name in enumerate(header))
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    for row in rows:
        parts.append(f"<tr>{''.join(_cell('td', value, k) for k, value in enumerate(row))}</tr>")
    parts.append("</tbody></table>")
    parts += [f'<div style="{_MUTED}">{escape(line)}</div>' for line in note.splitlines()]
    return "".join([*parts, "</div>"])


def html_text(title: str, text: str) -> str:
    """Return a text of several lines under a title as HTML."""
    return (
        f'<div style="margin: 4px 0"><b>{escape(title)}</b>'
        f'<pre style="margin: 2px 0; font-size: 12px">{escape(text)}</pre></div>'
    )


def _cell(tag: str, value: object, column: int) -> str:
    side = "left" if column == 0 else "right"
    weight = "; font-weight: 500" if tag == "th" else ""
    return f'<{tag} style="{_CELL}; text-align: {side}{weight}">{escape(str(value))}</{tag}>'


class TextLine:
    """A line in the output of a notebook that is overwritten, without any package."""

    def __init__(self) -> None:
        self._length = 0

    def write(self, text: str) -> None:
        """Replace the text of the line."""
        sys.stdout.write("\r" + text.ljust(self._length))
        sys.stdout.flush()
        self._length = len(text)

    def close(self) -> None:
        """End the line, keeping its text."""
        if self._length:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._length = 0
