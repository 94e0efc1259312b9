"""Data-parallel training: the boosting loop's rows are on the workers of a cluster.

The driver holds the trees and the histograms of leaves. Workers compute gradients, divide their own
rows and count their own histograms. Histograms are whole numbers that are summed here, so neither
the sum nor the model depends on the distribution of the rows. A tree takes one trip each for the
largest gradient, the total of gradients, the root, every split but the last (of a symmetric tree:
but those of the last level), and the leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankgrove.boosting.sampling import share
from rankgrove.boosting.step import Grown
from rankgrove.cluster.part import Command, PartTraining, used_bins
from rankgrove.cluster.parts import Parts
from rankgrove.growth import _grower_kernels as kernels
from rankgrove.growth._histogram_kernels import STRIDE, take_features
from rankgrove.growth._kernel_tools import run_parts
from rankgrove.growth.frontier import Leaf, Search
from rankgrove.growth.grower import frontier_of, grow_tree
from rankgrove.growth.histogram import N_BINS
from rankgrove.growth.local_row_source import FEATURE_NS
from rankgrove.growth.regions import worth_a_region
from rankgrove.growth.shared_bytes import own_bytes
from rankgrove.growth.splitting import Split, SplitRules
from rankgrove.model.tree import Tree
from rankgrove.objectives.position_bias import PositionBias
from rankgrove.parallel import threads

LOT_BITS = 16  # lots are first counted by this many of their bits
_NO_ROWS = np.empty(0, np.int32)
_NO_LEAF = np.empty(0, np.uint8)
_NO_SCORES = np.empty(0)


class ClusterRows:
    """Training rows for the boosting loop, on workers; also the source of rows of its trees.

    Parameters
    ----------
    parts : the data, read and binned
    training : the settings of the parts
    n_queries, n_rows : of all parts together
    query_fraction, row_fraction : shares of the queries and rows that a round uses
    n_leaves, rules : of trees
    varies_by_round : whether the parts' objectives differ between rounds at the same scores
    bias : what is learned about positions; its state is here and sent to the parts every round
    """

    n_columns = 1

    def __init__(
        self,
        parts: Parts,
        training: PartTraining,
        *,
        n_queries: int,
        n_rows: int,
        query_fraction: float,
        row_fraction: float,
        n_leaves: int,
        rules: SplitRules,
        varies_by_round: bool,
        bias: PositionBias | None = None,
        n_threads: int | None = None,
    ) -> None:
        self._parts = parts
        self._training = training
        self._n_queries = n_queries
        self._n_rows = n_rows
        self._query_share = share(query_fraction, n_queries)
        self._row_fraction = row_fraction
        self._n_threads = n_threads
        draws_all = self._query_share == n_queries and row_fraction == 1.0
        draws = not draws_all or rules.feature_fraction < 1.0
        self.grows_alike = not (draws or varies_by_round)
        layout, seed = training.layout, training.seed
        self._frontier = frontier_of(
            self, training.binner, layout, n_leaves, rules, seed, n_threads=n_threads
        )
        feature, bin = np.divmod(used_bins(training.binner), N_BINS)
        self._used = feature * STRIDE + bin
        n_features = training.binner.columns.size
        self._places = own_bytes(n_features)
        self._sum = np.zeros((1, layout.planes, -(-n_features // 8), 8 * STRIDE), np.int64)
        self._flat = self._sum.reshape(layout.planes, -1)
        self._later: list[Command] = []  # commands to send with the next trip
        self._newest: list[Command] = []  # adds the newest tree; a part adds it only once
        self._n_trees = 0
        self._round = 0
        self._bias = bias if bias is not None and bias.moves else None
        self.n_chosen = n_rows

    # -- for the boosting loop --------------------------------------------------------------------

    def gradients(self, round: int) -> None:
        """Record the round; its sample is drawn when its tree is grown."""
        self._round = round

    def grow(self, column: int, number: int) -> Grown:
        """Grow a tree; if workers are lost, grow it again."""
        tree, sums = self._parts.surely(lambda: self._grow(number))
        if self._bias is not None:
            self._bias.advance(sums)
        return Grown(tree, _NO_LEAF, _NO_SCORES)

    def add(self, column: int, grown: Grown) -> None:
        """Add a tree to the scores, with the next trip."""
        self._newest = [("add", self._n_trees, grown.tree)]
        self._n_trees += 1
        self._parts.remember(*self._newest)

    def replay(self, trees: Sequence[Tree]) -> None:
        """Add the trees of a resumed run."""
        self._n_trees = len(trees)
        self._parts.tell(*(("add", number, tree) for number, tree in enumerate(trees)))

    def _grow(self, number: int) -> tuple[Tree, np.ndarray | None]:
        """Grow the tree of the round, from the drawing of its sample on.

        Return it and the sums that change the position bias.
        """
        self._draw()
        sums = None if self._bias is None else np.sum(self._ask("bias_sums"), axis=0)
        tree = grow_tree(self._frontier, self._training.binner, (self._training.seed, number))
        return tree, sums

    def _draw(self) -> None:
        """Draw the sample of the round; gradients are computed with the next trip."""
        self._later = [*self._newest, ("begin",)]
        self.n_chosen = self._n_rows
        if self._query_share < self._n_queries:
            self._keep("queries", self._query_share)
        if self._row_fraction < 1.0:
            self._keep("rows", share(self._row_fraction, self.n_chosen))
        state = None if self._bias is None else self._bias.state
        self._later.append(("gradients", self._round, state))

    def _keep(self, unit: str, n: int) -> None:
        """Keep the n queries or rows with the lowest lots.

        The n-th lowest of all is found among those that begin with the same bits.
        """
        counts = np.sum(self._ask("count_lots", unit, self._round, LOT_BITS), axis=0)
        ends = np.cumsum(counts)
        high = int(np.searchsorted(ends, n))
        lots = np.concatenate(self._ask("some_lots", high, LOT_BITS))
        rest = n - int(ends[high] - counts[high])
        bar = int(np.partition(lots, rest - 1)[rest - 1])
        self.n_chosen = sum(self._ask("keep", unit, bar))

    def _ask(self, *command: Any) -> list[Any]:
        """Send the commands that were put off, and one that all parts answer."""
        answers = self._parts.ask(*self._later, command)
        self._later = []
        return answers

    # -- the source of rows ------------------------------------------------------------------------

    def largest(self) -> list[float]:
        """Return the largest magnitudes."""
        return [float(np.max(of_parts)) for of_parts in zip(*self._ask("largest"), strict=True)]

    def magnitudes(self, exponents: list[int]) -> list[int]:
        """Return the sums of magnitudes, in units of ``2**-exponent``."""
        return [sum(of_parts) for of_parts in zip(*self._ask("magnitudes", exponents), strict=True)]

    def quantise(self, exponents: list[int], draw: tuple[int, int]) -> None:
        """Start a tree: round all numbers times ``2**exponent``; `draw` is (seed, round)."""
        self._later.append(("quantise", exponents, draw))

    def squares(self) -> int:
        """Return the sum of the squares of the rounded gradients."""
        return sum(self._ask("squares"))

    def count(self, leaf: Leaf, out: np.ndarray) -> None:
        """Fill the histogram of a leaf."""
        self._add_up(self._ask("count", leaf.number))
        take_features(self._sum, 1, *self._places, out)

    def split(
        self, parent: Leaf, split: Split, small_is_left: bool, wanted: bool, search: Search
    ) -> None:
        """Divide the rows of a leaf; if wanted, count the smaller child and search."""
        command = ("split", parent.number, split, small_is_left, wanted)
        if not wanted:
            self._later.append(command)
            return
        self._add_up(self._ask(*command))
        work = FEATURE_NS * float(search.scan.sum() * self._training.binner.columns.size)
        with threads(self._n_threads) as most:
            run_parts(
                kernels.place_and_search_part, kernels.place_and_search,
                most if worth_a_region(work, most) else 1,
                kernels.Order(_NO_ROWS, _NO_ROWS, _NO_ROWS, np.zeros(1, np.int64)), 0, 0, 1,
                self._places, 1, self._sum, *search,
            )  # fmt: skip

    def leaf_sums(self, leaves: Sequence[Leaf], largest: list[float]) -> list[np.ndarray]:
        """Return the sums of every leaf: see :func:`~rankgrove.growth.leaves.leaf_sums`."""
        answers = self._ask("leaf_sums", self.n_chosen, largest)
        return [np.sum(of_parts, axis=0) for of_parts in zip(*answers, strict=True)]

    def _add_up(self, answers: list[np.ndarray]) -> None:
        """Sum the workers' histograms over the bins in use; the other bins are 0."""
        total = answers[0]
        for other in answers[1:]:
            total = total + other
        self._flat[:, self._used] = total
