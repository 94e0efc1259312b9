"""Pairwise accuracy over graded labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankgrove.measures._value_kernels import PAIRS
from rankgrove.measures._weight_kernels import unequal_pairs
from rankgrove.measures.base import Measure, QueryPieces
from rankgrove.measures.gains import safe_inverse


@dataclass(frozen=True)
class Pairs(Measure):
    """The share of pairs of unequal labels in the right order; a tied pair counts half.

    It is 1 minus the pairwise error that RankNet's cost approximates.
    """

    name: ClassVar[str] = "pairs"
    rule: ClassVar[int] = PAIRS
    undefined_is: ClassVar[str] = "no pair to order"
    needs_pairs: ClassVar[bool] = True
    cutoff_is: ClassVar[str] = "refused"
    unretrieved_gain: ClassVar[bool] = True

    def gains(self, labels: np.ndarray) -> np.ndarray:
        return labels.copy()

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        return np.repeat(safe_inverse(self._pairs(gain, queries)), queries.sizes)

    def undefined(self, gain: np.ndarray, queries: QueryPieces) -> np.ndarray:
        return np.asarray(self._pairs(gain, queries) == 0)

    def _pairs(self, gain: np.ndarray, queries: QueryPieces) -> np.ndarray:
        pairs = np.empty(queries.sizes.size)
        queries.run(lambda a, b: unequal_pairs(gain, queries.ptr, a, b, pairs))
        return pairs
