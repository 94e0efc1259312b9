"""Which sessions of a log are held out: by session, by query or by time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove.errors import DataError
from rankgrove.random import derive_seed, mix64, string_keys
from rankgrove.validation import check_choice, check_integer, check_real

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog


def held_out(log: ClickLog, share: float, seed: int, by: str) -> np.ndarray:
    """Return a mask of about `share` of the sessions; both parts have at least one."""
    owner = "ClickLog.split"
    share = check_real("share", owner, share, above=0, high=1)
    check_integer("seed", owner, seed)
    check_choice("by", owner, by, ["session", "query", "time"])
    if share == 1:
        raise DataError("share must be below 1: nothing would be left to learn from.")
    if by == "time":
        return _last(log, share)
    if by == "query":
        keys = string_keys(log.query_ids.tolist())[log.session_query]
    else:
        keys = log.session_keys
    drawn = mix64(keys ^ np.uint64(derive_seed(seed, "split of clicks", by)))
    groups = np.unique(drawn)
    if groups.size < 2:
        unit = "query" if by == "query" else "session"
        raise DataError(f"A log of one {unit} cannot be split by {unit}.")
    n = min(max(round(share * groups.size), 1), groups.size - 1)
    return drawn <= groups[n - 1]


def _last(log: ClickLog, share: float) -> np.ndarray:
    times = log.session_time
    if times is None or np.isnan(times).any():
        what = "no times" if times is None else "sessions without a time"
        raise DataError(f"The log has {what}: it cannot be split by time.")
    ordered = np.sort(times)
    n = min(max(round((1 - share) * ordered.size), 1), ordered.size - 1)
    test = times >= ordered[n] if ordered.size > 1 else np.zeros(1, np.bool_)
    if test.all() or not test.any():
        raise DataError("Too many sessions have the same time: the log cannot be split by time.")
    return test
