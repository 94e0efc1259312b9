"""The noise of stochastic lambdas, drawn in plain Python: the oracle of the kernel."""

from __future__ import annotations

import math

from rankgrove.random import derive_seed

MASK = (1 << 64) - 1


def mix(x):
    """Return 64 well-mixed bits of a number (the finaliser of splitmix64)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def gumbel(key, seed, round, draw):
    """Return the noise of a row: one of 4,096 equally likely quantiles of Gumbel's distribution."""
    group, place = divmod(draw, 5)
    base = (derive_seed(seed, "smoothing", round) + group * 0x9E3779B97F4A7C15) & MASK
    quantile = (mix(int(key) ^ base) >> (12 * place)) % 4096
    return -math.log(-math.log((quantile + 0.5) / 4096))
