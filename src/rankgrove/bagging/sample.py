"""The sample of queries that a model of a bag sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from rankgrove.errors import DataError
from rankgrove.random import derive_seed, mix64


def sampled_queries(keys: np.ndarray, fraction: float, seed: int, model: int) -> np.ndarray:
    """Return a mask of the queries that model number `model` is trained on, without replacement.

    A query's lot is a hash of the seed, the model and the query's key, so the sample does not
    depend on the order of the file or on the number of models.
    """
    n = min(keys.size, max(1, round(fraction * keys.size)))
    lot = mix64(keys ^ np.uint64(derive_seed(seed, "bag", model)))
    chosen = np.zeros(keys.size, np.bool_)
    chosen[np.argsort(lot, kind="stable")[:n]] = True
    return chosen


@contextmanager
def named_sample(name: str, seen: np.ndarray) -> Iterator[None]:
    """Add to a DataError that the data was a sample, and which one; unless it was all queries."""
    try:
        yield
    except DataError as error:
        if seen.all():
            raise
        raise type(error)(
            f"{name}, trained on {seen.sum():,} of {seen.size:,} queries: {error} If the queries "
            "as a whole are fine, this sample was unlucky: use a larger query_fraction."
        ) from error
