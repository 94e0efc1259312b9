"""Whether the numbers of a model file make sense; every check raises ValueError.

Checksums tell damage from a whole file, not a file that somebody wrote on purpose: whatever
kernels are handed, indices above all, is checked after reading, whoever wrote it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LARGEST = 1e100  # what a score may come to: its square and its weighted sums are finite too
MOST_FEATURES = 2**31 - 1  # they are numbered by int32


def whole(value: Any, what: str, low: int = 0, high: int = MOST_FEATURES) -> int:
    """Return a whole number of a file within [low, high]; `value` may be an array of one."""
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iu" or not low <= array <= high:
        raise ValueError(f"{what} must be a whole number of at least {low}, not {_shown(value)}.")
    return int(array)


def number(value: Any, what: str) -> float:
    """Return a number of a file that is not beyond reason; `value` may be an array of one."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiu":
        value = value.item()
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= LARGEST:
        raise ValueError(f"{what} must be a number within {LARGEST:g}, not {_shown(value)}.")
    return float(value)


def numbers(array: Any, what: str) -> np.ndarray:
    """Return a list of numbers as float64, none of them beyond reason."""
    found = np.asarray(array)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "fiu"):
        raise ValueError(f"{what} must be a list of numbers.")
    found = found.astype(np.float64)
    if not (np.abs(found) <= LARGEST).all():
        raise ValueError(f"{what} must be finite numbers within {LARGEST:g}.")
    return found


def typed(array: np.ndarray, dtype: Any, what: str) -> np.ndarray:
    """Return a one-dimensional array of a file whose type is of the right kind."""
    if array.ndim != 1 or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ValueError(f"{what} has the type {array.dtype} and the shape {array.shape}.")
    return array


def borders(array: np.ndarray, n: int, what: str) -> None:
    """Refuse borders that do not rise from 0 to `n`: they would lead outside of an array."""
    inside = array.size > 0 and array[0] == 0 and array[-1] == n
    if not inside or array.min() < 0 or array.max() > n or np.any(array[1:] < array[:-1]):
        raise ValueError(f"the borders of {what} do not fit: arrays of unequal length.")


def table(value: Any, what: str) -> dict[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be values by name, not {_shown(value)}.")
    return value


def texts(value: Any, what: str) -> list[str]:
    """Return a list of texts."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ValueError(f"{what} must be a list of names, not {_shown(value)}.")
    return value


def history(value: Any, what: str, of_rounds: bool = True) -> None:
    """Refuse what is no measures' values by data set; of every round, or one of each."""
    for by_measure in table(value, what).values():
        for values in table(by_measure, what).values():
            every = values if of_rounds else [values]
            if not isinstance(every, list) or not all(_is_value(one) for one in every):
                raise ValueError(f"{what} must hold numbers, not {_shown(values)}.")


def _is_value(value: Any) -> bool:
    """Whether it is a measure's value: NaN is one."""
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and not math.isinf(value)


def _shown(value: Any, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else text[:most] + "..."
