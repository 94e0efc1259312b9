"""The statistics of the source that adaptation needs: row counts and mean responses of all nodes.

Trained ensembles have them. Models of other libraries may lack some: they are derived where
possible, and the error message names the others.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np

from rankgrove.adapt.target import TargetRows
from rankgrove.adapt.walking import Rules, SourceStatistics, Walker, joined, parted
from rankgrove.boosting.loop import Objective
from rankgrove.errors import DataError, ParameterError
from rankgrove.model.ensemble import Ensemble

_REMEDY = (
    "pass the source's data through the model, rg.statistics_from_data(model, source) (--source "
    "on the command line)"
)


def source_statistics(
    ensemble: Ensemble, rate: float | None = None, *, needed: bool = True
) -> SourceStatistics:
    """Return the statistics of an ensemble's source; a DataError names any that are missing.

    Unknown counts and responses of inner nodes are computed from their leaves.

    Parameters
    ----------
    ensemble : the base model
    rate : learning rate of the trees where it cannot be derived
    needed : whether anything will be mixed; if not, unknown counts are -1 and unknown rates NaN
    """
    counted = ensemble.leaf_count.min(initial=0) >= 0
    if needed and not counted:
        raise DataError(
            "The base model does not say how many rows of its training data reached every leaf: "
            f"{_REMEDY}."
        )
    rates = tree_rates(ensemble, rate, needed=needed)
    node_count = ensemble.node_count.astype(np.float64)
    if counted and node_count.min(initial=0) < 0:
        node_count = np.where(node_count < 0, _summed(ensemble, ensemble.leaf_count), node_count)
    return SourceStatistics(
        joined(ensemble, node_count, ensemble.leaf_count),
        joined(ensemble, _node_responses(ensemble, rates), ensemble.value),
        rates,
    )


def tree_rates(ensemble: Ensemble, rate: float | None = None, *, needed: bool = True) -> np.ndarray:
    """Return the learning rate of every tree: the ratio of its leaves' values to their responses.

    `rate` is used for trees where the rate cannot be derived. Without it, a tree whose responses
    are all 0 gets the median of the others, and a tree whose responses are unknown is an error, or
    gets NaN if no rates are `needed`.
    """
    rates = np.full(ensemble.n_trees, np.nan)
    values, means = ensemble.value.tolist(), ensemble.leaf_mean.tolist()
    unknown = np.zeros(ensemble.n_trees, bool)
    for t, (a, b) in enumerate(itertools.pairwise(ensemble.leaf_ptr.tolist())):
        value, mean = values[a:b], means[a:b]
        unknown[t] = any(m != m for m in mean)
        largest = max(mean, key=abs)
        if not unknown[t] and largest != 0.0:
            ratio = value[mean.index(largest)] / largest
            # the same factor in all leaves, except for rounding; else the least-squares factor
            far = max(abs(v - ratio * m) for v, m in zip(value, mean, strict=True))
            if far > 1e-9 * abs(ratio * largest):
                along = sum(v * m for v, m in zip(value, mean, strict=True))
                ratio = along / sum(m * m for m in mean)
            rates[t] = ratio
    shown = ~np.isnan(rates)
    if rate is not None:
        if shown.any() and not unknown.any():
            raise ParameterError(
                f"base_rate={rate:g} is for trees of unknown learning rate. That of the base "
                f"model's trees is known ({np.median(rates[shown]):.4g}): leave base_rate out."
            )
        return np.where(shown, rates, rate)
    if needed and unknown.any():
        raise DataError(
            "The learning rate of the base model's trees is not known, because the mean responses "
            f"of their leaves are unknown: give base_rate=, or {_REMEDY}."
        )
    others = np.median(rates[shown]) if shown.any() else 1.0
    return np.where(shown | unknown, rates, others)


def _node_responses(ensemble: Ensemble, rates: np.ndarray) -> np.ndarray:
    """Return the responses of inner nodes times the trees' rates."""
    known = np.repeat(rates, np.diff(ensemble.node_ptr)) * ensemble.node_mean
    if not np.isnan(known).any():
        return known
    # A node's response is the mean of its leaves', weighted by their hessians (or rows).
    weight = ensemble.leaf_weight
    if np.isnan(weight).any():
        weight = np.abs(ensemble.leaf_count).astype(np.float64)  # unknown counts are -1: all equal
    total, whole = _summed(ensemble, weight * ensemble.value), _summed(ensemble, weight)
    mean = np.divide(total, whole, out=np.zeros(total.size), where=whole > 0)
    return np.where(np.isnan(known), mean, known)


def _summed(ensemble: Ensemble, of_leaves: np.ndarray) -> np.ndarray:
    """Return for every node the sum over the leaves below it."""
    sums = np.zeros(ensemble.feature.size)
    for t in range(ensemble.n_trees):
        a, leaf = int(ensemble.node_ptr[t]), int(ensemble.leaf_ptr[t])
        for node in range(int(ensemble.node_ptr[t + 1]) - 1, a - 1, -1):  # children come later
            for child in (int(ensemble.left[node]), int(ensemble.right[node])):
                sums[node] += sums[a + child] if child >= 0 else of_leaves[leaf + ~child]
    return sums


def statistics_of(
    ensemble: Ensemble,
    target: TargetRows,
    objective: Objective,
    l2: float = 0.0,
    n_threads: int | None = None,
) -> Ensemble:
    """Return the ensemble with the counts, weights and mean responses of the given rows.

    The rows pass through tree after tree; responses are computed at the scores of earlier trees.
    """
    no_responses = np.zeros(ensemble.feature.size)
    known = SourceStatistics(
        np.zeros(ensemble.feature.size + ensemble.n_leaves),
        joined(ensemble, no_responses, ensemble.value),
        np.ones(ensemble.n_trees),
    )
    walker = Walker(ensemble, known, target, Rules(level="observe", l2=l2), n_threads)
    scores = np.full(target.n_rows, ensemble.base)
    for t in range(ensemble.n_trees):
        walker.step(t, objective, scores)
    statistics = {
        "count": parted(ensemble, walker.reached),
        "weight": parted(ensemble, walker.weight),
        "mean": parted(ensemble, walker.response),
    }
    new: dict[str, Any] = {}
    for name, (of_nodes, of_leaves) in statistics.items():
        new |= {f"node_{name}": of_nodes, f"leaf_{name}": of_leaves}
    return replace(ensemble, **new)
