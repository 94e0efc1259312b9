"""How many queries it takes: exact where there is a formula, and true in simulation."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import rankgrove as rg


def power_of_t(n, effect, level):
    border = stats.t.ppf(1 - level / 2, n - 1)
    shift = effect * np.sqrt(n)
    return stats.nct.sf(border, n - 1, shift) + np.nan_to_num(stats.nct.cdf(-border, n - 1, shift))


@pytest.mark.parametrize("effect", [0.05, 0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize(("power", "level"), [(0.8, 0.05), (0.95, 0.01), (0.5, 0.1)])
def test_paired_is_the_least_number_by_the_noncentral_t(effect, power, level):
    n = rg.queries_needed(effect, 1.0, power=power, level=level)
    assert power_of_t(n, effect, level) >= power
    assert n == 2 or power_of_t(n - 1, effect, level) < power


def test_known_numbers():
    """Of textbooks: 34 pairs for an effect of half a standard deviation, 199 for a fifth."""
    assert rg.queries_needed(0.5, 1.0) == 34
    assert rg.queries_needed(-0.2, 1.0) == 199
    assert rg.queries_needed(0.05, design="rates", rate=0.5) == 1565


def test_arrays_are_like_single_calls():
    effects, spreads = np.array([0.01, 0.02, 0.05]), np.array([[0.1], [0.3]])
    needed = rg.queries_needed(effects, spreads)
    assert needed.shape == (2, 3)
    assert needed.dtype == np.int64
    for i, j in np.ndindex(needed.shape):
        assert needed[i, j] == rg.queries_needed(effects[j], spreads[i, 0])
    assert isinstance(rg.queries_needed(0.1, 0.3), int)


def test_very_small_effects():
    for effect in (1e-3, 1e-4, 1e-6):
        assert rg.queries_needed(effect, 1.0) == pytest.approx(
            (stats.norm.ppf(0.975) + stats.norm.ppf(0.8)) ** 2 / effect**2, rel=1e-3
        )


def share(hits):
    """Return a share of hits with the distance that chance allows."""
    return hits.mean(), 4 * np.sqrt(0.16 / hits.size)


def test_paired_in_simulation():
    n = rg.queries_needed(0.03, 0.1)
    draws = np.random.default_rng(0).normal(0.03, 0.1, (4000, n))
    power, chance = share(stats.ttest_1samp(draws, 0, axis=1).pvalue < 0.05)
    assert abs(power - 0.8) < chance + 0.002


@pytest.mark.parametrize(("delta", "ties"), [(0.05, 0.0), (0.05, 0.4), (0.2, 0.1)])
def test_interleaving_in_simulation(delta, ties):
    """The number suffices for the sign test, and 12 % fewer do not."""
    n = rg.queries_needed(delta, design="interleaving", ties=ties)
    chances = [(1 - ties) / 2 + delta, (1 - ties) / 2 - delta, ties]
    rng = np.random.default_rng(1)
    for factor, enough in ((1.0, True), (0.88, False)):
        wins, losses, _ = rng.multinomial(int(factor * n), chances, size=4000).T
        decided = wins + losses
        p = 2 * stats.binom.sf(np.maximum(wins, losses) - 1, decided, 0.5)
        power, chance = share(p < 0.05)
        assert power > 0.8 - chance if enough else power < 0.8
        assert power < 0.8 + 2 * chance


def test_rates_that_fall():
    fall = rg.queries_needed(-0.1, design="rates", rate=0.3)
    assert fall == rg.queries_needed(0.1, design="rates", rate=0.2)
    assert fall < rg.queries_needed(0.1, design="rates", rate=0.3)
    with pytest.raises(rg.ParameterError, match="between 0 and 1"):
        rg.queries_needed(-0.3, design="rates", rate=0.3)


def test_rates_in_simulation():
    n = rg.queries_needed(0.04, design="rates", rate=0.3)
    rng = np.random.default_rng(2)
    a, b = rng.binomial(n, 0.3, 4000) / n, rng.binomial(n, 0.34, 4000) / n
    pooled = (a + b) / 2
    z = (b - a) / np.sqrt(2 * pooled * (1 - pooled) / n)
    power, chance = share(np.abs(z) > 1.96)
    assert abs(power - 0.8) < chance


def test_spread_of_comparisons_and_evaluations():
    data = rg.make_artificial(60, seed=1)
    systems = {"f1": data.column(1), "f2": data.column(2)}
    comparison = rg.compare(systems, data, "ndcg@10")
    difference = comparison.per_query["f2"] - comparison.per_query["f1"]
    spread = difference.std(ddof=1)
    assert rg.queries_needed(0.02, comparison) == rg.queries_needed(0.02, spread)
    evaluation = rg.evaluate(data.column(1), data, "ndcg@10")
    values = evaluation.per_query["ndcg@10"]
    values = values[~np.isnan(values)]
    alone = rg.queries_needed(0.02, evaluation, correlation=0.875)
    assert alone == rg.queries_needed(0.02, values.std(ddof=1) / 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"effect": 0.0, "spread": 1.0}, "'effect' parameter of queries_needed"),
        ({"effect": 0.1}, "the standard deviation of differences"),
        ({"effect": 0.1, "spread": 0.0}, "'spread' parameter"),
        ({"effect": 0.1, "spread": 1.0, "power": 1.0}, "'power' parameter"),
        ({"effect": 0.1, "spread": "x"}, "a number, or an array"),
        ({"effect": 1e-9, "spread": 1.0}, "over 1e15 queries"),
        ({"effect": 0.5, "design": "interleaving", "ties": 0.2}, r"below \(1 - ties\) / 2"),
        ({"effect": 0.1, "design": "interleaving", "ties": -0.1}, "'ties' parameter"),
        ({"effect": 0.1, "design": "rates"}, "the click-through rate"),
        ({"effect": 0.6, "design": "rates", "rate": 0.5}, "rate \\+ effect is between 0 and 1"),
        ({"effect": [0.1, 0.2], "spread": [1.0, 2.0, 3.0]}, "shapes that fit"),
        ({"effect": 0.1, "design": "split"}, "'design' parameter"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(rg.RankgroveError, match=message):
        rg.queries_needed(**arguments)
