"""Which queries a model of a bag sees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from rankgrove.errors import DataError
from rankgrove.random import derive_seed, mix64


def sampled_queries(keys: np.ndarray, fraction: float, seed: int, model: int) -> np.ndarray:
    """Return a mask: which queries model number `model` is trained on, without replacement.

    A query's lot is a hash of the seed, the model and the query's own key, so that neither the
    order of the file nor the number of models plays a part.
    """
    n = min(keys.size, max(1, round(fraction * keys.size)))
    lot = mix64(keys ^ np.uint64(derive_seed(seed, "bag", model)))
    chosen = np.zeros(keys.size, np.bool_)
    chosen[np.argsort(lot, kind="stable")[:n]] = True
    return chosen


@contextmanager
def named_sample(name: str, seen: np.ndarray) -> Iterator[None]:
    """Say of data that cannot be learned from that it is a sample, and which; not of all of it."""
    try:
        yield
    except DataError as error:
        if seen.all():
            raise
        raise type(error)(
            f"{name}, trained on {seen.sum():,} of {seen.size:,} queries: {error} If the queries "
            "as a whole are fine, this sample was unlucky: use a larger query_fraction."
        ) from error
