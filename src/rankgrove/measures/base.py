"""The base of all measures: gains of documents, weights of ranks, and a rule that combines them.

A measure is a small frozen value: hashable, printable, parsed back from its printed name, with a
named parameter for every convention. It never sees a data set, only arrays::

    labels, query_ptr --prepare--> PreparedMeasure (gains, weights; reusable)
    scores, query_ptr --rank----> Ranking          (shared by all measures)
    PreparedMeasure.values(ranking) -> one value per query, NaN where the query is dropped
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove import parallel
from rankgrove.compiling import announce
from rankgrove.errors import DataError, ParameterError
from rankgrove.validation import (
    check_choice,
    check_integer,
    check_real,
    check_scores,
    counted,
    refuse,
)

if TYPE_CHECKING:
    from typing import Self

    from numpy.typing import ArrayLike

TIES = ("stable", "worst", "expected", "together")  # in the order of the kernels' codes
FULL_DEPTH = np.iinfo(np.int64).max
SERIAL_ROWS = 1 << 14

# The measures by name. Defining a subclass adds it; register_measure adds users' measures.
REGISTRY: dict[str, type[Measure]] = {}


@dataclass(frozen=True)
class Measure(ABC):
    """Base of all measures.

    Parameters
    ----------
    cutoff : number of top ranks that count, None for all
    ties : how documents of equal score are ordered: ``"expected"`` gives the exact expectation
        over all their orders, ``"stable"`` keeps the input order, ``"worst"`` puts the least
        relevant first; ``"together"`` (for some measures) gives all of them the same rank
    empty : the value of a query with nothing relevant; ``"drop"`` leaves it out of the mean, and
        ``"drop-equal"`` also leaves out queries whose labels are all equal
    """

    name: ClassVar[str]
    rule: ClassVar[int]  # the kernels' code of how gains and weights combine
    cutoff_is: ClassVar[str] = "optional"  # or "required", "refused"
    undefined_is: ClassVar[str] = "nothing relevant"  # why a query has no value
    needs_pairs: ClassVar[bool] = False  # whether it is a share of pairs of unequal documents
    unretrieved_gain: ClassVar[bool] = False  # whether documents with score -inf still count
    uses_judgements: ClassVar[bool] = False  # whether it matters which documents are judged
    tie_rules: ClassVar[tuple[str, ...]] = TIES[:3]
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)  # of a query's value
    not_a_target: ClassVar[str] = ""  # why no ranker can be trained for it
    own_kernels: ClassVar[bool] = False  # whether `kernels` differ from those of most measures
    own_swaps: ClassVar[bool] = False  # whether `kernels` have a swap_row for lambdas

    cutoff: int | None = None
    ties: str = "expected"
    empty: float | str = "drop-equal"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            REGISTRY[cls.name] = cls

    def __post_init__(self) -> None:
        owner = f"the measure {self.name!r}"
        if self.cutoff is not None and self.cutoff_is == "refused":
            refuse("cutoff", owner, "left out: the measure uses the whole ranking", self.cutoff)
        if self.cutoff is None and self.cutoff_is == "required":
            refuse("cutoff", owner, f"given, as in '{self.name}@10'", self.cutoff)
        if self.cutoff is not None:
            self._set("cutoff", check_integer("cutoff", owner, self.cutoff, low=1, high=2**40))
        check_choice("ties", owner, self.ties, self.tie_rules)
        if isinstance(self.empty, str):
            check_choice("empty", owner, self.empty, ["drop", "drop-equal"])
        else:
            self._set("empty", check_real("empty", owner, self.empty))
        self._check(owner)

    def _check(self, owner: str) -> None:  # noqa: B027
        """Check the parameters that only this measure has."""

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    # -- defined by subclasses ----------------------------------------------------------------

    @abstractmethod
    def gains(self, labels: np.ndarray) -> np.ndarray:
        """Return the gain of every document, from the labels of the whole data set."""

    def query_gains(
        self, labels: np.ndarray, queries: QueryPieces, judged: np.ndarray | None
    ) -> np.ndarray:
        """Like :meth:`gains`, but may depend on the query and the `judged` rows (None: all)."""
        return self.gains(labels)

    @abstractmethod
    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        """Return the weight of every rank of every query, laid out by ``queries.ptr``.

        `beyond_cutoff` continues the weights of graded measures below the cutoff, normalised as
        at the cutoff, for lambda gradients.
        """

    def undefined(self, gain: np.ndarray, queries: QueryPieces) -> np.ndarray:
        """Return which queries have nothing relevant, so that their value is ``empty``."""
        return np.maximum.reduceat(gain, queries.ptr[:-1]) <= 0.0

    def too_short(self, sizes: np.ndarray) -> np.ndarray | None:
        """Return which queries get 0 because they have too few documents, or None."""
        return None

    @property
    def kernels(self) -> Any:
        """The compiled functions ranked_value, evaluate_queries and swap_matrix of the rule."""
        from rankgrove.measures import _kernels

        return _kernels

    def on_scale_of(self, labels: np.ndarray) -> Self:
        """Return the measure with what it would take from these labels fixed.

        Its values on parts of the data are then on one scale.
        """
        return self

    @property
    def swap_rule(self) -> int:
        """The rule by which the value changes when two documents are swapped."""
        return self.rule

    def finish(self, values: np.ndarray, retrieved: np.ndarray) -> np.ndarray:
        """Return the values of queries, given those of the rule and the `retrieved` documents."""
        return values

    def shown(self, mean: float) -> float:
        """Return the figure that is shown for the mean of the queries' values."""
        return mean

    def check_target(self) -> None:
        """Refuse a measure that no ranker can be trained for."""
        if self.not_a_target:
            raise ParameterError(
                f"Nothing can be trained for the measure {str(self)!r}: {self.not_a_target}."
            )

    def run(self, kernel: Any, *arguments: Any) -> Any:
        """Call a kernel of the measure; built-in ones never fail."""
        return kernel(*arguments)

    @property
    def depth(self) -> int:
        """The number of ranks that have a weight."""
        return FULL_DEPTH if self.cutoff is None else self.cutoff

    # -- from labels to values ----------------------------------------------------------------

    def prepare(
        self,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        n_threads: int | None = None,
        *,
        beyond_cutoff: bool = False,
        judged: np.ndarray | None = None,
        pooled: bool = False,
    ) -> PreparedMeasure:
        """Compute everything that depends only on the labels (float64, query order), for reuse.

        `judged` is a mask of the judged documents (None: all). `pooled`: the documents are part of
        a larger collection, whose other documents have the label 0. Labels that are all equal here
        are then not equal there, unless they are 0.
        """
        return PreparedMeasure(self, labels, query_ptr, n_threads, beyond_cutoff, judged, pooled)

    def value(self, labels: ArrayLike) -> float:
        """Return the value of one query whose labels are in ranked order, best rank first.

        Examples
        --------
        >>> import rankgrove as rg
        >>> rg.measure("ndcg@10").value([2, 0, 1])
        0.96394...
        """
        ranked = _ranked_labels(labels)
        return self.query_value(ranked, -np.arange(ranked.size, dtype=np.float64))

    def query_value(self, labels: ArrayLike, scores: ArrayLike) -> float:
        """Return the value of one query for labels and scores in any order (NaN: dropped)."""
        array = _ranked_labels(labels)
        ptr = np.array([0, array.size])
        checked = check_scores(scores, array.size, str(self))
        ranking = rank(checked, ptr, n_threads=1)
        return float(self.prepare(array, ptr, n_threads=1).values(ranking, n_threads=1)[0])

    # -- swap deltas --------------------------------------------------------------------------

    def swap_deltas_by_definition(self, labels: ArrayLike) -> np.ndarray:
        """Return the swap deltas by their definition: by evaluating every swapped ranking.

        The gains and weights are those of the set of labels, which a swap does not change. If the
        value of the query is fixed (nothing relevant), all deltas are 0.
        """
        self.check_target()
        ranked = _ranked_labels(labels)
        n = ranked.size
        prepared = self.prepare(ranked, np.array([0, n]), n_threads=1)
        deltas = np.zeros((n, n))
        if prepared.is_fixed[0]:
            return deltas
        before = prepared.ranked_value(np.arange(n))
        for i in range(n):
            for j in range(i + 1, n):
                order = np.arange(n)
                order[[i, j]] = order[[j, i]]
                deltas[i, j] = deltas[j, i] = prepared.ranked_value(order) - before
        return deltas

    def swap_deltas(self, labels: ArrayLike) -> np.ndarray:
        """Return the change of the value when two ranks are swapped, for all pairs of ranks.

        Parameters
        ----------
        labels : the labels of one query in ranked order

        Returns
        -------
        array of shape (n, n), symmetric: value after minus value before

        Examples
        --------
        >>> import rankgrove as rg
        >>> rg.measure("mrr").swap_deltas([0, 1, 0])
        array([[ 0.        ,  0.5       ,  0.        ],
               [ 0.5       ,  0.        , -0.16666667],
               [ 0.        , -0.16666667,  0.        ]])
        """
        self.check_target()
        ranked = _ranked_labels(labels)
        prepared = self.prepare(ranked, np.array([0, ranked.size]), n_threads=1)
        deltas = np.zeros((ranked.size, ranked.size))
        if not prepared.is_fixed[0]:
            matrix = self.kernels.swap_matrix
            self.run(matrix, self.swap_rule, prepared.gain, prepared.weight, deltas)
        return deltas

    # -- names --------------------------------------------------------------------------------

    def __str__(self) -> str:
        from rankgrove.measures.parse import format_measure

        return format_measure(self)

    def parameters(self) -> dict[str, Any]:
        """Return the parameters by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def with_(self, **changes: Any) -> Self:
        """Return the measure with some parameters changed."""
        return replace(self, **changes)


def _ranked_labels(labels: ArrayLike) -> np.ndarray:
    """Return the labels of one query as float64, or refuse them."""
    array = np.asarray(labels, np.float64)
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise DataError(
            f"The labels of one query must be a list of at least one finite number. Got {labels!r}."
        )
    return array


class QueryPieces:
    """The borders of queries; runs kernels on pieces of them, on several threads."""

    __slots__ = ("n_threads", "ptr", "sizes")

    def __init__(self, query_ptr: np.ndarray, n_threads: int | None = None) -> None:
        self.ptr = np.ascontiguousarray(query_ptr, np.int64)
        self.sizes = np.diff(self.ptr)
        self.n_threads = n_threads

    def run(self, work: Callable[[int, int], None]) -> None:
        """Call ``work(first, last)`` for pieces of queries with about equal numbers of documents.

        Small amounts of work are done by one thread.
        """
        n_used = 1 if self.ptr[-1] < SERIAL_ROWS else self.n_threads
        parallel.run_pieces(work, parallel.piece_bounds(self.ptr, n_used), n_used)


class Ranking:
    """The documents of every query in descending order of score; made by :func:`rank`.

    ``order``: the row (in query order) at every position; ``tied``: whether a position has the same
    score as the one before it; ``retrieved``: the number of documents of a query with a score above
    -inf.
    """

    __slots__ = ("order", "query_ptr", "retrieved", "tied")

    def __init__(
        self, query_ptr: np.ndarray, order: np.ndarray, tied: np.ndarray, retrieved: np.ndarray
    ) -> None:
        self.query_ptr = query_ptr
        self.order = order
        self.tied = tied
        self.retrieved = retrieved


def rank(scores: np.ndarray, query_ptr: np.ndarray, n_threads: int | None = None) -> Ranking:
    """Sort the documents of every query by descending score (float64 in query order, no NaN)."""
    from rankgrove.measures._ranking_kernels import rank_queries

    announce()
    queries = QueryPieces(query_ptr, n_threads)
    order = np.empty(scores.size, np.int64)
    tied = np.empty(scores.size, np.bool_)
    retrieved = np.empty(queries.sizes.size, np.int64)
    queries.run(lambda a, b: rank_queries(scores, queries.ptr, a, b, order, tied, retrieved))
    return Ranking(queries.ptr, order, tied, retrieved)


class PreparedMeasure:
    """A measure on the labels of one data set: everything that does not depend on scores.

    ``gain``: one per row (query order); ``weight``: one per rank (same layout); ``is_fixed``: which
    queries have the same value in any order; ``fixed_value``: that value (NaN: dropped);
    ``drop_reason``: from the position of every dropped query to the reason.
    """

    def __init__(
        self,
        measure: Measure,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        n_threads: int | None = None,
        beyond_cutoff: bool = False,
        judged: np.ndarray | None = None,
        pooled: bool = False,
    ) -> None:
        self.measure = measure
        labels = np.ascontiguousarray(labels, np.float64)
        if query_ptr[-1] != labels.size or np.any(np.diff(query_ptr) < 1):
            raise DataError(
                f"query_ptr must cut {counted(labels.size, 'label')} into queries of at least "
                "one document."
            )
        queries = QueryPieces(query_ptr, n_threads)
        self.query_ptr = queries.ptr
        self.gain = measure.query_gains(labels, queries, judged)
        self.weight = measure.weights(self.gain, queries, beyond_cutoff)
        self._fix_values(labels, queries, pooled)

    def _fix_values(self, labels: np.ndarray, queries: QueryPieces, pooled: bool) -> None:
        measure = self.measure
        starts = queries.ptr[:-1]
        undefined = measure.undefined(self.gain, queries)
        fixed = undefined.copy()
        value = np.full(fixed.size, np.nan)
        self.drop_reason: dict[int, str] = {}
        if not isinstance(measure.empty, str):
            value[undefined] = measure.empty
        else:
            self.drop_reason = dict.fromkeys(
                np.flatnonzero(undefined).tolist(), measure.undefined_is
            )
            if measure.empty == "drop-equal":
                highest = np.maximum.reduceat(labels, starts)
                equal = highest == np.minimum.reduceat(labels, starts)
                if pooled:
                    equal &= highest == 0.0
                self.drop_reason |= dict.fromkeys(
                    np.flatnonzero(equal).tolist(), "all labels equal"
                )
                fixed |= equal
        short = measure.too_short(queries.sizes)
        if short is not None:
            short &= ~np.isin(np.arange(short.size), list(self.drop_reason))
            fixed |= short
            value[short] = 0.0
        self.is_fixed = fixed
        self.fixed_value = value

    def values(self, ranking: Ranking, n_threads: int | None = None) -> np.ndarray:
        """Return the value of every query, NaN where it is dropped."""
        measure = self.measure
        values = np.empty(self.is_fixed.size)
        queries = QueryPieces(self.query_ptr, n_threads)
        retrieved = queries.sizes if measure.unretrieved_gain else ranking.retrieved
        kernel, ties = measure.kernels.evaluate_queries, TIES.index(measure.ties)

        def work(first: int, last: int) -> None:
            measure.run(
                kernel,
                measure.rule,
                ties,
                self.gain,
                self.weight,
                queries.ptr,
                ranking.order,
                ranking.tied,
                retrieved,
                measure.depth,
                first,
                last,
                values,
            )

        queries.run(work)
        values[self.is_fixed] = self.fixed_value[self.is_fixed]
        return measure.finish(values, ranking.retrieved)

    def ranked_value(self, order: np.ndarray) -> float:
        """Return the value of a single query with its rows in the given order."""
        measure = self.measure
        gain = self.gain[order]
        return float(measure.run(measure.kernels.ranked_value, measure.rule, gain, self.weight))


def exact_mean(values: np.ndarray) -> float:
    """Return the mean of the values that are not NaN, rounded once, independent of their order."""
    kept = values[~np.isnan(values)]
    return math.fsum(kept.tolist()) / kept.size if kept.size else math.nan
