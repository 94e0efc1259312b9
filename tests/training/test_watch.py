"""The best round and patience, with and without something to fall back on."""

from __future__ import annotations

import pytest

from rankgrove.training.watch import Watch


@pytest.mark.parametrize(
    ("start", "values", "best", "stopped"),
    [
        (None, [], None, False),
        (None, [0.1], 1, False),
        (None, [0.3, 0.2, 0.3], 1, True),
        (None, [0.1, 0.2, 0.2], 2, False),
        (0.5, [], 0, False),
        (0.5, [0.4], 0, False),
        (0.5, [0.4, 0.5], 0, True),
        (0.5, [0.4, 0.6], 2, False),
        (0.5, [0.6, 0.6, 0.6], 1, True),
        (0.0, [0.0], 0, False),
    ],
)
def test_best_round_and_patience(start, values, best, stopped):
    before = None if start is None else {"valid": {"map": start, "mrr": 0.9}}
    history = {"valid": {"map": values, "mrr": [1.0] * len(values)}}
    watch = Watch({}, 2, history, before)
    assert watch.best_round == best
    assert watch.out_of_patience == stopped
    all_values = values if start is None else [start, *values]
    assert watch.best_value == (max(all_values) if all_values else None)
    assert not Watch({}, None, history, before).out_of_patience


def test_nothing_watched():
    watch = Watch({}, None, start={})
    assert (watch.best_round, watch.best_value, watch.deciding) == (None, None, None)
