"""What adaptation must know of the source: rows and mean responses of every node of every tree.

Trained ensembles have them. A foreign model's may lack some: what can be derived is derived, the
rest is named.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from rankgrove.adapt.target import TargetRows
from rankgrove.adapt.walking import Rules, SourceStatistics, Walker, joined, parted
from rankgrove.boosting.loop import Objective
from rankgrove.errors import DataError
from rankgrove.model.ensemble import Ensemble

_REMEDY = (
    "pass the source's data through the model, rg.statistics_from_data(model, source) (--source "
    "on the command line)"
)


def source_statistics(
    ensemble: Ensemble, rate: float | None = None, *, inner: bool = True
) -> SourceStatistics:
    """Return what an ensemble knows of its source, or raise DataError that says what is missing.

    Parameters
    ----------
    ensemble : the base model
    rate : learning rate of all trees, where the ensemble does not show it
    inner : whether the statistics of inner nodes are needed, not only those of leaves
    """
    unknown = ensemble.leaf_count.min(initial=0) < 0
    if inner:
        unknown = unknown or ensemble.node_count.min(initial=0) < 0
    if unknown:
        raise DataError(
            "The base model does not say how many rows of its training data reached every node: "
            f"{_REMEDY}."
        )
    rates = np.full(ensemble.n_trees, np.nan if rate is None else float(rate))
    if rate is None:
        rates = tree_rates(ensemble)
    response = joined(ensemble, _node_responses(ensemble, rates, inner), ensemble.value)
    count = joined(ensemble, ensemble.node_count, ensemble.leaf_count).astype(np.float64)
    return SourceStatistics(np.maximum(count, 0.0), response, rates)


def tree_rates(ensemble: Ensemble) -> np.ndarray:
    """Return the learning rate of every tree: what its leaves' values are of their responses."""
    if np.isnan(ensemble.leaf_mean).any():
        raise DataError(
            "The base model does not show the learning rate of its trees, the mean response of "
            f"their leaves being unknown: give base_rate=, or {_REMEDY}."
        )
    rates = np.full(ensemble.n_trees, np.nan)
    values, means = ensemble.value.tolist(), ensemble.leaf_mean.tolist()
    for t, (a, b) in enumerate(itertools.pairwise(ensemble.leaf_ptr.tolist())):
        value, mean = values[a:b], means[a:b]
        largest = max(mean, key=abs)
        if largest != 0.0:
            ratio = value[mean.index(largest)] / largest
            # one factor in all leaves, but for rounding; else the one nearest to all
            far = max(abs(v - ratio * m) for v, m in zip(value, mean, strict=True))
            if far > 1e-9 * abs(ratio * largest):
                along = sum(v * m for v, m in zip(value, mean, strict=True))
                ratio = along / sum(m * m for m in mean)
            rates[t] = ratio
    known = rates[~np.isnan(rates)]
    # a tree without any response says nothing of its rate: it gets that of the others
    return np.where(np.isnan(rates), np.median(known) if known.size else 1.0, rates)


def _node_responses(ensemble: Ensemble, rates: np.ndarray, inner: bool) -> np.ndarray:
    """Return the responses of inner nodes times the trees' rates."""
    per_node = np.repeat(rates, np.diff(ensemble.node_ptr))
    known = per_node * ensemble.node_mean
    if not inner:
        return np.nan_to_num(known)
    if not np.isnan(known).any():
        return known
    # A node's response is its leaves', weighted by their hessians (or rows, where those are 1).
    weight = ensemble.leaf_weight
    if np.isnan(weight).any():
        weight = ensemble.leaf_count.astype(np.float64)
    found = np.empty(known.size)
    for t in range(ensemble.n_trees):
        a, b = int(ensemble.node_ptr[t]), int(ensemble.node_ptr[t + 1])
        leaves = slice(ensemble.leaf_ptr[t], ensemble.leaf_ptr[t + 1])
        w = np.concatenate([np.zeros(b - a), weight[leaves]])
        total = np.concatenate([np.zeros(b - a), weight[leaves] * ensemble.value[leaves]])
        for node in range(b - a - 1, -1, -1):
            for child in (int(ensemble.left[a + node]), int(ensemble.right[a + node])):
                place = child if child >= 0 else b - a + ~child
                w[node] += w[place]
                total[node] += total[place]
            found[a + node] = total[node] / w[node] if w[node] > 0 else 0.0
    return np.where(np.isnan(known), found, known)


def statistics_of(
    ensemble: Ensemble,
    target: TargetRows,
    objective: Objective,
    l2: float = 0.0,
    n_threads: int | None = None,
) -> Ensemble:
    """Return the ensemble with the counts, weights and mean responses of some rows.

    The rows pass through tree after tree; a response is that to the scores of the trees before.
    """
    nothing = np.zeros(ensemble.feature.size)
    known = SourceStatistics(
        np.zeros(ensemble.feature.size + ensemble.n_leaves),
        joined(ensemble, nothing, ensemble.value),
        np.ones(ensemble.n_trees),
    )
    walker = Walker(ensemble, known, target, Rules(level="observe", l2=l2), n_threads)
    scores = np.full(target.n_rows, ensemble.base)
    for t in range(ensemble.n_trees):
        walker.step(t, objective, scores)
    found = {
        "count": parted(ensemble, walker.reached),
        "weight": parted(ensemble, walker.weight),
        "mean": parted(ensemble, walker.response),
    }
    new: dict[str, Any] = {}
    for name, (of_nodes, of_leaves) in found.items():
        new |= {f"node_{name}": of_nodes, f"leaf_{name}": of_leaves}
    return replace(ensemble, **new)
