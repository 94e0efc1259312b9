"""LambdaMART against LightGBM's lambdarank: as good on held-out queries, from the same data."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg

pytestmark = pytest.mark.slow


def test_lightgbm():
    import lightgbm as lgb

    train, test = rg.make_web(300, n_docs=60, seed=1), rg.make_web(200, n_docs=60, seed=2)
    ours = rg.LambdaMART(n_trees=60, n_leaves=15, truncation=15).fit(train)
    data = lgb.Dataset(
        np.asarray(train.X), train.y, group=np.diff(train.query_ptr), params={"verbose": -1}
    )
    parameters = {
        "objective": "lambdarank",
        "num_leaves": 15,
        "lambdarank_truncation_level": 15,
        "verbose": -1,
        "num_threads": 2,
    }
    theirs = lgb.train(parameters, data, 60).predict(np.asarray(test.X))
    result = rg.compare({"LightGBM": theirs, "rankgrove": ours}, test, "ndcg@10")
    # no lower than sampling explains, and both have learned something
    assert result.contrasts[0].high > -0.005
    assert min(result.mean.values()) > 0.45
