"""Pairs of one click log looked up among those of another, by the ids of query and document."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.clicks.log import ClickLog


class Pairs(NamedTuple):
    """The distinct pairs of a click log."""

    query_ids: np.ndarray
    document_ids: np.ndarray
    query: np.ndarray
    document: np.ndarray


def pairs_of(log: ClickLog) -> Pairs:
    """Return the pairs of a log."""
    return Pairs(log.query_ids, log.document_ids, log.pair_query, log.pair_document)


def places(pairs: Pairs, among: Pairs) -> np.ndarray:
    """Return the number that every pair has in `among`, -1 if it is not there."""
    if all(a is b or _same_memory(a, b) for a, b in zip(pairs, among, strict=True)):
        return np.arange(pairs.query.size)
    n = among.document_ids.size
    query = _numbers(pairs.query_ids, among.query_ids)[pairs.query]
    document = _numbers(pairs.document_ids, among.document_ids)[pairs.document]
    key = np.where((query >= 0) & (document >= 0), query * np.int64(n) + document, -1)
    return _numbers(key, among.query * np.int64(n) + among.document)


def _numbers(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return the place of every value in distinct values, -1 if it is not there."""
    if not among.size:
        return np.full(values.size, -1)
    if (values.dtype.kind in "iu") != (among.dtype.kind in "iu"):  # a whole number and its text
        values, among = values.astype(str), among.astype(str)
    order = np.argsort(among, kind="stable")
    at = order[np.searchsorted(among, values, sorter=order).clip(max=among.size - 1)]
    return np.where(among[at] == values, at, -1)


def _same_memory(a: np.ndarray, b: np.ndarray) -> bool:
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and a.strides == b.strides
        and a.ctypes.data == b.ctypes.data
    )
