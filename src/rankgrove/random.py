"""Random numbers that depend on what they are for, not on who draws them when.

A draw is a hash of (seed, what for, index): the same for any number of threads, for any order of
work and on any machine. Streams for NumPy code are spawned from a seed and a tuple of names.
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
    """Return a uint64 key for every token: the same for the same text, wherever it stands."""
    digest = hashlib.blake2b
    blob = b"".join(digest(str(token).encode(), digest_size=8).digest() for token in tokens)
    return np.frombuffer(blob, dtype="<u8").astype(np.uint64)
