"""Documents without a judgement: condensed lists, and the best and worst that they may be.

The worst case gives the unjudged documents that a run retrieved the grades, from 0 to the highest
one of the judgements, by which the measure is lowest; the best case those by which it is highest.
Both are exact. How many grades have to be tried depends on the measure::

    dcg err pfound p mrr success rbp   higher grades are never worse: all lowest, all highest
    map gmap recall f1 rprec auc ...   m relevant ones are best at the top, worst at the bottom:
                                       every m is tried
    ndcg                               the ideal rises, too: DCG - x ideal, maximised over grades by
                                       dynamic programming, until x is the ratio (Dinkelbach)
"""

from __future__ import annotations

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.measures.base import Measure, Ranking, rank
from rankgrove.measures.binary import MRR, RBP, Binary, Precision, Success
from rankgrove.measures.err import ERR, PFound
from rankgrove.measures.gains import discounts, gains_of
from rankgrove.measures.judged import Bpref, InfAP, Judged
from rankgrove.measures.ndcg import DCG, NDCG

UNJUDGED = ("irrelevant", "condensed", "bounds")
MOST_ROWS = 1 << 21  # of the lists that are evaluated at once


def condensed(
    data: QueryDataset, scores: np.ndarray, judged: np.ndarray
) -> tuple[QueryDataset, np.ndarray]:
    """Return the judged documents of a data set made by `pool`, and their scores."""
    docid = None if data.docid is None else np.asarray(data.docid)[judged]
    return QueryDataset(None, data.y[judged], qid=data.qid[judged], docid=docid), scores[judged]


def check_unjudged(named: dict[str, Measure], unjudged: str) -> None:
    """Refuse measures to which the treatment of unjudged documents cannot be applied."""
    for name, measure in named.items():
        if unjudged == "condensed" and isinstance(measure, Judged):
            raise ParameterError(
                f"{name} is 1 on condensed lists, which have judged documents only: leave it out, "
                "or use unjudged='irrelevant'."
            )
        if unjudged == "bounds" and (why := _no_bounds(measure)):
            raise ParameterError(
                f"{name} has no bounds over unjudged documents: {why}. Leave it out, or use "
                "unjudged='irrelevant' or 'condensed'."
            )


def _no_bounds(measure: Measure) -> str:
    """Return why a measure has no exact bounds; "" if it has."""
    if isinstance(measure, Bpref | InfAP):
        return "it leaves such documents out, or estimates what they are, by itself"
    if isinstance(measure, Judged):
        return "it does not depend on grades"
    if not isinstance(measure, Binary | DCG | NDCG | ERR | PFound):
        return "no exact way to find them is known here"
    if measure.ties not in ("stable", "expected"):
        return f"with ties={measure.ties!r} the order of tied documents depends on their grades"
    return ""


def bounds(
    measure: Measure,
    data: QueryDataset,
    scores: np.ndarray,
    judged: np.ndarray,
    values: np.ndarray,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lowest and the highest value of every query, NaN where `values` are.

    data, scores : of `pool`
    judged : the judged rows, in the caller's order
    values : those with unjudged documents as irrelevant
    """
    labels, query_ptr = data.grouped(data.y), data.query_ptr
    top = max(1.0, float(labels.max()))
    measure = measure.on_scale_of(np.array([0.0, top]))
    grades = np.arange(0.0, top + 1.0)
    ranking = rank(data.grouped(scores), query_ptr, n_threads)
    free = ~data.grouped(judged)
    low, high = values.copy(), values.copy()
    for q in range(values.size):
        rows = slice(int(query_ptr[q]), int(query_ptr[q + 1]))
        if np.isnan(values[q]) or not free[rows].any():
            continue
        query = _Query(labels[rows], ranking, rows, free[rows])
        low[q], high[q] = _query_bounds(measure, query, grades, float(values[q]))
    return low, high


class _Query:
    """One query: its labels, its ranking, and the places of its unjudged documents, from the top.

    ``unjudged`` are rows of the query; unjudged documents were all retrieved.
    """

    def __init__(self, labels: np.ndarray, ranking: Ranking, rows: slice, free: np.ndarray) -> None:
        self.labels = labels
        self.order = ranking.order[rows] - rows.start
        self.tied = ranking.tied[rows].copy()
        self.tied[0] = False
        self.unjudged = self.order[free[self.order]]
        q = int(np.searchsorted(ranking.query_ptr, rows.start))
        self.n_retrieved = int(ranking.retrieved[q])

    def values(self, measure: Measure, lists: np.ndarray) -> np.ndarray:
        """Return the measure's values of the query with other labels, one row per list."""
        values = np.empty(len(lists))
        lacking = np.zeros(len(lists), np.bool_)
        if measure.needs_pairs:  # the collection has a document that is not relevant
            lacking = lists.min(axis=1) > 0.0
        for which, more in ((lacking, True), (~lacking, False)):
            chosen = np.flatnonzero(which)
            step = max(1, MOST_ROWS // self.order.size)
            for start in range(0, chosen.size, step):
                part = chosen[start : start + step]
                values[part] = self._same_size(measure, lists[part], more)
        return values

    def _same_size(self, measure: Measure, lists: np.ndarray, more: bool) -> np.ndarray:
        order, tied = self.order, self.tied
        if more:
            lists = np.column_stack([lists, np.zeros(len(lists))])
            order = np.append(order, order.size)
            unretrieved = order.size - 1 > self.n_retrieved
            tied = np.append(tied, unretrieved)
        n, size = lists.shape
        ptr = size * np.arange(n + 1, dtype=np.int64)
        many = Ranking(
            ptr,
            (ptr[:-1, None] + order[None, :]).ravel(),
            np.tile(tied, n),
            np.full(n, self.n_retrieved, np.int64),
        )
        prepared = measure.prepare(lists.ravel(), ptr, n_threads=1, pooled=True)
        return prepared.values(many, n_threads=1)


def _query_bounds(
    measure: Measure, query: _Query, grades: np.ndarray, value: float
) -> tuple[float, float]:
    if isinstance(measure, NDCG):
        found = _ndcg_bounds(measure, query, grades)
        too_short = measure.too_short(np.array([query.labels.size]))
        if too_short is not None and too_short[0]:
            return value, value
    else:
        found = query.values(measure, _lists(measure, query, grades)).tolist()
    found = [one for one in [*found, value] if not np.isnan(one)]
    return min(found), max(found)


def _lists(measure: Measure, query: _Query, grades: np.ndarray) -> np.ndarray:
    """Return the labels to try, one row per list."""
    n = query.unjudged.size
    if isinstance(measure, Binary):
        worst, best = grades[0], grades[-1]
        counts = np.arange(n + 1)
        if isinstance(measure, Precision | MRR | Success | RBP):
            counts = np.unique([0, 1, n])
    else:
        gain = gains_of(grades, measure.gain) if hasattr(measure, "gain") else grades
        worst, best = grades[int(np.argmin(gain))], grades[int(np.argmax(gain))]
        counts = np.unique([0, n])
    lists = np.repeat(query.labels[None, :], 2 * counts.size, axis=0)
    lists[:, query.unjudged] = worst
    for i, m in enumerate(counts.tolist()):
        lists[2 * i, query.unjudged[:m]] = best
        lists[2 * i + 1, query.unjudged[n - m :]] = best
    if not isinstance(measure, Binary):  # one document of the lowest gain that is not 0
        some = np.flatnonzero(gain > 0.0)
        if some.size:
            one = lists[0].copy()
            one[query.unjudged[-1]] = grades[some[np.argmin(gain[some])]]
            lists = np.vstack([lists, one])
    return lists


# -- NDCG -------------------------------------------------------------------------------------


def _ndcg_bounds(measure: NDCG, query: _Query, grades: np.ndarray) -> list[float]:
    """Return the highest and the lowest NDCG of lists with something relevant.

    With fixed numbers of documents per gain the ideal is fixed, so higher gains belong to higher
    ranks (best) or lower ones (worst).
    """
    n = query.labels.size
    table = np.zeros(n)
    cut = discounts(measure.discount, n, measure.cutoff)
    table[: cut.size] = cut
    worth = np.zeros(n)  # of every row: its discount, the mean of those of documents tied with it
    heads = np.flatnonzero(~query.tied[: query.n_retrieved])
    if measure.ties == "expected":
        sizes = np.diff(np.append(heads, query.n_retrieved))
        means = np.add.reduceat(table[: query.n_retrieved], heads) / sizes
        worth[query.order[: query.n_retrieved]] = np.repeat(means, sizes)
    else:
        worth[query.order[: query.n_retrieved]] = table[: query.n_retrieved]
    gain = gains_of(query.labels, measure.gain)
    fixed = np.ones(n, np.bool_)
    fixed[query.unjudged] = False
    levels = np.unique(gains_of(grades, measure.gain))[::-1]
    dcg = float(gain[fixed] @ worth[fixed])
    free = np.sort(worth[query.unjudged])
    ideal = np.concatenate([[0.0], np.cumsum(table)])
    judged = np.sort(gain[fixed])
    return [
        _ratio_extreme(
            sign,
            dcg,
            np.cumsum(np.append(0.0, free[::-1] if sign > 0 else free)),
            ideal,
            judged,
            levels,
        )
        for sign in (1.0, -1.0)
    ]


def _ratio_extreme(
    sign: float,
    dcg: float,
    free: np.ndarray,
    ideal: np.ndarray,
    judged: np.ndarray,
    levels: np.ndarray,
) -> float:
    """Return the highest (sign 1) or the lowest (sign -1) DCG / ideal DCG.

    dcg : of the judged documents
    free, ideal : sums of the discounts of the first m unjudged documents, and of all first ranks
    judged : gains of judged documents, ascending
    levels : the gains that an unjudged document may have, descending
    """
    positive = judged[judged > 0.0]

    def ratio(counts: np.ndarray) -> float:
        """Return the ratio with the first counts[i] unjudged documents at levels[:i + 1]."""
        gains = np.repeat(levels, np.diff(counts, prepend=0))
        value = dcg + float(np.diff(free) @ gains)
        best = np.sort(np.concatenate([positive, gains]))[::-1]
        under = float(np.diff(ideal)[: best.size] @ best)
        return value / under if under > 0.0 else np.nan

    n = free.size - 1
    all_lowest = np.zeros(levels.size, np.int64)
    all_lowest[-1] = n
    ratios = [ratio(all_lowest)]
    if np.isnan(ratios[0]):  # nothing is relevant: start with one document that is
        some = np.where(levels > 0.0, 1, n)
        ratios = [ratio(some)]
    if np.isnan(ratios[0]):
        return ratios[0]
    while True:
        found = ratio(_best_counts(sign, ratios[-1], free, ideal, judged, levels))
        if np.isnan(found) or sign * (found - ratios[-1]) <= 1e-15:
            return ratios[-1]
        ratios.append(found)


def _best_counts(
    sign: float,
    x: float,
    free: np.ndarray,
    ideal: np.ndarray,
    judged: np.ndarray,
    levels: np.ndarray,
) -> np.ndarray:
    """Return how many unjudged documents have levels[:i + 1], so that DCG - x ideal is extreme.

    Level after level: ``best[m]`` is the extreme so far, with m documents placed. A level's part is
    a function of the documents placed after it minus one of those before it.
    """
    m = np.arange(free.size)
    best = np.full(free.size, -np.inf)
    best[0] = 0.0
    chosen = []
    for level in levels:
        above = judged.size - np.searchsorted(judged, level, side="right")
        at_least = judged.size - np.searchsorted(judged, level, side="left")
        before = best - sign * level * (free - x * ideal[above + m])
        running = np.maximum.accumulate(before)
        at = np.maximum.accumulate(np.where(before == running, m, 0))
        best = running + sign * level * (free - x * ideal[at_least + m])
        chosen.append(at)
    counts = np.empty(levels.size, np.int64)
    placed = free.size - 1
    for i in range(levels.size - 1, -1, -1):
        counts[i] = placed
        placed = int(chosen[i][placed])
    return counts
