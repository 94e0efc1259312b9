"""Evaluation: means, intervals, what is left out, invariance, and how it prints."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

import rankgrove as rg
from tests.reference import measures as naive

SPECS = ["ndcg@5", "map", "err", "mrr", "p@3", "recall@5", "meanndcg", "auc", "pairs", "accuracy"]


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(11)
    sizes = rng.integers(1, 60, 300)
    qid = np.repeat(np.arange(1000, 1300), sizes)
    labels = rng.choice(5, sizes.sum(), p=[0.5, 0.2, 0.15, 0.1, 0.05])
    labels[qid == 1007] = 0
    return rg.QueryDataset(None, labels, qid), np.round(rng.normal(size=sizes.sum()), 1)


def same(a, b):
    assert a.mean == b.mean
    assert a.interval == b.interval
    by_id = [
        {
            name: dict(zip(r.query_ids.tolist(), v.tolist(), strict=True))
            for name, v in r.per_query.items()
        }
        for r in (a, b)
    ]
    for name in a.mean:
        for qid, value in by_id[0][name].items():
            other = by_id[1][name][qid]
            assert value == other or (math.isnan(value) and math.isnan(other))


def test_means_are_those_of_the_definition(scored):
    data, _ = scored
    scores = np.random.default_rng(0).permutation(data.n_rows).astype(float)
    result = rg.evaluate(scores, data, ["ndcg@5", "map"])
    expected = {"ndcg@5": [], "map": []}
    for q in range(data.n_queries):
        part = slice(data.query_ptr[q], data.query_ptr[q + 1])
        ranked = [int(l) for l in data.y[part][np.argsort(-scores[part])]]
        if len(set(ranked)) > 1:
            expected["ndcg@5"].append(naive.ndcg(ranked, 5))
            expected["map"].append(naive.average_precision(ranked))
    for name, values in expected.items():
        assert result.mean[name] == pytest.approx(np.mean(values), rel=1e-12)
        t = stats.t.interval(0.95, len(values) - 1, np.mean(values), stats.sem(values))
        assert result.interval[name] == pytest.approx(t, rel=1e-9)
        assert data.n_queries - len(result.dropped[name]) == len(values)
    assert result.dropped["map"][1007] == "all labels equal"


def test_same_bits_for_any_number_of_threads(scored):
    data, scores = scored
    same(
        rg.evaluate(scores, data, SPECS, n_threads=1), rg.evaluate(scores, data, SPECS, n_threads=2)
    )


def test_same_bits_for_queries_in_another_order(scored):
    data, scores = scored
    order = np.random.default_rng(1).permutation(data.n_queries)
    rows = np.concatenate([np.arange(data.query_ptr[q], data.query_ptr[q + 1]) for q in order])
    other = rg.QueryDataset(None, data.y[rows], data.qid[rows])
    for ties in ("stable", "expected", "worst"):
        specs = [rg.measure(spec, ties=ties) for spec in SPECS]
        same(rg.evaluate(scores, data, specs), rg.evaluate(scores[rows], other, specs))


def test_same_bits_for_shuffled_rows_when_ties_are_averaged(scored):
    data, scores = scored
    rows = np.random.default_rng(2).permutation(data.n_rows)
    other = rg.QueryDataset(None, data.y[rows], data.qid[rows])
    assert other.order is not None
    for ties in ("expected", "worst"):
        specs = [rg.measure(spec, ties=ties) for spec in SPECS]
        same(rg.evaluate(scores, data, specs), rg.evaluate(scores[rows], other, specs))


def test_names_stay_as_the_caller_spelled_them(scored):
    data, scores = scored
    result = rg.evaluate(scores, data, ["NDCG@10", "rr"], convention="letor")
    assert list(result.mean) == ["NDCG@10", "rr"]
    assert str(result.measures["NDCG@10"]) == "ndcg@10[letor]"
    assert list(rg.evaluate(scores, data, "map").mean) == ["map"]


def test_a_model_is_anything_that_predicts(scored):
    data, scores = scored

    class Ranker:
        takes_datasets = True

        def predict(self, dataset):
            assert dataset is data
            return scores

    class Regressor:
        def predict(self, X):
            assert X is data.X
            return scores

    expected = rg.evaluate(scores, data, SPECS)
    same(rg.evaluate(Ranker(), data, SPECS), expected)
    same(rg.evaluate(Regressor(), data, SPECS), expected)


def test_runs_and_qrels_may_be_plain_dicts():
    result = rg.evaluate({"1": {"a": 2.0, "b": 1.0}}, {"1": {"b": 1}}, "mrr", convention="trec")
    assert result.mean["mrr"] == 0.5


def test_documents_that_were_not_retrieved_gain_nothing():
    data = rg.QueryDataset(None, [2, 1, 0], qid=["a"] * 3)
    scores = [-np.inf, 1.0, 0.5]
    assert rg.evaluate(scores, data, "map[trec]").mean["map[trec]"] == 0.5
    expected = 1 / (2 + 1 / math.log2(3))
    assert rg.evaluate(scores, data, "ndcg[trec]").mean["ndcg[trec]"] == pytest.approx(expected)


def test_all_queries_left_out():
    data = rg.QueryDataset(None, [0, 0], qid=[1, 1])
    result = rg.evaluate([1.0, 2.0], data, "ndcg@10")
    assert math.isnan(result.mean["ndcg@10"])
    assert "nan" in str(result)
    assert "1 with all labels equal" in str(result)
    assert "No value of ndcg@10: every query is left out. Check the labels" in str(result)
    assert repr(result) == str(result)
    assert json.loads(result.to_json())["measures"][0]["mean"] is None
    only_relevant = rg.QueryDataset(None, [1, 1], qid=[1, 1])
    found = rg.evaluate([1.0, 2.0], only_relevant, "auc", convention="letor")
    assert found.dropped["auc"] == {1: "no pair to order"}


def test_bad_input(scored):
    data, scores = scored
    with pytest.raises(rg.DataError, match=r"one number per row of the data .* Got .*\(3,\)"):
        rg.evaluate([1.0, 2, 3], data, "map")
    bad = scores.copy()
    bad[5] = np.nan
    with pytest.raises(rg.DataError, match=r"got NaN for 1 score of .*, the first at row 5"):
        rg.evaluate(bad, data, "map")
    with pytest.raises(rg.DataError, match="must be numbers"):
        rg.evaluate(np.array(["a"] * data.n_rows), data, "map")
    with pytest.raises(rg.ParameterError, match="at least one measure"):
        rg.evaluate(scores, data, [])
    with pytest.raises(rg.ParameterError, match="did you mean 'letor'"):
        rg.evaluate(scores, data, "map", convention="leter")
    with pytest.raises(rg.DataError, match="As qrels, give a mapping"):
        rg.evaluate(scores, (scores, scores), "map")
    with pytest.raises(rg.DataError, match="evaluated against qrels"):
        rg.evaluate(rg.Run({"1": {"a": 1.0}}, name="r"), data, "map")


def test_one_query_has_no_interval():
    data = rg.QueryDataset(None, [1, 0], qid=[1, 1])
    found = rg.evaluate([2.0, 1.0], data, "map")
    assert str(found).splitlines()[1] == "map      1.0000                -         1"
    assert "<td" in found._repr_html_()
    assert "nan" not in found._repr_html_()
    both = rg.compare({"a": [2.0, 1.0], "b": [1.0, 2.0]}, data, "map")
    assert "nan" not in str(both) + both._repr_html_()


def test_a_bad_convention_names_the_function_that_was_called():
    data = rg.QueryDataset(None, [1, 0], qid=[1, 1])
    for call, name in (
        (lambda: rg.evaluate([2.0, 1.0], data, "map", convention="trex"), "evaluate"),
        (lambda: rg.compare({"a": [1, 2], "b": [2, 1]}, data, "map", convention="trex"), "compare"),
        (lambda: rg.report([2.0, 1.0], data, "map", convention="trex"), "report"),
        (lambda: rg.measure("map", convention="trex"), "measure"),
    ):
        with pytest.raises(rg.ParameterError, match=f"'convention' parameter of {name} must be"):
            call()


def test_ids_of_other_types_are_told():
    run, qrels = {1: {"a": 1.0}, 2: {"a": 1.0}}, {"1": {"a": 1}, "2": {"a": 1}}
    for missing_queries in ("zero", "drop"):
        with pytest.raises(
            rg.DataError, match=r"no query in common: an id is 1 \(int\) in the run"
        ):
            rg.evaluate(run, qrels, "map", missing_queries=missing_queries)
    with pytest.raises(rg.DataError, match=r"'9'\) and the qrels .* in common\.$"):
        rg.evaluate({"9": {"a": 1.0}}, qrels, "map")


def test_data_of_a_model():
    """A data set, or (X, y, qid) as `valid` has it; a bare table is no qrels to a model."""
    import pandas as pd

    data = rg.make_artificial(20, seed=1)
    X, y, qid = np.asarray(data.X), data.y, data.qid
    table = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    model = rg.LambdaMART(n_trees=2).fit(table, y, qid=qid)
    found = rg.evaluate(model, (table, y, qid), "ndcg@10")
    assert found.mean == rg.evaluate(model, data, "ndcg@10").mean
    assert found.convention == "papers"
    assert rg.evaluate(X[:, 0], (X, y, qid), "map").convention == "papers"
    both = rg.compare({"model": model, "x0": X[:, 0]}, (X, y, qid), "ndcg@10")
    assert both.mean["model"] == found.mean["ndcg@10"]
    with pytest.raises(rg.DataError, match="the names of the training data"):
        rg.evaluate(model, (table[table.columns[::-1]], y, qid), "ndcg@10")
    table = table.assign(qid=qid, label=y)
    for call in (
        lambda: rg.evaluate(model, table, "map"),
        lambda: rg.compare({"a": model, "b": model}, table, "map"),
    ):
        with pytest.raises(
            rg.DataError, match=r"a model needs a QueryDataset.*from_frame.*Got Dat"
        ):
            call()


def test_queries_that_a_run_lacks(recwarn):
    run, qrels = {"q1": {"a": 1.0}}, {"q1": {"a": 1, "b": 0}, "q2": {"c": 1, "d": 0}}
    names = ["map", "auc", "ndcg@10"]
    found = rg.evaluate(run, qrels, names, convention="trec")
    assert set(found.mean.values()) == {0.5}  # also ROC area, which would be 0.5 for a tie
    assert found.missing == ("q2",)
    said = "The run lacks 1 of 2 judged queries, which counts 0."
    assert str(found).endswith(said)
    assert said in found._repr_html_()
    assert [str(one.message) for one in recwarn] == [said]
    assert found.to_dict()["missing"] == ["q2"]
    found = rg.evaluate(run, qrels, names, convention="trec", missing_queries="drop")
    assert set(found.mean.values()) == {1.0}
    assert str(found).endswith("The run lacks 1 of 2 judged queries, which is left out.")
    with pytest.raises(rg.ParameterError, match="'missing_queries' parameter of evaluate"):
        rg.evaluate(run, qrels, "map", missing_queries="no")


def test_a_lacking_query_with_nothing_relevant_stays_left_out():
    run = {"q1": {"a": 1.0, "b": 0.0}}
    qrels = {"q1": {"a": 1, "b": 0}, "q2": {"c": 0, "d": 0}}
    with pytest.warns(UserWarning, match="The run lacks 1 of 2"):
        found = rg.evaluate(run, qrels, "map", "papers")
    assert found.mean == {"map": 1.0}
    assert found.dropped["map"] == {"q2": "all labels equal"}


CONVENTIONS = ["papers", "letor", "trec", "yahoo", "lightgbm", "sklearn", "ranklib"]


@pytest.mark.filterwarnings("ignore:.* lacks 95")
@pytest.mark.parametrize("convention", [None, *CONVENTIONS])
def test_lacking_queries_count_0_by_every_convention(convention):
    qrels = {f"q{i}": {f"rel{i}": 1} for i in range(100)}
    part = {f"q{i}": {f"rel{i}": 1.0, "y": 0.5} for i in range(5)}
    names = ["mrr", "ndcg@1", "map", "auc", "pairs", "kendall", "accuracy", "bpref"]
    found = rg.evaluate(part, qrels, names, convention)
    assert found.mean == pytest.approx(dict.fromkeys(names, 0.05))
    assert not any(found.dropped.values())
    full = {f"q{i}": {"y": 1.0, f"rel{i}": 0.5} for i in range(100)}
    both = rg.compare({"part": part, "full": full}, qrels, "mrr", convention)
    assert both.mean == pytest.approx({"part": 0.05, "full": 0.5})
    assert both.query_ids.size == 100


@pytest.mark.parametrize("convention", [None, *CONVENTIONS])
def test_a_query_whose_only_judged_document_is_relevant_and_found_alone(convention):
    names = ["mrr", "ndcg@1", "map", "auc", "pairs", "kendall", "spearman", "accuracy"]
    found = rg.evaluate({"q1": {"d1": 1.0}}, {"q1": {"d1": 1}}, names, convention)
    assert found.mean == pytest.approx(dict.fromkeys(names, 1.0))


@pytest.mark.filterwarnings("ignore:The run lacks")
def test_which_queries_count_depends_on_the_judgements_alone():
    """Whatever is retrieved, one query counts, and the one with nothing relevant never does."""
    qrels = {"q": {"a": 2, "b": 1}, "none": {"c": 0}}
    names = ["map", "ndcg@10", "auc", "pairs", "spearman", "accuracy"]
    for retrieved in ([], ["a"], ["a", "b"], ["x"], ["a", "x"]):
        documents = {docid: -float(i) for i, docid in enumerate(retrieved)}
        run = {"q": documents, "none": {"x": 1.0}} if documents else {"none": {"x": 1.0}}
        found = rg.evaluate(run, qrels, names, "papers")
        for name in names:
            assert list(found.dropped[name]) == ["none"], (retrieved, name)


def test_the_convention_of_runs_is_trec_unless_said_otherwise():
    run, qrels = {"1": {"a": 2.0, "b": 1.0}}, {"1": {"a": 1, "b": 2}}
    found = rg.evaluate(run, qrels, "ndcg@10")
    assert found.convention == "trec"
    assert found.mean == rg.evaluate(run, qrels, "ndcg@10", "trec").mean
    assert found.mean != rg.evaluate(run, qrels, "ndcg@10", "papers").mean
    assert rg.compare({"a": run, "b": run}, qrels, "map").convention == "trec"
    data = rg.QueryDataset(None, [1, 0], qid=[1, 1])
    assert rg.evaluate([2, 1], data, "map").convention == "papers"
    assert rg.compare({"a": [2, 1], "b": [1, 2]}, data, "map").convention == "papers"


def test_lacking_queries_without_relevant_documents_are_not_said_to_count():
    qrels = {"1": {"a": 1, "b": 0}, "2": {"c": 1}, "3": {"d": 0}}
    with pytest.warns(UserWarning, match="which count 0, except 1 without a relevant document"):
        rg.evaluate({"1": {"a": 1.0}}, qrels, "map", "papers")
    with pytest.warns(UserWarning, match="1 of 3 .*, which is left out: no document is relevant"):
        rg.evaluate({"1": {"a": 1.0}, "2": {"c": 1.0}}, qrels, "map", "papers")


RUN = {"1": {"a": 0.5, "b": 2.0}, "2": {"a": 1.5, "c": 1.0}}
QRELS = {"1": {"a": 1, "b": 0}, "2": {"c": 2, "d": 1}}


def forms(table, value):
    """Return a run or qrels in the forms of other libraries."""
    import pandas as pd
    import polars as pl
    import ranx
    from ir_datasets.formats import GenericScoredDoc, TrecQrel

    rows = [(q, d, v) for q, documents in table.items() for d, v in documents.items()]
    names = [
        ("query_id", "doc_id", value),
        ("qid", "docno", "label" if value != "score" else value),
    ]
    frames = [pd.DataFrame(rows, columns=list(columns)) for columns in names]
    frames[1]["qid"] = frames[1]["qid"].astype(int)
    own = ranx.Run if value == "score" else ranx.Qrels
    tuples = [GenericScoredDoc(*row) if value == "score" else TrecQrel(*row, "0") for row in rows]
    return [table, own(table), *frames, *map(pl.from_pandas, frames), tuples, iter(tuples)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::numba.NumbaTypeSafetyWarning")
def test_runs_and_qrels_of_other_libraries():
    expected = rg.evaluate(RUN, QRELS, ["map", "ndcg@10"], convention="trec")
    for run, qrels in zip(forms(RUN, "score"), forms(QRELS, "relevance"), strict=True):
        found = rg.evaluate(run, qrels, ["map", "ndcg@10"], convention="trec")
        assert found.mean == expected.mean
    runs = {str(i): run for i, run in enumerate(forms(RUN, "score"))}
    found = rg.compare(runs, iter(forms(QRELS, "relevance")[-1]), "map", convention="trec")
    assert set(found.mean.values()) == {expected.mean["map"]}
    data = rg.dataset_from_runs(forms(RUN, "score")[1:3], forms(QRELS, "relevance")[3])
    assert data.n_rows == 4


def test_bad_frames_and_tuples():
    import pandas as pd

    frame = pd.DataFrame({"qid": ["1"], "doc": ["a"], "score": [1.0]})
    with pytest.raises(rg.DataError, match=r"one of the columns doc_id, docno, docid. It has: qid"):
        rg.evaluate(frame, QRELS, "map")
    twice = pd.DataFrame({"qid": [1, 1], "docno": ["a", "a"], "rel": [1, 0]})
    with pytest.raises(rg.DataError, match="'a' appears twice in query '1' of the qrels"):
        rg.evaluate(RUN, twice, "map")
    lacking = pd.DataFrame({"qid": [1], "docno": ["a"], "score": [math.nan]})
    with pytest.raises(rg.DataError, match="'a' of query '1' has the score nan"):
        rg.evaluate(lacking, QRELS, "map")


def test_output_forms(scored, tmp_path):
    data, scores = scored
    result = rg.evaluate(scores, data, ["ndcg@5", "map"])
    frame = result.to_pandas()
    assert frame.shape == (data.n_queries, 2)
    assert frame.index.name == "qid"
    assert frame["map"].mean() == pytest.approx(result.mean["map"])
    path = tmp_path / "out.json"
    result.to_json(path)
    loaded = json.loads(path.read_text())
    assert loaded["convention"] == "papers"
    assert loaded["measures"][1]["mean"] == result.mean["map"]
    assert loaded["dropped"]["map"]["1007"] == "all labels equal"
    lines = result.to_csv(tmp_path / "out.csv").splitlines()
    assert lines[0] == "qid,ndcg@5,map"
    assert len(lines) == data.n_queries + 1
    assert "1007,," in lines
    assert (tmp_path / "out.csv").read_text().splitlines() == lines
    assert [p.name for p in tmp_path.iterdir() if "part" in p.name] == []
    text = str(result)
    assert "convention: papers" in text
    assert "left out of 300 queries" in text
    with pytest.raises(rg.DataError, match="cannot be written"):
        result.to_json(tmp_path / "no" / "folder.json")
    with pytest.raises(rg.DataError, match="is a folder"):
        result.to_json(tmp_path)


def test_the_interval_of_dcg_is_not_below_0():
    data = rg.QueryDataset(None, [4, 0, 0, 1, 0, 1], qid=[1, 1, 2, 2, 3, 3])
    low, high = rg.evaluate([2.0, 1, 2, 1, 2, 1], data, "dcg@2").interval["dcg@2"]
    assert low == 0.0
    assert high > 15.0


def test_ties_that_trec_eval_orders_otherwise():
    data = rg.QueryDataset(None, [1, 0, 1, 0, 0, 1], qid=[1, 1, 2, 2, 3, 3])
    scores = np.array([1.0, 1.0, 2.0, 1.0, -np.inf, -np.inf])
    found = rg.evaluate(scores, data, "map", "trec")
    line = "Equal scores in 1 query were ranked in the order of the rows; trec_eval ranks them by"
    assert found.tied_queries == 1
    assert line in str(found)
    assert line in found._repr_html_()
    assert "Equal scores" not in str(rg.evaluate(scores, data, "map"))
    assert "Equal scores" not in str(rg.evaluate(np.arange(6.0), data, "map", "trec"))
    both = rg.compare({"a": scores, "b": np.arange(6.0)}, data, "map", "trec")
    assert f"a: {line[0].lower()}{line[1:]}" in str(both)
    assert "b: equal" not in str(both)
    run, qrels = {"1": {"a": 1.0, "b": 1.0}}, {"1": {"a": 1, "b": 0}}
    assert rg.evaluate(run, qrels, "map", "trec").tied_queries == 0


def test_csv_has_no_noise_of_fractions():
    data = rg.QueryDataset(None, [1, 1, 1, 0, 1, 0], qid=[1] * 6)
    scores = -np.arange(6.0)
    found = rg.evaluate(scores, data, ["f1@4", "ndcg@10"])
    found.per_query["f1@4"][0] = 0.7999999999999999  # as some sums of fractions are rounded
    ndcg = found.per_query["ndcg@10"][0]
    cells = found.to_csv().splitlines()[1].split(",")
    assert cells[:2] == ["1", "0.8"]
    assert float(cells[2]) == pytest.approx(ndcg, rel=1e-12)
    assert found.to_dict()["per_query"]["ndcg@10"] == [ndcg]
    both = rg.compare({"a": scores, "b": -scores}, data, "ndcg@10")
    both.per_query["a"][0] = 0.7999999999999999
    assert both.to_csv().splitlines()[1].split(",")[1] == "0.8"


def test_counts_and_figures_of_mq2008(data_dir):
    parts = [rg.read_letor(data_dir / "mq2008" / f"S{i}.txt.gz") for i in range(1, 6)]
    assert sum(p.n_rows for p in parts) == 15211
    assert sum(p.n_queries for p in parts) == 784
    result = rg.evaluate(parts[0].column(25), parts[0], ["ndcg@10", "map"], convention="letor")
    # a constant number of queries stays in the mean, whatever is relevant
    assert not any(result.dropped.values())
