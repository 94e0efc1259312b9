"""Measures of binary relevance: AP, RR, P@k, recall@k, ROC area, best accuracy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankgrove.measures._value_kernels import FIRST, PRECISIONS, SUM, THRESHOLD
from rankgrove.measures._weight_kernels import roc_weights, scaled_weights
from rankgrove.measures.base import Measure, QueryPieces
from rankgrove.measures.gains import binary_gains, reciprocal_ranks, safe_inverse
from rankgrove.validation import check_choice, check_real


@dataclass(frozen=True)
class _Binary(Measure):
    """What they share.

    Parameters
    ----------
    relevant : the lowest label that counts as relevant
    """

    relevant: float = 1.0

    def _check(self, owner: str) -> None:
        self._set("relevant", check_real("relevant", owner, self.relevant))

    def gains(self, labels: np.ndarray) -> np.ndarray:
        return binary_gains(labels, self.relevant)

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        weight = np.empty(gain.size)
        found = np.add.reduceat(gain, queries.ptr[:-1])
        longest = int(queries.sizes.max())
        table, scale = self._table_and_scale(longest, found)
        if beyond_cutoff and self.rule != SUM:
            table = reciprocal_ranks(longest)  # P@k and recall@k are nothing without their cutoff
        queries.run(lambda a, b: scaled_weights(table, scale, queries.ptr, a, b, weight))
        return weight

    def _table_and_scale(self, longest: int, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weights by rank and factors by query, whose products are the weights."""
        return reciprocal_ranks(longest, self.cutoff), np.ones(found.size)


@dataclass(frozen=True)
class MAP(_Binary):
    """Average precision; its mean over queries is MAP.

    Parameters
    ----------
    denominator : ``"all"`` divides by all relevant documents, ``"cutoff"`` by at most the cutoff
    """

    name: ClassVar[str] = "map"
    rule: ClassVar[int] = PRECISIONS
    denominator: str = "all"

    def _check(self, owner: str) -> None:
        super()._check(owner)
        check_choice("denominator", owner, self.denominator, ["all", "cutoff"])

    def _table_and_scale(self, longest: int, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if self.denominator == "cutoff" and self.cutoff is not None:
            found = np.minimum(found, self.cutoff)
        return reciprocal_ranks(longest, self.cutoff), safe_inverse(found)


@dataclass(frozen=True)
class MRR(_Binary):
    """One over the rank of the first relevant document; its mean over queries is MRR."""

    name: ClassVar[str] = "mrr"
    rule: ClassVar[int] = FIRST


@dataclass(frozen=True)
class Precision(_Binary):
    """The share of relevant documents among the first k; missing documents are not relevant."""

    name: ClassVar[str] = "p"
    rule: ClassVar[int] = SUM
    cutoff_is: ClassVar[str] = "required"

    def _table_and_scale(self, longest: int, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        k = self.cutoff or 1
        return np.full(min(longest, k), 1.0 / k), np.ones(found.size)


@dataclass(frozen=True)
class Recall(_Binary):
    """The share of the relevant documents that stand among the first k."""

    name: ClassVar[str] = "recall"
    rule: ClassVar[int] = SUM
    cutoff_is: ClassVar[str] = "required"

    def _table_and_scale(self, longest: int, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(min(longest, self.cutoff or 1)), safe_inverse(found)


@dataclass(frozen=True)
class AUC(_Binary):
    """ROC area: the share of relevant-irrelevant pairs in the right order, a tied pair half."""

    name: ClassVar[str] = "auc"
    rule: ClassVar[int] = SUM
    undefined_is: ClassVar[str] = "no pair to order"
    cutoff_is: ClassVar[str] = "refused"
    unretrieved_gain: ClassVar[bool] = True

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        weight = np.empty(gain.size)
        queries.run(lambda a, b: roc_weights(gain, queries.ptr, a, b, weight))
        return weight

    def undefined(self, gain: np.ndarray, queries: QueryPieces) -> np.ndarray:
        found = np.add.reduceat(gain, queries.ptr[:-1])
        return np.asarray((found == 0) | (found == queries.sizes))


@dataclass(frozen=True)
class Accuracy(_Binary):
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
