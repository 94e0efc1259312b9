"""Transforms of features as they are defined, value by value."""

from __future__ import annotations

import math


def log1p(x):
    """Return sign(x) log(1 + abs(x)); a missing value stays missing."""
    if math.isnan(x):
        return x
    return math.log1p(x) if x >= 0 else -math.log1p(-x)
