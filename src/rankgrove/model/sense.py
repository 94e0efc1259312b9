"""Checks whether the numbers of a model file make sense; every check raises ValueError.

Checksums detect damage, but not a file that somebody wrote on purpose. So all numbers that kernels
receive, above all indices, are checked after reading.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

LARGEST = 1e100  # the largest score: its square and its weighted sums are finite too
MOST_FEATURES = 2**31 - 1  # they are numbered by int32


def whole(value: object, what: str, low: int = 0, high: int = MOST_FEATURES) -> int:
    """Return a whole number of a file within [low, high]; `value` may be a 0-d array."""
    array = np.asarray(value)
    if array.ndim or array.dtype.kind not in "iu" or not low <= array <= high:
        raise ValueError(f"{what} must be a whole number of at least {low}, not {_shown(value)}.")
    return int(array)


def number(value: object, what: str) -> float:
    """Return a number of a file that is not unreasonably large; `value` may be a 0-d array."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind in "fiu":
        value = value.item()
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= LARGEST:
        raise ValueError(f"{what} must be a number within {LARGEST:g}, not {_shown(value)}.")
    return float(value)


def numbers(array: object, what: str) -> np.ndarray:
    """Return a list of numbers as float64, none of them unreasonably large."""
    values = np.asarray(array)
    if values.ndim != 1 or (values.size and values.dtype.kind not in "fiu"):
        raise ValueError(f"{what} must be a list of numbers.")
    values = values.astype(np.float64)
    if not (np.abs(values) <= LARGEST).all():
        raise ValueError(f"{what} must be finite numbers within {LARGEST:g}.")
    return values


def typed(array: np.ndarray, dtype: DTypeLike, what: str) -> np.ndarray:
    """Return a one-dimensional array of a file, if its type is of the right kind."""
    if array.ndim != 1 or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ValueError(f"{what} has the type {array.dtype} and the shape {array.shape}.")
    return array


def borders(array: np.ndarray, n: int, what: str) -> None:
    """Refuse borders that do not ascend from 0 to `n`: they would point outside of an array."""
    inside = array.size > 0 and array[0] == 0 and array[-1] == n
    if not inside or array.min() < 0 or array.max() > n or np.any(array[1:] < array[:-1]):
        raise ValueError(f"the borders of {what} do not fit: arrays of unequal length.")


def table(value: object, what: str) -> dict[str, Any]:
    """Return a JSON object, or refuse another value."""
    if not isinstance(value, dict):
        raise ValueError(f"{what} must be a mapping, not {_shown(value)}.")
    return value


def texts(value: object, what: str) -> list[str]:
    """Return a list of texts, or refuse another value."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{what} must be a list of names, not {_shown(value)}.")
    return value


def history(value: object, what: str, of_rounds: bool = True) -> None:
    """Refuse anything but {data set: {measure: values of all rounds}}, or one value of each."""
    for by_measure in table(value, what).values():
        for values in table(by_measure, what).values():
            listed = values if of_rounds else [values]
            if not isinstance(listed, list) or not all(_is_value(number) for number in listed):
                raise ValueError(f"{what} must hold numbers, not {_shown(values)}.")


def _is_value(value: object) -> bool:
    """Return whether this is the value of a measure, which may be NaN."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return not math.isinf(value)


def _shown(value: object, most: int = 40) -> str:
    text = repr(value)
    return text if len(text) <= most else text[:most] + "..."
