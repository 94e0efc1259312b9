"""Scoring by walking down every tree, one document at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove.model.ensemble import Ensemble
from rankgrove.scoring._walk_kernels import walk_rows

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Walk:
    """Walks the ensemble itself; the reference for :class:`~rankgrove.scoring.lanes.Lanes`."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble

    def room(self, dtype: DTypeLike) -> None:
        """Return no buffers: walking needs none."""

    def add(
        self,
        features: np.ndarray,
        rows: np.ndarray,
        begin: int,
        end: int,
        room: None,
        scores: np.ndarray,
    ) -> None:
        """Add the trees' values to the scores, of shape (columns, rows), of rows[begin:end].

        Values are compared with thresholds in the type of the thresholds. If `rows` is empty, the
        rows are begin, ..., end - 1.
        """
        trees = self._ensemble
        walk_rows(
            features,
            rows,
            begin,
            end,
            trees.node_ptr,
            trees.leaf_ptr,
            trees.feature,
            trees.threshold,
            trees.left,
            trees.right,
            trees.missing_left,
            trees.value,
            trees.set_of,
            trees.sets.ptr,
            trees.sets.words,
            scores,
        )
