# mypy: ignore-errors
"""Kernels of the randomisation test."""

from __future__ import annotations

import numpy as np
from numba import prange

from rankgrove._random_kernels import mix
from rankgrove.jit import njit


@njit(cache=True, nogil=True)
def count_all_signs(values, goal):
    """Return the number of sign patterns of `values` whose sum is at least `goal` in size."""
    hits = 0
    for pattern in range(1 << values.size):
        total = 0.0
        for i in range(values.size):
            total += values[i] if (pattern >> i) & 1 else -values[i]
        if abs(total) >= goal:
            hits += 1
    return hits


@njit(cache=True, nogil=True, parallel=True)
def count_random_signs(values, goal, n_samples, seed):
    """Return the number of `n_samples` random sign patterns with a sum of at least `goal`.

    The signs of sample s, 64 at a time, are a hash of (seed, s, block): no stream, no order.
    """
    words = (values.size + 63) // 64
    start = mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    hits = 0
    for s in prange(n_samples):
        total = 0.0
        for block in range(words):
            counter = np.uint64(s) * np.uint64(words) + np.uint64(block)
            bits = mix(start + counter * np.uint64(0x9E3779B97F4A7C15))
            for i in range(64 * block, min(64 * block + 64, values.size)):
                total += values[i] if bits & np.uint64(1) else -values[i]
                bits >>= np.uint64(1)
        if abs(total) >= goal:
            hits += 1
    return hits
