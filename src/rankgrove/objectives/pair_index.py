"""Combined regression and ranking: documents and pairs, drawn by index (Sculley 2010)."""

from __future__ import annotations

import numpy as np

LOSSES = ("squared", "logistic")  # in the order of the kernels' codes


class PairIndex:
    """An index of all pairs of unequal labels of every query, without a list of pairs.

    Parameters
    ----------
    labels, query_ptr : the rows, in query order
    pairs : ``"all"``: all pairs of the data are equally likely; ``"query"``: all queries are
    query_weight : factor of the queries' probabilities
    """

    def __init__(
        self,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        pairs: str = "all",
        query_weight: np.ndarray | None = None,
    ) -> None:
        from rankgrove.objectives._crr_kernels import Index

        sizes = np.diff(query_ptr)
        query = np.repeat(np.arange(sizes.size), sizes)
        order = np.lexsort((labels, query))
        new = np.ones(labels.size, np.bool_)
        new[1:] = (labels[order][1:] != labels[order][:-1]) | (query[1:] != query[:-1])
        starts = np.flatnonzero(new)
        group_sizes = np.diff(np.append(starts, labels.size))
        first = np.repeat(starts, group_sizes)
        last = first + np.repeat(group_sizes, group_sizes)
        others = sizes[query] - (last - first)
        before = np.concatenate([[0], np.cumsum(others)])
        n_pairs = np.diff(before[query_ptr])
        weight = np.ones(sizes.size) if query_weight is None else query_weight
        counted = n_pairs if pairs == "all" else n_pairs > 0
        self.has_pairs = bool((weight * counted).any())
        self.for_kernels = Index(
            query_ptr=query_ptr,
            documents_before=_cumulative(weight * sizes),
            pairs_before=_cumulative(weight * counted),
            by_label=order,
            group_ptr=np.stack([first, last], axis=1),
            others_before=before,
        )

    def draw(self, a: float, b: float) -> tuple[int, int]:
        """Return the rows of the pair that two numbers in [0, 1) select."""
        from rankgrove.objectives._crr_kernels import drawn_pair

        i, j = drawn_pair(self.for_kernels, a, b)
        return int(i), int(j)


def _cumulative(weight: np.ndarray) -> np.ndarray:
    return np.concatenate([[0.0], np.cumsum(weight, dtype=np.float64)])
