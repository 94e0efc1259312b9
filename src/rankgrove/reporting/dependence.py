"""How several models' scores follow the features that matter most to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import RankgroveError
from rankgrove.explaining.dependence import partial_dependence
from rankgrove.reporting.importance import Importance, overall
from rankgrove.reporting.reasons import spread_of
from rankgrove.reporting.systems import System, some_queries

N_FEATURES = 6
N_POINTS = 20
N_ROWS = 1000  # every point costs a scoring of them


@dataclass(frozen=True, eq=False)
class Dependence:
    """One feature.

    Attributes
    ----------
    feature : its name
    tenths : the values that cut the documents into tenths
    grid : the values it was set to
    lines : model -> the mean score at every value, less the mean of all scores, in their deviations
    """

    feature: str
    tenths: np.ndarray
    grid: np.ndarray
    lines: dict[str, np.ndarray]


def dependences(
    systems: Sequence[System],
    data: QueryDataset,
    importances: Sequence[Importance | None],
    n_threads: int | None,
) -> list[Dependence]:
    """Return the features of the largest share in all models' importance, and how scores follow."""
    sample = some_queries(data, N_ROWS)
    found = []
    for j in overall(importances, N_FEATURES):
        values = data.column(j + 1)
        values = values[np.isfinite(values)]
        if not values.size:
            continue
        levels = np.quantile(values, np.linspace(0.01, 0.99, N_POINTS), method="inverted_cdf")
        grid = np.unique(levels.astype(np.float32))
        lines = {}
        for system in systems:
            line = _line(system, sample, j, grid, n_threads)
            if line is not None:
                lines[system.name] = line
        if lines and grid.size > 1:
            tenths = np.quantile(values, np.linspace(0.1, 0.9, 9))
            tenths = np.unique(tenths.clip(grid[0], grid[-1]))
            found.append(Dependence(data.feature_names[j], tenths, grid, lines))
    return found


def _line(
    system: System, data: QueryDataset, column: int, grid: np.ndarray, n_threads: int | None
) -> np.ndarray | None:
    """Return the mean score at every value; None of models that cannot be asked."""
    finite = system.scores[np.isfinite(system.scores)]
    spread = spread_of(finite)
    if system.model is None or not spread > 0.0:
        return None
    try:
        found = partial_dependence(system.model, data, column + 1, grid, n_threads=n_threads)
    except RankgroveError:
        return None  # it scales by query, or is not one of ours
    return (found.mean - finite.mean()) / spread
