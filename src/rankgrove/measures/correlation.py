"""Rank correlation of scores and labels, or of two rankings: Kendall's tau-b, Spearman's rho."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankgrove.measures._extra_kernels import KENDALL, SPEARMAN, label_ranks
from rankgrove.measures._value_kernels import PAIRS, SUM
from rankgrove.measures.base import QueryPieces
from rankgrove.measures.gains import safe_inverse
from rankgrove.measures.pairwise_accuracy import Pairs


@dataclass(frozen=True)
class _Correlation(Pairs):
    """Base of both correlations: the whole ranking counts, and tied documents share a rank."""

    tie_rules: ClassVar[tuple[str, ...]] = ("together",)
    bounds: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    own_kernels: ClassVar[bool] = True
    ties: str = "together"

    @property
    def kernels(self) -> Any:
        from rankgrove.measures import _extra_kernels

        return _extra_kernels


@dataclass(frozen=True)
class Kendall(_Correlation):
    """Kendall's tau-b of scores and labels: 0 where all scores are equal."""

    name: ClassVar[str] = "kendall"
    rule: ClassVar[int] = KENDALL

    @property
    def swap_rule(self) -> int:
        return PAIRS

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        pairs = queries.sizes * (queries.sizes - 1.0) / 2.0
        root = np.sqrt(self._pairs(gain, queries) * pairs)
        return np.repeat(2.0 * safe_inverse(root), queries.sizes)


@dataclass(frozen=True)
class Spearman(_Correlation):
    """Spearman's rank correlation of scores and labels: 0 where all scores are equal."""

    name: ClassVar[str] = "spearman"
    rule: ClassVar[int] = SPEARMAN

    @property
    def swap_rule(self) -> int:
        return SUM

    def query_gains(
        self, labels: np.ndarray, queries: QueryPieces, judged: np.ndarray | None
    ) -> np.ndarray:
        gain = np.empty(labels.size)
        queries.run(lambda a, b: label_ranks(labels, queries.ptr, a, b, gain))
        return gain

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        sizes = queries.sizes.astype(np.float64)
        norm = safe_inverse(np.sqrt((sizes**3 - sizes) / 12.0))
        places = np.arange(gain.size) - np.repeat(queries.ptr[:-1], queries.sizes)
        middle = np.repeat((sizes - 1.0) / 2.0, queries.sizes)
        return (middle - places) * np.repeat(norm, queries.sizes)
