"""The part of the training data that one worker holds; an actor that runs commands.

A part gets lists of commands, (name, arguments...), and returns the result of the last one. So a
command without a result needs no separate round trip.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rankgrove.boosting.loop import Objective
from rankgrove.boosting.sampling import Sample
from rankgrove.cluster.client import own_threads
from rankgrove.data.binning import Binner
from rankgrove.data.categories import Categories
from rankgrove.data.category_bins import Target
from rankgrove.data.category_means import CategorySums
from rankgrove.data.concatenate import CountedCategories, concatenate, counted_categories
from rankgrove.data.counting import ColumnCounts, count_columns, sum_column
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.growth._splitting_kernels import OUT_FIELDS, SearchRules
from rankgrove.growth.constraints import NO_BOUNDS, NO_SIGNS
from rankgrove.growth.frontier import Search
from rankgrove.growth.histogram import N_BINS
from rankgrove.growth.leaves import add_leaf_values
from rankgrove.growth.local_row_source import LocalRowSource
from rankgrove.growth.partition import leaves_of
from rankgrove.growth.quantise import Layout
from rankgrove.growth.splitting import Split
from rankgrove.model.tree import Tree
from rankgrove.objectives.clicks import no_sums
from rankgrove.objectives.position_bias import Cells, PositionBias
from rankgrove.parallel import threads

Command = tuple[Any, ...]
ReadFile = Callable[[Path, int], QueryDataset]


@dataclass(frozen=True)
class FileFacts:
    """The facts about a file of training data that the driver needs."""

    n_rows: int
    n_features: int
    feature_names: tuple[str, ...] | None
    lowest_label: float
    highest_label: float
    query_keys: np.ndarray
    absent: str
    contexts: tuple[str, ...] | None
    highest_position: int
    categories: CountedCategories


@dataclass(frozen=True)
class PartTraining:
    """The settings of a part: bins, packing of gradients, function that makes its objective."""

    binner: Binner
    layout: Layout
    make_objective: Callable[[QueryDataset, np.ndarray], Objective]
    seed: int
    wants_digest: bool = False


class PartFacts(NamedTuple):
    """The facts about a part that is ready for training.

    Attributes
    ----------
    has_pairs : whether there are pairs to learn from
    digest : a hash of the data, if it is wanted
    has_missing : whether values are missing
    varies_by_round : as of the part's objective
    """

    has_pairs: bool
    digest: str
    has_missing: bool
    varies_by_round: bool


def used_bins(binner: Binner) -> np.ndarray:
    """Return the places of the bins in a histogram that rows can be in: only they are sent."""
    places = [
        np.append(np.arange(thresholds.size + 1), N_BINS - 1) + N_BINS * feature
        for feature, thresholds in enumerate(binner.thresholds)
    ]
    return np.unique(np.concatenate(places))


class Part:
    """Rows on a worker, which are read from files, binned and trained on.

    Parameters
    ----------
    files : the files, which `read` reads one after the other
    n_threads : maximum number of threads, limited by the worker's own number
    """

    def __init__(self, files: Sequence[Path], read: ReadFile, n_threads: int | None) -> None:
        self._n_threads = own_threads(n_threads)
        self._files = list(files)
        self._data: list[QueryDataset] = []
        for file in files:
            self._data.append(read(file, self._n_threads))
        self._lots = np.empty(0, np.uint64)
        self._n_added = 0
        self._labelled = False
        self._ranges: list[tuple[int, int]] = []
        self._sums = np.empty(0, np.int64)

    def run(self, commands: Sequence[Command]) -> Any:
        """Run all commands in order; return the result of the last one."""
        answer = None
        with threads(self._n_threads):
            for name, *arguments in commands:
                answer = getattr(self, f"_{name}")(*arguments)
        return answer

    # -- before training ------------------------------------------------------------------------

    def _facts(self) -> list[FileFacts]:
        return [
            FileFacts(
                data.n_rows,
                data.n_features,
                data.given_names,
                float(data.y.min()),
                float(data.y.max()),
                data.query_keys,
                data.absent,
                None if data.positions is None else data.positions.names,
                0 if data.positions is None else data.positions.highest,
                counted_categories(data),
            )
            for data in self._data
        ]

    def _query_ids(self, file: int) -> list[str]:
        return [str(token) for token in self._data[file].query_ids.tolist()]

    def _join(self, n_features: int, categories: Categories) -> None:
        """Join all files into one data set; features that a file does not mention are absent."""
        files = (data.with_n_features(n_features) for data in self._data)
        self._data = [concatenate([data.recoded(categories) for data in files])]

    def _count_columns(self, first: int, last: int) -> list[ColumnCounts]:
        (data,) = self._data
        rows = query_order_rows(data)
        return count_columns(data.features, first, last, rows, self._n_threads)

    def _category_sums(self, column: int, codes: np.ndarray, unit: float) -> CategorySums:
        """Return the sums of the labels of categories, in the unit of all parts together."""
        (data,) = self._data
        rows = query_order_rows(data)
        return sum_column(data.features, rows, Target.of(data, unit), column, codes)

    def _count_cells(
        self, n_positions: int, contexts: tuple[str, ...], clicked: Callable[..., np.ndarray]
    ) -> np.ndarray:
        """Return the numbers of impressions and clicks, by cell of positions."""
        (data,) = self._data
        assert data.positions is not None
        here = Cells.of(data.positions, clicked(data), n_positions, contexts)
        return np.array([here.shown, here.clicked])

    def _train(self, training: PartTraining) -> PartFacts:
        """Prepare for the first tree."""
        (data,) = self._data
        keys = data.row_keys
        binned = training.binner.transform_training(data, self._n_threads)
        self._objective = training.make_objective(data, keys)
        self._sample = Sample(data.query_keys, keys, data.query_ptr, training.seed)
        self._rows = LocalRowSource(binned, training.layout, keys, self._n_threads)
        self._scores = np.zeros(data.n_rows)
        self._gradient, self._hessian = np.zeros(data.n_rows), np.zeros(data.n_rows)
        self._used = used_bins(training.binner)
        self._hist = np.empty(self._rows.histogram_shape, np.int64)
        self._nothing = _no_search(self._hist)
        cell: np.ndarray | None = getattr(self._objective, "cell", None)
        digest = _digest(data, binned.codes, cell) if training.wants_digest else "0"
        self._data = []  # the features are no longer needed
        has_pairs: np.ndarray = getattr(self._objective, "has_pairs", np.ones(1, np.bool_))
        return PartFacts(
            bool(has_pairs.any()),
            digest,
            bool(binned.has_missing),
            bool(self._objective.varies_by_round),
        )

    # -- a round ----------------------------------------------------------------------------------

    def _begin(self) -> None:
        self._sample.begin()

    def _count_lots(self, unit: str, round: int, bits: int) -> np.ndarray:
        """Draw lots of "queries" or "rows"; count them by the value of their first bits."""
        sample = self._sample
        self._lots = sample.query_lots(round) if unit == "queries" else sample.row_lots(round)
        high = (self._lots >> np.uint64(64 - bits)).astype(np.int64)
        return np.bincount(high, minlength=1 << bits)

    def _some_lots(self, high: int, bits: int) -> np.ndarray:
        """Return the lots that begin with certain bits."""
        return self._lots[self._lots >> np.uint64(64 - bits) == np.uint64(high)]

    def _keep(self, unit: str, bar: int) -> int:
        """Keep the queries or rows with a lot of at most `bar`; return the number of rows."""
        if unit == "queries":
            self._sample.keep_queries(self._lots, bar)
        else:
            self._sample.keep_rows(self._lots, bar)
        return self._sample.n_rows

    def _gradients(self, round: int, state: np.ndarray | None = None) -> None:
        """Compute the gradients of the drawn rows; `state` is that of the position bias."""
        queries, rows = self._sample.queries, self._sample.rows
        bias: PositionBias | None = getattr(self._objective, "bias", None)
        if bias is not None:
            self._sums = no_sums(bias)
            if state is not None:
                bias.resume(state[None])
        if queries is None or queries.size:
            arrays = (self._scores, self._gradient, self._hessian)
            self._objective.gradients(*arrays, queries, self._n_threads, round)
            self._sums = getattr(self._objective, "sums", self._sums)
        self._rows.take(self._gradient, self._hessian, rows)

    def _bias_sums(self) -> np.ndarray:
        """Return the exact sums that change the position bias."""
        return self._sums

    def _largest(self) -> list[float]:
        return self._rows.largest()

    def _magnitudes(self, exponents: list[int]) -> list[int]:
        return self._rows.magnitudes(exponents)

    def _quantise(self, exponents: list[int], draw: tuple[int, int]) -> None:
        self._labelled = False
        self._rows.quantise(exponents, draw)
        self._ranges = [(0, self._rows.n_chosen)]

    def _squares(self) -> int:
        return self._rows.squares()

    def _count(self, leaf: int) -> np.ndarray:
        self._rows.count_range(*self._ranges[leaf], self._hist)
        return self._packed()

    def _split(
        self, leaf: int, split: Split, small_is_left: bool, wanted: bool
    ) -> np.ndarray | None:
        """Divide a leaf; if wanted, return the histogram of its smaller child (over all parts)."""
        start, end = self._ranges[leaf]
        search = self._nothing
        n_left = self._rows.split_range(start, end, split, small_is_left, wanted, search)
        self._ranges[leaf] = (start, start + n_left)
        self._ranges.append((start + n_left, end))
        return self._packed() if wanted else None

    def _leaf_sums(self, n_rows: int, largest: list[float]) -> list[np.ndarray]:
        self._labelled = True
        return self._rows.range_sums(self._ranges, n_rows, largest)

    def _add(self, number: int, tree: Tree) -> None:
        """Add a tree to the scores, unless this part added it before another part was lost."""
        if number < self._n_added:
            return
        if self._labelled:  # it was grown here just now
            self._rows.route_others(tree)
            leaf_of = self._rows.leaf_of
        else:
            leaf_of = leaves_of(tree, self._rows.binned, n_threads=self._n_threads)
        add_leaf_values(self._scores, tree.value, leaf_of, n_threads=self._n_threads)
        self._n_added += 1
        self._labelled = False

    def _packed(self) -> np.ndarray:
        """Return the histogram without the bins that no row can be in."""
        return np.take(self._hist.reshape(len(self._hist), -1), self._used, axis=1)


def _digest(data: QueryDataset, codes: np.ndarray, cell: np.ndarray | None) -> str:
    """Return the sum of the hashes of all queries; it does not depend on the parts."""
    labels = data.grouped(data.y)
    weight = np.ones(data.n_rows) if data.weight is None else data.grouped(data.weight)
    arrays = [labels, weight, codes, *([] if cell is None else [cell])]
    borders = data.query_ptr.tolist()
    total = 0
    for key, start, end in zip(data.query_keys, borders, borders[1:], strict=False):
        digest = hashlib.blake2b(key.tobytes(), digest_size=16)
        for array in arrays:
            digest.update(np.ascontiguousarray(array[start:end]).view(np.uint8).data)
        total += int.from_bytes(digest.digest(), "little")
    return f"{total:x}"


def _no_search(hist: np.ndarray) -> Search:
    """Return an empty search: only the smaller child's histogram is needed here."""
    n_blocks = hist.shape[1]
    none = np.zeros(2, np.int64)
    features = np.empty(0, np.int64), np.empty(0, np.int32), np.empty((2, 0), np.bool_)
    no_sets = None, np.empty(0)
    rules = SearchRules(*features, none, none, 1.0, 0.0, 1, 32, 0, *no_sets, NO_SIGNS, NO_BOUNDS)
    gain = np.empty((2, n_blocks))
    out = np.empty((2, n_blocks, OUT_FIELDS), np.int64)
    return Search(hist, hist, np.zeros(2, np.bool_), rules, gain, out)
