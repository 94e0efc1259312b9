"""Measures for incomplete judgements: bpref, inferred AP, and the share of judged documents.

If a run is evaluated against qrels, documents without an entry were not in the pool, and those
with a grade below 0 were in the pool but not judged, as in trec_eval. All documents of a data set
were in the pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankgrove.measures._extra_kernels import BPREF, INFAP, bpref_weights
from rankgrove.measures._value_kernels import SUM
from rankgrove.measures.base import Measure, QueryPieces
from rankgrove.measures.binary import Binary
from rankgrove.measures.gains import safe_inverse


@dataclass(frozen=True)
class _Incomplete(Binary):
    """Base of bpref and infAP: gains 1 (relevant), -1 (not relevant), 0 (not judged)."""

    cutoff_is: ClassVar[str] = "refused"
    uses_judgements: ClassVar[bool] = True
    own_kernels: ClassVar[bool] = True

    def gains(self, labels: np.ndarray) -> np.ndarray:
        return self.query_gains(labels, None, None)

    def query_gains(
        self, labels: np.ndarray, queries: QueryPieces | None, judged: np.ndarray | None
    ) -> np.ndarray:
        gain = np.where(labels >= self.relevant, 1.0, np.where(labels >= 0.0, -1.0, 0.0))
        return gain if judged is None else np.where(judged, gain, 0.0)

    @property
    def kernels(self) -> Any:
        from rankgrove.measures import _extra_kernels

        return _extra_kernels


@dataclass(frozen=True)
class Bpref(_Incomplete):
    """The share of judged irrelevant documents not above the relevant ones (trec_eval's form).

    A relevant document counts 1 - (judged irrelevant ones above it, at most R) / min(R, N), where
    R documents are relevant and N judged irrelevant; the value is the mean over the R.
    """

    name: ClassVar[str] = "bpref"
    rule: ClassVar[int] = BPREF
    own_swaps: ClassVar[bool] = True

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        weight = np.empty(gain.size)
        queries.run(lambda a, b: bpref_weights(gain, queries.ptr, a, b, weight))
        return weight


@dataclass(frozen=True)
class InfAP(_Incomplete):
    """Average precision inferred from a partly judged pool (grades below 0: not judged)."""

    name: ClassVar[str] = "infap"
    rule: ClassVar[int] = INFAP
    not_a_target: ClassVar[str] = (
        "it is an estimate for samples of judgements. Train for map, which it estimates"
    )

    def query_gains(
        self, labels: np.ndarray, queries: QueryPieces | None, judged: np.ndarray | None
    ) -> np.ndarray:
        gain = super().query_gains(labels, queries, judged)
        unjudged = labels < min(self.relevant, 0.0)
        return np.where(unjudged if judged is None else unjudged & judged, -2.0, gain)

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        relevant = np.add.reduceat((gain > 0.0).astype(np.float64), queries.ptr[:-1])
        return np.repeat(safe_inverse(relevant), queries.sizes)


@dataclass(frozen=True)
class Judged(Measure):
    """The share of the first k retrieved documents that have a judgement, relevant or not."""

    name: ClassVar[str] = "judged"
    rule: ClassVar[int] = SUM
    uses_judgements: ClassVar[bool] = True
    not_a_target: ClassVar[str] = (
        "it does not depend on relevance. It shows how far another measure can be trusted"
    )

    def gains(self, labels: np.ndarray) -> np.ndarray:
        return np.ones(labels.size)

    def query_gains(
        self, labels: np.ndarray, queries: QueryPieces, judged: np.ndarray | None
    ) -> np.ndarray:
        return self.gains(labels) if judged is None else judged.astype(np.float64)

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        places = np.arange(gain.size) - np.repeat(queries.ptr[:-1], queries.sizes)
        return (places < self.depth).astype(np.float64)

    def undefined(self, gain: np.ndarray, queries: QueryPieces) -> np.ndarray:
        return np.zeros(queries.sizes.size, np.bool_)

    def finish(self, values: np.ndarray, retrieved: np.ndarray) -> np.ndarray:
        return values / np.maximum(np.minimum(retrieved, self.depth), 1)
