"""BoltzRank as its user sees it, where it differs from the other nets (test_nets has the rest)."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import rankgrove as rg

SMALL = {"n_epochs": 4, "learning_rate": 0.01, "n_rankings": 20}


@pytest.fixture(scope="module")
def train():
    return rg.make_web(60, n_docs=15, n_features=8, seed=1)


def mean(model, data, measure):
    return rg.evaluate(model, data, measure).mean[measure]


def flat(train, **options):
    return rg.BoltzRank(**(SMALL | options)).fit(train).network_.flat


@pytest.mark.slow
@pytest.mark.parametrize("around", ["labels", "scores"])
@pytest.mark.parametrize("measure", ["ndcg@5", "map", "err"])
def test_learning_beats_the_untrained_net_and_is_near_listnet(measure, around):
    train, test = (rg.make_artificial(200, n_docs=12, n_features=6, seed=s) for s in (1, 2))
    options = {"hidden": (10,), "n_epochs": 60, "learning_rate": 0.003}
    seen = []
    model = rg.BoltzRank(measure, around=around, **options)
    model.fit(train, callbacks=lambda progress: seen.append(progress.start))
    untrained = mean(seen[0].scores(np.asarray(test.X)), test, measure)
    listnet = mean(rg.ListNet(**options).fit(train), test, measure)
    assert mean(model, test, measure) > untrained + 0.1
    assert mean(model, test, measure) > listnet - 0.04


def test_a_share_of_1_needs_no_target_and_one_of_0_no_measure(train):
    first, second = (flat(train, measure_share=1.0, temperature=t) for t in (0.5, 2.0))
    np.testing.assert_array_equal(first, second)
    third, fourth = (flat(train, measure_share=0.0, measure=m) for m in ("ndcg@1", "ndcg"))
    np.testing.assert_array_equal(third, fourth)
    assert not np.array_equal(first, third)


@pytest.mark.parametrize(
    "options",
    [
        {"measure": "map"},
        {"n_rankings": 21},
        {"around": "labels"},
        {"spread": 3.0},
        {"redraw": False},
        {"alpha": 7.0},
        {"measure_share": 0.3},
        {"temperature": 3.0},
    ],
    ids=str,
)
def test_every_parameter_does_something(train, options):
    base = {"around": "scores", "measure_share": 0.6, "redraw": True}
    changed = flat(train, **base | options)
    assert not np.array_equal(changed, flat(train, **base))
    np.testing.assert_array_equal(changed, flat(train, **base | options))


def test_rankings_hang_on_the_seed(train):
    start = rg.BoltzRank(**SMALL).fit(train)  # the same first weights, the same standardising
    first, second = (
        rg.BoltzRank(**SMALL, redraw=False, random_state=s).fit(train, start=start).network_.flat
        for s in (0, 1)
    )
    assert not np.array_equal(first, second)


def test_sparse_features_give_the_same_model(train):
    sparse = rg.QueryDataset(scipy.sparse.csr_matrix(train.X), train.y, train.qid)
    np.testing.assert_array_equal(flat(train), flat(sparse))


@pytest.mark.parametrize("empty", ["drop-equal", 0.0])
def test_queries_that_say_nothing_have_no_turn(train, empty):
    options = {"measure": rg.measure("ndcg@5", empty=empty), "measure_share": 0.5}
    y = train.y.copy()
    for q in train.query_ids[:20].tolist():
        y[train.qid == q] = 2.0
    dull = rg.QueryDataset(train.X, y, train.qid)
    weight = np.ones(train.n_queries)
    weight[:20] = 0.0
    weighted = rg.QueryDataset(train.X, train.y, train.qid, query_weight=weight)
    np.testing.assert_array_equal(flat(dull, **options), flat(weighted, **options))
    nothing = rg.QueryDataset(train.X, np.ones(train.n_rows), train.qid)
    with pytest.raises(rg.DataError, match="no query has documents of different labels"):
        rg.BoltzRank().fit(nothing)


def test_weights_of_rows_are_refused(train):
    with pytest.raises(rg.DataError, match="BoltzRank: weights of rows have no meaning"):
        rg.BoltzRank().fit(train.X, train.y, train.qid, weight=np.ones(train.n_rows))


@pytest.mark.parametrize(
    "bad",
    [
        {"n_rankings": 1},
        {"n_rankings": 2.5},
        {"around": "ranks"},
        {"spread": 0.0},
        {"redraw": "no"},
        {"alpha": -1.0},
        {"measure_share": 1.1},
        {"measure_share": -0.1},
        {"temperature": 0.0},
    ],
    ids=str,
)
def test_bad_parameters(train, bad):
    (name,) = bad
    with pytest.raises(rg.ParameterError, match=f"'{name}' parameter of BoltzRank"):
        rg.BoltzRank(**bad).fit(train)
    with pytest.raises(rg.ParameterError, match="ndgc"):
        rg.BoltzRank("ndgc").fit(train)
