"""Tests of paired differences between two systems, query by query."""

from __future__ import annotations

import math

import numpy as np

from rankgrove import parallel


def paired_t(differences: np.ndarray) -> float:
    """Return the two-sided p-value of the paired t-test."""
    from scipy.special import stdtr

    n = differences.size
    if n < 2:
        return 1.0 if not differences.any() else math.nan
    mean = math.fsum(differences.tolist()) / n
    spread = math.fsum(((differences - mean) ** 2).tolist()) / (n - 1)
    if spread == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return float(2.0 * stdtr(n - 1, -abs(mean) / math.sqrt(spread / n)))


def wilcoxon_signed_rank(differences: np.ndarray) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test; equal queries are left out."""
    from scipy.stats import wilcoxon

    # Sorted, so that the order of queries does not matter.
    different = np.sort(differences[differences != 0.0])
    if different.size == 0:
        return 1.0
    return float(wilcoxon(different).pvalue)


def randomisation(
    differences: np.ndarray,
    n_samples: int = 100_000,
    seed: int = 0,
    n_threads: int | None = None,
) -> float:
    """Return the two-sided p-value of Fisher's randomisation test.

    The difference of every query keeps or changes its sign with probability 1/2; p is the share of
    such samples whose mean is at least as far from 0 as the observed one. If there are at most
    `n_samples` sign patterns, all are enumerated; otherwise `n_samples` are drawn, k of them reach
    that distance, and p = (k + 1) / (n_samples + 1). The result does not depend on the order of
    queries or on threads.
    """
    from rankgrove.evaluation._randomisation_kernels import count_all_signs, count_random_signs

    different = np.sort(np.abs(differences[differences != 0.0]))
    observed = abs(math.fsum(differences.tolist()))
    if different.size == 0:
        return 1.0
    # Sums of the same numbers in another order may differ in the last bits: count them as equal.
    goal = observed - 1e-12 * max(1.0, float(different.sum()))
    if different.size < 60 and 2**different.size <= n_samples:
        patterns = 2**different.size
        return float(count_all_signs(different, goal)) / patterns
    with parallel.threads(n_threads):
        hits = int(count_random_signs(different, goal, n_samples, np.uint64(seed)))
    return (hits + 1) / (n_samples + 1)


def holm(p_values: list[float]) -> list[float]:
    """Return Holm's step-down adjustment of p-values for several comparisons."""
    adjusted = [0.0] * len(p_values)
    worst = 0.0
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for place, i in enumerate(order):
        worst = max(worst, min(1.0, (len(p_values) - place) * p_values[i]))
        adjusted[i] = worst
    return adjusted
