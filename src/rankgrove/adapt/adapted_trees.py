"""Tree adaptation (Trada): the trees of a base model tuned to a target domain's rows.

Every tree is adapted to the residuals of the adapted trees before it. At every node the source's n0
rows and the target's n1 vote with p0 = n0 / (n0 + beta n1) (equation 3) on the response
(Algorithm 1), and on the threshold too (Algorithm 2). A node that tests a set of categories keeps
its set: only the responses below it change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rankgrove.adapt.target import TargetRows
from rankgrove.adapt.walking import Rules, SourceStatistics, Walker, joined, parted
from rankgrove.boosting.loop import Objective
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree


@dataclass(frozen=True, eq=False)
class Adapted:
    """Adapted trees.

    Attributes
    ----------
    ensemble : the adapted trees, not trimmed
    reached : target rows of every place: a tree's nodes and then its leaves, tree after tree
    response : responses of the places, learning rate included
    scores : scores of the target's rows
    """

    ensemble: Ensemble
    reached: np.ndarray
    response: np.ndarray
    scores: np.ndarray


def adapt_ensemble(
    ensemble: Ensemble,
    source: SourceStatistics,
    target: TargetRows,
    objective: Objective,
    rules: Rules,
    *,
    n_threads: int | None = None,
) -> Adapted:
    """Adapt all trees in their order, each to the residuals of the adapted ones before it.

    The constant of the base model is a tree of one leaf and rate 1: if the objective has a best
    constant, the two are mixed like responses.
    """
    n_rows = target.n_rows
    base = ensemble.base
    start = getattr(objective, "start", None)
    if start is not None and ensemble.n_trees and n_rows:
        from rankgrove.adapt._adapt_kernels import source_share

        p0 = source_share(source.count[0], n_rows, float(rules.beta))
        base = base if p0 == 1.0 else p0 * base + (1.0 - p0) * start
    scores = np.full(n_rows, base)
    walker = Walker(ensemble, source, target, rules, n_threads)
    for t in range(ensemble.n_trees):
        walker.step(t, objective, scores)
    known = source.count.min(initial=0) >= 0 and not np.isnan(source.rate).any()
    adapted = _with(ensemble, source, walker, base) if known else ensemble  # beta is 0: no change
    return Adapted(adapted, walker.reached, walker.response, scores)


def _with(ensemble: Ensemble, source: SourceStatistics, walker: Walker, base: float) -> Ensemble:
    """Return the ensemble with the adapted thresholds and values, and the statistics of both."""
    n_places = np.diff(ensemble.node_ptr) + np.diff(ensemble.leaf_ptr)
    rate = np.repeat(source.rate, n_places)
    mean = np.divide(walker.response, rate, out=np.zeros(rate.size), where=rate != 0.0)
    count = source.count.astype(np.int64) + walker.reached
    weight = joined(ensemble, ensemble.node_weight, ensemble.leaf_weight) + walker.weight
    node_count, leaf_count = parted(ensemble, count)
    node_weight, leaf_weight = parted(ensemble, weight)
    node_mean, leaf_mean = parted(ensemble, mean)
    return replace(
        ensemble,
        threshold=walker.threshold,
        value=parted(ensemble, walker.response)[1],
        base=float(base),
        node_count=node_count,
        leaf_count=leaf_count,
        node_weight=node_weight,
        leaf_weight=leaf_weight,
        node_mean=node_mean,
        leaf_mean=leaf_mean,
    )


def trimmed(ensemble: Ensemble, reached: np.ndarray) -> Ensemble:
    """Return the ensemble without the branches that no target row reaches.

    A node with only one side left is replaced by that side. `reached` has the rows of all places;
    the values of rows that reach a kept leaf do not change.
    """
    starts = ensemble.node_ptr + ensemble.leaf_ptr
    trees = []
    for t in range(ensemble.n_trees):
        tree = ensemble.tree(t)
        rows = reached[starts[t] : starts[t + 1]]
        trees.append(_trimmed_tree(tree, rows) if (rows == 0).any() else tree)
    return Ensemble.from_trees(trees, ensemble.n_features, ensemble.base)


def _trimmed_tree(tree: Tree, reached: np.ndarray) -> Tree:
    """Return a tree of the nodes with both sides reached, and of their leaves."""
    n_nodes = tree.n_nodes

    def place(child: int) -> int:
        return child if child >= 0 else n_nodes + ~child

    def kept(child: int) -> int:
        """Return the replacement of a child: the first node from it down that divides rows."""
        while child >= 0:
            a, b = int(tree.left[child]), int(tree.right[child])
            if reached[place(a)] and reached[place(b)]:
                break
            child = a if reached[place(a)] else b
        return child

    nodes: list[int] = []
    leaves: list[int] = []
    left, right = np.zeros((2, n_nodes), np.int32)
    waiting: list[tuple[int, np.ndarray, int]] = [(0 if n_nodes else ~0, np.zeros(1), 0)]
    while waiting:  # parents before their children
        child, side, at = waiting.pop(0)
        child = kept(child)
        if child < 0:
            side[at] = ~len(leaves)
            leaves.append(~child)
            continue
        side[at] = len(nodes)
        waiting.append((int(tree.left[child]), left, len(nodes)))
        waiting.append((int(tree.right[child]), right, len(nodes)))
        nodes.append(child)
    places = np.array([*nodes, *(n_nodes + leaf for leaf in leaves)])
    return Tree(
        **{
            name: getattr(tree, name)[nodes]
            for name in ("feature", "threshold", "missing_left", "gain", "set_of")
        },
        sets=tree.sets,
        left=left[: len(nodes)].copy(),
        right=right[: len(nodes)].copy(),
        value=tree.value[leaves],
        **{name: getattr(tree, name)[places] for name in ("count", "weight", "mean")},
    )
