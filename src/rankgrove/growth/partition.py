"""Routing rows down a finished tree on binned data, without the features themselves."""

from __future__ import annotations

import numpy as np

from rankgrove.data.binning import MISSING, N_BINS, BinnedMatrix, Binner
from rankgrove.errors import DataError
from rankgrove.growth import _partition_kernels as kernels
from rankgrove.model.tree import Tree
from rankgrove.parallel import threads


def leaf_dtype(n_leaves: int) -> type[np.unsignedinteger | np.signedinteger]:
    """Return the smallest type for leaf numbers."""
    if n_leaves <= 1 << 8:
        return np.uint8
    return np.uint16 if n_leaves <= 1 << 16 else np.int32


def leaves_of(
    tree: Tree,
    binned: BinnedMatrix,
    *,
    rows: np.ndarray | None = None,
    out: np.ndarray | None = None,
    n_threads: int | None = None,
) -> np.ndarray:
    """Return the leaf of every row (or fill `out` for some rows).

    The tree must have been grown on the same bins: its thresholds must be among them.
    """
    position, bins, tables_of_sets = split_bins(tree, binned.binner)
    if out is None:
        out = np.empty(binned.n_rows, leaf_dtype(tree.n_leaves))
    if rows is None:
        rows = np.arange(binned.n_rows, dtype=np.int32)
    nodes = (position, bins, tree.missing_left, tree.left, tree.right)
    tables = (*nodes, *tables_of_sets)
    if rows.size <= kernels.ROWS_AT_ONCE:
        kernels.route_chunk(binned.codes, rows, *tables, out)
        return out
    with threads(n_threads):
        kernels.route(binned.codes, rows, *tables, out)
    return out


def split_bins(
    tree: Tree, binner: Binner
) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return the binned feature and the bin of every split of a tree.

    And of sets of categories: by node the number of its table (-1: none), and the tables, by bin
    whether it goes left.
    """
    places = {column: at for at, column in enumerate(binner.columns.tolist())}
    position = np.empty(tree.n_nodes, np.int64)
    bins = np.zeros(tree.n_nodes, np.int64)
    set_of = np.full(tree.n_nodes, -1, np.int32)
    tables: list[np.ndarray] = []
    for node in range(tree.n_nodes):
        at = places.get(int(tree.feature[node]), -1)
        categories = binner.categories_of(at) if at >= 0 else None
        if tree.set_of[node] >= 0 and categories is not None:
            set_of[node] = len(tables)
            table = categories.table(tree.sets.holds(int(tree.set_of[node]), categories.codes))
            table[MISSING] = tree.missing_left[node]
            tables.append(table)
            position[node] = at
            continue
        thresholds = binner.thresholds[at] if at >= 0 else np.empty(0, np.float32)
        bin = int(np.searchsorted(thresholds, tree.threshold[node]))
        last = bin == thresholds.size
        if (
            at < 0
            or tree.set_of[node] >= 0
            or (tree.threshold[node] != (np.inf if last else thresholds[bin]))
        ):
            raise DataError(
                f"Node {node} of the tree splits feature {tree.feature[node]} at "
                f"{tree.threshold[node]}, which is not a threshold of these bins: apply the tree "
                "to the features instead."
            )
        position[node], bins[node] = at, bin
    return position, bins, (set_of, np.array(tables, np.uint8).reshape(-1, N_BINS))
