"""Rankers that learn from clicks: recovery, validation, model files, refusals."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.data.positions import check_positions
from rankgrove.objectives.clicks import ClickLambdaObjective
from rankgrove.objectives.position_bias import Cells, PositionTable, RatioBias
from rankgrove.random import row_keys
from rankgrove.rankers.positions import averaged
from tests.reference.position_bias import position_based_clicks

SHOWN = 8
EXAMINED = 1.0 / np.arange(1, SHOWN + 1)
SMALL = {"n_trees": 8, "n_leaves": 6, "min_leaf": 10}


def click_data(judged, sessions, seed, contexts=None):
    """Return impressions of a position-based model: feature 1 is what the old ranker sorted by."""
    rng = np.random.default_rng(seed)
    relevance = 0.05 + 0.9 * judged.y / 4.0
    rows_of = [np.flatnonzero(judged.query_of_row == q) for q in range(judged.n_queries)]
    orders = []
    for q in rng.integers(0, judged.n_queries, sessions):
        rows = rows_of[q]
        noise = rng.normal(scale=judged.X[:, 0].std(), size=rows.size)
        orders.append(rows[np.argsort(-(judged.X[rows, 0] + noise), kind="stable")].tolist())
    shown = position_based_clicks(relevance, orders, EXAMINED, seed)
    row, place, click = (np.array(x) for x in zip(*[i for s in shown for i in s], strict=True))
    qid = np.repeat(np.arange(sessions), [len(session) for session in shown])
    data = rg.QueryDataset(np.asarray(judged.X)[row], click.astype(float), qid)
    context = None if contexts is None else np.array(contexts)[qid % len(contexts)]
    places = check_positions(place, context, data.n_rows)
    return data.with_positions(dataclasses.replace(places, pair=row.astype(np.int32)))


JUDGED = rg.make_web(60, n_docs=12, n_features=8, seed=3)
CLICKS = click_data(JUDGED, 600, seed=1)
RANKERS = {
    "additive": lambda **p: rg.LambdaMART(**SMALL, position_bias="additive", **p),
    "ratios": lambda **p: rg.LambdaMART(**SMALL, position_bias="ratios", **p),
    "ips": lambda **p: rg.LambdaMART(**SMALL, position_bias="ips", **p),
    "affine": lambda **p: rg.LambdaMART(**SMALL, position_bias="affine", **p),
    "mart": lambda **p: rg.MART("logistic", **SMALL, position_bias="additive", **p),
    "mart ips": lambda **p: rg.MART("query_squared", **SMALL, position_bias="ips", **p),
    "mart softmax": lambda **p: rg.MART("softmax", **SMALL, position_bias="ips", **p),
    "mart affine": lambda **p: rg.MART("logistic", **SMALL, position_bias="affine", **p),
    "net": lambda **p: rg.LambdaRank(n_epochs=3, position_bias="two_tower", **p),
    "net ratios": lambda **p: rg.LambdaRank(n_epochs=3, position_bias="ratios", **p),
    "net ips": lambda **p: rg.LambdaRank(n_epochs=3, position_bias="ips", **p),
    "net affine": lambda **p: rg.RankNet(n_epochs=3, position_bias="affine", **p),
    "list": lambda **p: rg.ListNet(n_epochs=3, position_bias="two_tower", **p),
}
OF_TREES = ["additive", "ratios", "ips", "affine", "mart", "mart ips", "mart softmax"]


@pytest.mark.parametrize("name", RANKERS)
def test_model_files_keep_what_was_learned(name, tmp_path):
    model = RANKERS[name]().fit(CLICKS)
    table = model.position_bias_
    assert table.shown.sum() == CLICKS.n_rows
    assert table.shown.shape == (1, SHOWN)
    assert "position bias" in model.summary()
    model.save(tmp_path / "model.rg")
    again = rg.load(tmp_path / "model.rg")
    for values in table.values:
        np.testing.assert_array_equal(again.position_bias_.values[values], table.values[values])
    np.testing.assert_array_equal(again.predict(JUDGED), model.predict(JUDGED))
    assert again.summary() == model.summary()


@pytest.mark.parametrize("name", OF_TREES)
def test_threads_do_not_matter(name):
    one, two = (RANKERS[name](n_threads=n, query_fraction=0.7).fit(CLICKS) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(JUDGED), two.predict(JUDGED))
    for values, other in zip(
        one.position_bias_.values.values(), two.position_bias_.values.values(), strict=True
    ):
        np.testing.assert_array_equal(values, other)


@pytest.mark.parametrize("name", RANKERS)
def test_the_order_of_sessions_does_not_matter(name):
    turned = CLICKS.select(np.arange(CLICKS.n_queries)[::-1])
    here, there = RANKERS[name]().fit(CLICKS), RANKERS[name]().fit(turned)
    np.testing.assert_array_equal(here.predict(JUDGED), there.predict(JUDGED))


@pytest.mark.parametrize("name", ["additive", "ratios", "ips", "mart", "net", "net ratios", "list"])
def test_a_resumed_run_is_the_same(name, tmp_path):
    rounds = "n_epochs" if name in ("net", "net ratios", "list") else "n_trees"
    state = {"checkpoint": tmp_path / "state", "checkpoint_every": 1}
    valid = click_data(JUDGED, 50, seed=9)
    whole = RANKERS[name]().set_params(**{rounds: 3}).fit(CLICKS, valid=valid)

    def stop(progress):
        return progress.round == 2

    ranker = RANKERS[name](**state).set_params(**{rounds: 3})
    if name == "list":  # its rate falls with the number of epochs, which stays the same
        ranker.set_params(schedule="linear")
    ranker.fit(CLICKS, valid=valid, callbacks=stop)
    ranker.fit(CLICKS, valid=valid)
    np.testing.assert_array_equal(ranker.predict(JUDGED), whole.predict(JUDGED))
    assert ranker.history_ == whole.history_
    for values in whole.position_bias_.values:
        np.testing.assert_array_equal(
            ranker.position_bias_.values[values], whole.position_bias_.values[values]
        )


def test_a_checkpoint_of_more_rounds_is_cut(tmp_path):
    state = {"checkpoint": tmp_path / "state", "checkpoint_every": 1}
    RANKERS["additive"](**state).fit(CLICKS)
    short = RANKERS["additive"](**state).set_params(n_trees=3).fit(CLICKS)
    plain = RANKERS["additive"]().set_params(n_trees=3).fit(CLICKS)
    np.testing.assert_array_equal(
        short.position_bias_.values["bias"], plain.position_bias_.values["bias"]
    )


@pytest.mark.parametrize("name", ["additive", "ratios", "ips", "mart ips", "net", "net ratios"])
def test_one_position_changes_nothing(name):
    same = CLICKS.with_positions(
        dataclasses.replace(
            check_positions(np.full(CLICKS.n_rows, 3), None, CLICKS.n_rows),
            pair=CLICKS.positions.pair,
        )
    )
    corrected = RANKERS[name]().fit(same)
    plain = RANKERS[name]().set_params(position_bias=None)
    if name in ("ratios", "ips"):  # what "auto" is for these methods
        plain.set_params(normalise=False)
    plain.fit(CLICKS)
    np.testing.assert_array_equal(corrected.predict(JUDGED), plain.predict(JUDGED))


@pytest.mark.slow
def test_submodels_and_bags():
    below = rg.LambdaMART(**SMALL).fit(CLICKS)
    above = RANKERS["additive"](submodel=below).fit(CLICKS)
    assert above.position_bias_.values["bias"][0, 0] == 0.0
    bag = rg.BaggedRanker(RANKERS["ratios"](), n_models=2).fit(CLICKS)
    assert np.isfinite(bag.predict(JUDGED)).all()


# -- recovery -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_is_learned_is_near_the_truth_and_helps():
    judged = rg.make_web(150, n_docs=12, n_features=8, seed=3)
    clicks, test = click_data(judged, 6000, seed=1), rg.make_web(150, n_features=8, seed=4)

    def value(ranker):
        return rg.evaluate(ranker.fit(clicks), test, "ndcg@10").mean["ndcg@10"]

    parameters = {"n_trees": 60, "n_leaves": 8, "min_leaf": 100}
    naive = value(rg.LambdaMART(**parameters))
    for method in ("additive", "ratios", "ips", "affine"):
        ranker = rg.LambdaMART(**parameters, position_bias=method)
        assert value(ranker) > naive, method
        values = ranker.position_bias_.values
        if method in ("ips", "affine"):
            found = values["propensity" if method == "ips" else "alpha"][0]
            np.testing.assert_allclose(found / found[0], EXAMINED, atol=0.08)
        else:
            falling = values["bias" if method == "additive" else "clicked"][0]
            assert np.corrcoef(falling, np.log(EXAMINED))[0, 1] > 0.95


def test_contexts_have_their_own_numbers():
    clicks = click_data(JUDGED, 600, seed=1, contexts=["phone", "desktop"])
    model = RANKERS["additive"]().fit(clicks)
    table = model.position_bias_
    assert table.contexts == ("desktop", "phone")
    assert not np.array_equal(*table.values["bias"])
    weights = {"phone": EXAMINED, "desktop": EXAMINED**0.5}
    ips = RANKERS["ips"](propensities=weights).fit(clicks)
    np.testing.assert_allclose(ips.position_bias_.values["propensity"][0], EXAMINED**0.5)
    with pytest.raises(rg.ParameterError, match="no context 'desktop'"):
        RANKERS["ips"](propensities={"phone": EXAMINED}).fit(clicks)


def test_positions_further_down_count_as_the_last():
    pooled = RANKERS["ips"](n_positions=3, propensities=EXAMINED).fit(CLICKS)
    np.testing.assert_array_equal(pooled.position_bias_.values["propensity"][0], EXAMINED[:3])
    shown = pooled.position_bias_.shown[0]
    assert shown[2] == CLICKS.n_rows - shown[0] - shown[1]


def test_propensities_of_a_click_model():
    class Model:
        examination_ = EXAMINED

    of_model = RANKERS["ips"](propensities=Model()).fit(CLICKS)
    given = RANKERS["ips"](propensities=EXAMINED).fit(CLICKS)
    np.testing.assert_array_equal(of_model.predict(JUDGED), given.predict(JUDGED))
    clicks = click_data(JUDGED, 600, seed=1, contexts=["phone", "desktop"])
    model = Model()
    model.examination_ = np.array([EXAMINED, EXAMINED**0.5])
    model.context_names_ = ("phone", "desktop")
    table = RANKERS["ips"](propensities=model).fit(clicks).position_bias_
    assert table.contexts == ("desktop", "phone")
    np.testing.assert_allclose(table.values["propensity"][::-1], model.examination_)


# -- validation -----------------------------------------------------------------------------------


def test_validation_on_clicks_and_on_judgements():
    valid = click_data(JUDGED, 100, seed=7)
    sets = {"clicks": valid, "judged": JUDGED, "plain": valid.with_positions(None)}
    additive = RANKERS["additive"]().fit(CLICKS, valid=sets)
    scores = additive.predict(valid)
    last = additive.best_round_ - 1

    def mean(values):
        return rg.evaluate(values, valid, "ndcg@10").mean["ndcg@10"]

    bias = additive.position_bias_.values["bias"][0][valid.positions.place - 1]
    # the state after a round is that of its gradients, before the tree
    assert additive.history_["clicks"]["ndcg@10"][last] == pytest.approx(mean(scores + bias))
    assert additive.history_["plain"]["ndcg@10"][last] == pytest.approx(mean(scores))
    judged = rg.evaluate(additive, JUDGED, "ndcg@10").mean["ndcg@10"]
    assert additive.history_["judged"]["ndcg@10"][last] == pytest.approx(judged)


def test_validation_of_weighed_clicks_is_weighed():
    valid = click_data(JUDGED, 100, seed=7)
    model = RANKERS["ips"](measure="dcg@3").set_params(n_trees=40, n_leaves=31)
    model.fit(CLICKS, valid=valid)
    scores = model.predict(valid)
    inverse = 1.0 / np.maximum(model.position_bias_.values["propensity"][0], 0.1)
    clicked = np.bincount(CLICKS.positions.place[CLICKS.y > 0] - 1, minlength=SHOWN)
    inverse *= clicked.sum() / (clicked @ inverse)
    found = []
    for q in range(valid.n_queries):
        rows = np.flatnonzero(valid.query_of_row == q)
        order = rows[np.argsort(-scores[rows], kind="stable")][:3]
        gain = valid.y[order] * inverse[valid.positions.place[order] - 1]
        if valid.y[rows].any():  # other sessions have no value
            found.append(float((gain / np.log2(np.arange(2, 2 + order.size))).sum()))
    value = model.history_["valid"]["dcg@3"][model.best_round_ - 1]
    assert value == pytest.approx(np.mean(found), rel=0.02)  # some scores are tied


# -- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranker", "data", "message"),
    [
        (rg.LambdaMART(position_bias="ips"), JUDGED, "needs data with positions"),
        (rg.LambdaMART(position_bias="lambdarank_unbiased"), CLICKS, "did you mean 'ratios'"),
        (rg.LambdaMART(propensities=EXAMINED), CLICKS, "propensities are used with"),
        (rg.LambdaMART(position_bias="ips", propensities="flat"), CLICKS, "propensities"),
        (
            rg.LambdaMART(position_bias="ips", propensities=EXAMINED[:3]),
            CLICKS,
            "set n_positions=3",
        ),
        (rg.LambdaMART(position_bias="ips", propensities=0 * EXAMINED), CLICKS, "above 0"),
        (rg.LambdaMART(position_bias="affine", propensities=EXAMINED), CLICKS, "two rows"),
        (rg.LambdaMART("map", position_bias="ratios"), CLICKS, "adds up documents"),
        (rg.LambdaMART(position_bias="ratios", step="optimal"), CLICKS, "exact weights"),
        (rg.MART(position_bias="ratios"), CLICKS, "use LambdaMART"),
        (rg.MART("balanced", position_bias="ips"), CLICKS, "loss='logistic'"),
        (rg.MART("softmax", position_bias="affine"), CLICKS, "below 0"),
        (rg.LambdaRank(position_bias="additive"), CLICKS, "did you mean 'two_tower'"),
        (rg.RankNet(form="pairs", position_bias="two_tower"), CLICKS, "factorised"),
        (rg.ListNet(position_bias="lambdarank_unbiased"), CLICKS, "LambdaRank or LambdaMART"),
        (rg.ListNet(position_bias="pal"), CLICKS, "must be 'two_tower'"),
    ],
)
def test_refusals(ranker, data, message):
    with pytest.raises(rg.RankgroveError, match=message):
        ranker.fit(data)


def test_labels_must_be_clicks():
    grades = JUDGED.with_positions(np.ones(JUDGED.n_rows))
    with pytest.raises(rg.DataError, match="needs clicks as labels"):
        rg.LambdaMART(position_bias="ratios").fit(grades)
    assert rg.LambdaMART(**SMALL, position_bias="additive").fit(grades).position_bias_


def test_documents_at_one_position_only_say_nothing():
    rows = np.arange(CLICKS.n_rows, dtype=np.int32)
    apart = CLICKS.with_positions(dataclasses.replace(CLICKS.positions, pair=rows))
    unknown = CLICKS.with_positions(dataclasses.replace(CLICKS.positions, pair=None))
    for data, message in ((apart, "at two positions"), (unknown, "are the same document")):
        for method in ("ips", "affine"):
            with pytest.raises(rg.DataError, match=message):
                rg.LambdaMART(position_bias=method).fit(data)


def test_pairs_have_no_positions():
    for ranker in (rg.LambdaMART("pairs", position_bias="ips"), rg.RankNet(position_bias="ips")):
        with pytest.raises(rg.ParameterError, match="have no positions"):
            ranker.fit_pairs(JUDGED.X, [(0, 1)])


def test_towers_take_the_steps_of_adam_and_sgd():
    """One session, one epoch: the step of the numbers of positions is that of the gradient."""
    session = CLICKS.select(np.flatnonzero(np.add.reduceat(CLICKS.y, CLICKS.query_ptr[:-1]))[:1])
    n = session.n_rows
    clicks = session.grouped(session.y)
    rate = {"schedule": "constant", "learning_rate": 0.5, "n_epochs": 1}
    sgd = rg.ListNet(position_bias="two_tower", optimiser="sgd", **rate).fit(session)
    start = rg.ListNet(optimiser="sgd", **rate | {"learning_rate": 1e-300}).fit(session)
    scores = start.predict(session)
    share = np.exp(scores) / np.exp(scores).sum()
    step = 0.5 * (clicks / clicks.sum() - session.grouped(share))
    np.testing.assert_allclose(sgd.position_bias_.values["bias"][0], step - step[0], rtol=1e-9)
    adam = rg.ListNet(position_bias="two_tower", optimiser="adam", **rate).fit(session)
    values = adam.position_bias_.values["bias"][0]
    assert values.size == n
    np.testing.assert_allclose(values, 0.5 * (np.sign(step) - np.sign(step[0])), atol=1e-6)


def test_ratios_of_a_net_follow_from_the_losses_of_the_epoch():
    """With steps of nearly 0 the losses of an epoch are those of the first net's scores."""
    still = {"optimiser": "sgd", "learning_rate": 1e-300, "n_epochs": 1}
    net = rg.LambdaRank("dcg", position_bias="ratios", **still).fit(CLICKS)
    scores = net.predict(CLICKS)
    cells = Cells.of(CLICKS.positions, CLICKS.y > 0)
    bias = RatioBias(cells, 1.0, 10.0)
    objective = ClickLambdaObjective(
        rg.measure("dcg"), CLICKS.grouped(CLICKS.y), CLICKS.query_ptr, bias=bias,
        cell=CLICKS.grouped(cells.of_rows(CLICKS.positions)),
        row_keys=row_keys(CLICKS.query_keys, CLICKS.query_ptr),
    )  # fmt: skip
    gradient, hessian = np.empty((2, CLICKS.n_rows))
    objective.gradients(CLICKS.grouped(scores), gradient, hessian)
    bias.advance(objective.sums)
    for name, ratios in bias.learned(1).values.items():
        assert np.ptp(ratios) > 0.1
        np.testing.assert_array_equal(net.position_bias_.values[name], ratios)


def test_bins_on_disk_take_positions(tmp_path):
    rg.write_letor(CLICKS, tmp_path / "clicks.txt")
    bins = rg.open_binned(tmp_path / "clicks.txt").with_positions(CLICKS.positions)
    here = rg.read_letor(tmp_path / "clicks.txt").with_positions(CLICKS.positions)
    part = bins.select(np.arange(50, 300))
    for data, other in (
        (bins, here),
        (pickle.loads(pickle.dumps(bins)), here),
        (pickle.loads(pickle.dumps(part)), part),
    ):
        models = [RANKERS["additive"]().fit(rows) for rows in (data, other)]
        np.testing.assert_array_equal(*(model.predict(JUDGED) for model in models))
        tables = [model.position_bias_.values["bias"] for model in models]
        np.testing.assert_array_equal(*tables)


@pytest.mark.parametrize("method", ["additive", "ratios", "ips", "affine"])
def test_a_bag_shows_the_mean_of_what_its_models_have_learned(method, tmp_path):
    rows = click_data(rg.make_web(30, seed=1), 900, seed=2)
    base = rg.LambdaMART(n_trees=3, position_bias=method)
    bag = rg.BaggedRanker(base, n_models=2).fit(rows)
    tables = [model.position_bias_ for model in bag.models_]
    for name, values in bag.position_bias_.values.items():
        np.testing.assert_allclose(values, np.mean([t.values[name] for t in tables], axis=0))
    assert f"mean over models: {method} position bias" in bag.summary()
    bag.save(tmp_path / "bag.rg")
    again = rg.load(tmp_path / "bag.rg")
    for name, values in bag.position_bias_.values.items():
        np.testing.assert_array_equal(again.position_bias_.values[name], values)
    assert rg.BaggedRanker(base).position_bias_ is None
    assert rg.BaggedRanker(rg.MART(n_trees=2), n_models=2).fit(rows).position_bias_ is None


def test_models_of_a_bag_count_for_the_positions_that_they_saw():
    def table(contexts, shown, bias):
        return PositionTable("additive", contexts, np.array(shown), {"bias": np.array(bias)})

    mean = averaged(
        [
            table(("phone",), [[4, 2]], [[0.0, -1.0]]),
            table(("desktop", "phone"), [[1, 1, 1], [3, 0, 5]], [[0.0, -4, -5], [0.0, 0, -3]]),
        ]
    )
    assert mean.contexts == ("desktop", "phone")
    np.testing.assert_array_equal(mean.shown, [[1, 1, 1], [7, 2, 5]])
    np.testing.assert_array_equal(mean.values["bias"], [[0, -4, -5], [0, -1, -3]])


def test_propensities_of_a_check_and_of_a_model_that_has_none():
    data = rg.make_web(30, seed=1)
    log = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=3000, seed=1)
    rows, check = rg.click_data(log, data), rg.check_clicks(log)
    rankers = [
        rg.LambdaMART(n_trees=2, position_bias="ips", propensities=given).fit(rows)
        for given in (check, check.examination)
    ]
    np.testing.assert_array_equal(*(ranker.predict(data) for ranker in rankers))
    browsing = rg.UserBrowsing().fit(log)
    with pytest.raises(rg.ParameterError, match="fit a PositionBased"):
        rg.LambdaMART(position_bias="ips", propensities=browsing).fit(rows)
