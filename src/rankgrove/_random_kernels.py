# mypy: ignore-errors
"""The hash inside kernels; :mod:`rankgrove.random` has it for arrays."""

from __future__ import annotations

import numpy as np

from rankgrove.jit import njit


@njit(cache=True, nogil=True, inline="always")
def mix(x):
    """Return 64 well mixed bits of a uint64 (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
