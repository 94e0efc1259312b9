"""Sessions query by query, cut into blocks that share no pair.

Kernels add to the sums of pairs. A pair belongs to one query, so blocks of whole queries can be
worked on by several threads at once. The blocks depend on the log alone: sums that all blocks
share are added up block by block, with the same bits for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.clicks.log import ClickLog
from rankgrove.data.arrays import frozen

MOST_BLOCKS = 64


class SessionBlocks(NamedTuple):
    """The order of sessions, and where blocks begin in it.

    order : the numbers of sessions, query by query
    bounds : the first place of every block in `order`, and the number of sessions
    """

    order: np.ndarray
    bounds: np.ndarray

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return int(self.bounds.size) - 1


def session_blocks(log: ClickLog) -> SessionBlocks:
    """Return the sessions of a log in blocks of whole queries with about equal impressions."""
    order = np.argsort(log.session_query, kind="stable")
    query = log.session_query[order]
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.diff(log.session_ptr)[order])])
    heads = np.flatnonzero(np.concatenate([[True], query[1:] != query[:-1]]))
    goals = np.linspace(0, before[-1], MOST_BLOCKS + 1)[1:-1]
    nearest = np.searchsorted(before[heads], goals)
    cuts = heads[nearest[nearest < heads.size]]
    bounds = np.unique(np.concatenate([[0], cuts, [log.n_sessions]])).astype(np.int64)
    return SessionBlocks(frozen(order), frozen(bounds))
