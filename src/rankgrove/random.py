"""Random numbers that depend on their purpose, not on when and by which thread they are drawn.

A draw is a hash of (seed, purpose, index): the same for any number of threads, any order of work
and on any machine. Streams for NumPy code are spawned from a seed and a tuple of names.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable


def generator(seed: int, *names: object) -> np.random.Generator:
    """Return the NumPy generator of `seed` for the purpose `names` ("features", 3, ...).

    Generators of different purposes are independent; the same purpose gives the same stream.
    """
    return np.random.Generator(np.random.PCG64(derive_seed(seed, *names)))


def derive_seed(seed: int, *names: object) -> int:
    """Return a 64-bit seed derived from `seed` for the purpose `names`."""
    text = "\0".join([str(int(seed)), *map(str, names)])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def string_keys(tokens: Iterable[object]) -> np.ndarray:
    """Return a uint64 key for every token; equal texts have equal keys."""
    digest = hashlib.blake2b
    blob = b"".join(digest(str(token).encode(), digest_size=8).digest() for token in tokens)
    return np.frombuffer(blob, dtype="<u8").astype(np.uint64)


def row_keys(query_keys: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """Return a uint64 key per row (query order), computed from its query and its place in it."""
    sizes = np.diff(query_ptr)
    place = np.arange(query_ptr[-1]) - np.repeat(query_ptr[:-1], sizes)
    return mix64(np.repeat(query_keys, sizes) + place.astype(np.uint64))


def mix64(x: np.ndarray) -> np.ndarray:
    """Return 64 well-mixed bits for every number (the finaliser of splitmix64)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))
