"""Where rows of CSV text end."""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

from rankgrove.jit import njit

START, INSIDE, QUOTED, CLOSED = 0, 1, 2, 3  # of a cell; CLOSED: after a quote in a quoted cell
_QUOTE, _FEED, _RETURN = 34, 10, 13


@njit(cache=True, nogil=True)
def scan_rows(text, separator, state):
    """Return where the last whole row of a piece of text ends, 0 if none does; update `state`."""
    at = state[0]
    end = 0
    for i in range(text.size):
        c = text[i]
        if at == QUOTED:
            if c == _QUOTE:
                at = CLOSED
        elif c == _QUOTE:
            if at == INSIDE:
                continue
            at = QUOTED  # a new quoted cell, or two quotes that stand for one
        elif c == _FEED:
            at = START
            end = i + 1
        elif c in (separator, _RETURN):
            at = START
        else:
            at = INSIDE
    state[0] = at
    return end
