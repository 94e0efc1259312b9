"""What parameters to try: the BL-MART paper's grids, a user's own, and draws from them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rankgrove.random import generator
from rankgrove.validation import check_choice, refuse

Parameters = dict[str, Any]
Space = Mapping[str, Sequence[Any]]

# Table 2 of the BL-MART paper; shares of observations are of the rows, not in percent.
PRESETS: dict[str, dict[str, list[Any]]] = {
    "small": {
        "n_leaves": [2, 4, 7, 10, 15, 20, 25],
        "min_leaf": [0.0012, 0.0025, 0.005],
        "learning_rate": [0.05, 0.1, 0.2, 0.3],
        "query_fraction": [0.3, 0.5, 1.0],
        "feature_fraction": [0.1, 0.3, 0.5, 1.0],
    },
    "large": {
        "n_leaves": [10, 40, 70],
        "min_leaf": [0.0012, 0.0025, 0.005],
        "learning_rate": [0.05, 0.1, 0.2],
        "query_fraction": [0.5, 1.0],
        "feature_fraction": [0.3, 0.5, 1.0],
    },
}


def checked_space(space: str | Space, owner: str) -> dict[str, list[Any]]:
    """Return a space by its name, or a user's own."""
    if isinstance(space, str):
        return PRESETS[check_choice("space", owner, space, PRESETS)]
    if not isinstance(space, Mapping) or not space:
        refuse("space", owner, "'small', 'large', or parameters with lists of values", space)
    listed = {}
    for name, values in space.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            refuse("space", owner, f"a list of values for {name!r}", values)
        if len({repr(value) for value in values}) < len(values):
            refuse("space", owner, f"different values for {name!r}", values)
        try:
            json.dumps(list(values))
        except TypeError:
            wanted = f"plain values for {name!r}: numbers, texts, booleans, None, lists of them"
            refuse("space", owner, wanted, values)
        listed[str(name)] = list(values)
    return listed


def size_of(space: Space) -> int:
    """Return the number of combinations."""
    return math.prod(len(values) for values in space.values())


def grid(space: Space) -> Iterator[Parameters]:
    """Give all combinations, the last parameter changing first."""
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values, strict=True))


def drawn(space: Space, n: int, seed: int) -> list[Parameters]:
    """Return `n` different combinations at random, all of them where there are no more."""
    total = size_of(space)
    chosen = generator(seed, "tune").permutation(total)[: min(n, total)]
    return [_at(space, int(i)) for i in chosen]


def _at(space: Space, i: int) -> Parameters:
    """Return combination number `i` of the grid."""
    found = {}
    for name, values in reversed(list(space.items())):
        i, place = divmod(i, len(values))
        found[name] = values[place]
    return {name: found[name] for name in space}
