"""Measures of binary relevance: AP, RR, precision and recall, RBP, ROC area, best accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankgrove.measures._value_kernels import FIRST, PRECISIONS, SUM, THRESHOLD
from rankgrove.measures._weight_kernels import roc_weights, scaled_weights
from rankgrove.measures.base import TIES, Measure, QueryPieces
from rankgrove.measures.gains import binary_gains, reciprocal_ranks, safe_inverse
from rankgrove.validation import check_choice, check_real, refuse

LEAST_AP = 0.00001  # as in trec_eval, so that no single query makes the geometric mean 0


@dataclass(frozen=True)
class Binary(Measure):
    """Base of the measures of binary relevance.

    Parameters
    ----------
    relevant : the lowest label that counts as relevant
    """

    goes_beyond: ClassVar[bool] = False  # whether lambdas use 1 / rank below the cutoff too
    relevant: float = 1.0

    def _check(self, owner: str) -> None:
        self._set("relevant", check_real("relevant", owner, self.relevant))

    def gains(self, labels: np.ndarray) -> np.ndarray:
        return binary_gains(labels, self.relevant)

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        weight = np.empty(gain.size)
        n_relevant = np.add.reduceat(gain, queries.ptr[:-1])
        table, scale = self._table_and_scale(queries.sizes, n_relevant)
        if beyond_cutoff and self.goes_beyond:
            table = reciprocal_ranks(int(queries.sizes.max()))
        queries.run(lambda a, b: scaled_weights(table, scale, queries.ptr, a, b, weight))
        return weight

    def _table_and_scale(
        self, sizes: np.ndarray, n_relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return weights by rank and factors by query, whose products are the weights.

        `sizes` has the number of documents of every query, `n_relevant` that of relevant ones.
        """
        return reciprocal_ranks(int(sizes.max()), self.cutoff), np.ones(n_relevant.size)


@dataclass(frozen=True)
class MAP(Binary):
    """Average precision; its mean over queries is MAP.

    Parameters
    ----------
    denominator : ``"all"`` divides by all relevant documents, ``"cutoff"`` by at most the cutoff
    """

    name: ClassVar[str] = "map"
    rule: ClassVar[int] = PRECISIONS
    goes_beyond: ClassVar[bool] = True
    tie_rules: ClassVar[tuple[str, ...]] = TIES
    denominator: str = "all"

    @property
    def own_kernels(self) -> bool:  # type: ignore[override]
        return self.ties == "together"

    @property
    def kernels(self) -> Any:
        from rankgrove.measures import _extra_kernels

        return _extra_kernels if self.own_kernels else super().kernels

    def _check(self, owner: str) -> None:
        super()._check(owner)
        check_choice("denominator", owner, self.denominator, ["all", "cutoff"])

    def _table_and_scale(
        self, sizes: np.ndarray, n_relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.denominator == "cutoff" and self.cutoff is not None:
            n_relevant = np.minimum(n_relevant, self.cutoff)
        return reciprocal_ranks(int(sizes.max()), self.cutoff), safe_inverse(n_relevant)


@dataclass(frozen=True)
class MRR(Binary):
    """One over the rank of the first relevant document; its mean over queries is MRR."""

    name: ClassVar[str] = "mrr"
    rule: ClassVar[int] = FIRST
    goes_beyond: ClassVar[bool] = True


@dataclass(frozen=True)
class GMAP(MAP):
    """Geometric mean of average precisions; the value of a query is ln(max(AP, 0.00001)).

    Under ``ties="expected"`` it is the logarithm of the expected average precision.
    """

    name: ClassVar[str] = "gmap"
    bounds: ClassVar[tuple[float, float]] = (-math.inf, 0.0)
    not_a_target: ClassVar[str] = "it is not a mean over queries. Train for map"

    def finish(self, values: np.ndarray, retrieved: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(values, LEAST_AP))

    def shown(self, mean: float) -> float:
        return math.exp(mean)


@dataclass(frozen=True)
class _AtCutoff(Binary):
    """Base of the measures of the first k documents, which need a cutoff."""

    cutoff_is: ClassVar[str] = "required"
    rule: ClassVar[int] = SUM

    @property
    def _k(self) -> int:
        return self.cutoff or 1

    def _ones(self, sizes: np.ndarray) -> np.ndarray:
        return np.ones(min(int(sizes.max()), self._k))


@dataclass(frozen=True)
class Precision(_AtCutoff):
    """The share of relevant documents among the first k.

    Parameters
    ----------
    denominator : ``"cutoff"`` counts missing documents as not relevant, ``"documents"`` divides by
        the number of documents if that is less than k, as RankLib does
    """

    name: ClassVar[str] = "p"
    denominator: str = "cutoff"

    def _check(self, owner: str) -> None:
        super()._check(owner)
        check_choice("denominator", owner, self.denominator, ["cutoff", "documents"])

    def _table_and_scale(
        self, sizes: np.ndarray, n_relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        counted = np.full(sizes.size, self._k)
        if self.denominator == "documents":
            counted = np.minimum(sizes, self._k)
        return self._ones(sizes), 1.0 / counted


@dataclass(frozen=True)
class Recall(_AtCutoff):
    """The share of the relevant documents that are among the first k."""

    name: ClassVar[str] = "recall"

    def _table_and_scale(
        self, sizes: np.ndarray, n_relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._ones(sizes), safe_inverse(n_relevant)


@dataclass(frozen=True)
class F1(_AtCutoff):
    """The harmonic mean of precision and recall at k: 2 hits / (k + all relevant)."""

    name: ClassVar[str] = "f1"

    def _table_and_scale(
        self, sizes: np.ndarray, n_relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._ones(sizes), 2.0 / (self._k + n_relevant)


@dataclass(frozen=True)
class Success(_AtCutoff):
    """1 if a relevant document is among the first k, else 0 (hit rate)."""

    name: ClassVar[str] = "success"
    rule: ClassVar[int] = FIRST

    def _table_and_scale(
        self, sizes: np.ndarray, n_relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._ones(sizes), np.ones(n_relevant.size)


@dataclass(frozen=True)
class RPrecision(Binary):
    """The share of relevant documents among the first R, where R is the number of relevant ones."""

    name: ClassVar[str] = "rprec"
    rule: ClassVar[int] = SUM
    cutoff_is: ClassVar[str] = "refused"

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        n_relevant = np.add.reduceat(gain, queries.ptr[:-1])
        places = np.arange(gain.size) - np.repeat(queries.ptr[:-1], queries.sizes)
        scale = np.repeat(safe_inverse(n_relevant), queries.sizes)
        return np.where(places < np.repeat(n_relevant, queries.sizes), scale, 0.0)


@dataclass(frozen=True)
class RBP(Binary):
    """Rank-biased precision: (1 - p) times the sum of p^(rank - 1) over the relevant ranks.

    Parameters
    ----------
    p : the probability that a reader continues to the next document
    """

    name: ClassVar[str] = "rbp"
    rule: ClassVar[int] = SUM
    p: float = 0.8

    def _check(self, owner: str) -> None:
        super()._check(owner)
        self._set("p", check_real("p", owner, self.p, low=0.0, high=1.0))
        if self.p == 1.0:
            refuse("p", owner, "below 1", self.p)

    def _table_and_scale(
        self, sizes: np.ndarray, n_relevant: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        ranks = np.arange(min(int(sizes.max()), self.depth))
        return (1.0 - self.p) * self.p**ranks, np.ones(n_relevant.size)


@dataclass(frozen=True)
class AUC(Binary):
    """ROC area: the share of relevant-irrelevant pairs in the right order; ties count half."""

    name: ClassVar[str] = "auc"
    rule: ClassVar[int] = SUM
    undefined_is: ClassVar[str] = "no pair to order"
    needs_pairs: ClassVar[bool] = True
    cutoff_is: ClassVar[str] = "refused"
    unretrieved_gain: ClassVar[bool] = True

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        weight = np.empty(gain.size)
        queries.run(lambda a, b: roc_weights(gain, queries.ptr, a, b, weight))
        return weight

    def undefined(self, gain: np.ndarray, queries: QueryPieces) -> np.ndarray:
        n_relevant = np.add.reduceat(gain, queries.ptr[:-1])
        return np.asarray((n_relevant == 0) | (n_relevant == queries.sizes))


@dataclass(frozen=True)
class Accuracy(Binary):
    """The share of right decisions, relevant or not, at the best cut of the ranking into two.

    It is the accuracy of a classifier whose threshold is chosen with hindsight for every query
    (SVM-map paper, section 2.2).
    """

    name: ClassVar[str] = "accuracy"
    rule: ClassVar[int] = THRESHOLD
    cutoff_is: ClassVar[str] = "refused"
    unretrieved_gain: ClassVar[bool] = True

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        return np.repeat(1.0 / queries.sizes, queries.sizes)

    def undefined(self, gain: np.ndarray, queries: QueryPieces) -> np.ndarray:
        return np.zeros(queries.sizes.size, np.bool_)
