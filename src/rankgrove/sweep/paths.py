"""Where every query's value changes along alpha, and by how much, as whole numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rankgrove import parallel
from rankgrove.errors import ParameterError
from rankgrove.measures._value_kernels import CASCADE, FIRST, PAIRS, PRECISIONS, SUM
from rankgrove.measures.base import SERIAL_ROWS, TIES, PreparedMeasure
from rankgrove.sweep._line_kernels import RECORDED, Crossings, Kept, Measured, Span, new_lines
from rankgrove.sweep.ordering import sort_changes

FAST_RULES = (SUM, CASCADE, PRECISIONS, FIRST, PAIRS)  # the others are evaluated order by order
SUM_BITS, VALUE_BITS = 62, 46  # of the fixed-point numbers: in total, and after the point
ORDERS_AT_ONCE = 1 << 20  # rows of recorded orders


@dataclass
class Changes:
    """The changes of the values of all queries between two alphas, ascending; key is -alpha.

    tie_key, tie_change : points at which the value is not the mean of those before and after it,
        and the difference between twice the value and their sum
    """

    key: np.ndarray
    change: np.ndarray
    tie_key: np.ndarray
    tie_change: np.ndarray
    initial: np.ndarray
    n_crossings: int


# keys and changes, the same of ties, and the number of crossings
Followed = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]


class Paths:
    """The lines of all queries, followed from `low` to `high` in one or several parts."""

    def __init__(
        self,
        prepared: PreparedMeasure,
        start: np.ndarray,
        other: np.ndarray,
        *,
        convex: bool,
        low: float,
        high: float,
        largest: float,
        points: bool,
        n_threads: int | None,
    ) -> None:
        self.prepared = prepared
        self.start, self.other, self.convex = start, other, convex
        self.low, self.high = low, high
        self.points = points
        self.n_threads = n_threads
        self.is_fast = prepared.measure.rule in FAST_RULES and not prepared.measure.own_kernels
        self.largest = largest
        self.scale = fixed_point(prepared, None if self.is_fast else largest)
        self._measure = Measured(
            rule=prepared.measure.rule if self.is_fast else RECORDED,
            ties=TIES.index(prepared.measure.ties),
            gain=prepared.gain,
            weight=prepared.weight,
            ptr=prepared.query_ptr,
            skip=prepared.is_fixed,
            depth=prepared.measure.depth,
            scale=self.scale,
        )
        self._kept = Kept(
            rank=np.empty(start.size, np.int64),
            state=np.empty(start.size, np.int64),
            reach=np.full(prepared.query_ptr.size - 1, -np.inf if points else np.inf),
        )

    def follow(self, start: float, end: float) -> Changes:
        """Return the changes after `start`, up to `end`; parts must be followed in their order."""
        ptr = self.prepared.query_ptr
        initial = np.zeros(ptr.size - 1, np.int64)
        by_piece: dict[int, Followed] = {}
        follow_queries = self._follow_fast if self.is_fast else self._follow_recorded

        def work(first: int, last: int) -> None:
            by_piece[first] = follow_queries(start, end, initial, first, last)

        self._run(work)
        parts = [by_piece[first] for first in sorted(by_piece)]
        changes = sort_changes([part[:2] for part in parts], self.n_threads)
        ties = sort_changes([part[2:4] for part in parts], self.n_threads)
        return Changes(*changes, *ties, initial, sum(part[4] for part in parts))

    def count(self, start: float, end: float, n_bins: int) -> np.ndarray:
        """Return the number of crossings in each of `n_bins` equal parts of start .. end."""
        from rankgrove.sweep._path_kernels import count_crossings

        measure, span = self._measure, self._span(start, end)
        by_piece: dict[int, np.ndarray] = {}

        def work(first: int, last: int) -> None:
            bins = by_piece[first] = np.zeros(n_bins, np.int64)
            count_crossings(measure, self.start, self.other, span, bins, first, last)

        self._run(work)
        return np.sum(list(by_piece.values()), axis=0)

    def _span(self, start: float, end: float) -> Span:
        """Return a part of the range as kernels take it."""
        return Span(self.convex, self.low, self.high, start, end)

    def _run(self, work: Callable[[int, int], None]) -> None:
        """Run pieces of queries with about equal numbers of pairs."""
        ptr = self.prepared.query_ptr
        few = 1 if ptr[-1] < SERIAL_ROWS // 4 else self.n_threads
        before = np.concatenate([[0], np.cumsum(np.diff(ptr) ** 2)])
        parallel.run_pieces(work, parallel.piece_bounds(before, few, per_thread=16), few)

    def _follow_fast(
        self, start: float, end: float, initial: np.ndarray, first: int, last: int
    ) -> Followed:
        from rankgrove.sweep._path_kernels import sweep_queries

        counts = np.empty(3, np.int64)
        measure, span, kept = tuple(self._measure), tuple(self._span(start, end)), tuple(self._kept)
        rows = sweep_queries(
            measure, self.start, self.other, span, kept, initial, first, last, counts
        )
        n, _, n_crossings = counts.tolist()
        keys, changes = rows[0].view(np.float64), rows[1]
        return keys[:n], changes[:n], keys[n:], changes[n:], n_crossings

    def _follow_recorded(
        self, start: float, end: float, initial: np.ndarray, first: int, last: int
    ) -> Followed:
        from rankgrove.sweep._record_kernels import AFTER_POINT, AT_POINT

        points, changes = [np.empty(0)], [np.empty(0, np.int64)]
        tie_points, tie_changes, n_crossings = [np.empty(0)], [np.empty(0, np.int64)], 0
        for q in range(first, last):
            if self.prepared.is_fixed[q]:
                continue
            at, values, kinds, crossings = self._record(q, start, end)
            n_crossings += crossings
            initial[q] = values[0]
            is_tied = kinds == AT_POINT
            before = values[~is_tied][np.cumsum(~is_tied) - 1]  # of orders at a point
            tie_points.append(at[is_tied])
            tie_changes.append(2 * (values - before)[is_tied])
            at, values, kinds = at[~is_tied], values[~is_tied], kinds[~is_tied]
            steps = np.diff(values)
            points.append(at[1:][steps != 0])
            changes.append(steps[steps != 0])
            is_after = kinds[1:] == AFTER_POINT
            tie_points.append(at[1:][is_after])
            tie_changes.append(-steps[is_after])
        ties = np.concatenate(tie_points), np.concatenate(tie_changes)
        return np.concatenate(points), np.concatenate(changes), *ties, n_crossings

    def _record(
        self, q: int, start: float, end: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Return the alphas where orders of a query begin, its values, and the crossings."""
        from rankgrove.sweep._record_kernels import Orders, new_slots, open_recorded, record

        prepared = self.prepared
        measure = prepared.measure
        ties = TIES.index(measure.ties)
        rows = slice(prepared.query_ptr[q], prepared.query_ptr[q + 1])
        n = int(rows.stop - rows.start)
        kept, span = self._kept, self._span(start, end)
        lines, slots, counts = new_lines.py_func(n), new_slots(n), np.empty(2, np.int64)
        crossed = open_recorded(
            self._measure, q, self.start, self.other, span, kept, lines, slots, counts
        )
        groups, n_crossings = counts.tolist()
        crossings = Crossings(crossed[0].view(np.float64), crossed[1])
        room = max(3, min(2 * crossings.keys.size + 2, ORDERS_AT_ONCE // n))
        orders = Orders(
            first_row=rows.start,
            points=np.empty(room),
            kinds=np.empty(room, np.int64),
            rows=np.empty(room * n, np.int64),
            tied=np.empty(room * n, bool),
        )
        weight, ptr = np.tile(prepared.weight[rows], room), np.arange(room + 1) * n
        points: list[np.ndarray] = []
        values: list[np.ndarray] = []
        kinds: list[np.ndarray] = []
        e = 0
        while e < crossings.keys.size or not points:
            e, written, kept.reach[q] = record(
                ties, lines, slots, groups, crossings, e, span, kept.reach[q], orders
            )
            value = np.empty(written)
            measure.run(
                measure.kernels.evaluate_queries,
                measure.rule,
                ties,
                prepared.gain,
                weight,
                ptr,
                orders.rows,
                orders.tied,
                np.full(written, n),
                measure.depth,
                0,
                written,
                value,
            )
            points.append(orders.points[:written].copy())
            kinds.append(orders.kinds[:written].copy())
            values.append(value)
        kept.state[rows][:groups] = slots.group[:groups]
        kept.rank[rows][:groups] = slots.rank[:groups]
        rounded = self._rounded(np.concatenate(values))
        return np.concatenate(points), rounded, np.concatenate(kinds), n_crossings

    def _rounded(self, values: np.ndarray) -> np.ndarray:
        if not np.isfinite(values).all():
            raise ParameterError(
                f"The measure {str(self.prepared.measure)!r} must be a finite number for every "
                "order of a query's documents. It returned "
                f"{values[~np.isfinite(values)][0]}."
            )
        if np.abs(values).max(initial=0.0) > self.largest:
            raise TooLarge(float(np.abs(values).max()))
        return np.rint(values * self.scale).astype(np.int64)


class TooLarge(Exception):
    """A user's measure has a value that is too large for the fixed-point numbers."""


def fixed_point(prepared: PreparedMeasure, largest: float | None) -> float:
    """Return the power of two that represents 1, so that no sum of values can overflow.

    `largest` bounds the value of a query; None: the bound follows from gains and weights.
    """
    starts = prepared.query_ptr[:-1]
    gain, weight = np.abs(prepared.gain), np.abs(prepared.weight)
    most_weight = np.maximum.reduceat(weight, starts)
    rule = prepared.measure.rule
    if largest is not None:
        bound = np.full(starts.size, largest)
    elif rule == SUM:
        bound = np.minimum(
            np.maximum.reduceat(gain, starts) * np.add.reduceat(weight, starts),
            np.add.reduceat(gain, starts) * most_weight,
        )
    elif rule == PRECISIONS:
        places = np.arange(gain.size) - np.repeat(starts, np.diff(prepared.query_ptr))
        precisions = np.maximum.reduceat(weight * (places + 1), starts)
        bound = precisions * np.add.reduceat(gain > 0.0, starts)
    elif rule == PAIRS:
        bound = np.ones(starts.size)
    else:
        bound = most_weight
    total = float(bound[~prepared.is_fixed].sum())
    return math.ldexp(1.0, min(VALUE_BITS, SUM_BITS - math.frexp(total)[1]))
