"""Gradients as whole numbers, so that sums do not depend on the order of addition.

The gradient of a row is multiplied by a power of two and rounded at random, up with the probability
of its fraction, so that sums keep their expectation. The random number is a hash of (seed, round,
row key). The power is the largest for which no sum of rows can overflow its field::

    "mse"       | gradient, 32 bits signed  |  count, 32 bits |      one int64 addition, two sums
    "newton"    | gradient, 23 | hessian, 21 |  count, 20     |      three sums, up to 2**20 rows
                | gradient, 24 | hessian, 24 |  count, 16     |      more rows: sums of some rows,
                | gradient, 32 bits signed  |  count, 32 bits |      which are added to two planes
                | hessian, 64 bits                            |      (see `accumulate`)

Numbers that are whole multiples of the step are kept exactly. With two planes a single row has at
most 14 bits: where one gradient is a million times as large as the others, those are rounded
coarsely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rankgrove.errors import DataError
from rankgrove.growth import _histogram_kernels as turns
from rankgrove.growth import _quantise_kernels as kernels
from rankgrove.growth._kernel_tools import run_parts
from rankgrove.random import derive_seed

GRADIENT_BITS = 31
# With two planes, sums have this many bits more than the number of rows: rows are 32 units large on
# average. More bits would be more precise, but the fields of a turn of rows would be full sooner.
BITS_ABOVE_ROWS = 5
MOST_ROWS = 1 << 30
MOST_ROWS_OF_ONE_PLANE = 1 << 20  # with three fields; rounding needs room for one unit per row
LARGEST = 1e144  # its square, a gain, is still a float64
LARGEST_EXPONENT = 500


@dataclass(frozen=True)
class Range:
    """The magnitudes of some numbers, for fixed-point arithmetic.

    Attributes
    ----------
    largest : the largest magnitude
    total : an upper bound of the sum of magnitudes; does not depend on the order of the rows
    """

    largest: float
    total: float


def measure(name: str, values: np.ndarray, rows: np.ndarray, n_parts: int) -> Range:
    """Return the range of ``values[rows]``."""
    largest = check_largest(name, largest_magnitude(values, rows, n_parts))
    exponent = magnitude_exponent(largest, rows.size)
    return range_of(largest, magnitudes(values, rows, exponent, n_parts), exponent)


def largest_magnitude(values: np.ndarray, rows: np.ndarray, n_parts: int) -> float:
    """Return the largest magnitude of ``values[rows]``; not finite if any value is not."""
    if rows.size == values.size and n_parts < 4:  # NumPy's vectors are as fast as two threads
        return max(float(values.max()), -float(values.min()))
    most = np.zeros(n_parts)
    run_parts(kernels.largest_part, kernels.largest, n_parts, values, rows, most)
    return float(most.max())


def check_largest(name: str, largest: float) -> float:
    """Refuse numbers that are not finite or too large for fixed-point arithmetic."""
    if not math.isfinite(largest):
        raise DataError(f"Every {name} must be a finite number. Some are infinite or NaN.")
    if largest > LARGEST:
        raise DataError(f"Every {name} must be smaller than 1e144. The largest is {largest:g}.")
    return largest


def magnitude_exponent(largest: float, n_rows: int) -> int:
    """Return k such that the magnitudes of `n_rows` rows are added up in units of 2**-k."""
    return _clip(62 - n_rows.bit_length() - math.frexp(largest)[1])


def magnitudes(values: np.ndarray, rows: np.ndarray, exponent: int, n_parts: int) -> int:
    """Return the sum of the magnitudes of ``values[rows]``, each in whole units rounded up."""
    parts = np.zeros(n_parts, np.int64)
    unit = math.ldexp(1.0, exponent)
    run_parts(kernels.magnitudes_part, kernels.magnitudes, n_parts, values, rows, unit, parts)
    return int(parts.sum())


def range_of(largest: float, units: int, exponent: int) -> Range:
    """Return the range of numbers, given the sum of their magnitudes in units of 2**-exponent."""
    if largest == 0.0:
        return Range(0.0, 0.0)
    total = float(units) * (1 + 2.0**-50)  # float() may have rounded down
    return Range(largest, math.ldexp(total, -exponent))


def scale_exponent(total: float, n_rows: int, bits: int) -> int:
    """Return the largest k such that numbers with this total, times 2**k, sum to under 2**bits.

    Rounding adds less than one per row.
    """
    if total == 0.0:
        return 0
    room = (1 << bits) - 1 - n_rows
    mantissa, exponent = math.frexp(total)
    k = math.floor(math.log2(room / mantissa)) - exponent
    while math.ldexp(mantissa, k + exponent) > room:
        k -= 1
    return _clip(k)


@dataclass(frozen=True)
class Field:
    """The field of a quantised number in an int64: its bits, its place, the content below it."""

    name: str
    bits: int
    shift: int
    low: int
    keep: bool = False  # keep the content that is already there
    most_of_row: int | None = None  # the largest number of a row; None: that of a sum

    def exponent(self, total: float, largest: float, n_rows: int) -> int:
        """Return the largest k such that numbers times 2**k fit into the field.

        In: the total and the largest of their magnitudes.
        """
        k = scale_exponent(total, n_rows, self.bits)
        if self.most_of_row is None or largest == 0.0:
            return k
        mantissa, exponent = math.frexp(largest)  # rounding adds at most 1
        return min(k, math.floor(math.log2((self.most_of_row - 1) / mantissa)) - exponent)


@dataclass(frozen=True)
class Layout:
    """The packing of sums: the number of int64 planes of histograms, and the fields of a row.

    With two planes, rows have three fields all the same: see `accumulate`.
    """

    planes: int
    count_bits: int
    hessian_bits: int  # within the first plane; 0 if the hessian is elsewhere
    gradient: Field
    hessian: Field | None

    @classmethod
    def of(cls, split: str, n_rows: int) -> Layout:
        """Return the layout for a criterion and a number of rows."""
        if split == "mse":
            return cls(1, 32, 0, Field("gradient", GRADIENT_BITS, 32, 1), None)
        if n_rows < MOST_ROWS_OF_ONE_PLANE:
            gradient = Field("gradient", 22, 41, 1)
            return cls(1, 20, 21, gradient, Field("hessian", 21, 20, 0, keep=True))
        bits = min(GRADIENT_BITS, n_rows.bit_length() + BITS_ABOVE_ROWS)
        most_gradient = turns.MOST_GRADIENT // turns.ROWS_AT_ONCE
        most_hessian = turns.MOST_HESSIAN // turns.ROWS_AT_ONCE
        gradient = Field("gradient", bits, turns.GRADIENT_SHIFT, 1, False, most_gradient)
        hessian = Field("hessian", bits, turns.COUNT_BITS, 0, True, most_hessian)
        return cls(2, 32, 0, gradient, hessian)

    def unpack(self, sums: list[int]) -> tuple[int, int]:
        """Return (gradient << 32 | count, hessian) of the sums of all planes."""
        if self.planes == 2:
            return sums[0], sums[1]
        if not self.hessian_bits:
            return sums[0], 0
        both = sums[0] & ((1 << (self.count_bits + self.hessian_bits)) - 1)
        gradient = sums[0] >> (self.count_bits + self.hessian_bits)
        count = both & ((1 << self.count_bits) - 1)
        return (gradient << 32) + count, both >> self.count_bits


def quantise(
    field: Field,
    values: np.ndarray,
    exponent: int,
    rows: np.ndarray,
    keys: np.ndarray,
    draw: tuple[int, int],
    out: np.ndarray,
    n_parts: int,
) -> None:
    """Fill ``out[rows]`` with values times ``2**exponent``, rounded at random.

    In: row `keys`; `draw`, (seed, round).
    """
    stream = np.uint64(derive_seed(draw[0], field.name, draw[1]))
    scale = math.ldexp(1.0, exponent)
    run_parts(
        kernels.quantise_part, kernels.quantise, n_parts,
        values, rows, keys, stream, scale, field.shift, field.low, field.keep, out,
    )  # fmt: skip


def squares(field: Field, packed: np.ndarray, rows: np.ndarray, n_parts: int) -> int:
    """Return the sum of the squares of quantised numbers.

    The sum of their magnitudes is under ``2**field.bits``, so that this one is under 2**62.
    """
    parts = np.zeros(n_parts, np.int64)
    run_parts(kernels.squares_part, kernels.squares, n_parts, packed, rows, field.shift, parts)
    return int(parts.sum())


def _clip(exponent: int) -> int:
    """Keep 2**exponent, its square, and its products within the range of float64.

    Only numbers under 1e-130 are scaled by less than they could be.
    """
    return min(LARGEST_EXPONENT, exponent)
