"""Whether parallel regions pay: what was timed decides, and trees do not hang on it."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.growth import regions

SLOW = 8_000_000.0


@pytest.fixture
def prices(monkeypatch):
    own = regions.Prices()
    monkeypatch.setattr(regions, "prices", own)
    return own


def test_one_slow_region_says_nothing_two_do_and_a_quick_one_ends_it(prices):
    assert regions.worth_a_region(1_000_000, 2)
    assert regions.parts_for(50_000, 2) == 2
    prices.note(SLOW, 50_000)
    assert regions.worth_a_region(1_000_000, 2)
    prices.note(SLOW, 50_000)
    assert not regions.worth_a_region(1_000_000, 2)
    assert regions.parts_for(50_000, 2) == 1
    assert regions.worth_a_region(20_000_000, 2), "long work pays on a busy machine too"
    prices.note(40_000, 50_000)
    assert regions.worth_a_region(1_000_000, 2)
    assert regions.parts_for(50_000, 2) == 2


def test_dear_regions_are_tried_now_and_then(prices):
    assert [prices.trial() for _ in range(3)] == [True] * 3
    prices.note(SLOW, 0)
    prices.note(SLOW, 0)
    tried = [prices.trial() for _ in range(3 * regions.TREES_BETWEEN)]
    assert sum(tried) == 3


def test_a_slow_processor_is_no_busy_machine(prices):
    for _ in range(3):
        prices.note(3_000_000, 1_000_000)
    assert prices.price == regions.LEAST_NS


def test_trees_do_not_hang_on_the_price(prices):
    data = rg.make_artificial(400, n_docs=50, n_features=10, seed=3)
    fit = rg.LambdaMART(n_trees=3).fit
    before = fit(data).predict(data)
    prices._price = prices._last = 1e12  # nothing is worth a region
    assert np.array_equal(before, fit(data).predict(data))
