"""Variance over samples of the training queries."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.bagging.sample import sampled_queries


def test_means_and_variances_of_samples():
    train, test, valid = (rg.make_web(25, n_docs=10, n_features=5, seed=s) for s in (1, 2, 3))
    ranker = rg.LambdaMART("ndcg@10", n_trees=5, n_leaves=4, min_leaf=3, query_fraction=0.5)
    rankers = {"one": ranker, "bag": rg.BaggedRanker(ranker, 3)}
    variance = rg.variance_analysis(
        rankers, train, test, valid=valid, n_samples=4, measures=["ndcg@10", "map"]
    )
    seen = sampled_queries(train.query_keys, 0.67, 0, 2)
    third = rg.LambdaMART(**(ranker.get_params() | {"random_state": 2}))
    third.fit(train.select(seen), valid=valid)
    expected = rg.evaluate(third, test, "map").mean["map"]
    assert variance.values["one"]["map"][2] == expected
    ratio = np.var(variance.values["bag"]["map"]) / np.var(variance.values["one"]["map"])
    assert variance.change("bag", "one", "map") == pytest.approx(ratio - 1)
    lines = repr(variance).splitlines()
    assert len(lines) == 4
    assert f"{100 * (ratio - 1):+.1f} %" in lines[3]


def test_nothing_relevant():
    train = rg.make_web(15, n_docs=8, n_features=4, seed=1)
    test = rg.QueryDataset(train.X, np.zeros(train.n_rows), train.qid)
    rankers = {"a": rg.LambdaMART(n_trees=2, min_leaf=3), "b": rg.MART(n_trees=2, min_leaf=3)}
    with pytest.raises(rg.DataError, match="ndcg@3 leaves out every query of the data"):
        rg.variance_analysis(rankers, train, test, n_samples=2)
    variance = rg.variance_analysis(rankers, train, test, n_samples=2, convention="letor")
    assert variance.variance("a", "map") == 0.0
    assert np.isnan(variance.change("b", "a", "map"))
    assert [cell.strip() for cell in variance.table().splitlines()[3].split("|")][4] == "-"


def test_equal_values_have_no_variance():
    from rankgrove.tuning.variance import Variance

    values = np.full(10, 0.1 + 0.2)
    assert values.var() > 0.0  # by rounding alone
    assert Variance({"a": {"map": values}}).variance("a", "map") == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rankers": []}, "rankers by name"),
        ({"rankers": {"a": 3}}, "untrained rankers"),
        ({"n_samples": 1}, "'n_samples' parameter"),
        ({"query_fraction": 0}, "'query_fraction' parameter"),
    ],
)
def test_mistakes(options, message):
    data = rg.make_web(10, n_docs=5, n_features=3, seed=1)
    arguments = {"rankers": {"a": rg.LambdaMART()}, "train": data, "test": data} | options
    with pytest.raises(rg.ParameterError, match=message):
        rg.variance_analysis(**arguments)
