"""The hash that random draws come from, for arrays and inside kernels."""

from __future__ import annotations

import numpy as np

from rankgrove._random_kernels import mix
from rankgrove.random import mix64

STEP = 0x9E3779B97F4A7C15


def test_the_hash_is_splitmix64():
    # the first numbers of the generator seeded with 0, as its author publishes them
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    counters = [STEP * i % 2**64 for i in range(3)]
    assert mix64(np.array(counters, np.uint64)).tolist() == published
    assert [int(mix(np.uint64((x + STEP) % 2**64))) for x in counters] == published
