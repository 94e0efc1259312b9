"""From labels to gains, and from ranks to discounts: the conventions of the literature."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from rankgrove.errors import DataError
from rankgrove.validation import check_real, counted, refuse

DISCOUNTS = ("log2", "letor", "ln")
Gain = str | tuple[float, ...]


def check_gain(owner: str, gain: str | Iterable[float]) -> Gain:
    """Return a gain rule: ``"exp2"``, ``"identity"`` or a table of the gains of 0, 1, 2, ..."""
    if isinstance(gain, str):
        if gain not in ("exp2", "identity"):
            refuse("gain", owner, "'exp2', 'identity' or a table such as (0, 1, 3, 7, 10)", gain)
        return gain
    try:
        table = tuple(gain)
    except TypeError:
        refuse("gain", owner, "'exp2', 'identity' or a table such as (0, 1, 3, 7, 10)", gain)
    if not table:
        refuse("gain", owner, "a table with at least one gain", gain)
    return tuple(check_real("gain", owner, value, low=0.0) for value in table)


def gains_of(labels: np.ndarray, gain: Gain) -> np.ndarray:
    """Return the gain of every label; labels below 0 (TREC's spam grades) have gain 0."""
    if isinstance(gain, tuple):
        index = labels.astype(np.int64)
        bad = np.flatnonzero((index != labels) | (index >= len(gain)))
        if bad.size:
            raise DataError(
                f"A gain table of {counted(len(gain), 'entry', 'entries')} needs whole labels "
                f"from 0 to {len(gain) - 1}. Got the label {labels[bad[0]]:g}."
            )
        return np.where(index >= 0, np.asarray(gain, np.float64)[np.maximum(index, 0)], 0.0)
    positive = np.maximum(labels, 0.0)
    if gain == "identity":
        return positive
    if positive.max() > 1000:
        raise DataError(
            f"The gain 2^label - 1 overflows for the label {positive.max():g}. Use "
            "gain='identity', a gain table, or smaller labels."
        )
    return np.exp2(positive) - 1.0


def binary_gains(labels: np.ndarray, relevant: float) -> np.ndarray:
    """Return 1 for labels of at least `relevant`, else 0."""
    return (labels >= relevant).astype(np.float64)


def discounts(name: str, n: int, cutoff: int | None = None) -> np.ndarray:
    """Return the discounts of ranks 1 to n, or to the cutoff if that is less."""
    rank = np.arange(1, min(n, cutoff or n) + 1, dtype=np.float64)
    if name == "log2":
        return 1.0 / np.log2(1.0 + rank)
    if name == "ln":
        return 1.0 / np.log(1.0 + rank)
    # LETOR's script: no discount for the first two ranks, then log2 of the rank itself.
    return 1.0 / np.log2(np.maximum(rank, 2.0))


def reciprocal_ranks(n: int, cutoff: int | None = None) -> np.ndarray:
    """Return 1, 1/2, 1/3, ... for ranks 1 to n, or to the cutoff if that is less."""
    return 1.0 / np.arange(1, min(n, cutoff or n) + 1, dtype=np.float64)


def safe_inverse(values: np.ndarray) -> np.ndarray:
    """Return 1 / values, and 0 where the value is 0."""
    return np.divide(1.0, values, out=np.zeros(values.size), where=values > 0)
