"""What a net is trained on: standardised features, and tasks that turn lambdas into updates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from rankgrove.model.mlp import matrix_parts, refuse_infinite
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.objectives.pairs import PairGroups

if TYPE_CHECKING:
    import scipy.sparse

    Matrix = np.ndarray | scipy.sparse.csr_matrix

FORMS = ("factorised", "pairs")


def moments(features: Matrix, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return every feature's mean, and 1 over its standard deviation (0 where it is constant).

    Missing values are left out. Sums run in the order of `rows`, and over distances from a first
    value, so that a constant feature's deviation is exactly 0.
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
    """Features as a net sees them: ``rows`` are those of the documents, unit by unit."""

    features: Matrix
    rows: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    def for_kernels(self) -> tuple[Any, ...]:
        """Return (matrix, rows, mean, scale)."""
        return matrix_parts(self.features), self.rows, self.mean, self.scale


class Step(NamedTuple):
    """How updates are made: the net's widths and activation, the optimiser, its rate, and l2."""

    widths: np.ndarray
    activation: int
    optimiser: int
    rate: float
    l2: float


State = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class Task(Protocol):
    """What the training loop asks of data: units (queries, groups of pairs) that take turns."""

    keys: np.ndarray  # one a unit: the order of turns hangs on it
    ptr: np.ndarray  # the borders of units in the documents

    def begin_epoch(self, epoch: int) -> None:
        """Prepare for an epoch, counted from 0; most tasks are the same in all of them."""
        return

    def run(self, order: np.ndarray, step: Step, state: State) -> int:
        """Give the units in `order` their turns; return the first that failed, or -1."""


class QueryTask(Task):
    """Queries with labels: the lambdas of a measure, one update a query, or one a pair.

    Parameters
    ----------
    inputs : the documents in query order
    objective : the lambdas
    keys : one a query
    form : ``"factorised"`` or, for RankNet's pairs alone, ``"pairs"``
    """

    def __init__(
        self, inputs: Inputs, objective: LambdaObjective, keys: np.ndarray, form: str = FORMS[0]
    ) -> None:
        self.keys = keys
        self.ptr = objective.query_ptr
        self._inputs = inputs.for_kernels()
        self._objective = objective
        self._form = form
        self._scratch = np.zeros((3, inputs.rows.size))

    def run(self, order: np.ndarray, step: Step, state: State) -> int:
        """Give queries their turns."""
        from rankgrove.nets._net_kernels import train_queries, train_queries_for, train_query_pairs

        given = self._objective.for_kernels()
        if self._form == "pairs":
            return int(train_query_pairs(order, self._inputs, given, *step, state))
        measure, kernel = self._objective.measure, train_queries
        if measure.own_swaps:
            kernel = train_queries_for(measure.kernels.swap_row)
        return int(measure.run(kernel, order, self._inputs, given, *step, state, *self._scratch))


class ListTask(Task):
    """Queries with labels as lists: ListNet's top-one probabilities, one update a query.

    Parameters
    ----------
    inputs : the documents in query order
    labels, query_ptr, query_weight : of the data; queries whose labels are all equal have no turn
    keys : one a query
    """

    def __init__(
        self,
        inputs: Inputs,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        keys: np.ndarray,
        query_weight: np.ndarray | None = None,
    ) -> None:
        starts, sizes = query_ptr[:-1], np.diff(query_ptr)
        highest = np.maximum.reduceat(labels, starts)
        power = np.exp(labels - np.repeat(highest, sizes))
        self._target = power / np.repeat(np.add.reduceat(power, starts), sizes)
        self._weight = np.ones(starts.size) if query_weight is None else query_weight.copy()
        self._weight[highest == np.minimum.reduceat(labels, starts)] = 0.0
        self.keys = keys
        self.ptr = query_ptr
        self._inputs = inputs.for_kernels()
        self._scratch = np.zeros((2, int(sizes.max())))

    @property
    def is_empty(self) -> bool:
        """Whether no query says anything about an order."""
        return not self._weight.any()

    def run(self, order: np.ndarray, step: Step, state: State) -> int:
        """Give queries their turns."""
        from rankgrove.nets._list_kernels import train_lists

        lists = (self.ptr, self._target, self._weight)
        return int(train_lists(order, self._inputs, lists, *step, state, *self._scratch))


class GroupTask(Task):
    """Preferences in groups: one update a group, or one a pair.

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

    def run(self, order: np.ndarray, step: Step, state: State) -> int:
        """Give groups their turns."""
        from rankgrove.nets._net_kernels import train_group_pairs, train_groups

        if self._form == "pairs":
            return int(train_group_pairs(order, self._inputs, self._preferences, *step, state))
        return int(
            train_groups(order, self._inputs, self._preferences, *step, state, *self._scratch)
        )
