"""Intervals by the bootstrap over sessions: models learned from randomly weighted sessions.

With exponential weights, and gamma draws in place of the prior's pseudo-counts, the spread of what
is learned is that of a posterior distribution (Rubin, 1981): a rate that is a ratio of counts gets
exactly its beta distribution, also where no click was seen. Poisson weights are the bootstrap of
resampled sessions; the prior stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rankgrove.clicks.learned import Learned, PseudoCounts
from rankgrove.parallel import run_pieces
from rankgrove.random import derive_seed

COLUMNS_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class ModelIntervals:
    """Intervals of what a click model has learned.

    Attributes
    ----------
    level : the probability with which an interval should hold the true value
    n : the number of weighted logs that were learned from
    low, high : mappings from names, such as ``"attractiveness"`` and ``"examination"``, to arrays
        of the shape of the learned ones
    """

    level: float
    n: int
    low: Mapping[str, np.ndarray] = field(repr=False)
    high: Mapping[str, np.ndarray] = field(repr=False)


def session_weights(
    n_sessions: int, poisson: bool, seed: int, replicate: int, n_threads: int | None
) -> np.ndarray:
    """Return a random weight per session, with mean 1."""
    from rankgrove.clicks._weight_kernels import session_weights as kernel

    key = np.uint64(derive_seed(seed, "weights of sessions", replicate))
    out = np.empty(n_sessions)
    cuts = np.linspace(0, n_sessions, 17).astype(np.int64)
    run_pieces(lambda a, b: kernel(key, poisson, a, b, out), cuts, n_threads)
    return out


def random_counts(
    pseudo: PseudoCounts, seed: int, replicate: int, n_threads: int | None, of: str = ""
) -> PseudoCounts:
    """Return gamma draws whose means are the pseudo-counts; others for every `of`."""
    from rankgrove.clicks._weight_kernels import gamma_draws

    drawn = []
    for name, shape in zip(pseudo._fields, pseudo, strict=True):
        key = np.uint64(derive_seed(seed, of + name, replicate))
        out = np.empty(shape.size)
        cuts = np.linspace(0, shape.size, 17).astype(np.int64)
        run_pieces(
            lambda a, b, key=key, shape=shape, out=out: gamma_draws(key, shape, a, b, out),  # type: ignore[misc]
            cuts,
            n_threads,
        )
        drawn.append(out)
    return PseudoCounts(*drawn)


def percentile_intervals(learn: Callable[[int], Learned], n: int, level: float) -> ModelIntervals:
    """Return the middle part of what `learn` returns for the replicates 0 ... n - 1."""
    drawn: dict[str, np.ndarray] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    for b in range(n):
        learned = learn(b)
        for name, value in {"attractiveness": learned.attractiveness, **learned.shared}.items():
            if b == 0:
                shapes[name] = np.shape(value)
                drawn[name] = np.empty((n, np.size(value)), np.float32)
            drawn[name][b] = np.ravel(value)
    low, high = {}, {}
    for name, values in drawn.items():
        edges = np.empty((2, values.shape[1]))
        for first in range(0, values.shape[1], COLUMNS_AT_ONCE):
            part = slice(first, first + COLUMNS_AT_ONCE)
            # Of n draws and the truth, every order is equally likely: hence (n + 1) places.
            at = [(1 - level) / 2, (1 + level) / 2]
            edges[:, part] = np.quantile(values[:, part], at, axis=0, method="weibull")
        low[name], high[name] = (edge.reshape(shapes[name]) for edge in edges)
    return ModelIntervals(level, n, low, high)
