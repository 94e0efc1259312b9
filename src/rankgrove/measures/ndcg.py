"""DCG, NDCG and the mean of NDCG over all cutoffs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankgrove.measures._value_kernels import SUM
from rankgrove.measures._weight_kernels import ideal_sums, mean_ndcg_weights, scaled_weights
from rankgrove.measures.base import Measure, QueryPieces
from rankgrove.measures.gains import (
    DISCOUNTS,
    Gain,
    check_gain,
    discounts,
    gains_of,
    safe_inverse,
)
from rankgrove.validation import check_choice


@dataclass(frozen=True)
class _Discounted(Measure):
    """Base of the three measures: graded gains and a discount by rank.

    Parameters
    ----------
    gain : ``"exp2"`` (2^l - 1), ``"identity"`` or a table with the gain of label 0, 1, 2, ...
    discount : ``"log2"`` (1/log2(1+r)), ``"ln"`` (1/ln(1+r)) or ``"letor"`` (1, 1, 1/log2 r)
    """

    rule: ClassVar[int] = SUM
    gain: Gain = "exp2"
    discount: str = "log2"

    def _check(self, owner: str) -> None:
        self._set("gain", check_gain(owner, self.gain))
        check_choice("discount", owner, self.discount, DISCOUNTS)

    def gains(self, labels: np.ndarray) -> np.ndarray:
        return gains_of(labels, self.gain)

    def _discounts(self, queries: QueryPieces, beyond_cutoff: bool = False) -> np.ndarray:
        cutoff = None if beyond_cutoff else self.cutoff
        return discounts(self.discount, int(queries.sizes.max()), cutoff)


@dataclass(frozen=True)
class DCG(_Discounted):
    """Discounted cumulative gain, not normalised."""

    name: ClassVar[str] = "dcg"
    bounds: ClassVar[tuple[float, float]] = (0.0, math.inf)  # gains are never below 0

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        weight = np.empty(gain.size)
        scale = np.ones(queries.sizes.size)
        table = self._discounts(queries, beyond_cutoff)
        queries.run(lambda a, b: scaled_weights(table, scale, queries.ptr, a, b, weight))
        return weight


@dataclass(frozen=True)
class NDCG(_Discounted):
    """DCG divided by the DCG of the best order (equation 1 of the LambdaMART paper).

    Parameters
    ----------
    short : ``"keep"``, or ``"zero"`` to give 0 to a query with fewer documents than the cutoff,
        as LETOR's script does
    """

    name: ClassVar[str] = "ndcg"
    short: str = "keep"

    def _check(self, owner: str) -> None:
        super()._check(owner)
        check_choice("short", owner, self.short, ["keep", "zero"])

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        ideal = np.empty(queries.sizes.size)
        cut = self._discounts(queries)
        queries.run(lambda a, b: ideal_sums(gain, cut, queries.ptr, a, b, ideal))
        weight = np.empty(gain.size)
        table = self._discounts(queries, beyond_cutoff)
        scale = safe_inverse(ideal)
        queries.run(lambda a, b: scaled_weights(table, scale, queries.ptr, a, b, weight))
        return weight

    def too_short(self, sizes: np.ndarray) -> np.ndarray | None:
        if self.short == "keep" or self.cutoff is None:
            return None
        return np.asarray(sizes < self.cutoff)


@dataclass(frozen=True)
class MeanNDCG(_Discounted):
    """The mean of NDCG@1 to NDCG@n over a query's n documents, as LETOR's script reports it."""

    name: ClassVar[str] = "meanndcg"
    cutoff_is: ClassVar[str] = "refused"

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        weight = np.empty(gain.size)
        table = self._discounts(queries)
        queries.run(lambda a, b: mean_ndcg_weights(gain, table, queries.ptr, a, b, weight))
        return weight
