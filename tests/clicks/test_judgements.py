"""Judgements and training data from clicks."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.clicks.choosing import expected_examinations


@pytest.fixture(scope="module")
def data():
    return rg.make_web(10, n_docs=12, n_features=5, seed=1)


@pytest.fixture(scope="module")
def log(data):
    noise = np.random.default_rng(0).normal(size=data.n_rows)
    return rg.simulate_clicks(data, noise, sessions=6000, noise=1.0, seed=1)


def test_grades(data, log):
    judged = rg.judgements(log, n_grades=3, samples=20)
    counts = np.bincount(judged.label.astype(int))
    assert counts.size == 3
    assert counts.max() - counts.min() <= 3
    assert (judged.low <= judged.attractiveness).mean() > 0.95
    assert (judged.high >= judged.attractiveness).mean() > 0.95
    assert len(judged) + judged.n_left_out == np.unique(log.pair).size
    assert (judged.impressions >= 10).all()
    rows = judged.dataset(data)
    true = {(q, i): y for q, i, y in zip(data.qid.tolist(), data.X[:, 0].tolist(), data.y.tolist(),
                                         strict=True)}  # fmt: skip
    truth = [true[q, x] for q, x in zip(rows.qid.tolist(), rows.X[:, 0].tolist(), strict=True)]
    assert np.corrcoef(truth, rows.y)[0, 1] > 0.2
    assert "grade 2" in str(judged)
    assert "left out" in judged._repr_html_()


def test_judged_documents_that_the_data_lacks_are_named(data, log):
    judged = rg.judgements(log, samples=0)
    assert "pooled" not in str(judged)
    with pytest.warns(rg.DataWarning, match=r"The data lacks .* of .* judged documents, which are"):
        part = judged.dataset(data.select(np.arange(5)))
    assert part.n_queries <= 5


def test_thresholds_and_soft_labels(log):
    model = rg.ClickThroughRate().fit(log)
    hard = rg.judgements(log, model, thresholds=[0.1, 0.2], samples=0)
    soft = rg.judgements(log, model, labels="soft", samples=0)
    np.testing.assert_array_equal(soft.label, hard.attractiveness)
    np.testing.assert_array_equal(hard.label, (soft.label >= 0.1).astype(int) + (soft.label >= 0.2))
    assert (soft.weight > 0).all()
    assert (soft.weight < 1).all()
    with pytest.raises(rg.ParameterError, match="soft labels"):
        soft.qrels()
    with pytest.raises(rg.ParameterError, match="None with soft labels"):
        rg.judgements(log, model, labels="soft", thresholds=[0.1])


def test_few_are_pooled():
    """Two rare documents of query a have one label; the rare one of b stays out."""
    session = np.arange(100)
    query = ["a"] * 90 + ["b"] * 10
    document = ["x"] * 80 + ["y"] * 5 + ["z"] * 5 + ["x"] * 6 + ["y"] * 4
    click = [1, 0] * 40 + [1] * 5 + [0] * 5 + [0] * 10
    log = rg.ClickLog(session, query, document, [1] * 100, click)
    model = rg.ClickThroughRate(prior_strength=0.0)
    options = {"samples": 0, "min_impressions": 10, "labels": "soft"}
    assert rg.judgements(log, model, **options).document.tolist() == ["x"]
    pooled = rg.judgements(log, model, few="pool", **options)
    assert pooled.document.tolist() == ["x", "y", "z", "x", "y"]
    assert pooled.pooled.tolist() == [False, True, True, True, True]
    np.testing.assert_allclose(pooled.label, [0.5, 0.5, 0.5, 0, 0])
    assert rg.judgements(log, model, few="pool", **options | {"min_impressions": 11}).n_left_out
    with pytest.raises(rg.DataError, match=r"\(the most is 80\): lower min_impressions"):
        rg.judgements(log, model, **options | {"min_impressions": 1000})


def test_files(data, log, tmp_path):
    judged = rg.judgements(log, samples=3)
    judged.write(tmp_path / "qrels.txt")
    assert rg.read_qrels(tmp_path / "qrels.txt") == judged.qrels()
    judged.write(tmp_path / "train.txt", data)
    again = rg.read_letor(tmp_path / "train.txt")
    np.testing.assert_array_equal(again.y, judged.dataset(data).y)
    judged.write(tmp_path / "j.csv")
    with open(tmp_path / "j.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["high"]) for row in rows] == judged.high.tolist()
    with pytest.raises(rg.ParameterError, match="has no features"):
        judged.write(tmp_path / "j.csv", data)
    spaced = rg.ClickLog(range(20), ["a b"] * 20, ["x"] * 20, [1] * 20, [0, 1] * 10)
    with pytest.raises(rg.DataError, match="cannot hold the id 'a b'"):
        rg.judgements(spaced, samples=0).write(tmp_path / "qrels.txt")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": "hard"}, "'labels' parameter"),
        ({"thresholds": [0.2, 0.1]}, "rising numbers"),
        ({"model": 3}, "must be a click model"),
        ({"n_grades": 1}, "'n_grades' parameter"),
    ],
)
def test_refused(log, options, message):
    with pytest.raises(rg.ParameterError, match=message):
        rg.judgements(log, **options)


def naive_rows(log, data):
    """Features by dictionaries."""
    places = {}
    rows = {}
    for i, qid in enumerate(data.qid.tolist()):
        places[qid] = places.get(qid, 0) + 1
        document = data.docid[i] if data.docid is not None else str(places[qid])
        rows[str(qid), document] = i
    documents = log.document_ids[log.pair_document[log.pair]].astype(str).tolist()
    queries = log.query_ids[log.session_query[log.session_of]].astype(str).tolist()
    return [rows[key] for key in zip(queries, documents, strict=True)]


@pytest.mark.parametrize("has_docids", [False, True])
@pytest.mark.parametrize("mixed", [False, True])
def test_training_data(data, has_docids, mixed):
    docid = [f"d{i % 50}" for i in range(data.n_rows)] if has_docids else None
    order = np.random.default_rng(1).permutation(data.n_rows) if mixed else np.arange(data.n_rows)
    docid = None if docid is None else [docid[i] for i in order]
    here = rg.QueryDataset(data.X[order], data.y[order], data.qid[order], docid=docid)
    part = here.select([7, 2, 3])
    log = rg.simulate_clicks(
        part, part.column(1), sessions=50, contexts={"device": {"tv": 1.0, "pc": 2.0}}
    )
    rows = rg.click_data(log, part, context="device")
    wanted = naive_rows(log, part)
    np.testing.assert_array_equal(rows.X, part.X[wanted])
    np.testing.assert_array_equal(rows.y, log.click)
    assert rows.n_queries == 50
    np.testing.assert_array_equal(rows.positions.place, log.position)
    np.testing.assert_array_equal(rows.positions.pair, log.pair)
    names = np.array(rows.positions.names)[rows.positions.context]
    of = log.contexts["device"]
    np.testing.assert_array_equal(names, np.array(of.names)[of.codes][log.session_of])
    if has_docids:
        assert rows.docid.tolist() == part.docid[wanted].tolist()
    assert rg.LambdaMART(n_trees=2, min_leaf=2).fit(rows).predict(part).size == part.n_rows


@pytest.mark.parametrize("fitted", [False, True])
def test_training_data_weighed_by_examination(data, fitted):
    log = rg.simulate_clicks(data, data.column(1), model="dbn", sessions=400, seed=2)
    model = rg.DBN()
    rows = rg.click_data(log, data, examined=model.fit(log) if fitted else model)
    assert hasattr(model, "attractiveness_") == fitted
    seen = rg.DBN().fit(log).examination_probabilities(log)
    np.testing.assert_array_equal(rows.weight, seen)
    assert (rows.weight[rows.y == 1] == 1).all()
    assert (rows.weight < 0.5).any()
    part = data.select(np.arange(data.n_queries // 2))
    with pytest.warns(rg.DataWarning, match="left out"):
        some = rg.click_data(log, part, missing="drop", examined=model.fit(log))
    known = np.isin(log.query_ids[log.session_query[log.session_of]], part.query_ids)
    np.testing.assert_array_equal(some.weight, seen[known])
    assert rg.MART("logistic", n_trees=2).fit(rows).predict(data).size == data.n_rows
    with pytest.raises(rg.ParameterError, match="must be a click model"):
        rg.click_data(log, data, examined="dbn")


def test_impressions_without_features():
    data = rg.QueryDataset([[1.0], [2.0]], [0, 0], qid=["a", "a"], docid=["x", "y"])
    log = rg.ClickLog([1, 1, 2, 3], ["a", "a", "a", "b"], ["x", "z", "y", "x"], [1, 2, 1, 1],
                      [0, 1, 1, 0])  # fmt: skip
    with pytest.raises(rg.DataError, match="no features of 2 of 4 impressions; the first is"):
        rg.click_data(log, data)
    with pytest.warns(rg.DataWarning, match="left out 2 of 4 impressions"):
        rows = rg.click_data(log, data, missing="drop")
    assert rows.qid.tolist() == [1, 2]
    assert rows.X.ravel().tolist() == [1.0, 2.0]
    with pytest.raises(rg.DataError, match=r"no context 'device'\. It has: none"):
        rg.click_data(log, data, context=["device"])
    twice = rg.QueryDataset([[1.0], [2.0]], [0, 0], qid=["a", "a"], docid=["x", "x"])
    with pytest.raises(
        rg.DataError, match="document 'x' of the query 'a' twice, in the rows 0 and"
    ):
        rg.click_data(log, twice)


@pytest.mark.parametrize(
    "model", [rg.Cascade, rg.SimplifiedDBN, rg.DBN, rg.ClicksOverExpected, rg.PositionBased]
)
def test_documents_without_clicks_were_examined_as_well(model):
    """Their label 0 is as certain as other labels."""
    rng = np.random.default_rng(0)
    shown = np.array([rng.permutation(3) for _ in range(500)])
    clicks = rng.random(shown.shape) < np.array([0.5, 0.3, 0.0])[shown] * [1.0, 0.5, 0.3]
    session, documents = np.repeat(np.arange(500), 3), np.array(list("abc"))[shown.ravel()]
    log = rg.ClickLog(session, ["q"] * 1500, documents, np.tile([1, 2, 3], 500), clicks.ravel())
    fitted = model(prior_strength=0).fit(log)
    judged = rg.judgements(log, fitted, labels="soft", samples=0)
    assert judged.weight.tolist() == [1, 1, 1]
    assert judged.label[judged.document == "c"] == pytest.approx(0, abs=1e-6)
    chance = fitted.examination_probabilities(log)[shown.ravel() == 2]
    assert chance.min() < 0.9
    examined = expected_examinations(fitted, log)
    assert examined.min() > 100
