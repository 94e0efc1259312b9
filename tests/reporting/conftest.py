"""Some trained models of different kinds, with data to look at them by."""

from __future__ import annotations

import pytest

import rankgrove as rg


@pytest.fixture(scope="module")
def made():
    train, vali, test = (rg.make_artificial(30, n_docs=12, seed=seed) for seed in (1, 2, 3))
    models = {
        "trees": rg.LambdaMART(n_trees=12).fit(train, valid=vali),
        "net": rg.LambdaRank(n_epochs=4).fit(train, valid=vali),
        "weights": rg.SVMMap(C=(0.1, 1.0)).fit(train, valid=vali),
        "classes": rg.McRank(n_trees=3).fit(train, valid=vali),
    }
    best = rg.optimal_combination(models["trees"], models["weights"], vali, "ndcg@10")
    models["both"] = best.ranker
    return models, test, vali
