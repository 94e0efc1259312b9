"""The inputs of training nets: standardised features, and tasks that turn lambdas into updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from rankgrove.model.mlp import matrix_parts, refuse_infinite
from rankgrove.objectives.clicks import ClickLambdaObjective, no_sums
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.objectives.position_bias import PositionBias, TowerBias
from rankgrove.objectives.preference_pairs import PairGroups

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

FORMS = ("factorised", "pairs")


def moments(features: Matrix, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of every feature, and 1 / its standard deviation (0 if it is constant).

    Missing values are left out. Sums run in the order of `rows`, over differences from the first
    value, so that the deviation of a constant feature is exactly 0.
    """
    from rankgrove.model._mlp_kernels import add_distances, first_values

    matrix, n = matrix_parts(features), features.shape[1]
    origin, total, squares = np.zeros(n), np.zeros(n), np.zeros(n)
    count = np.zeros(n, np.int64)
    first_values(matrix, rows, origin)
    add_distances(matrix, rows, origin, False, count, total)
    mean = origin + total / np.maximum(count, 1)
    add_distances(matrix, rows, mean, True, np.zeros(n, np.int64), squares)
    if not np.isfinite(squares).all():
        refuse_infinite(features, rows)
    deviation = np.sqrt(squares / np.maximum(count, 1))
    return mean, np.divide(1.0, deviation, out=np.zeros(n), where=deviation > 0.0)


class Inputs(NamedTuple):
    """The features for a net: ``rows`` are the rows of the documents, unit by unit."""

    features: Matrix
    rows: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    def for_kernels(self) -> tuple[Any, ...]:
        """Return (matrix, rows, mean, scale)."""
        return matrix_parts(self.features), self.rows, self.mean, self.scale


class Step(NamedTuple):
    """How updates are made: widths and activation of the net, optimiser, learning rate, l2."""

    widths: np.ndarray
    activation: int
    optimiser: int
    rate: float
    l2: float


State = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Tower(NamedTuple):
    """The second tower of a net, which is there in training only: a number per cell of positions.

    Attributes
    ----------
    bias : its numbers, one state per epoch
    cell : the cell of every row, in query order
    """

    bias: TowerBias
    cell: np.ndarray

    def append_state(self, positions: np.ndarray) -> None:
        """Append the numbers after an epoch to the states of the bias."""
        self.bias.states.append(positions[: self.bias.start.size].copy())

    def for_kernels(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
        """Return (positions, cell, anchor)."""
        return positions, self.cell, self.bias.anchor


class Task(Protocol):
    """A training task: units (queries, groups of pairs), each of which makes updates."""

    keys: np.ndarray  # one per unit: they determine the order of units
    ptr: np.ndarray  # the borders of units in the documents
    bias: PositionBias | None = None  # what is learned or known about positions

    def begin_epoch(self, epoch: int) -> None:
        """Prepare for an epoch, counted from 0; most tasks have nothing to do."""
        return

    def end_epoch(self, positions: np.ndarray) -> None:
        """Append the state of the bias after an epoch, and keep it in `positions`."""
        return

    def run(self, order: np.ndarray, step: Step, state: State, positions: np.ndarray) -> int:
        """Make the updates of the units in `order`; return the first that failed, or -1.

        `positions` has what is learned about positions, as `bias.room`, or is empty.
        """


class QueryTask(Task):
    """Queries with labels: the lambdas of a measure, one update per query, or one per pair.

    Parameters
    ----------
    inputs : the documents in query order
    objective : the lambdas
    keys : one per query
    form : ``"factorised"`` or, only for RankNet's pairs, ``"pairs"``
    """

    def __init__(
        self, inputs: Inputs, objective: LambdaObjective, keys: np.ndarray, form: str = FORMS[0]
    ) -> None:
        self.keys = keys
        self.ptr = objective.query_ptr
        self._inputs = inputs.for_kernels()
        self.objective = objective
        self._form = form
        self._scratch = np.zeros((3, inputs.rows.size))
        self._seed = objective.seed_of(0)

    def begin_epoch(self, epoch: int) -> None:
        """Draw the noise of the epoch."""
        self._seed = self.objective.seed_of(epoch)

    def run(self, order: np.ndarray, step: Step, state: State, positions: np.ndarray) -> int:
        """Make the updates of the queries in `order`."""
        from rankgrove.nets._net_kernels import train_queries, train_queries_for, train_query_pairs

        lambdas = self.objective.for_kernels()
        if self._form == "pairs":
            return int(train_query_pairs(order, self._inputs, lambdas, *step, state))
        measure, kernel = self.objective.measure, train_queries
        if measure.own_swaps:
            kernel = train_queries_for(measure.kernels.swap_row)
        noisy = (lambdas, self._seed)
        return int(measure.run(kernel, order, self._inputs, *noisy, *step, state, *self._scratch))


class ClickTask(QueryTask):
    """Queries with clicks, whose pairs are weighed by positions; Hu's ratios move every epoch.

    Parameters
    ----------
    inputs, objective, keys : as of QueryTask
    """

    objective: ClickLambdaObjective

    def __init__(self, inputs: Inputs, objective: ClickLambdaObjective, keys: np.ndarray) -> None:
        super().__init__(inputs, objective, keys)
        self.bias = objective.bias
        self._sums = no_sums(objective.bias)

    def begin_epoch(self, epoch: int) -> None:
        """Draw the noise of the epoch, and begin its sums of losses."""
        super().begin_epoch(epoch)
        self._sums = no_sums(self.objective.bias)

    def end_epoch(self, positions: np.ndarray) -> None:
        """Set the ratios by the losses of the epoch."""
        bias = self.objective.bias
        if bias.moves:
            bias.advance(self._sums)
            positions[:] = bias.state

    def run(self, order: np.ndarray, step: Step, state: State, positions: np.ndarray) -> int:
        """Make the updates of the queries in `order`."""
        from rankgrove.nets._tower_kernels import train_click_queries

        clicks = self.objective.clicks_for_kernels()._replace(sums=self._sums)
        given = (order, self._inputs, clicks, self._seed, *step, state)
        return int(train_click_queries(*given, *self._scratch))


class TowerTask(QueryTask):
    """Queries with clicks, and a second tower that takes up what positions do to them.

    Parameters
    ----------
    inputs, objective, keys : as of QueryTask
    tower : the second tower
    """

    def __init__(
        self, inputs: Inputs, objective: LambdaObjective, keys: np.ndarray, tower: Tower
    ) -> None:
        super().__init__(inputs, objective, keys)
        self.bias = tower.bias
        self._tower = tower

    def end_epoch(self, positions: np.ndarray) -> None:
        """Append the tower's numbers after an epoch."""
        self._tower.append_state(positions)

    def run(self, order: np.ndarray, step: Step, state: State, positions: np.ndarray) -> int:
        """Make the updates of the queries in `order`."""
        from rankgrove.nets._tower_kernels import train_two_towers

        noisy = (self.objective.for_kernels(), self._seed)
        cells = self._tower.for_kernels(positions)
        return int(
            train_two_towers(order, self._inputs, *noisy, *step, state, *cells, *self._scratch)
        )


class ListTask(Task):
    """Queries with labels as lists: ListNet's top-one probabilities, one update per query.

    Parameters
    ----------
    inputs : the documents in query order
    labels, query_ptr, query_weight : the data; queries whose labels are all equal are skipped
    keys : one per query
    tower : the second tower; labels are then clicks
    """

    def __init__(
        self,
        inputs: Inputs,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        keys: np.ndarray,
        query_weight: np.ndarray | None = None,
        tower: Tower | None = None,
    ) -> None:
        self.bias = None if tower is None else tower.bias
        self._tower = tower
        starts, sizes = query_ptr[:-1], np.diff(query_ptr)
        highest = np.maximum.reduceat(labels, starts)
        # with a tower, labels are clicks, and the target their shares: positions then multiply
        power = np.exp(labels - np.repeat(highest, sizes)) if tower is None else labels
        total = np.add.reduceat(power, starts)
        self._target = power / np.repeat(np.where(total > 0.0, total, 1.0), sizes)
        self._weight = np.ones(starts.size) if query_weight is None else query_weight.copy()
        self._weight[highest == np.minimum.reduceat(labels, starts)] = 0.0
        self.keys = keys
        self.ptr = query_ptr
        self._inputs = inputs.for_kernels()
        self._scratch = np.zeros((2, int(sizes.max())))

    @property
    def is_empty(self) -> bool:
        """Whether no query has unequal labels."""
        return not self._weight.any()

    def end_epoch(self, positions: np.ndarray) -> None:
        """Append the tower's numbers after an epoch."""
        if self._tower is not None:
            self._tower.append_state(positions)

    def run(self, order: np.ndarray, step: Step, state: State, positions: np.ndarray) -> int:
        """Make the updates of the queries in `order`."""
        lists = (self.ptr, self._target, self._weight)
        if self._tower is not None:
            from rankgrove.nets._tower_kernels import train_list_towers

            cells = self._tower.for_kernels(positions)
            given = (order, self._inputs, lists, *step, state, *cells)
            return int(train_list_towers(*given, *self._scratch))
        from rankgrove.nets._list_kernels import train_lists

        return int(train_lists(order, self._inputs, lists, *step, state, *self._scratch))


class GroupTask(Task):
    """Preferences in groups: one update per group, or one per pair.

    Parameters
    ----------
    inputs : the documents group by group
    groups : the preferences
    sigma : the slope of the sigmoid
    form : ``"factorised"`` or ``"pairs"``
    """

    def __init__(
        self, inputs: Inputs, groups: PairGroups, sigma: float, form: str = FORMS[0]
    ) -> None:
        self.keys = groups.keys
        self.ptr = groups.ptr
        self._inputs = inputs.for_kernels()
        self._preferences = (float(sigma), *groups[1:-1])
        self._form = form
        self._scratch = np.zeros((2, int(np.diff(groups.ptr).max())))

    def run(self, order: np.ndarray, step: Step, state: State, positions: np.ndarray) -> int:
        """Make the updates of the groups in `order`."""
        from rankgrove.nets._net_kernels import train_group_pairs, train_groups

        if self._form == "pairs":
            return int(train_group_pairs(order, self._inputs, self._preferences, *step, state))
        return int(
            train_groups(order, self._inputs, self._preferences, *step, state, *self._scratch)
        )
