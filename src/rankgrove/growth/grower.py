"""Leaf-wise growth: the leaf whose best split gains most is split next.

The grower holds the binned rows and all work arrays; a call of :meth:`Grower.grow` makes one tree
from a gradient and a hessian a row. Everything that decides the shape of the tree is integer
arithmetic on quantised gradients; the values of its leaves come from the full gradients. The tree
depends neither on the number of threads nor on the order of the rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankgrove.data.binning import BinnedMatrix, read_only
from rankgrove.errors import DataError
from rankgrove.growth._kernel_tools import run_parts
from rankgrove.growth._partition_kernels import label_leaves, label_leaves_part
from rankgrove.growth.assembly import assemble
from rankgrove.growth.frontier import Frontier, Scales
from rankgrove.growth.leaves import SERIAL_ROWS, exact_sums
from rankgrove.growth.partition import leaf_dtype, leaves_of
from rankgrove.growth.quantise import (
    MOST_ROWS,
    Range,
    measure,
    quantise,
)
from rankgrove.growth.splitting import FeatureDraw, SplitRules
from rankgrove.model.tree import Tree
from rankgrove.parallel import threads
from rankgrove.validation import check_integer

HISTOGRAM_BYTES = 256 << 20


class Grower:
    """Grows trees on one binned matrix.

    Parameters
    ----------
    binned : the rows
    n_leaves : most leaves of a tree
    row_keys : uint64, one a row: what the rounding of a row's gradient hangs on. None: its number
    seed : of stochastic rounding and of drawn features
    histogram_bytes : most memory of the histogram pool
    n_threads : None: all cores
    **rules : split, min_leaf, min_gain, max_depth, l2, feature_fraction: see
        :class:`~rankgrove.growth.splitting.SplitRules`

    Examples
    --------
    >>> import numpy as np
    >>> from rankgrove.data.binning import Binner
    >>> from rankgrove.growth.grower import Grower
    >>> X = np.arange(6, dtype=np.float32)[:, None]
    >>> grower = Grower(Binner.fit(X).transform(X), n_leaves=2)
    >>> tree, leaf_of = grower.grow(np.array([1.0, 1, 1, 5, 5, 5]), np.ones(6))
    >>> tree.threshold, tree.value, leaf_of
    (array([2.5], dtype=float32), array([1., 5.]), array([0, 0, 0, 1, 1, 1], dtype=uint8))
    """

    def __init__(
        self,
        binned: BinnedMatrix,
        *,
        n_leaves: int = 31,
        row_keys: np.ndarray | None = None,
        seed: int = 0,
        histogram_bytes: int = HISTOGRAM_BYTES,
        n_threads: int | None = None,
        **rules: Any,
    ) -> None:
        n = binned.n_rows
        if n >= MOST_ROWS:
            raise DataError(f"A tree can be grown on at most {MOST_ROWS - 1} rows. Got {n}.")
        check_integer("n_leaves", "Grower", n_leaves, low=2)
        self.binned = binned
        self.rules = SplitRules(**rules)
        self.seed = seed
        self.n_threads = n_threads
        self._keys = np.arange(n, dtype=np.uint64) if row_keys is None else _keys(row_keys, n)
        self._all_rows = np.arange(n, dtype=np.int32)
        draw = FeatureDraw(binned.binner.columns, self.rules.feature_fraction, seed)
        with threads(n_threads) as most:
            self._frontier = Frontier(binned, n_leaves, self.rules, draw, histogram_bytes, most)

    def grow(
        self,
        gradient: np.ndarray,
        hessian: np.ndarray | None = None,
        round: int = 0,
        rows: np.ndarray | None = None,
    ) -> tuple[Tree, np.ndarray]:
        """Grow one tree; return it and the leaf of every row of the matrix.

        Parameters
        ----------
        gradient : one number a row, towards which the values go (the negative gradient of a loss)
        hessian : one number a row; None: all 1
        round : number of the tree: rounding and drawn features differ from round to round
        rows : ascending row numbers to grow on; None: all. The others are only routed
        """
        n_rows = self.binned.n_rows
        gradient = _one_a_row("gradient", gradient, n_rows)
        if hessian is not None:
            hessian = _one_a_row("hessian", hessian, n_rows)
        chosen = self._all_rows if rows is None else _ascending(rows, n_rows)
        with threads(self.n_threads):
            n_parts = 1 if chosen.size < SERIAL_ROWS else self._frontier.n_threads
            spread = measure("gradient", gradient, chosen, n_parts)
            spread_h = hessian if hessian is None else measure("hessian", hessian, chosen, n_parts)
            scales = self._quantise(gradient, spread, hessian, spread_h, chosen, round, n_parts)
            self._frontier.order[: chosen.size] = chosen
            splits = self._frontier.grow(chosen.size, scales, round)
            leaf_of = self._label(chosen.size, n_parts)
            n_leaves = len(splits) + 1
            sums = exact_sums(gradient, chosen, leaf_of, n_leaves, spread.largest, n_parts)
            sums_h = None
            if hessian is not None and spread_h is not None:
                sums_h = exact_sums(hessian, chosen, leaf_of, n_leaves, spread_h.largest, n_parts)
            tree = assemble(splits, self.binned.binner, sums, sums_h, self.rules.l2)
            if rows is not None:
                left_out = np.ones(n_rows, np.bool_)
                left_out[chosen] = False
                others = np.flatnonzero(left_out).astype(np.int32)
                leaves_of(tree, self.binned, rows=others, out=leaf_of, n_threads=self.n_threads)
        return tree, leaf_of

    def _quantise(
        self,
        gradient: np.ndarray,
        spread: Range,
        hessian: np.ndarray | None,
        spread_h: Range | None,
        rows: np.ndarray,
        round: int,
        n_parts: int,
    ) -> Scales:
        """Fill the packed sums of `rows`; return what their units are worth."""
        packed, keys, draw = self._frontier.packed, self._keys, (self.seed, round)
        field, field_h = self._frontier.layout.gradient, self._frontier.layout.hessian
        total = spread.total
        exponent = quantise(field, gradient, total, rows, keys, draw, packed[0], n_parts)
        exponent_h = 0
        if field_h is not None:
            if hessian is None or spread_h is None:
                hessian, total = np.ones(gradient.size), float(rows.size)
            else:
                total = spread_h.total
            exponent_h = quantise(field_h, hessian, total, rows, keys, draw, packed[-1], n_parts)
        return Scales(math.ldexp(1.0, -2 * exponent), math.ldexp(1.0, -exponent_h))

    def _label(self, n_rows: int, n_parts: int) -> np.ndarray:
        """Return the leaf of every row that the tree was grown on; other rows are not set."""
        leaves = self._frontier.leaves
        leaf_of = np.empty(self.binned.n_rows, leaf_dtype(len(leaves)))
        starts = np.array([leaf.start for leaf in leaves])
        ends = np.array([leaf.end for leaf in leaves])
        order = self._frontier.order[:n_rows]
        run_parts(label_leaves_part, label_leaves, n_parts, order, starts, ends, leaf_of)
        return leaf_of


def _one_a_row(name: str, values: np.ndarray, n_rows: int) -> np.ndarray:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (n_rows,):
        raise DataError(f"The {name} must be one number a row ({n_rows}). Got shape {array.shape}.")
    return read_only(array)


def _keys(row_keys: np.ndarray, n_rows: int) -> np.ndarray:
    keys = np.ascontiguousarray(row_keys, dtype=np.uint64)
    if keys.shape != (n_rows,):
        raise DataError(f"row_keys must be one number a row ({n_rows}). Got shape {keys.shape}.")
    return keys


def _ascending(rows: np.ndarray, n_rows: int) -> np.ndarray:
    chosen = np.ascontiguousarray(rows, dtype=np.int32)
    if chosen.ndim != 1 or chosen.size == 0:
        raise DataError("A tree needs at least one row to grow on. Got none.")
    if chosen[0] < 0 or chosen[-1] >= n_rows or np.any(chosen[1:] <= chosen[:-1]):
        raise DataError(f"Rows to grow on must be ascending numbers between 0 and {n_rows - 1}.")
    return chosen
