"""Shared by the generators: blocks of queries, label edges and row-wise arithmetic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.validation import check_integer, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# The shares of the labels 0 to 4 among web judgements.
SKEWED = (0.52, 0.33, 0.105, 0.035, 0.01)
QUERIES_PER_BLOCK = 64


def blocks(n_queries: int) -> Iterator[tuple[int, slice]]:
    """Yield the number and the queries of every block."""
    for number, start in enumerate(range(0, n_queries, QUERIES_PER_BLOCK)):
        yield number, slice(start, min(start + QUERIES_PER_BLOCK, n_queries))


def check_sizes(owner: str, seed: int, task: int, **sizes: int) -> None:
    """Refuse a seed or task that is not a whole number of at least 0, and sizes below 1."""
    check_integer("seed", owner, seed, low=0)
    check_integer("task", owner, task, low=0)
    for name, size in sizes.items():
        check_integer(name, owner, size, low=1)


def check_fractions(
    name: str, owner: str, value: str | ArrayLike, presets: Mapping[str, Sequence[float]]
) -> np.ndarray:
    """Return label shares as an array; a text is the name of a preset."""
    if isinstance(value, str) and value in presets:
        return np.array(presets[value])
    rule = f"{' or '.join(map(repr, presets))}, or two or more shares above 0 that add up to 1"
    if isinstance(value, str):
        refuse(name, owner, rule, value)
    try:
        shares = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        refuse(name, owner, rule, value)
    fits = shares.ndim == 1 and shares.size >= 2 and bool(np.all(shares > 0))
    if not fits or abs(shares.sum() - 1) > 1e-6:
        refuse(name, owner, rule, value)
    return shares


def label_edges(reference: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the values that cut a reference sample into labels with these shares."""
    return np.asarray(np.quantile(reference, np.cumsum(shares)[:-1]))


def combine(columns: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return ``columns @ weights``, summed in a fixed order.

    A BLAS product may add in another order for another number of rows or threads, and a label at
    an edge would change.
    """
    out = np.zeros((columns.shape[0], weights.shape[1]), columns.dtype)
    for column, weight in zip(columns.T, weights.astype(columns.dtype), strict=True):
        out += column[:, None] * weight
    return out


def assembled(
    X: np.ndarray, y: np.ndarray, sizes: np.ndarray, names: list[str] | None, prefix: str = ""
) -> QueryDataset:
    """Return the data set of rows in query order; query ids are `prefix` and a number from 1."""
    numbers = np.arange(1, sizes.size + 1)
    ids = np.array([f"{prefix}{number}" for number in numbers]) if prefix else numbers
    return QueryDataset.from_parts(
        X,
        y,
        ids,
        np.repeat(np.arange(sizes.size), sizes),
        feature_names=None if names is None else tuple(names),
    )
