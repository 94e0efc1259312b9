"""RankBoost, FRank, GBRank, AdaRank and RandomForest against their definitions; odd data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.boosting.forest_rows import Bootstrap
from rankgrove.objectives.label_pairs import ExponentialPairs, LabelPairs
from tests.reference import classical as naive
from tests.reference.tree import midpoints


def tiny(seed=0, n=24, missing=0.0, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(n, n_features)).astype(np.float32)
    y = np.digitize(X[:, 0] + X[:, 1] + rng.normal(size=n, scale=2), [4, 7]).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, np.repeat(np.arange(n // 8), 8)


def rounds_of(model):
    """(feature, threshold, missing left or None) and the value of every stump."""
    made = []
    for t in range(model.ensemble_.n_trees):
        tree = model.ensemble_.tree(t)
        assert tree.value[0] == 0
        made.append((int(tree.feature[0]), float(tree.threshold[0]), tree.value[1]))
    return made


def same_stumps(model, expected):
    for (feature, threshold, alpha), (stump, wanted, *_) in zip(
        rounds_of(model), expected, strict=True
    ):
        assert (feature, threshold) == pytest.approx(stump[:2])
        assert alpha == pytest.approx(wanted, rel=1e-9)


# -- RankBoost ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_rankboost_is_freunds_loop(seed, missing):
    X, y, qid = tiny(seed, missing=missing)
    model = rg.RankBoost(n_trees=6).fit(X, y, qid=qid)
    expected = naive.rankboost(X, y, qid, 6)
    same_stumps(model, expected)
    scores = sum(
        alpha * above
        for (stump, alpha, *_) in expected
        for other, above in naive.stumps(X)
        if other == stump
    )
    np.testing.assert_allclose(model.predict(X), scores, atol=1e-12)


def test_rankboost_with_weights_of_rows_and_queries():
    X, y, qid = tiny(1)
    weight = np.random.default_rng(0).uniform(0, 2, y.size)
    weight[3] = 0
    by_query = {0: 1.0, 1: 3.0, 2: 0.5}
    model = rg.RankBoost(n_trees=5, n_thresholds=None)
    model.fit(X, y, qid=qid, weight=weight, query_weight=by_query)
    same_stumps(model, naive.rankboost(X, y, qid, 5, weight=weight, query_weight=by_query))
    n_pairs = {q: sum(qid[i] == q for i, _ in naive.pairs(y, qid)) for q in range(3)}
    even = rg.RankBoost(n_trees=5, n_thresholds=None, even_queries=True).fit(X, y, qid=qid)
    shares = {q: 1 / n for q, n in n_pairs.items()}
    same_stumps(even, naive.rankboost(X, y, qid, 5, query_weight=shares))


def pair_loss(scores, y, qid):
    return np.mean([math.exp(scores[j] - scores[i]) for i, j in naive.pairs(y, qid)])


def test_rankboosts_loss_falls_as_promised_and_bounds_the_mistakes():
    X, y, qid = tiny(2, n=40)
    model = rg.RankBoost(n_trees=25).fit(X, y, qid=qid)
    before = 1.0
    for t in range(1, 26):
        scores = model.truncated(t).predict(X)
        loss = pair_loss(scores, y, qid)
        r = math.tanh(model.ensemble_.tree(t - 1).value[1])
        assert loss <= before * math.sqrt(1 - r * r) * (1 + 1e-9)
        wrong = np.mean([scores[i] <= scores[j] for i, j in naive.pairs(y, qid)])
        assert wrong <= loss + 1e-12
        before = loss
    assert before < 0.8


@given(st.integers(0, 10**6), st.floats(0.01, 3000))
def test_potentials_of_any_scores(seed, spread):
    rng = np.random.default_rng(seed)
    ptr = np.array([0, 5, 6, 12])
    labels, scores = rng.integers(0, 4, 12).astype(float), rng.normal(size=12) * spread
    labels[:2] = 0, 1
    weight = rng.uniform(0, 1, 12) + 1e-3
    gradient, hessian = np.empty((2, 12))
    objective = ExponentialPairs(LabelPairs(labels, ptr, weight))
    objective.gradients(scores, gradient, hessian, n_threads=1)
    listed = naive.pairs(labels, np.repeat([0, 1, 2], np.diff(ptr)))
    top = max(scores[j] - scores[i] for i, j in listed)
    expected, total = np.zeros(12), 0.0
    for i, j in listed:
        d = weight[i] * weight[j] * math.exp(scores[j] - scores[i] - top)
        expected[i] += d
        expected[j] -= d
        total += d
    np.testing.assert_allclose(gradient, expected, atol=1e-12 * max(1, spread))
    assert hessian.sum() == pytest.approx(total, rel=1e-9)


def test_a_perfect_threshold_gets_a_finite_weight():
    X = np.arange(8, dtype=np.float32)[:, None]
    model = rg.RankBoost(n_trees=400).fit(X, X[:, 0] > 3, qid=np.zeros(8))
    assert np.isfinite(model.ensemble_.value).all()
    assert set(np.argsort(-model.predict(X), kind="stable")[:4]) == {4, 5, 6, 7}


def test_thresholds_are_placed_evenly_or_by_rows():
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(200, 2))).astype(np.float32)
    y, qid = (X[:, 0] > 1).astype(float), np.repeat(np.arange(10), 20)
    for spacing in ("even", "quantile"):
        used = rg.RankBoost(n_trees=40, n_thresholds=4, spacing=spacing).fit(X, y, qid=qid)
        for j in range(2):
            own = np.unique(used.ensemble_.threshold[used.ensemble_.feature == j])
            low, high = X[:, j].min(), X[:, j].max()
            even = low + np.arange(4) / 4 * (high - low)
            shares = np.quantile(X[:, j], np.arange(4) / 4, method="lower")
            allowed = even if spacing == "even" else shares
            assert all(np.isclose(allowed, t).any() for t in own)


def test_rankboost_takes_every_threshold_by_default():
    X, y, qid = tiny(2, n=200)
    X += np.random.default_rng(0).normal(size=X.shape).astype(np.float32)
    default, ten = (
        rg.RankBoost(n_trees=200, **o).fit(X, y, qid=qid) for o in ({}, {"n_thresholds": 10})
    )
    for model, many in ((default, True), (ten, False)):
        used = [
            np.unique(model.ensemble_.threshold[model.ensemble_.feature == j]) for j in range(3)
        ]
        assert (max(own.size for own in used) > 10) == many


# -- FRank --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_frank_is_its_definition_and_its_loss_falls(seed, missing):
    X, y, qid = tiny(seed, missing=missing)
    model = rg.FRank(n_trees=6, n_thresholds=None).fit(X, y, qid=qid)
    expected = naive.frank(X, y, qid, 6)
    same_stumps(model, expected)
    losses = [naive.fidelity(np.zeros(len(y)), y, qid)]
    losses += [naive.fidelity(model.truncated(t).predict(X), y, qid) for t in range(1, 7)]
    assert all(b < a for a, b in itertools.pairwise(losses))
    assert losses[-1] == pytest.approx(expected[-1][2])
    gains = [float(model.ensemble_.gain[t]) for t in range(6)]
    np.testing.assert_allclose(gains, -np.diff(losses), rtol=1e-6)


# -- GBRank -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("eta", "tau"), [(1.0, 1.0), (0.5, 0.25)])
def test_gbrank_is_the_regression_of_its_definition(eta, tau):
    X, y, qid = tiny(4, n=32)
    X += np.random.default_rng(1).normal(size=X.shape, scale=0.1).astype(np.float32)
    model = rg.GBRank(n_trees=4, n_leaves=4, learning_rate=eta, tau=tau, min_leaf=1)
    model.fit(X, y, qid=qid)
    found = naive.gbrank(X, y, qid, 4, 4, eta=eta, tau=tau)
    known = ~np.isnan(found)
    assert known.sum() > 25
    np.testing.assert_allclose(model.predict(X)[known] / 5, found[known], rtol=1e-9)


def test_gbrank_stops_where_all_pairs_are_ahead_by_tau():
    X, y, qid = tiny(4)
    h = 100.0 * y
    data = rg.QueryDataset(X, y, qid, base_score=h)
    model = rg.GBRank(n_trees=50, submodel="base_score", tau=1.0).fit(data)
    assert model.ensemble_.n_trees == 1
    np.testing.assert_array_equal(model.predict(data), h)


def test_gbranks_tau_is_a_scale():
    train = rg.make_web(20, n_docs=15, n_features=8, seed=1)
    one, other = (rg.GBRank(n_trees=5, tau=tau).fit(train).predict(train) for tau in (1.0, 4.0))
    np.testing.assert_array_equal(other, 4 * one)


# -- AdaRank ------------------------------------------------------------------------------------


PAPER = {"update": "latest", "tolerance": 0.002}


@pytest.mark.parametrize("measure", ["map", "ndcg@3", "err[max_grade=2]"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("update", ["latest", "cumulative"])
@pytest.mark.parametrize("tolerance", [None, 0.002])
def test_adarank_is_its_algorithm(measure, seed, update, tolerance):
    X, y, qid = tiny(seed, n=48, n_features=4)
    rule = {"update": update, "tolerance": tolerance}
    model = rg.AdaRank(measure, n_rounds=12, scaling=None, **rule).fit(X, y, qid=qid)
    value = rg.measure(measure).query_value
    found, bound = naive.adarank(X.astype(float), y, qid, 12, value, **rule)
    assert [j for j, _, _ in model.rounds_] == [j for j, _, _ in found]
    np.testing.assert_allclose(
        [one[1:] for one in model.rounds_], [one[1:] for one in found], rtol=1e-9
    )
    weights = np.zeros(4)
    for j, alpha, _ in found:
        weights[j] += alpha
    np.testing.assert_allclose(model.coef_, weights, rtol=1e-12)
    if rule == PAPER:
        assert 1 - model.rounds_[-1][2] <= bound + 1e-9  # Theorem 1


def test_adarank_passes_over_a_feature_and_stops_at_the_tolerance():
    data = rg.make_web(40, n_docs=20, seed=3)
    model = rg.AdaRank("map", n_rounds=60, most_in_a_row=3, update="latest", tolerance=1.0)
    chosen = [j for j, _, _ in model.fit(data).rounds_]
    assert max(len(list(run)) for _, run in itertools.groupby(chosen)) == 3
    strict = rg.AdaRank("map", n_rounds=60, tolerance=0.0).fit(data)
    values = [value for _, _, value in strict.rounds_]
    assert all(b > a for a, b in itertools.pairwise(values))
    alone = rg.AdaRank("map", n_rounds=9, **PAPER).fit(data.X[:, :1], data.y, qid=data.qid)
    assert len(alone.rounds_) == 5


def test_adarank_goes_on_where_the_papers_loop_ends():
    data = rg.make_web(60, n_docs=20, seed=3)
    model, plain = (rg.AdaRank("map", **rule).fit(data) for rule in ({"n_rounds": 60}, PAPER))
    values = [value for _, _, value in model.rounds_]
    assert all(b > a for a, b in itertools.pairwise(values))
    assert values[-1] > max(value for _, _, value in plain.rounds_) + 0.005
    assert np.count_nonzero(model.coef_) > np.count_nonzero(plain.coef_)
    alone = rg.AdaRank("map").fit(data.X[:, :1], data.y, qid=data.qid)
    assert len(alone.rounds_) == 1  # more of the same feature raises nothing


def test_adaranks_queries_keep_a_weight_however_often_they_are_ranked_well():
    X = np.repeat(np.arange(8, dtype=np.float32)[:, None] % 4, 2, axis=1)
    y, qid = (X[:, 0] == 3).astype(float), np.repeat([0, 1], 4)
    rule = {"update": "cumulative", "tolerance": 1.0}
    model = rg.AdaRank("map", n_rounds=400, scaling=None, **rule).fit(X, y, qid=qid)
    assert len(model.rounds_) == 400  # exp(-400 * 7) is 0 in floating point
    assert np.isfinite(model.coef_).all()


def test_adarank_ranks_downwards_where_asked():
    data = rg.make_web(30, n_docs=20, seed=3)
    turned = rg.QueryDataset(-np.asarray(data.X), data.y, data.qid)
    up = rg.AdaRank("map", n_rounds=10).fit(data)
    both = rg.AdaRank("map", direction="both", n_rounds=10).fit(turned)
    chosen = {j for j, alpha, _ in both.rounds_ if alpha < 0}
    assert chosen
    assert both.rounds_[-1][2] >= up.rounds_[0][2] - 1e-12


def test_adarank_with_weights_of_queries():
    X, y, qid = tiny(0, n=48, n_features=4)
    keep = qid < 3
    weights = {q: float(q < 3) for q in range(6)}
    a = rg.AdaRank("map", n_rounds=5, scaling=None).fit(X, y, qid=qid, query_weight=weights)
    b = rg.AdaRank("map", n_rounds=5, scaling=None).fit(X[keep], y[keep], qid=qid[keep])
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-12)
    with pytest.raises(rg.DataError, match="weights of rows have no meaning"):
        rg.AdaRank().fit(X, y, qid=qid, weight=np.ones(y.size))


def test_adarank_wants_a_measure_within_bounds():
    data = rg.make_web(10, n_docs=10, seed=3)
    with pytest.raises(rg.ParameterError, match="a measure with values between -1 and 1"):
        rg.AdaRank("dcg").fit(data)


# -- RandomForest -------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", ["queries", "rows"])
def test_a_forest_is_the_mean_of_trees_on_bootstrap_samples(sample):
    X, y, qid = tiny(5, n=40)
    X += np.random.default_rng(1).normal(size=X.shape, scale=0.1).astype(np.float32)
    data = rg.QueryDataset(X, y, qid)
    model = rg.RandomForest(
        n_trees=4, n_leaves=5, sample=sample, feature_fraction=1.0, random_state=3
    ).fit(data)
    whole = sample == "queries"
    keys = data.query_keys if whole else data.row_keys
    bootstrap = Bootstrap(keys, np.diff(data.query_ptr) if whole else None, 1.0, 3)
    for t in range(4):
        times = bootstrap.times(t)
        assert times.sum() == 40
        if whole:
            assert len(set(times[:8])) == 1
        rows = np.repeat(np.arange(40), times)
        expected = naive.tree_on(X, rows, y[rows], 5)
        seen = times > 0
        tree = model.ensemble_.tree(t)
        np.testing.assert_allclose(4 * tree.predict(X)[seen], expected[seen], rtol=1e-9)
    np.testing.assert_allclose(
        model.predict(X), sum(model.ensemble_.tree(t).predict(X) for t in range(4))
    )
    two = model.truncated(2)
    np.testing.assert_allclose(
        two.predict(X), 2 * sum(model.ensemble_.tree(t).predict(X) for t in range(2))
    )


def test_out_of_bag_is_what_the_trees_that_missed_a_query_say():
    made = rg.make_web(12, n_docs=15, n_features=8, seed=2)
    # labels whose sums differ by more than rounding, or not at all
    labels = made.y + np.random.default_rng(0).random(made.n_rows) / 10
    data = rg.QueryDataset(made.X, labels, made.qid)
    model = rg.RandomForest("map[relevant=2]", n_trees=15).fit(data)
    bootstrap = Bootstrap(data.query_keys, np.diff(data.query_ptr), 1.0, 0)
    total, n = np.zeros(data.n_rows), np.zeros(data.n_rows)
    X = np.asarray(data.X)
    for t in range(15):
        missed = bootstrap.times(t) == 0
        total[missed] += model.ensemble_.tree(t).predict(X)[missed]
        n += missed
    assert (n > 0).all()
    expected = rg.evaluate(total / n, data, "map[relevant=2]").mean["map[relevant=2]"]
    assert model.out_of_bag_ == pytest.approx(expected, abs=1e-12)
    assert f"out of bag map[relevant=2]: {expected:.4f}" in model.summary()


def test_the_bootstrap_does_not_know_the_order_of_queries():
    keys = np.random.default_rng(0).integers(0, 2**63, 50).astype(np.uint64)
    turn = np.random.default_rng(1).permutation(50)
    a, b = (Bootstrap(k, None, 0.6, 7).times(2) for k in (keys, keys[turn]))
    np.testing.assert_array_equal(a[turn], b)
    assert a.sum() == 30


def test_bagboo_is_a_bag_of_mart():
    train = rg.make_web(30, n_docs=15, n_features=8, seed=1)
    bag = rg.BaggedRanker(rg.MART(n_trees=5), n_models=4, combine="mean").fit(train)
    mean = sum(one.predict(train) for one in bag.models_) / 4
    np.testing.assert_allclose(bag.predict(train), mean, rtol=1e-12)


# -- data with little in it -----------------------------------------------------------------------

ALL = [rg.RankBoost, rg.FRank, rg.GBRank, rg.AdaRank, rg.RandomForest]


def quick(kind, **options):
    name = "n_rounds" if kind is rg.AdaRank else "n_trees"
    more = {"min_leaf": 1} if kind in (rg.GBRank, rg.RandomForest) else {}
    return kind(**({name: 4} | more | options))


@pytest.mark.parametrize("kind", ALL)
def test_nothing_to_learn_from_is_said(kind):
    X, y, qid = tiny(0)
    with pytest.raises(rg.DataError, match=r"no order to learn|nothing to learn from|depends on"):
        quick(kind).fit(X, np.ones(y.size), qid=qid)
    if kind is not rg.RandomForest:  # labels differ between queries alone
        with pytest.raises(rg.DataError, match=r"no order to learn|depends on"):
            quick(kind).fit(X, qid, qid=qid)
    with pytest.raises(rg.DataError, match="has the same value"):
        quick(kind).fit(np.ones_like(X), y, qid=qid)
    with pytest.raises(rg.DataError, match="at least one feature"):
        quick(kind).fit(np.empty((y.size, 0)), y, qid=qid)


@pytest.mark.parametrize("kind", ALL)
def test_one_query_constant_features_and_missing_values(kind):
    X, y, _ = tiny(3)
    X[:, 1] = 7
    X[::3, 2] = np.nan
    qid = np.zeros(y.size)
    model = quick(kind, measure="ndcg").fit(X, y, qid=qid)
    scores = model.predict(X)
    assert np.isfinite(scores).all()
    assert np.ptp(scores) > 0
    assert model.score(X, y, qid) > rg.measure("ndcg").query_value(y, np.zeros(y.size))
    unseen = np.full((1, 3), np.nan, np.float32)
    assert np.isfinite(model.predict(unseen)).all()


@pytest.mark.parametrize("kind", ALL)
def test_sparse_features_are_the_same_as_dense_ones(kind):
    import scipy.sparse

    X, y, qid = tiny(6, n=40)
    X[X < 2] = 0
    options = {"scaling": None} if kind is rg.AdaRank else {}
    dense = quick(kind, **options).fit(X, y, qid=qid)
    sparse = quick(kind, **options).fit(scipy.sparse.csr_matrix(X), y, qid=qid)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(X))


def test_the_naive_thresholds_are_ours():
    X, y, qid = tiny(0)
    model = rg.RankBoost(n_trees=9, n_thresholds=None).fit(X, y, qid=qid)
    for j, t in zip(model.ensemble_.feature, model.ensemble_.threshold, strict=True):
        assert float(t) in midpoints(X[:, j])


def test_adarank_counts_a_feature_whichever_way_it_is_taken():
    X = [[3, 2], [2, 1], [1, 0], [0, 0], [0, 3], [2, 3], [2, 2], [3, 2]]
    data = rg.QueryDataset(np.array(X, float), [1, 1, 1, 1, 0, 1, 1, 0], qid=[0] * 4 + [1] * 4)
    options = {"tolerance": 0.5, "scaling": None, "n_rounds": 4, "most_in_a_row": 1}
    model = rg.AdaRank("map", direction="both", **options).fit(data)
    features = [feature for feature, *_ in model.rounds_]
    assert len(features) > 1
    assert all(a != b for a, b in itertools.pairwise(features))


def test_adarank_leaves_out_queries_that_no_order_changes():
    X, y = np.array([[0, 1], [1, 0], [2, 0], [0, 1], [1, 0]], float), [1, 0, 1, 1, 2]
    options = {"tolerance": 0.002, "scaling": None, "n_rounds": 2}
    all_relevant = rg.QueryDataset(X, y, qid=[0, 0, 0, 1, 1])  # the second query, for MAP
    both = rg.AdaRank("map", **options).fit(all_relevant)
    first = rg.AdaRank("map", **options).fit(rg.QueryDataset(X[:3], y[:3], qid=[0, 0, 0]))
    assert both.rounds_ == first.rounds_
    assert first.rounds_[0][1] == pytest.approx(1.568, abs=1e-3)


def test_a_warning_names_no_parameter_that_the_ranker_lacks(caplog):
    rg.RankBoost(n_trees=2).fit(np.array([[0.0], [0], [1], [1]]), [1, 0, 1, 0], qid=[0, 0, 1, 1])
    assert "No threshold of a feature helps" in caplog.text
    assert "min_leaf" not in caplog.text
