"""Lambda gradients of any measure, for LambdaRank and LambdaMART."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.errors import DataError
from rankgrove.measures.base import FULL_DEPTH, Measure
from rankgrove.objectives.over_queries import over_queries
from rankgrove.parallel import piece_bounds, thread_count, threads
from rankgrove.random import derive_seed

if TYPE_CHECKING:
    from rankgrove.objectives._lambda_kernels import Lambdas

# By default, pairs count whose better-ranked document is at most this many ranks below the
# measure's cutoff. The value for trees is from benchmarks/defaults.py, which did not include nets.
TREES_BEYOND_CUTOFF = 50
NETS_BEYOND_CUTOFF = 5
# From this number of rows on, a parallel region is worth the time to compile it.
REGION_ROWS = 1 << 16


def default_truncation(measure: Measure, beyond: int) -> int | None:
    """Return the default truncation: the cutoff and `beyond` more ranks, or None."""
    if measure.name == "pairs" or measure.cutoff is None:
        return None
    return measure.cutoff + beyond


def check_pairs(there: bool, measure: Measure) -> None:
    """Refuse data without pairs of documents of different relevance."""
    if not there:
        raise DataError(
            "No query has documents of different relevance: there is nothing to learn an "
            f"order from for {measure}. Check the labels (and 'relevant', for binary measures)."
        )


class LambdaObjective:
    """The lambdas of a measure on the labels of one data set.

    Parameters
    ----------
    measure : measure to maximise; ``pairs``: every pair of unequal labels has weight 1 (RankNet)
    labels : one per row, in query order
    query_ptr : the borders of queries
    truncation : pairs count whose better-ranked document is among this many top ranks; None: all
    beyond_cutoff : whether rank weights continue below the measure's cutoff (NDCG, DCG, MAP,
        MRR, ERR; normalised as the measure is), so that two documents that are both below it are
        ordered too; False: |dZ| is exactly the change of the measure (equation 6 of the overview
        paper), which is 0 for such a pair. It has no effect for measures without a cutoff
    sigma : the slope of the sigmoid
    normalise : a pair's |dZ| is divided by 0.01 + sigma |s_i - s_j|, unless all scores of the query
        are equal, so that pairs far apart do not dominate; and a query's lambdas and weights are
        scaled by log2(1 + S) / S, so that no query dominates. S is the sum of |dZ| rho over both
        documents of all pairs, row weights included, before the factors sigma and query weight. It
        is not in the papers; it learns faster
    row_weight, query_weight : a pair's weight is the product of its documents' weights and its
        query's weight
    row_keys : one number per row; rows of equal scores are ordered by these, and noise is drawn
        from them
    smoothing : above 0, lambdas are stochastic: in every round, `smoothing` (over sigma) times a
        Gumbel variable is added to every score, and lambdas are computed from the noisy scores. So
        a document counts at all ranks that it might have. 0: as in the papers
    draws : number of draws of the noise per query and round, whose lambdas are averaged
    seed : seed of the noise, which also depends on the round and on the row's key
    may_be_empty : allow labels without any pair to order; all lambdas are then 0
    """

    n_columns = 1

    def __init__(
        self,
        measure: Measure,
        labels: np.ndarray,
        query_ptr: np.ndarray,
        *,
        row_keys: np.ndarray,
        truncation: int | None = None,
        beyond_cutoff: bool = True,
        sigma: float = 1.0,
        normalise: bool = False,
        row_weight: np.ndarray | None = None,
        query_weight: np.ndarray | None = None,
        n_threads: int | None = None,
        may_be_empty: bool = False,
        smoothing: float = 0.0,
        draws: int = 1,
        seed: int = 0,
    ) -> None:
        from rankgrove.objectives._lambda_kernels import N_QUANTILES, ONES, Noise

        self.measure = measure
        self.sigma = float(sigma)
        self.normalise = bool(normalise)
        self.truncation = FULL_DEPTH if truncation is None else int(truncation)
        prepared = measure.prepare(labels, query_ptr, n_threads, beyond_cutoff=beyond_cutoff)
        self.query_ptr = prepared.query_ptr
        self.rule = ONES if measure.name == "pairs" else measure.swap_rule
        self.gain = prepared.gain
        self.rank_weight = prepared.weight
        starts = self.query_ptr[:-1]
        unequal = np.maximum.reduceat(self.gain, starts) > np.minimum.reduceat(self.gain, starts)
        self.has_pairs = unequal
        if not may_be_empty:
            check_pairs(bool(unequal.any()), measure)
        self.row_weight = np.empty(0) if row_weight is None else row_weight
        self.query_weight = np.empty(0) if query_weight is None else query_weight
        self.shuffle = _shuffled_rows(row_keys, self.query_ptr)
        self.seed = int(seed)
        self.varies_by_round = smoothing > 0.0
        places = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
        gumbel = -np.log(-np.log(places))
        keys = np.ascontiguousarray(row_keys, np.uint64)
        self.noise = Noise(float(smoothing) / self.sigma, int(draws), keys, gumbel)

    def gradients(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None = None,
        n_threads: int | None = None,
        round: int = 0,
    ) -> None:
        """Fill `gradient` and `hessian` for the rows of all queries, or of the given ones.

        The gradient points up: adding a small multiple of it to the scores raises the measure.
        """
        if self._is_linear and self._in_regions(
            scores, gradient, hessian, queries, n_threads, round
        ):
            return
        kernel = self._kernel()
        objective = self.for_kernels()
        seed = self.seed_of(round)

        def work(piece: np.ndarray) -> None:
            kernel(objective, seed, piece, scores, gradient, hessian)

        over_queries(work, self.query_ptr, queries, n_threads)

    def seed_of(self, round: int) -> np.uint64:
        """Return the seed of the noise of a round."""
        return np.uint64(derive_seed(self.seed, "smoothing", round) if self.varies_by_round else 0)

    def for_kernels(self) -> Lambdas:
        """Return the objective as kernels take it."""
        from rankgrove.objectives._lambda_kernels import Lambdas

        return Lambdas(
            self.rule,
            self.sigma,
            self.truncation,
            self.normalise,
            self.query_ptr,
            self.shuffle,
            self.has_pairs,
            self.gain,
            self.rank_weight,
            self.row_weight,
            self.query_weight,
            self.noise,
        )

    def _in_regions(
        self,
        scores: np.ndarray,
        gradient: np.ndarray,
        hessian: np.ndarray,
        queries: np.ndarray | None,
        n_threads: int | None,
        round: int,
    ) -> bool:
        """Fill the derivatives in a parallel region; False: there is too little work."""
        n_queries = self.query_ptr.size - 1
        if thread_count(n_threads) == 1 or self.query_ptr[-1] < REGION_ROWS:
            return False
        from rankgrove.objectives._lambda_kernels import lambda_pieces_linear

        chosen = np.arange(n_queries) if queries is None else queries
        sizes = self.query_ptr[chosen + 1] - self.query_ptr[chosen]
        cuts = piece_bounds(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), n_threads)
        *fields, noise = self.for_kernels()
        with threads(n_threads) as n:
            lambda_pieces_linear(
                tuple(fields), noise, self.seed_of(round), chosen, cuts, np.zeros(1, np.int64),
                scores, gradient, hessian, n,
            )  # fmt: skip
        return True

    @property
    def _is_linear(self) -> bool:
        from rankgrove.objectives._lambda_kernels import LINEAR

        return self.rule in LINEAR and not self.measure.own_swaps

    def _kernel(self) -> Callable[..., None]:
        from rankgrove.objectives import _lambda_kernels as kernels

        if self.measure.own_swaps:
            own: Callable[..., None] = kernels.lambda_queries_for(self.measure.kernels.swap_row)
            return own
        return kernels.lambda_queries_linear if self._is_linear else kernels.lambda_queries


def _shuffled_rows(row_keys: np.ndarray, query_ptr: np.ndarray) -> np.ndarray:
    """Return all rows, query by query, each query's rows in the order of their keys."""
    starts, sizes = query_ptr[:-1], np.diff(query_ptr)
    rows = np.empty(row_keys.size, np.int64)
    for n in np.unique(sizes):  # queries of the same size are sorted together
        first = starts[sizes == n, None]
        places = first + np.arange(n)
        rows[places] = first + np.argsort(row_keys[places], axis=1, kind="stable")
    return rows
