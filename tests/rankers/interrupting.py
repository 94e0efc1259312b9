"""Fits that Ctrl-C ends."""

from __future__ import annotations

import pytest


def interrupted_fit(ranker, *data, **how):
    """Return a ranker whose fit was interrupted: it holds the best model so far."""
    with pytest.raises(KeyboardInterrupt):
        ranker.fit(*data, **how)
    assert ranker.interrupted_
    return ranker
