"""Sessions that bots may have made: too many clicks in a session, of a client, or on everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.validation import check_integer, check_real

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

FEWEST_CLICKS = 100  # of a client that is suspected


@dataclass(frozen=True)
class Suspects:
    """Suspected sessions.

    Attributes
    ----------
    sessions : a mask of sessions
    many_clicks : how many have too many clicks
    all_clicked : how many have a click on everything
    busy_clients : how many clients made too many of all clicks
    of_busy_clients : how many sessions they have
    """

    sessions: np.ndarray
    many_clicks: int
    all_clicked: int
    busy_clients: int
    of_busy_clients: int

    @property
    def n_sessions(self) -> int:
        """Number of suspected sessions."""
        return int(np.count_nonzero(self.sessions))


def clicks_by_session(log: ClickLog) -> np.ndarray:
    """Return the number of clicks of every session."""
    return np.add.reduceat(log.click, log.session_ptr[:-1], dtype=np.int64)


def suspected(log: ClickLog, session_clicks: int, full_list: int, client_share: float) -> Suspects:
    """Return the sessions that bots may have made; :meth:`ClickLog.suspects` has the rules."""
    owner = "ClickLog.suspects"
    check_integer("session_clicks", owner, session_clicks, low=1)
    check_integer("full_list", owner, full_list, low=2)
    check_real("client_share", owner, client_share, above=0, high=1)
    clicks = clicks_by_session(log)
    shown = np.diff(log.session_ptr)
    many = clicks > session_clicks
    everything = (clicks == shown) & (shown >= full_list)
    busy = np.zeros(log.n_sessions, np.bool_)
    n_busy = 0
    if log.session_client is not None:
        of_client = np.bincount(log.session_client, weights=clicks)
        is_busy = (of_client >= FEWEST_CLICKS) & (of_client > client_share * clicks.sum())
        busy, n_busy = is_busy[log.session_client], int(is_busy.sum())
    return Suspects(
        many | everything | busy, int(many.sum()), int(everything.sum()), n_busy, int(busy.sum())
    )
