"""PyTerrier: the call that its LTR transformer makes, and our own transformer."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import rankgrove as rg
from tests.integrations.conftest import named

pd = pytest.importorskip("pandas")


def results(seed):
    """Return a frame of results with features, in an order of its own, and its qrels."""
    data = named(seed)
    frame = pd.DataFrame(
        {
            "qid": [f"q{qid}" for qid in data.qid],
            "query": "words",
            "docno": list(data.docid),
            "rank": 0,
            "score": 0.0,
            "features": list(np.asarray(data.X, np.float64)),
        }
    )
    qrels = frame[["qid", "docno"]].assign(label=data.y.astype(int))
    return frame.sample(frac=1, random_state=seed), qrels[qrels["label"] > 0], data


def as_pyterrier_stacks(frame, qrels):
    """Return features, labels and sizes of queries, as PyTerrier 1.1 gives them to ``fit``."""
    judged = frame.merge(qrels, on=["qid", "docno"], how="left").fillna(0).sort_values("qid")
    sizes = judged.groupby(["qid"], sort=False)["docno"].count().to_numpy()
    return np.stack(judged["features"].values), judged["label"].values, sizes


RANKERS = {
    "LambdaMART": lambda: rg.LambdaMART("ndcg@10", n_trees=4, min_leaf=5),
    "MART": lambda: rg.MART(n_trees=4, min_leaf=5),
    "RankNet": lambda: rg.RankNet(n_epochs=2),
}


@pytest.mark.parametrize("name", list(RANKERS))
def test_the_call_of_pyterrier(name):
    train, valid, test = (results(seed) for seed in (1, 2, 3))
    X, y, sizes = as_pyterrier_stacks(*train[:2])
    X_valid, y_valid, valid_sizes = as_pyterrier_stacks(*valid[:2])
    learner, other = RANKERS[name](), RANKERS[name]()
    learner.fit(X, y, group=sizes, eval_set=[(X_valid, y_valid)], eval_group=[valid_sizes])
    qid, valid_qid = (np.repeat(np.arange(len(n)), n) for n in (sizes, valid_sizes))
    other.fit(X, y, qid, valid=(X_valid, y_valid, valid_qid))
    features = np.stack(test[0]["features"].values)
    assert np.ptp(learner.predict(features)) > 0
    assert np.array_equal(learner.predict(features), other.predict(features))
    importances = getattr(learner, "feature_importances_", features[0])
    assert len(importances) == features.shape[1]  # PyTerrier checks it before it scores


def test_data_sets_of_results():
    frame, qrels, data = results(1)
    made = rg.pyterrier.dataset_of_results(frame, qrels, list(data.feature_names))
    label = dict(zip(data.docid, data.y, strict=True))
    assert made.y.tolist() == [label[docno] for docno in frame["docno"]]
    assert made.feature_names == data.feature_names
    assert made.qid.tolist() == frame["qid"].tolist()
    with pytest.raises(rg.DataError, match=r"results lack the column 'features'.*\*\* before"):
        rg.pyterrier.dataset_of_results(frame.drop(columns="features"))
    with pytest.raises(rg.DataError, match="qrels lack the column 'label'"):
        rg.pyterrier.dataset_of_results(frame, qrels.drop(columns="label"))
    frame["features"] = [np.zeros(2 + i % 2) for i in range(len(frame))]
    with pytest.raises(rg.DataError, match="documents have 2 to 3 features"):
        rg.pyterrier.dataset_of_results(frame)


def test_refusals(monkeypatch):
    with pytest.raises(rg.ParameterError, match=r"takes a ranker of rankgrove. Got str"):
        rg.pyterrier.apply_ranker("web.rg")
    monkeypatch.setitem(sys.modules, "pyterrier", None)
    rg.pyterrier._transformer_class.cache_clear()
    with pytest.raises(rg.MissingExtraError, match=r"'pyterrier'.*rankgrove\[pyterrier\]"):
        rg.pyterrier.apply_ranker(rg.MART())


@pytest.fixture
def pt():
    rg.pyterrier._transformer_class.cache_clear()
    return pytest.importorskip("pyterrier", reason="PyTerrier is not installed")


@pytest.mark.filterwarnings("ignore")
def test_their_transformer(pt):
    train, valid, test = (results(seed) for seed in (1, 2, 3))
    ranker = RANKERS["LambdaMART"]()
    transformer = pt.ltr.apply_learned_model(ranker, form="ltr")
    transformer.fit(*train[:2], *valid[:2])
    ranked = transformer.transform(test[0])
    expected = ranker.predict(np.stack(ranked["features"].values))
    assert ranked["score"].tolist() == expected.tolist()


@pytest.mark.filterwarnings("ignore")
def test_our_transformer(pt):
    train, valid, test = (results(seed) for seed in (1, 2, 3))
    names = list(train[2].feature_names)
    for ranker in (
        RANKERS["LambdaMART"](),
        rg.PreparedRanker(RANKERS["MART"](), normalise="zscore"),
    ):
        own = rg.pyterrier.apply_ranker(ranker, names)
        own.fit(*train[:2], *valid[:2])
        assert ranker.feature_names_ == tuple(names)
        ranked = own(test[0])
        data = rg.pyterrier.dataset_of_results(ranked, None, names)
        assert ranked["score"].tolist() == pytest.approx(ranker.predict(data).tolist(), abs=1e-12)
        assert ranked.groupby("qid")["rank"].min().eq(0).all()
        empty = own(test[0].iloc[:0])
        assert len(empty) == 0
        assert {"score", "rank"} <= set(empty.columns)
        topics = test[0][["qid", "query"]].drop_duplicates()
        pipeline = pt.Transformer.from_df(test[0]) >> own
        table = pt.Experiment([pipeline], topics, test[1], ["ndcg_cut_10"])
        qrels = rg.Qrels.from_frame(test[1])
        ours = rg.evaluate(
            rg.Run.from_frame(ranked), qrels, "ndcg@10", "trec", missing_queries="drop"
        )
        assert table["ndcg_cut_10"][0] == pytest.approx(ours.mean["ndcg@10"])
    with pytest.raises(rg.DataError, match="no results to train on"):
        own.fit(train[0].iloc[:0], train[1])
