"""Growth of trees: leaf by leaf (`frontier.py`), or symmetric, level by level (`symmetric.py`).

The grower holds the binned rows and all work arrays; a call of :meth:`Grower.grow` makes one tree
from a gradient and a hessian per row. Everything that decides the shape of the tree is integer
arithmetic on quantised gradients; the values of its leaves come from the full gradients. The tree
depends neither on the number of threads nor on the order of the rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankgrove.data.arrays import frozen
from rankgrove.data.binning import BinnedMatrix, Binner
from rankgrove.errors import DataError
from rankgrove.growth.assembly import assemble
from rankgrove.growth.frontier import Frontier, RowSource, Scales
from rankgrove.growth.leaves import ExactSums
from rankgrove.growth.local_row_source import LocalRowSource
from rankgrove.growth.quantise import (
    MOST_ROWS,
    Layout,
    Range,
    check_largest,
    magnitude_exponent,
    range_of,
)
from rankgrove.growth.splitting import FeatureDraw, SplitRules
from rankgrove.growth.symmetric import SymmetricFrontier
from rankgrove.model.tree import Tree
from rankgrove.parallel import threads
from rankgrove.validation import check_integer

HISTOGRAM_BYTES = 256 << 20


class Grower:
    """Grows trees on one binned matrix.

    Parameters
    ----------
    binned : the rows
    n_leaves : maximum number of leaves of a tree
    row_keys : uint64, one per row: the rounding of its gradient depends on it. None: row numbers
    seed : seed of stochastic rounding and of drawn features
    histogram_bytes : maximum memory of the histogram pool
    n_threads : None: all cores
    **rules : split, min_leaf, min_gain, max_depth, l2, feature_fraction, growth, constraints: see
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
        check_integer("n_leaves", "Grower", n_leaves, low=2)
        self.binned = binned
        self.rules = SplitRules(**rules)
        self.seed = seed
        self.n_threads = n_threads
        layout = check_layout(self.rules.split, n)
        keys = np.arange(n, dtype=np.uint64) if row_keys is None else _keys(row_keys, n)
        with threads(n_threads) as most:
            self._rows = LocalRowSource(binned, layout, keys, most)
        self._frontier = frontier_of(
            self._rows,
            binned.binner,
            layout,
            n_leaves,
            self.rules,
            seed,
            histogram_bytes,
            n_threads,
        )

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
        gradient : one number per row, which the tree approximates (the negative gradient of a loss)
        hessian : one number per row; None: all 1
        round : number of the tree: rounding and drawn features differ from round to round
        rows : ascending numbers of the rows to grow on; None: all. The others are only routed
        """
        n_rows = self.binned.n_rows
        gradient = _per_row("gradient", gradient, n_rows)
        if hessian is not None:
            hessian = _per_row("hessian", hessian, n_rows)
        chosen = None if rows is None else _ascending(rows, n_rows)
        with threads(self.n_threads):
            self._rows.take(gradient, hessian, chosen)
            tree = grow_tree(self._frontier, self.binned.binner, (self.seed, round))
            self._rows.route_others(tree)
        return tree, self._rows.leaf_of


def check_layout(split: str, n_rows: int) -> Layout:
    """Return the layout of the sums of `n_rows` rows; refuse too many rows."""
    if n_rows >= MOST_ROWS:
        raise DataError(f"A tree can be grown on at most {MOST_ROWS - 1} rows. Got {n_rows}.")
    return Layout.of(split, n_rows)


def frontier_of(
    source: RowSource,
    binner: Binner,
    layout: Layout,
    n_leaves: int,
    rules: SplitRules,
    seed: int,
    histogram_bytes: int = HISTOGRAM_BYTES,
    n_threads: int | None = None,
) -> Frontier:
    """Return the frontier of trees on the rows of a source."""
    draw = FeatureDraw(binner.columns, rules.feature_fraction, seed)
    if rules.growth == "symmetric":
        return SymmetricFrontier(
            source, binner, layout, n_leaves, rules, draw, histogram_bytes, n_threads
        )
    return Frontier(source, binner, layout, n_leaves, rules, draw, histogram_bytes)


def grow_tree(frontier: Frontier, binner: Binner, draw: tuple[int, int]) -> Tree:
    """Grow one tree on the rows of the frontier's source, wherever they are.

    All decisions and sums are made with integers, so the tree does not depend on how the rows are
    distributed. `draw` is (seed, round).
    """
    source, n = frontier.source, frontier.source.n_chosen
    ranges = _measure(source)
    fields = [field for field in (frontier.layout.gradient, frontier.layout.hessian) if field]
    of_field = [*ranges, Range(1.0, float(n))][: len(fields)]  # hessians may be all 1
    both = zip(of_field, fields, strict=True)
    exponents = [field.exponent(r.total, r.largest, n) for r, field in both]
    source.quantise(exponents, draw)
    unit = math.ldexp(1.0, -exponents[1]) if len(exponents) > 1 else 1.0
    largest = [r.largest for r in ranges]
    noise = 0.0
    if (
        frontier.needs_noise and of_field[-1].total > 0.0
    ):  # the mean square of gradients over the mean hessian
        noise = source.squares() / (of_field[1].total if len(fields) > 1 else float(n))
    scales = Scales(math.ldexp(1.0, -2 * exponents[0]), unit, noise)
    splits = frontier.grow(n, scales, draw[1])
    parts = source.leaf_sums(frontier.leaves, largest)
    sums = [ExactSums.of(part, n, most) for part, most in zip(parts, largest, strict=True)]
    hessian = sums[1] if len(sums) > 1 else None
    rules = frontier.rules
    return assemble(splits, binner, sums[0], hessian, rules.l2, rules.constraints)


def _measure(source: RowSource) -> list[Range]:
    """Return the ranges of the gradients, and of the hessians if there are any."""
    named = zip(("gradient", "hessian"), source.largest(), strict=False)
    largest = [check_largest(name, most) for name, most in named]
    exponents = [magnitude_exponent(most, source.n_chosen) for most in largest]
    units = source.magnitudes(exponents)
    return [range_of(*measured) for measured in zip(largest, units, exponents, strict=True)]


def _per_row(name: str, values: np.ndarray, n_rows: int) -> np.ndarray:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != (n_rows,):
        raise DataError(
            f"The {name} must be one number per row ({n_rows}). Got shape {array.shape}."
        )
    return frozen(array)


def _keys(row_keys: np.ndarray, n_rows: int) -> np.ndarray:
    keys = np.ascontiguousarray(row_keys, dtype=np.uint64)
    if keys.shape != (n_rows,):
        raise DataError(f"row_keys must be one number per row ({n_rows}). Got shape {keys.shape}.")
    return keys


def _ascending(rows: np.ndarray, n_rows: int) -> np.ndarray:
    chosen = np.ascontiguousarray(rows, dtype=np.int32)
    if chosen.ndim != 1 or chosen.size == 0:
        raise DataError("A tree needs at least one row to grow on. Got none.")
    if chosen[0] < 0 or chosen[-1] >= n_rows or np.any(chosen[1:] <= chosen[:-1]):
        raise DataError(f"Rows to grow on must be ascending numbers between 0 and {n_rows - 1}.")
    return chosen
