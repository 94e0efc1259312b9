# mypy: ignore-errors
"""The counts for the search of a stump: sums of whole numbers by bin."""

from __future__ import annotations

from rankgrove.jit import njit


@njit(cache=True, nogil=True)
def column_sums(columns, units, first, last, out):
    """Fill the sums of `units` by bin, of the columns first .. last - 1."""
    for c in range(first, last):
        codes = columns[c]
        sums = out[c]
        sums[:] = 0
        for i in range(codes.size):
            sums[codes[i]] += units[i]
