"""Measures that nothing can be trained for are refused at once; the others can be."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg


@pytest.fixture(scope="module")
def data():
    return rg.make_artificial(15, n_docs=12, seed=1)


@pytest.mark.parametrize(
    "ranker",
    [rg.LambdaMART, rg.LambdaRank, rg.BoltzRank, rg.AdaRank, rg.CoordinateAscent, rg.SmoothRank],
)
@pytest.mark.parametrize("measure", ["gmap", "infap", "judged@5"])
def test_refused(data, ranker, measure):
    with pytest.raises(
        rg.ParameterError, match=f"Nothing can be trained for the measure '{measure}"
    ):
        ranker(measure=measure).fit(data)


def test_refused_in_combinations(data):
    scores = data.column(1), data.column(2)
    with pytest.raises(rg.ParameterError, match="'gmap': it is not a mean over queries"):
        rg.optimal_combination(*scores, data, "gmap")


@pytest.mark.parametrize("measure", ["bpref", "kendall", "spearman", "map[sklearn]"])
def test_the_best_combination_is_best(data, measure):
    a, b = (data.column(k).astype(np.float64) for k in (1, 2))
    best = rg.optimal_combination(a, b, data, measure)
    tried = [
        rg.evaluate((1 - alpha) * a + alpha * b, data, measure).mean[measure]
        for alpha in (best.alpha, 0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    assert tried[0] == pytest.approx(best.value, abs=1e-9)
    assert best.value >= max(tried) - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("measure", ["bpref", "kendall", "spearman", "rbp", "success@3"])
def test_lambdamart_learns(data, measure):
    model = rg.LambdaMART(n_trees=5, n_leaves=7, measure=measure, progress=False).fit(data)
    learned = rg.evaluate(model, data, measure).mean[measure]
    random = np.random.default_rng(0).normal(size=data.n_rows)
    assert learned > rg.evaluate(random, data, measure).mean[measure] + 0.05
