"""Data with named features, a categorical one among them, and a model trained on it."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg


def named(seed, *, with_brands=False):
    """Return a data set with document ids, names of features, and maybe a column of brands."""
    data = rg.make_web(20, n_docs=10, n_features=5, seed=seed)
    frame = {"qid": data.qid, "label": data.y, "docid": [f"d{i}" for i in range(data.n_rows)]}
    frame |= {name: data.column(j + 1) for j, name in enumerate(data.feature_names)}
    if with_brands:
        frame["brand"] = np.array(["acme", None, "bolt"], dtype=object)[np.arange(data.n_rows) % 3]
    return rg.QueryDataset.from_frame(frame)


@pytest.fixture(scope="package")
def data():
    return named(1, with_brands=True)


@pytest.fixture(scope="package")
def model(data):
    return rg.LambdaMART("ndcg@10", n_trees=5, min_leaf=5).fit(data)


@pytest.fixture(scope="package")
def scaled():
    """Return a ranker that scales its features within every query, and its data."""
    data = named(2)
    return rg.PreparedRanker(rg.MART(n_trees=3, min_leaf=5), normalise="zscore").fit(data), data
