"""The distribution of a model's scores, per label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankgrove.errors import DataError

N_BINS = 40
MOST_LABELS = 6  # more distinct labels are merged into groups of about equal size
OUTSIDE = 0.005  # share of a label's scores beyond the bins on either side, counted in the last bin


@dataclass(frozen=True, eq=False)
class ScoreDistribution:
    """Histograms of a model's scores.

    Attributes
    ----------
    model : the model's name
    labels : the labels, or ranges of labels, as text, lowest first
    counts : number of documents per label
    edges : edges of the bins
    shares : of shape (labels, bins): the share of a label's documents in every bin
    """

    model: str
    labels: tuple[str, ...]
    counts: np.ndarray
    edges: np.ndarray
    shares: np.ndarray


def score_distribution(name: str, scores: np.ndarray, y: np.ndarray) -> ScoreDistribution:
    """Return the histograms of scores per label; documents that were not retrieved are left out."""
    retrieved = np.isfinite(scores)
    if not retrieved.any():
        raise DataError(f"The scores of {name!r} are all infinite: there is nothing to show.")
    scores, y = scores[retrieved], y[retrieved]
    texts, group = label_groups(y)
    reach = [np.quantile(scores[group == g], [OUTSIDE, 1.0 - OUTSIDE]) for g in range(len(texts))]
    low, high = min(ends[0] for ends in reach), max(ends[1] for ends in reach)
    if not high > low:
        low, high = scores.min(), scores.max()
    if not high > low:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, N_BINS + 1)
    counts = np.bincount(group, minlength=len(texts))
    shares = np.stack(
        [np.histogram(np.clip(scores[group == g], low, high), edges)[0] for g in range(len(texts))]
    )
    return ScoreDistribution(
        name, texts, counts, edges, shares / np.maximum(counts, 1)[:, np.newaxis]
    )


def label_groups(y: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the labels or label ranges as text, and the index of every row's label among them."""
    values, group = np.unique(y, return_inverse=True)
    if values.size <= MOST_LABELS:
        return tuple(f"{v:g}" for v in values), group
    cuts = np.unique(np.quantile(y, np.arange(1, MOST_LABELS) / MOST_LABELS))
    group = np.searchsorted(cuts, y, side="left")
    used, group = np.unique(group, return_inverse=True)
    texts = []
    for g in range(used.size):
        labels = y[group == g]
        texts.append(f"{labels.min():.3g}–{labels.max():.3g}")
    return tuple(texts), group
