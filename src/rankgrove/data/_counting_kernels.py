"""Kernels of exact counting: how often every value of a column occurs, and thresholds from that."""

# mypy: allow-untyped-defs, no-check-untyped-defs
from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove.data._binning_kernels import _NO_KEY, _choose, _runs, _sort
from rankgrove.jit import njit


@njit(cache=True, parallel=True)
def count_columns(keys, sizes, zeros, scratch, values, counts, summary):
    """Count the values of columns given as keys.

    In: keys (c, n+1) and sizes (c), destroyed; zeros (c), stored nowhere; scratch as keys. Out:
    values (c, n+1), the distinct ones as bits, ascending; counts (c, n+1) uint32; summary (c, 2):
    number of distinct values, missing values.
    """
    for c in prange(keys.shape[0]):
        n = sizes[c]
        ordered = _sort(keys[c], scratch[c], n)
        present = n
        if n and ordered[n - 1] == _NO_KEY:
            present = np.searchsorted(ordered[:n], _NO_KEY)
        summary[c, 0] = _runs(ordered, present, values[c], counts[c], zeros[c])
        summary[c, 1] = n - present


@njit(cache=True, nogil=True)
def choose(values, counts, max_bins, alone, thresholds):
    """Write the thresholds between bins of counted values (float32, uint32); return how many."""
    return _choose(values, counts, values.size, max_bins, alone, thresholds)
