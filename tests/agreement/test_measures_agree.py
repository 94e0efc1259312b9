"""Our figures against trec_eval, pytrec_eval, ir_measures, ranx, scikit-learn, LightGBM."""

from __future__ import annotations

import gzip
import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg


@pytest.fixture(scope="module")
def judged():
    """Return a run and qrels with ties, unjudged, unretrieved and spam documents."""
    rng = np.random.default_rng(7)
    run, qrels = rg.Run(name="random"), rg.Qrels()
    for q in range(60):
        documents = [f"d{i:03d}" for i in rng.permutation(80)]
        run[str(101 + q)] = {
            d: float(s) for d, s in zip(documents[:50], rng.integers(0, 30, 50), strict=True)
        }
        grades = rng.choice([-2, -1, 0, 1, 2, 3], 60, p=[0.05, 0.05, 0.55, 0.2, 0.1, 0.05])
        qrels[str(101 + q)] = {d: int(g) for d, g in zip(documents[10:70], grades, strict=True)}
    qrels["104"] = dict.fromkeys(qrels["104"], 0)  # nothing relevant
    return run, qrels


def without_ties(run):
    rng = np.random.default_rng(0)
    return rg.Run(
        {
            q: {d: float(s) for d, s in zip(docs, rng.permutation(len(docs)), strict=True)}
            for q, docs in run.items()
        },
        name="distinct",
    )


NAMES = {
    "map": "map",
    "mrr": "recip_rank",
    "p@10": "P_10",
    "p@200": "P_200",
    "recall@15": "recall_15",
    "ndcg": "ndcg",
    "ndcg@10": "ndcg_cut_10",
    "map@10": "map_cut_10",
    "rprec": "Rprec",
    "success@5": "success_5",
    "bpref": "bpref",
    "infap": "infAP",
    "gmap": "gm_map",
}


def test_pytrec_eval(judged):
    import pytrec_eval

    run, qrels = judged
    evaluator = pytrec_eval.RelevanceEvaluator(
        dict(qrels),
        {"map", "recip_rank", "P.10,200", "recall.15", "ndcg", "ndcg_cut.10", "map_cut.10"}
        | {"Rprec", "success.5", "bpref", "infAP", "gm_map"},
    )
    theirs = evaluator.evaluate(dict(run))
    ours = rg.evaluate(run, qrels, list(NAMES), convention="trec")
    for name, trec_name in NAMES.items():
        expected = [theirs[qid][trec_name] for qid in ours.query_ids]
        np.testing.assert_allclose(ours.per_query[name], expected, atol=1e-12, err_msg=name)
    logs = [theirs[qid]["gm_map"] for qid in ours.query_ids]
    aggregated = pytrec_eval.compute_aggregated_measure("gm_map", logs)
    assert ours.mean["gmap"] == pytest.approx(aggregated, rel=1e-12)


def test_ir_measures(judged):
    import ir_measures
    from ir_measures import AP, ERR, RR, Bpref, Judged, P, Rprec, Success, infAP, nDCG

    run, qrels = judged
    qrels = rg.Qrels({q: {d: max(g, 0) for d, g in docs.items()} for q, docs in qrels.items()})
    run = without_ties(run)  # gdeval breaks ties in another order than trec_eval
    wanted = {
        "map": AP,
        "p@5": P @ 5,
        "mrr": RR,
        "ndcg@10": nDCG @ 10,
        "bpref": Bpref,
        "rprec": Rprec,
        "success@1": Success @ 1,
        "judged@10": Judged @ 10,
        "judged@60": Judged @ 60,
        "infap": infAP,
    }
    if shutil.which("perl"):
        wanted |= {
            "ndcg@7[trec,gain=exp2]": nDCG(dcg="exp-log2") @ 7,
            "err@20[trec,max_grade=4]": ERR @ 20,
        }
    ours = rg.evaluate(run, qrels, list(wanted), convention="trec")
    for name, measure in wanted.items():
        theirs = ir_measures.iter_calc([measure], dict(qrels), dict(run))
        got = dict(zip(ours.query_ids, ours.per_query[name], strict=True))
        # gdeval, a Perl script, is behind the last two; it prints five digits
        tolerance = 6e-6 if "[" in name else 1e-12
        for value in theirs:
            assert got[value.query_id] == pytest.approx(value.value, abs=tolerance), name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_ranx(judged):
    import ranx

    run, qrels = judged
    distinct = without_ties(run)
    qrels = rg.Qrels(
        {q: {d: max(g, 0) for d, g in docs.items()} for q, docs in qrels.items() if q != "104"}
    )
    distinct.pop("104")
    names = {
        "map": "map",
        "mrr": "mrr",
        "p@10": "precision@10",
        "recall@5": "recall@5",
        "ndcg@10": "ndcg@10",
        "ndcg@10[trec,gain=exp2]": "ndcg_burges@10",
        "success@3": "hit_rate@3",
        "f1@10": "f1@10",
        "rprec": "r-precision",
    }
    theirs = ranx.evaluate(ranx.Qrels(dict(qrels)), ranx.Run(dict(distinct)), list(names.values()))
    ours = rg.evaluate(distinct, qrels, list(names), convention="trec")
    for name, ranx_name in names.items():
        assert ours.mean[name] == pytest.approx(theirs[ranx_name], abs=1e-12), name
    # ranx multiplies rank-biased precision by the grades
    binary = {q: {d: min(g, 1) for d, g in docs.items()} for q, docs in qrels.items()}
    for name, ranx_name in {"rbp": "rbp.80", "rbp[p=.5]": "rbp.50"}.items():
        theirs = ranx.evaluate(ranx.Qrels(binary), ranx.Run(dict(distinct)), ranx_name)
        assert rg.evaluate(distinct, qrels, name, "trec").mean[name] == pytest.approx(theirs)


@pytest.fixture(scope="module")
def scored():
    rng = np.random.default_rng(3)
    sizes = rng.integers(2, 40, 120)
    qid = np.repeat(np.arange(sizes.size), sizes)
    labels = rng.choice(5, sizes.sum(), p=[0.5, 0.2, 0.15, 0.1, 0.05])
    labels[qid == 5] = 0
    return rg.QueryDataset(None, labels, qid), rng.integers(0, 12, sizes.sum()).astype(float)


def by_query(data, scores):
    for q in range(data.n_queries):
        part = slice(data.query_ptr[q], data.query_ptr[q + 1])
        yield data.y[part], scores[part]


def test_scikit_learn(scored):
    from sklearn.metrics import dcg_score, ndcg_score, roc_auc_score

    data, scores = scored
    names = ["ndcg", "ndcg@5", "dcg@7", "auc"]
    ours = rg.evaluate(scores, data, names, convention="sklearn")
    for q, (y, s) in enumerate(by_query(data, scores)):
        assert ours.per_query["ndcg"][q] == pytest.approx(ndcg_score([y], [s]), abs=1e-12)
        assert ours.per_query["ndcg@5"][q] == pytest.approx(ndcg_score([y], [s], k=5), abs=1e-12)
        assert ours.per_query["dcg@7"][q] == pytest.approx(dcg_score([y], [s], k=7), abs=1e-12)
        relevant = y >= 1
        if 0 < relevant.sum() < relevant.size:
            assert ours.per_query["auc"][q] == pytest.approx(roc_auc_score(relevant, s), abs=1e-12)
        else:
            assert np.isnan(ours.per_query["auc"][q])


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=12).filter(
        lambda rows: 0 < sum(label > 0 for label, _ in rows) < len(rows)
    )
)
def test_scikit_learn_with_ties(rows):
    from sklearn.metrics import (
        average_precision_score,
        label_ranking_average_precision_score,
        ndcg_score,
        roc_auc_score,
    )

    y, s = np.array(rows).T
    relevant = (y >= 1).astype(int)
    value = {
        name: rg.measure(name, "sklearn").query_value(y, s) for name in ("map", "ndcg@3", "auc")
    }
    assert value["map"] == pytest.approx(average_precision_score(relevant, s), abs=1e-12)
    assert value["map"] == pytest.approx(
        label_ranking_average_precision_score([relevant], [s]), abs=1e-12
    )
    assert value["ndcg@3"] == pytest.approx(ndcg_score([y], [s], k=3), abs=1e-12)
    assert value["auc"] == pytest.approx(roc_auc_score(relevant, s), abs=1e-12)


def test_scikit_learn_where_nothing_is_relevant():
    assert rg.measure("map", "sklearn").query_value([0, 0], [1, 2]) == 0.0
    assert rg.measure("map", "sklearn").query_value([1, 0], [0, 0]) == 0.5


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=2, max_size=14))
def test_scipy_correlations(rows):
    from scipy import stats

    y, s = np.array(rows).T
    for name, theirs in (("kendall", stats.kendalltau), ("spearman", stats.spearmanr)):
        value = rg.measure(name).query_value(y, s)
        if len(set(y)) == 1:
            assert np.isnan(value)
        elif len(set(s)) == 1:
            assert value == 0.0
        else:
            assert value == pytest.approx(theirs(y, s).statistic, abs=1e-12)


def test_ranklib():
    # facts of its scorers: P@k divides by the documents there are, ERR is over 16, all else is 0
    # where nothing is relevant, the whole list counts for MAP, equal scores keep their order
    value = {
        name: rg.measure(name, "ranklib").query_value([0, 2, 1], [1.0, 1.0, 0.5])
        for name in ("p@10", "p@2", "map", "mrr@10", "err@10", "ndcg@2")
    }
    assert value["p@10"] == pytest.approx(2 / 3)
    assert value["p@2"] == 0.5
    assert value["map"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert value["mrr@10"] == 0.5
    assert value["err@10"] == pytest.approx(3 / 16 / 2 + (13 / 16) * (1 / 16) / 3)
    assert value["ndcg@2"] == pytest.approx((3 / np.log2(3)) / (3 + 1 / np.log2(3)))
    for name in ("p@10", "map", "mrr", "err@10", "ndcg@10"):
        assert rg.measure(name, "ranklib").query_value([0, 0], [1, 2]) == 0.0


def test_lightgbm(scored):
    import lightgbm as lgb

    data, scores = scored
    # A model whose score is its one feature's value: LightGBM then measures our scores.
    train = lgb.Dataset(
        scores[:, None],
        data.y,
        group=np.diff(data.query_ptr),
        free_raw_data=False,
        params={"verbose": -1},
    )
    history: dict = {}
    parameters = {
        "objective": "regression",
        "metric": ["ndcg", "map"],
        "eval_at": [1, 5, 10],
        "num_leaves": 63,
        "min_data_in_leaf": 1,
        "min_data_in_bin": 1,
        "learning_rate": 0.5,
        "verbose": -1,
        "num_threads": 1,
    }
    booster = lgb.train(
        parameters,
        train,
        3,
        valid_sets=[train],
        valid_names=["train"],
        callbacks=[lgb.record_evaluation(history)],
    )
    predicted = booster.predict(scores[:, None])
    specs = [f"{name}@{k}" for name in ("ndcg", "map") for k in (1, 5, 10)]
    ours = rg.evaluate(predicted, data, specs, convention="lightgbm")
    for spec in specs:
        assert ours.mean[spec] == pytest.approx(history["train"][spec][-1], abs=1e-9), spec


def test_trec_eval_prints_what_we_compute(data_dir):
    folder = data_dir / "trec-eval-test"
    run = rg.read_run(folder / "results.test.gz")
    qrels = rg.read_qrels(folder / "qrels.test.gz")
    printed = {}
    with gzip.open(folder / "out.test.gz", "rt") as lines:
        for line in lines:
            name, qid, value = line.split()
            printed[name, qid] = value
    names = {"map": "map", "recip_rank": "mrr"}
    names |= {f"P_{k}": f"p@{k}" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)}
    ours = rg.evaluate(run, qrels, list(names.values()), convention="trec")
    checked = 0
    for trec_name, name in names.items():
        if (trec_name, "all") in printed:
            assert f"{ours.mean[name]:.4f}" == printed[trec_name, "all"], trec_name
            checked += 1
        for qid, value in zip(ours.query_ids, ours.per_query[name], strict=True):
            if (trec_name, qid) in printed:
                assert f"{value:.4f}" == printed[trec_name, qid], (trec_name, qid)
    assert checked >= 8
