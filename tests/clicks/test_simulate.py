"""Simulated clicks: what users are said to do is what the log shows; models find it out."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg

MODELS = ["position-based", "trust-bias", "cascade", "dependent-click", "simplified-dbn", "dbn",
          "user-browsing"]  # fmt: skip


@pytest.fixture(scope="module")
def data():
    """Three queries of 6, 12 and 3 documents, grades 0 to 4; rows are not in query order."""
    rng = np.random.default_rng(1)
    qid = rng.permutation(np.repeat(["a", "b", "c"], [6, 12, 3]))
    return rg.QueryDataset(rng.normal(size=(21, 2)), np.arange(21) % 5, qid)


def rates(log, mask):
    """Return click rates per position, and how far they may be off."""
    place = log.position[mask].astype(int)
    shown = np.bincount(place)[1:]
    return np.bincount(place, log.click[mask])[1:] / shown, 5 * (0.25 / shown) ** 0.5


@pytest.mark.parametrize("model", MODELS)
def test_same_bits(data, model):
    kwargs = {"model": model, "sessions": 700, "seed": 5, "noise": 0.5, "shuffle_top": 3}
    rankers = [data.column(1), -data.column(2)]
    logs = [rg.simulate_clicks(data, rankers, n_threads=n, **kwargs) for n in (1, 2)]
    for name in ("pair", "position", "click", "session_ptr", "session_query"):
        np.testing.assert_array_equal(getattr(logs[0], name), getattr(logs[1], name))
    shorter = rg.simulate_clicks(data, rankers, **kwargs | {"sessions": 300})
    n = shorter.n_impressions
    np.testing.assert_array_equal(shorter.click, logs[0].click[:n])
    np.testing.assert_array_equal(shorter.pair, logs[0].pair[:n])
    other = rg.simulate_clicks(data, rankers, **kwargs | {"seed": 6})
    assert not np.array_equal(other.session_query, logs[0].session_query)


def test_lists_are_those_of_the_ranker(data):
    class Ranker:
        def predict(self, rows):
            assert rows is data
            return rows.column(1)

    log = rg.simulate_clicks(data, Ranker(), sessions=200, n_shown=5)
    for s in range(log.n_sessions):
        part = slice(log.session_ptr[s], log.session_ptr[s + 1])
        rows = np.flatnonzero(data.query_of_row == log.session_query[s])
        best = rows[np.argsort(-data.column(1)[rows])][:5]
        np.testing.assert_array_equal(log.pair[part], best)
        assert log.position[part].tolist() == list(range(1, best.size + 1))
    np.testing.assert_array_equal(log.pair_query, data.query_of_row)
    numbers = log.document_ids[log.pair_document]
    for q in range(3):
        rows = np.flatnonzero(data.query_of_row == q)
        assert numbers[rows].tolist() == [str(i + 1) for i in range(rows.size)]


def test_documents_have_their_ids(data):
    named = rg.QueryDataset(data.X, data.y, data.query_of_row, docid=[f"d{i}" for i in range(21)])
    log = rg.simulate_clicks(named, named.column(1), sessions=10)
    assert log.document_ids[log.pair_document].tolist() == [f"d{i}" for i in range(21)]
    twice = rg.QueryDataset(data.X, data.y, data.query_of_row, docid=["d"] * 21)
    with pytest.raises(rg.DataError, match="occurs twice"):
        rg.simulate_clicks(twice, twice.column(1), sessions=10)


def test_randomised_lists(data):
    scores = data.column(1)
    top = rg.simulate_clicks(data, scores, sessions=6000, shuffle_top=3, n_shown=4)
    rows = np.flatnonzero(data.query_of_row == 1)
    best = rows[np.argsort(-scores[rows])]
    for place in (1, 2, 3):
        seen = top.pair[(top.position == place) & (top.session_of >= 0)]
        counts = np.bincount(seen, minlength=21)[best]
        assert (counts[3:] == 0).all()
        np.testing.assert_allclose(counts[:3] / counts.sum(), 1 / 3, atol=0.05)
    np.testing.assert_array_equal(np.unique(top.pair[top.position == 4]).size, 2)  # c has three
    # Gumbel noise: the first place has the softmax of standardised scores over the noise
    noisy = rg.simulate_clicks(data, scores, sessions=20_000, noise=0.7, n_shown=3)
    z = scores[rows] / scores[rows].std() / 0.7
    first = noisy.pair[noisy.position == 1]
    share = np.bincount(first, minlength=21)[rows]
    np.testing.assert_allclose(share / share.sum(), np.exp(z) / np.exp(z).sum(), atol=0.03)
    sizes = np.diff(noisy.session_ptr)
    assert (sizes == 3).all()
    by_session = np.sort(noisy.pair.reshape(-1, 3), axis=1)
    assert (np.diff(by_session, axis=1) > 0).all()  # no document twice


def test_mixture_queries_and_contexts(data):
    scores = data.column(1)
    log = rg.simulate_clicks(
        data, [scores, -scores], sessions=20_000, shares=[3, 1], zipf=1.0,
        contexts={"device": {"phone": (1.0, 0.2), "desktop": (0.0, 0.8)}},
    )  # fmt: skip
    counts = np.sort(np.bincount(log.session_query))[::-1] / 20_000
    np.testing.assert_allclose(counts, np.array([6, 3, 2]) / 11, atol=0.02)
    rows = np.flatnonzero(data.query_of_row == 1)
    best = rows[np.argmax(scores[rows])]
    firsts = log.pair[(log.position == 1) & (log.session_query[log.session_of] == 1)]
    assert (firsts == best).mean() == pytest.approx(0.75, abs=0.02)
    device = log.contexts["device"]
    assert device.names == ("phone", "desktop")
    assert (device.codes == 0).mean() == pytest.approx(0.2, abs=0.02)


def test_position_based_clicks(data):
    scores = -data.y.astype(float)
    log, truth = rg.simulate_clicks(
        data, scores, sessions=60_000, eta=0.5, noise=2.0, epsilon=0.2, return_truth=True
    )
    np.testing.assert_allclose(truth.attractiveness, 0.2 + 0.8 * (2**data.y - 1) / 15)
    np.testing.assert_allclose(truth.examination, np.arange(1, 11) ** -0.5)
    for label in (0, 4):
        found, off = rates(log, data.y[log.pair] == label)
        a = truth.attractiveness[data.y == label][0]
        assert (np.abs(found - a * truth.examination) < off).all()


def test_presets(data):
    scores = data.column(1)
    log, truth = rg.simulate_clicks(
        data, scores, sessions=10, relevance="xgboost", examination="xgboost", eta=2.0,
        return_truth=True,
    )  # fmt: skip
    np.testing.assert_allclose(
        truth.attractiveness, np.array([0.1, 0.16, 0.28, 0.52, 1.0])[data.y.astype(int)]
    )
    np.testing.assert_allclose(truth.examination[:2], [0.68**2, 0.61**2])
    # LightGBM's: users stop after any document with probability 0.2
    log, truth = rg.simulate_clicks(
        data, np.zeros(21), model="dbn", sessions=60_000, relevance="lightgbm", satisfaction=0.0,
        continuation=0.8, noise=1.0, return_truth=True,
    )  # fmt: skip
    found, off = rates(log, data.y[log.pair] == 3)
    assert (np.abs(found - 0.8 * 0.8 ** np.arange(10)) < off).all()


def test_trust_bias(data):
    log, truth = rg.simulate_clicks(
        data, np.zeros(21), model="trust-bias", sessions=60_000, noise=1.0, eta=0.0,
        epsilon=0.0, trust=(0.9, [0.5, 0.1]), return_truth=True,
    )  # fmt: skip
    for label, expected in [(0, [0.5] + [0.1] * 9), (4, [0.9] * 10)]:
        found, off = rates(log, data.y[log.pair] == label)
        assert (np.abs(found - expected) < off).all()
    assert truth.trust[0].tolist() == [0.9] * 10


def test_one_click_in_a_cascade(data):
    log = rg.simulate_clicks(data, data.column(1), model="cascade", sessions=3000, relevance=0.5)
    assert np.bincount(log.session_of, log.click).max() == 1
    assert log.click[log.position == 2].mean() == pytest.approx(0.25, abs=0.03)


# -- models find the truth ---------------------------------------------------------------------

PEERS = {
    "position-based": rg.PositionBased(),
    "cascade": rg.Cascade(),
    "dependent-click": rg.DependentClick(),
    "user-browsing": rg.UserBrowsing(),
    "simplified-dbn": rg.SimplifiedDBN(method="em"),
    "dbn": rg.DBN(),
}
SETTINGS = {"dbn": {"continuation": 0.8}, "dependent-click": {"continuation": 0.6}}


def error(model, name, data, sessions, seed):
    """Return the root mean square errors of attractiveness and of shared parameters."""
    log, truth = rg.simulate_clicks(
        data, data.column(1), model=name, sessions=sessions, noise=1.0, seed=seed, n_shown=6,
        return_truth=True, **SETTINGS.get(name, {}),
    )  # fmt: skip
    model.fit(log)
    weight = model.impressions_ / model.impressions_.sum()
    ours = [np.sqrt(weight @ (model.attractiveness_ - truth.attractiveness) ** 2)]
    if name == "position-based":
        ours.append(np.sqrt(np.mean((model.examination_ - truth.examination) ** 2)))
    if name == "user-browsing":
        i, d = np.nonzero(np.tri(6, 7))  # distances that occur; there is no click above: 0
        there = (d <= i) | (d == 0)
        off = model.examination_[i, d] - truth.examination[i, d]
        ours.append(np.sqrt(np.mean(off[there] ** 2)))
    if name == "dependent-click":
        ours.append(np.sqrt(np.mean((model.continuation_[:5] - 0.6) ** 2)))
    if name == "dbn":
        ours.append(abs(model.continuation_ - 0.8))
    return ours


@pytest.mark.slow
@pytest.mark.parametrize("name", PEERS)
def test_error_falls_as_one_over_the_root_of_n(data, name):
    few = np.mean([error(PEERS[name], name, data, 1500, seed) for seed in range(8)], axis=0)
    many = np.mean([error(PEERS[name], name, data, 1500 * 16, seed) for seed in range(8)], axis=0)
    ratio = few / many  # 4 if it falls with the root
    assert (ratio > 2.7).all(), ratio
    assert many[0] < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("name", ["position-based", "dbn", "cascade"])
@pytest.mark.parametrize("weights", ["bayesian", "poisson"])
def test_coverage_of_intervals(data, name, weights):
    inside = []
    for seed in range(12):
        log, truth = rg.simulate_clicks(
            data, data.column(1), model=name, sessions=1500, noise=1.0, seed=seed, n_shown=6,
            relevance=[0.1, 0.2, 0.35, 0.5, 0.7],
            return_truth=True,
        )  # fmt: skip
        model = PEERS[name].fit(log)
        intervals = model.intervals(log, n=99, seed=seed, level=0.9, weights=weights)
        seen = model.impressions_ > 100
        low, high = intervals.low["attractiveness"], intervals.high["attractiveness"]
        inside.append(((low <= truth.attractiveness) & (truth.attractiveness <= high))[seen])
        if name == "position-based":
            low, high = intervals.low["examination"], intervals.high["examination"]
            inside.append(((low <= truth.examination) & (truth.examination <= high))[1:])
    assert 0.82 < np.concatenate(inside).mean() < 0.96


@pytest.mark.slow
def test_the_prior_does_not_flatten_examination():
    """Good rankers show good documents on top: shrinking them all to one mean would be a bias."""
    web = rg.make_web(30, seed=2)
    rankers = [web.column(1), web.column(2), web.column(3)]
    curves = []
    for seed in range(3):
        log, truth = rg.simulate_clicks(web, rankers, sessions=50_000, seed=seed, return_truth=True)
        curves.append(rg.PositionBased().fit(log).examination_)
    np.testing.assert_allclose(np.mean(curves, axis=0), truth.examination, atol=0.04)


def test_intervals_where_no_click_was_seen():
    """The posterior of a rate with a prior of strength 1, mean 0.5, after 4 impressions."""
    log = rg.ClickLog(range(4), ["a"] * 4, ["x"] * 4, [1] * 4, [0] * 4)
    model = rg.ClickThroughRate(prior_strength=1).fit(log, prior=0.5)
    drawn = model.intervals(log, n=2000, level=0.9)
    assert drawn.low["attractiveness"][0] == pytest.approx(0.00044, abs=0.0005)
    assert drawn.high["attractiveness"][0] == pytest.approx(0.347, abs=0.03)
    poisson = model.intervals(log, n=50, weights="poisson")
    assert poisson.high["attractiveness"][0] <= 0.5


def test_messages(data):
    scores = data.column(1)

    def refused(match, error=rg.ParameterError, **settings):
        with pytest.raises(error, match=match):
            rg.simulate_clicks(data, settings.pop("ranker", scores), **settings)

    refused(r"model.*did you mean 'cascade'", model="cascad")
    refused(r"sessions.*whole number between 1", sessions=0)
    refused("one number per row", rg.DataError, ranker=[1.0, 2.0])
    refused(r"grades 0 to 1.*label", rg.DataError, relevance=[0.1, 0.5])
    refused(r"relevance.*probabilities", relevance=[0.1, 1.5])
    refused(r"satisfaction.*None for the model", satisfaction=0.5)
    refused(r"continuation.*None for the model", continuation=0.5)
    refused(r"examination.*read downwards", model="dbn", examination=[1.0])
    refused(r"contexts.*one name", contexts={"device": 2})
    refused(r"shares.*each ranker", shares=[1, 2])
    refused(r"noise.*at least 0", noise=-1.0)
    refused(r"trust.*pair", model="trust-bias", trust=0.5)
