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


def test_rounds_to_keep():
    def kept(values, tolerance, start=None):
        watch = Watch({}, history={"valid": {"map": values}}, start=start)
        return watch.rounds_to_keep(tolerance)

    assert kept([0.3, 0.5, 0.495, 0.48, 0.499], 0.0) == 2
    assert kept([0.3, 0.5, 0.495, 0.48, 0.499], 0.02) == 3  # .48 is more than 2 % below .5
    assert kept([0.3, 0.5, 0.495, 0.49, 0.499], 0.02) == 5  # .49 is not
    assert kept([0.5] + [0.499] * 400, 0.02) == 251
    assert kept([0.3, 0.29], 0.05, start={"valid": {"map": 0.4}}) == 0
    assert kept([0.39, 0.2], 0.05, start={"valid": {"map": 0.4}}) == 1
    assert Watch({}).rounds_to_keep(0.02) is None
