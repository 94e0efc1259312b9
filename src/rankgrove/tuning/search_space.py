"""Search spaces: the BL-MART paper's grids, a user's own, and random draws from them."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rankgrove.random import generator
from rankgrove.validation import check_choice, check_integer, counted, refuse

Parameters = dict[str, Any]
Space = Mapping[str, Sequence[Any]]

# Table 2 of the BL-MART paper; min_leaf is a share of the rows, where the paper has percentages.
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

# Public names of the grids, which say that the data is small or large, not the grid.
BY_DATA = {"small-data": "small", "large-data": "large"}
N_TRIALS = 20  # the default number of combinations


class Plan(NamedTuple):
    """How combinations are chosen, and their number; `total` is the size of the grid."""

    search: str
    n_trials: int
    total: int

    def __str__(self) -> str:
        if self.n_trials == self.total and self.search != "optuna":
            return f"all {counted(self.total, 'combination')}"
        how = "drawn at random" if self.search == "random" else "proposed by Optuna"
        return f"{self.n_trials:,} of {counted(self.total, 'combination')}, {how}"


def planned(space: Space, search: str, n_trials: int | None, owner: str) -> Plan:
    """Return the search and its number of combinations: `n_trials` (or ``N_TRIALS``) at most.

    ``search="grid"`` tries all. ``search="auto"`` is a grid search if the grid has no more
    combinations than that, and random draws otherwise.
    """
    total = size_of(space)
    if search == "grid":
        if n_trials is not None:
            refuse("n_trials", owner, "left out for search='grid', which tries all", n_trials)
        return Plan(search, total, total)
    wanted = N_TRIALS if n_trials is None else check_integer("n_trials", owner, n_trials, low=1)
    if search == "auto":
        search = "grid" if total <= wanted else "random"
    return Plan(search, wanted if search == "optuna" else min(wanted, total), total)


def checked_space(space: str | Space, owner: str) -> dict[str, list[Any]]:
    """Return the space of a name, or a user's space as plain lists."""
    if isinstance(space, str):
        if space in PRESETS:
            return PRESETS[space]
        return PRESETS[BY_DATA[check_choice("space", owner, space, BY_DATA)]]
    if not isinstance(space, Mapping) or not space:
        wanted = "'small-data', 'large-data', or parameters with lists of values"
        refuse("space", owner, wanted, space)
    listed = {}
    for name, values in space.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            refuse("space", owner, f"a list of values for {name!r}", values)
        if len({repr(value) for value in values}) < len(values):
            refuse("space", owner, f"different values for {name!r}", values)
        try:
            json.dumps(list(values))
        except TypeError:
            wanted = f"plain values for {name!r}: numbers, strings, booleans, None, lists of them"
            refuse("space", owner, wanted, values)
        listed[str(name)] = list(values)
    return listed


def size_of(space: Space) -> int:
    """Return the number of combinations."""
    return math.prod(len(values) for values in space.values())


def grid(space: Space) -> Iterator[Parameters]:
    """Yield all combinations; the last parameter changes fastest."""
    for values in itertools.product(*space.values()):
        yield dict(zip(space, values, strict=True))


def drawn(space: Space, n: int, seed: int) -> list[Parameters]:
    """Return `n` different combinations at random, or all if there are fewer."""
    total = size_of(space)
    chosen = generator(seed, "tune").permutation(total)[: min(n, total)]
    return [_at(space, int(i)) for i in chosen]


def _at(space: Space, i: int) -> Parameters:
    """Return combination number `i` of the grid."""
    parameters = {}
    for name, values in reversed(list(space.items())):
        i, place = divmod(i, len(values))
        parameters[name] = values[place]
    return {name: parameters[name] for name in space}
