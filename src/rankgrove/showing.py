"""Showing things in notebooks: small tables, and a line of text that is written over."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_TABLE = "border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums"
_CELL = "padding: 3px 10px; border-top: 1px solid rgba(128, 140, 155, .3); white-space: nowrap"
_MUTED = "opacity: .7; font-size: 12px"


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


def html_table(
    title: str, header: Sequence[str], rows: Iterable[Sequence[Any]], note: str = ""
) -> str:
    """Return a small table as HTML; the first column is text, the others are numbers.

    Whatever is given is escaped.
    """
    parts = [f'<div style="margin: 4px 0"><b>{escape(title)}</b>']
    parts.append(f'<table style="{_TABLE}">')
    if header:
        cells = "".join(_cell("th", name, k) for k, name in enumerate(header))
        parts.append(f"<thead><tr>{cells}</tr></thead>")
    parts.append("<tbody>")
    for row in rows:
        parts.append(f"<tr>{''.join(_cell('td', one, k) for k, one in enumerate(row))}</tr>")
    parts.append("</tbody></table>")
    parts += [f'<div style="{_MUTED}">{escape(line)}</div>' for line in note.splitlines()]
    return "".join([*parts, "</div>"])


def html_text(title: str, text: str, *, prose: bool = False) -> str:
    """Return a text of several lines under a title as HTML; `prose` is wrapped as it needs."""
    if prose:
        lines = "".join(
            f'<div style="margin: 2px 0">{escape(one)}</div>' for one in text.split("\n")
        )
        style = "margin: 4px 0; max-width: 60em; white-space: normal; overflow-wrap: anywhere"
        return f'<div style="{style}"><b>{escape(title)}</b>{lines}</div>'
    return (
        f'<div style="margin: 4px 0"><b>{escape(title)}</b>'
        f'<pre style="margin: 2px 0; font-size: 12px">{escape(text)}</pre></div>'
    )


def _cell(tag: str, value: Any, column: int) -> str:
    side = "left" if column == 0 else "right"
    weight = "; font-weight: 500" if tag == "th" else ""
    return f'<{tag} style="{_CELL}; text-align: {side}{weight}">{escape(str(value))}</{tag}>'


class TextLine:
    """A line in a notebook's output that is written over, without any package."""

    def __init__(self) -> None:
        self._length = 0

    def write(self, text: str) -> None:
        """Put a text in the place of the last one."""
        sys.stdout.write("\r" + text.ljust(self._length))
        sys.stdout.flush()
        self._length = len(text)

    def close(self) -> None:
        """Leave the line as it is."""
        if self._length:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._length = 0
