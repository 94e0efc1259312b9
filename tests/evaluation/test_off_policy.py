"""Estimates from logs: the definitions, exact expectations, coverage, and what is refused."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.off_policy import coverage
from scipy import optimize, stats

import rankgrove as rg
from tests.reference import off_policy as naive

LOOK = [1.0, 0.6, 0.3]


def interval(mean, error, skewness, n):
    """Return Hall's interval: what his cubic takes to the quantiles of Student's distribution."""
    a, t = skewness / np.sqrt(n), stats.t.ppf(0.975, n - 1)

    def taken_back(t):
        return optimize.brentq(lambda x: x + a * x**2 / 3 + a**2 * x**3 / 27 + a / 6 - t, -1e3, 1e3)

    return mean - error * taken_back(t), mean - error * taken_back(-t)


def as_log(sessions):
    rows = [
        (number, query, document, place, click)
        for number, (query, documents, clicks) in enumerate(sessions)
        for place, (document, click) in enumerate(zip(documents, clicks, strict=True), 1)
    ]
    return rg.ClickLog(*(list(column) for column in zip(*rows, strict=True)))


@pytest.fixture(scope="module")
def drawn():
    """Return 60 sessions of three queries, of 3 of 5 documents each, and new rankings."""
    rng = np.random.default_rng(4)
    sessions = []
    for _ in range(60):
        documents = list(rng.permutation(list("vwxyz"))[:3])
        sessions.append((str(rng.choice(list("abc"))), documents, list(rng.integers(0, 2, 3))))
    rankings = {q: list(rng.permutation(list("vwxyz"))) for q in "abc"}
    return sessions, as_log(sessions), rankings


@pytest.mark.parametrize("reward", ["clicks", "dcg"])
@pytest.mark.parametrize("clip", [None, 0.7])
def test_position_is_its_definition(drawn, reward, clip):
    sessions, log, rankings = drawn
    found = rg.estimate_from_log(log, rankings, examination=LOOK, reward=reward, clip=clip)
    expected = naive.by_position(sessions, rankings, LOOK, reward, clip or np.inf)
    assert found.value == pytest.approx(expected)
    assert (found.clipped > 0) == (clip is not None)
    assert found.session_values.mean() == pytest.approx(expected)
    if reward == "clicks":
        assert found.logged == pytest.approx(np.mean([sum(c) for _, _, c in sessions]))
    assert found.difference == pytest.approx(found.value - found.logged)


def test_item_position_is_its_definition(drawn):
    sessions, log, rankings = drawn
    cut = {q: ranking[:3] for q, ranking in rankings.items()}
    found = rg.estimate_from_log(log, rankings, method="item-position")
    assert found.value == pytest.approx(naive.by_item_and_position(sessions, cut))


@pytest.mark.parametrize("clip", [None, 0.7])
def test_doubly_robust_is_its_definition(drawn, clip):
    sessions, log, rankings = drawn
    attractive = np.random.default_rng(0).random(log.n_pairs)
    names = zip(
        log.query_ids[log.pair_query].tolist(),
        log.document_ids[log.pair_document].tolist(),
        strict=True,
    )
    model = dict(zip(names, attractive.tolist(), strict=True))
    arguments = {"examination": LOOK, "clip": clip, "method": "doubly-robust"}
    found = rg.estimate_from_log(log, rankings, model=attractive, **arguments)
    expected = naive.by_position(sessions, rankings, LOOK, clip=clip or np.inf, model=model)
    assert found.value == pytest.approx(expected)
    as_object = SimpleNamespace(attractiveness_=attractive, examination_=np.array(LOOK))
    assert rg.estimate_from_log(
        log, rankings, model=as_object, clip=clip, method="doubly-robust"
    ).value == pytest.approx(expected)


def test_position_is_unbiased_exactly():
    """The mean over all clicks of two sessions, weighted by their probabilities, is the truth."""
    shown, attractive = (["x", "y", "z"], ["y", "z", "x"]), {"x": 0.8, "y": 0.5, "z": 0.1}
    chances = [LOOK[r] * attractive[d] for documents in shown for r, d in enumerate(documents)]
    for new in itertools.permutations("xyz"):
        total = dcg = 0.0
        for clicks in itertools.product((0, 1), repeat=6):
            chance = np.prod([p if c else 1 - p for p, c in zip(chances, clicks, strict=True)])
            log = as_log([("q", shown[0], clicks[:3]), ("q", shown[1], clicks[3:])])
            total += chance * rg.estimate_from_log(log, {"q": new}, examination=LOOK).value
            dcg += chance * (
                rg.estimate_from_log(log, {"q": new}, examination=LOOK, reward="dcg").value
            )
        assert total == pytest.approx(sum(LOOK[r] * attractive[d] for r, d in enumerate(new)))
        assert dcg == pytest.approx(sum(attractive[d] / np.log2(2 + r) for r, d in enumerate(new)))


def test_the_logged_ranking_has_the_logged_value(drawn):
    """Of fixed lists, all estimates of the same lists are the clicks themselves."""
    rng = np.random.default_rng(0)
    sessions = [("q", list("abc"), list(rng.integers(0, 2, 3))) for _ in range(40)]
    log = as_log(sessions)
    clicks = np.array([sum(one[2]) for one in sessions])
    for options in ({"method": "item-position"}, {"self_normalised": True}, {"reward": "dcg"}, {}):
        found = rg.estimate_from_log(log, {"q": "abc"}, examination=LOOK, **options)
        assert found.difference == pytest.approx(0)
        if "reward" not in options:
            limits = interval(clicks.mean(), stats.sem(clicks), stats.skew(clicks), 40)
            assert (found.logged_low, found.logged_high) == pytest.approx(limits)
            assert (found.low, found.high) == pytest.approx(limits, rel=0.02)


def test_forms_of_a_ranking_agree(drawn):
    _, log, rankings = drawn
    as_scores = {q: {d: -r for r, d in enumerate(docs)} for q, docs in rankings.items()}
    queries = log.query_ids[log.pair_query]
    documents = log.document_ids[log.pair_document]
    per_pair = [as_scores[q][d] for q, d in zip(queries, documents, strict=True)]
    rows = [(q, d) for q in "cab" for d in "zyxwv"]
    data = rg.QueryDataset(
        [[as_scores[q][d]] for q, d in rows],
        [0] * 15,
        qid=[q for q, _ in rows],
        docid=[d for _, d in rows],
    )
    scores = data.column(1)
    model = SimpleNamespace(predict=lambda X: np.asarray(X)[:, 0])
    first = rg.estimate_from_log(log, rankings, examination=LOOK)
    for ranking, more in (
        (as_scores, {}),
        (np.array(per_pair), {}),
        (scores, {"data": data}),
        (model, {"data": data}),
    ):
        found = rg.estimate_from_log(log, ranking, examination=LOOK, **more)
        assert found == first


def test_documents_without_ids_are_rows_from_1():
    """As simulate_clicks and click_data number them, also where the data is not query by query."""
    whole = rg.make_web(12, n_docs=6, seed=1)
    rows = np.random.default_rng(0).permutation(whole.n_rows)
    data = rg.QueryDataset(whole.X[rows], whole.y[rows], qid=whole.qid[rows])
    log = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=400, seed=1, n_shown=6)
    look = 1 / np.arange(1, 7)
    scores = data.column(2)
    first = rg.estimate_from_log(log, scores, data=data, examination=look)
    assert first.overlap == 1
    assert first == rg.estimate_from_log(log, scores, examination=look)  # its pairs are rows


def test_positions_that_nobody_looks_at():
    log = as_log([("q", ["a", "b"], [1, 0]), ("q", ["b", "a"], [1, 0])])
    found = rg.estimate_from_log(log, {"q": "ba"}, examination=[1.0, 0.0], reward="dcg")
    assert found.logged == 1
    assert found.value == pytest.approx(1 + 1 / np.log2(3))


def test_missing_overlap_is_said_and_self_normalised():
    sessions = [("q", ["a", "b"], [1, 0]), ("q", ["a", "b"], [1, 1])]
    with pytest.warns(rg.DataWarning, match="others were never shown for their query"):
        found = rg.estimate_from_log(as_log(sessions), {"q": "ca"}, examination=[1.0, 0.5])
    assert found.overlap == pytest.approx(1 / 3)
    assert found.value == pytest.approx(0.5)
    with pytest.warns(rg.DataWarning, match="taken to be like them"):
        found = rg.estimate_from_log(
            as_log(sessions), {"q": "ca"}, examination=[1.0, 0.5], self_normalised=True
        )
    assert found.value == pytest.approx(1.5)


def test_queries_without_a_ranking_are_left_out():
    sessions = [("q", ["a"], [1]), ("r", ["a"], [0])]
    with pytest.warns(rg.DataWarning, match="1 query without a new ranking"):
        found = rg.estimate_from_log(as_log(sessions), {"q": "a"}, examination=[1.0])
    assert (found.value, found.n_sessions, found.without_ranking) == (1.0, 1, 1)
    assert "left out" in str(found)


def test_differences_are_paired(drawn):
    _, log, rankings = drawn
    other = {q: docs[::-1] for q, docs in rankings.items()}
    one = rg.estimate_from_log(log, rankings, examination=LOOK)
    two = rg.estimate_from_log(log, other, examination=LOOK)
    difference, low, high = one.minus(two)
    assert difference == pytest.approx(one.value - two.value)
    assert low < difference < high
    assert one.minus(one) == (0.0, 0.0, 0.0)
    assert 0 < one.effective_size <= one.n_impressions
    assert "new ranking" in one._repr_html_()


def test_intervals_by_query_are_those_of_cluster_sums(drawn):
    _, log, rankings = drawn
    found = rg.estimate_from_log(log, rankings, examination=LOOK, by="query")
    values, query = found.session_values, log.session_query
    sums = np.array([(values[query == q] - values.mean()).sum() for q in range(3)])
    error = np.sqrt(1.5 * (sums**2).sum()) / 60
    limits = interval(values.mean(), error, stats.skew(sums), 3)
    assert (found.low, found.high) == pytest.approx(limits)


@pytest.mark.parametrize(("clicks", "wider"), [(1, 2.2), (3, 2.2), (10, 1.05), (60, 1.02)])
def test_intervals_of_few_clicks(clicks, wider):
    """They are not symmetric, and not much wider than those of a binomial distribution."""
    n = 1000
    log = rg.ClickLog(np.arange(n), ["q"] * n, ["a"] * n, [1] * n, np.arange(n) < clicks)
    found = rg.estimate_from_log(log, {"q": ["a"]}, examination=[1.0])
    exact = stats.binomtest(clicks, n).proportion_ci()
    assert found.value == pytest.approx(clicks / n)
    assert 0.98 * exact.high < found.high < wider * exact.high
    assert found.low == pytest.approx(exact.low, abs=0.3 / n, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"n_queries": 20, "n_sessions": 1000},
        {"n_queries": 300, "n_sessions": 1000, "self_normalised": True},
        {"n_queries": 150, "n_sessions": 1500, "by": "query"},
        {"n_queries": 20, "n_sessions": 2000, "noise": 4.0, "method": "item-position"},
        {"n_queries": 100, "n_sessions": 1000, "method": "doubly-robust"},
    ],
)
@pytest.mark.filterwarnings("ignore::rankgrove.errors.DataWarning")
def test_intervals_hold_the_truth(options):
    draws = 200
    held, bias, ratio = coverage(draws, **options)
    assert stats.binomtest(round(held * draws), draws, 0.95).pvalue > 0.003
    assert abs(bias) < 0.01
    assert 0.85 < ratio < 1.2


@pytest.mark.slow
def test_intervals_hold_the_truth_where_clicks_are_rare():
    held, _, _ = coverage(200, n_queries=20, n_sessions=400, scale=0.05)
    assert held > 0.9  # by Student's t alone: 0.84


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "'examination' parameter"),
        ({"examination": [1.0]}, "has 1 position, and the log 3"),
        ({"examination": np.ones((2, 3))}, "sessions of one context"),
        ({"examination": LOOK, "method": "doubly-robust"}, "'model' parameter"),
        ({"examination": LOOK, "method": "model", "model": [0.5]}, "one finite number per"),
        ({"method": "item-position", "reward": "dcg"}, "knows no examination"),
        ({"examination": LOOK, "clip": 0.0}, "'clip' parameter"),
        (
            {"examination": LOOK, "method": "model", "model": 1, "self_normalised": True},
            "'self_normalised' parameter",
        ),
        ({"examination": LOOK, "method": "ips"}, "'method' parameter"),
    ],
)
def test_what_does_not_fit_is_refused(drawn, options, message):
    with pytest.raises(rg.RankgroveError, match=message):
        rg.estimate_from_log(drawn[1], drawn[2], **options)


def test_bad_rankings_are_refused(drawn):
    log = drawn[1]
    for ranking, message in (
        ({"no": "ab"}, "no query of the log has a new ranking"),
        ({"a": "vv"}, "has a document twice"),
        ([1.0, 2.0], "scores must be one number per row"),
        (SimpleNamespace(predict=len), "needs data="),
    ):
        with pytest.raises(rg.DataError, match=message):
            rg.estimate_from_log(log, ranking, examination=LOOK)


def test_the_examination_of_a_check():
    data = rg.make_web(30, seed=1)
    log = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=3000, seed=1)
    check = rg.check_clicks(log)
    new = data.column(2)
    by_check = rg.estimate_from_log(log, new, data=data, examination=check)
    by_array = rg.estimate_from_log(log, new, data=data, examination=check.examination)
    assert by_check == by_array
    with pytest.raises(rg.ParameterError, match="one number per position, a fitted click model"):
        rg.estimate_from_log(log, new, data=data, examination="steep")
    with pytest.raises(rg.DataError, match=r"some of them above. Got \[0.0, 0.0"):
        rg.estimate_from_log(log, new, data=data, examination=[0] * 10)
    with pytest.raises(rg.DataError, match=r"Got the shape .* Take that of rg.PositionBased"):
        rg.estimate_from_log(log, new, data=data, examination=rg.UserBrowsing().fit(log))


def test_the_model_alone_has_no_weights():
    data = rg.make_web(30, seed=1)
    log = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=3000, seed=1)
    model = rg.PositionBased().fit(log)
    of_model = rg.estimate_from_log(log, data.column(2), data=data, model=model, method="model")
    assert "weight" not in str(of_model)
    other = rg.estimate_from_log(log, data.column(2), data=data, examination=model)
    assert "of equal weight" in str(other)
