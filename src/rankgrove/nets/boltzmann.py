"""The training task of BoltzRank: lists with labels, and how rankings of them are drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.measures.base import Measure
from rankgrove.nets.tasks import Inputs, State, Step, Task
from rankgrove.random import derive_seed, mix64

AROUND = ("labels", "scores")


class Boltzmann(NamedTuple):
    """The objective: the scale of energies, the share of the measure, the target temperature."""

    alpha: float
    share: float
    temperature: float


class Draws(NamedTuple):
    """How rankings are drawn: their number, their centre, the distance from it, and when."""

    n_rankings: int
    around: str  # one of AROUND
    spread: float
    redraw: bool
    seed: int


class BoltzmannTask(Task):
    """Queries with labels as lists: a sample of rankings per query, one update per query.

    Parameters
    ----------
    inputs : the documents in query order
    measure, labels, query_ptr, query_weight : the measure to maximise, and the data; queries whose
        labels are all equal, or whose value is fixed, are skipped
    keys : one per query
    """

    def __init__(
        self,
        inputs: Inputs,
        measure: Measure,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        keys: np.ndarray,
        objective: Boltzmann,
        draws: Draws,
        query_weight: np.ndarray | None = None,
        n_threads: int | None = None,
    ) -> None:
        prepared = measure.prepare(labels, query_ptr, n_threads)
        starts, sizes = query_ptr[:-1], np.diff(query_ptr)
        equal = np.maximum.reduceat(labels, starts) == np.minimum.reduceat(labels, starts)
        weight = np.ones(starts.size) if query_weight is None else query_weight.copy()
        weight[equal | prepared.is_fixed] = 0.0
        self.is_empty = not weight.any()
        self.keys = keys
        self.ptr = query_ptr
        self._inputs = inputs.for_kernels()
        self._measure = measure
        self._lists = (
            measure.rule, *map(float, objective),
            query_ptr, labels, prepared.gain, prepared.weight, weight,
        )  # fmt: skip
        self._draws = draws
        self._scratch = np.zeros((2, int(sizes.max())))
        self.begin_epoch(0)

    def begin_epoch(self, epoch: int) -> None:
        """Set the keys of the draws of this epoch: hashes of the seed, the epoch and the query."""
        number = epoch if self._draws.redraw else 0
        seed = derive_seed(self._draws.seed, "rankings", number)
        self._draw_keys = mix64(self.keys ^ np.uint64(seed))

    def run(self, order: np.ndarray, step: Step, state: State, positions: np.ndarray) -> int:
        """Make the updates of the queries in `order`."""
        from rankgrove.nets._boltzmann_kernels import train_boltzmann, train_boltzmann_for

        n_rankings, around, spread, *_ = self._draws
        draws = (n_rankings, around == "scores", float(spread), self._draw_keys)
        kernel = train_boltzmann
        if self._measure.own_kernels:
            kernel = train_boltzmann_for(self._measure.kernels.ranked_value)
        run = self._measure.run
        return int(
            run(kernel, order, self._inputs, self._lists, draws, *step, state, *self._scratch)
        )
