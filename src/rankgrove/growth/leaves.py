"""Exact sums of the rows of every leaf.

Values are summed as fixed-point whole numbers in two parts, so that a sum depends neither on the
order of the rows nor on the number of threads. Values are exact to about 2**-84 of the largest one
(this depends on the number of rows), and the sum is rounded once, at the end.
"""

from __future__ import annotations

import math

import numpy as np

from rankgrove.growth import _leaf_kernels as kernels
from rankgrove.growth._kernel_tools import run_parts
from rankgrove.growth.regions import parts_for
from rankgrove.parallel import threads


def add_leaf_values(
    scores: np.ndarray, values: np.ndarray, leaf_of: np.ndarray, *, n_threads: int | None = None
) -> None:
    """Add ``values[leaf_of]`` to float64 `scores` in place, as a boosting loop does every round.

    `values` are the values of a tree's leaves, times the learning rate: predictions add the same
    numbers, and so give the same scores.
    """
    with threads(n_threads) as most:
        n_parts = parts_for(scores.size, most)
        run_parts(kernels.add_values_part, kernels.add_values, n_parts, scores, values, leaf_of)


class ExactSums:
    """One sum per leaf (and row counts), as Python integers in units of ``2**-exponent``."""

    def __init__(self, counts: list[int], units: list[int], exponent: int) -> None:
        self.counts = counts
        self.units = units
        self.exponent = exponent

    @classmethod
    def of(cls, sums: np.ndarray, n_rows: int, largest: float) -> ExactSums:
        """Return the sums from the parts that :func:`leaf_sums` returns for all rows."""
        bits, exponent = _units(n_rows, largest)
        parts = sums.tolist()
        counts = [count for count, _, _ in parts]
        return cls(counts, [(whole << bits) + rest for _, whole, rest in parts], exponent + bits)

    def join(self, left: int, right: int) -> tuple[int, int]:
        """Return the sums (count, units) of two leaves."""
        return self.counts[left] + self.counts[right], self.units[left] + self.units[right]

    def real(self, units: int) -> float:
        """Return a sum in units as the nearest float64."""
        if self.exponent >= 0:
            return units / (1 << self.exponent)
        return float(units << -self.exponent)


def leaf_sums(
    values: np.ndarray,
    rows: np.ndarray,
    leaf_of: np.ndarray,
    n_leaves: int,
    n_rows: int,
    largest: float,
    n_parts: int,
) -> np.ndarray:
    """Return the row count of every leaf and the two parts of its sum, (n_leaves, 3) int64.

    `rows` may be a part of the `n_rows` rows; the sums of parts are added up later.
    """
    bits, exponent = _units(n_rows, largest)
    parts = np.zeros((n_parts, n_leaves, 3), np.int64)
    scale, fraction = math.ldexp(1.0, exponent), math.ldexp(1.0, bits)
    run_parts(
        kernels.leaf_sums_part, kernels.leaf_sums, n_parts,
        values, rows, leaf_of, scale, fraction, parts,
    )  # fmt: skip
    return np.asarray(parts.sum(axis=0))


def _units(n_rows: int, largest: float) -> tuple[int, int]:
    """Return the bits of a part of a sum, and the exponent of the units of the first part."""
    bits = 62 - n_rows.bit_length()
    exponent = bits - math.frexp(largest)[1] if largest else 0
    return bits, max(-1000, min(1000, exponent))
