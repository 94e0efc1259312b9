# mypy: ignore-errors
"""Random weights of sessions, and random pseudo-counts, by hashing."""

from __future__ import annotations

import math

import numpy as np

from rankgrove._random_kernels import mix
from rankgrove.jit import njit

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
UNIT = 2.0**-53


@njit(cache=True, nogil=True, inline="always")
def uniform(bits):
    """Return a number above 0 and below 1."""
    return (np.float64(bits >> np.uint64(11)) + 0.5) * UNIT


@njit(cache=True, nogil=True)
def session_weights(key, poisson, first, last, out):
    """Fill weights with mean 1: Poisson's counts, or exponential ones."""
    for s in range(first, last):
        u = uniform(mix(key + np.uint64(s) * GOLDEN))
        if poisson:
            share = math.exp(-1.0)
            reached = share
            n = 0
            while u > reached and n < 40:
                n += 1
                share /= n
                reached += share
            out[s] = n
        else:
            out[s] = -math.log(u)


@njit(cache=True, nogil=True)
def gamma_draws(key, shape, first, last, out):
    """Fill draws from gamma distributions of scale 1 (Marsaglia and Tsang, 2000)."""
    for i in range(first, last):
        if shape[i] <= 0:
            out[i] = 0.0
            continue
        state = mix(key + np.uint64(i) * GOLDEN)
        k = shape[i] if shape[i] >= 1 else shape[i] + 1
        d = k - 1 / 3
        c = 1 / math.sqrt(9 * d)
        value = d
        for _ in range(64):  # refused about once in twenty times
            state += GOLDEN
            u = uniform(mix(state))
            state += GOLDEN
            v = uniform(mix(state))
            state += GOLDEN
            x = math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)
            y = (1 + c * x) ** 3
            if y > 0 and math.log(uniform(mix(state))) < x * x / 2 + d - d * y + d * math.log(y):
                value = d * y
                break
        if shape[i] < 1:
            state += GOLDEN
            value *= uniform(mix(state)) ** (1 / shape[i])
        out[i] = value
