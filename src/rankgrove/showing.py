"""Output in notebooks: small tables, and a line of text that is overwritten."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

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


def html_text(title: str, text: str, *, prose: bool = False) -> str:
    """Return a text of several lines under a title as HTML; long lines of `prose` are wrapped."""
    if prose:
        lines = "".join(
            f'<div style="margin: 2px 0">{escape(line)}</div>' for line in text.split("\n")
        )
        style = "margin: 4px 0; max-width: 60em; white-space: normal; overflow-wrap: anywhere"
        return f'<div style="{style}"><b>{escape(title)}</b>{lines}</div>'
    return (
        f'<div style="margin: 4px 0"><b>{escape(title)}</b>'
        f'<pre style="margin: 2px 0; font-size: 12px; overflow-x: auto">{escape(text)}</pre></div>'
    )


def _cell(tag: str, value: object, column: int) -> str:
    side = "left" if column == 0 else "right"
    weight = "; font-weight: 500" if tag == "th" else ""
    return f'<{tag} style="{_CELL}; text-align: {side}{weight}">{escape(str(value))}</{tag}>'


class TextLine:
    """A line in the output of a notebook that is overwritten, without any package.

    IPython's displays can be replaced, in the notebook's file too; without them, the line begins
    with a carriage return.
    """

    def __init__(self) -> None:
        self._text: str | None = None
        self._handle: Any = None

    def write(self, text: str) -> None:
        """Replace the text of the line."""
        if text == self._text:
            return
        length = len(self._text or "")
        bundle = {"text/plain": text}
        if self._handle is not None:
            self._handle.update(bundle, raw=True)
        elif self._text is None:
            self._handle = _displayed(bundle)
        if self._handle is None:
            sys.stdout.write("\r" + text.ljust(length))
            sys.stdout.flush()
        self._text = text

    def close(self) -> None:
        """End the line, keeping its text."""
        if self._text is not None and self._handle is None:
            sys.stdout.write("\n")
            sys.stdout.flush()
        self._text = self._handle = None


def _displayed(bundle: dict[str, str]) -> Any:
    """Show an output that can be replaced through the returned handle; None without IPython."""
    try:
        display = importlib.import_module("IPython.display").display
    except ImportError:
        return None
    return display(bundle, raw=True, display_id=True)
