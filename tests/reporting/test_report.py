"""The report: what its data block says, what it keeps, and that hostile texts stay texts."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.reporting.content import _importance, rounded, thin
from rankgrove.reporting.distribution import label_groups, score_distribution
from rankgrove.reporting.importance import feature_importance, overall
from rankgrove.reporting.learning import learning_curves
from rankgrove.reporting.page import embedded
from rankgrove.reporting.rankings import (
    BRIEF_LEAST,
    BRIEF_MOST,
    MOST_DOCUMENTS,
    brief_queries,
    shown_queries,
)
from rankgrove.reporting.reasons import (
    MOST_FEATURES,
    N_FEATURES,
    SMALL_REST,
    _of_query,
    reasons,
)
from rankgrove.reporting.sizes import size_curve
from rankgrove.reporting.systems import as_systems
from rankgrove.reporting.verdict import signed, verdict
from tests.reporting.blocks import block

HOSTILE = "</script><script>alert(1)</script><!--<b>&amp;\"'\u2028"


@pytest.fixture(scope="module")
def page(made):
    models, test, vali = made
    return rg.report(models, test, ["ndcg@10", "map"], valid={"vali": vali})


def test_the_figures_are_those_of_evaluate_and_compare(made, page):
    models, test, _ = made
    data = block(page.html)
    assert data["models"] == list(models)
    for m, measure in enumerate(["ndcg@10", "map"]):
        for k, model in enumerate(models.values()):
            found = rg.evaluate(model, test, measure)
            assert data["means"][m][k][0] == pytest.approx(found.mean[measure], abs=1e-6)
            shown = np.array(data["queries"]["values"][m][k]) / data["queries"]["scale"]
            assert shown == pytest.approx(found.per_query[measure], abs=6e-5)
    compared = rg.compare(models, test, "ndcg@10")
    assert page.summary == str(verdict(compared))
    for one in compared.contrasts:
        assert f"<td>{one.wins:,} / {one.losses:,} / {one.ties:,}</td>" in page.html
    assert data["queries"]["ids"] == [str(q) for q in test.query_ids]


def test_rankings_and_reasons(made, page):
    models, test, _ = made
    data = block(page.html)
    kept = data["rankings"]["of"]
    assert len(kept) == test.n_queries  # 360 documents: all of them are there
    assert data["rankings"]["exact"] is False  # a net is no sum over features
    for q, one in kept.items():
        rows = np.flatnonzero(test.query_of_row == int(q))
        assert one["docs"] == (rows + 1).tolist()
        for k, model in enumerate(models.values()):
            scores = model.predict(test)[rows]
            for d, rank in enumerate(one["ranks"][k]):
                above = (scores > scores[d]).sum() + (scores[:d] == scores[d]).sum()
                assert rank == above + 1
            total = (scores - scores.mean()) / scores.std()
            parts = np.array(one["why"]["of"][k]) / 1000
            assert parts.sum(axis=1) == pytest.approx(total, abs=0.01)


def test_sums_over_features_are_exact(made):
    models, test, _ = made
    systems = as_systems({"trees": models["trees"], "weights": models["weights"]}, test, "t")
    for query, why in reasons(systems, test, [4, 2], [None, None], 1):
        rows = np.flatnonzero(test.query_of_row == query)
        for system, parts in zip(systems, why.of, strict=True):
            own = rg.explain(system.model, test, query=test.query_ids[query]).contributions
            scaled = (own - own.mean(axis=0)) / system.scores[rows].std()
            assert parts[:, :-1] == pytest.approx(scaled[:, why.features[:-1]])
            rest = np.setdiff1d(np.arange(test.n_features), why.features[:-1])
            assert parts[:, -1] == pytest.approx(scaled[:, rest].sum(axis=1), abs=1e-9)


def test_features_are_shown_until_the_rest_is_small():
    rng = np.random.default_rng(5)
    parts = rng.normal(size=(30, 60)) * np.linspace(1.0, 0.3, 60)
    few = np.zeros((30, 60))
    few[:, :3] = rng.normal(size=(30, 3))
    for own, expected in ((parts, MOST_FEATURES), (few, 3), (few + 0.05 * parts, N_FEATURES)):
        why = _of_query([own], [own.sum(axis=1)])
        assert len(why.features) == expected + 1
        (shown,) = why.of
        total = shown.sum(axis=1)
        if expected < MOST_FEATURES:
            assert np.abs(shown[:, -1]).max() <= SMALL_REST * np.ptp(total)
    # one more than the least where that is needed, and no more
    middle = few.copy()
    middle[:, 3:12] = rng.normal(size=(30, 9))
    n = len(_of_query([middle], [middle.sum(axis=1)]).features) - 1
    assert N_FEATURES < n <= 12


def test_all_queries_can_be_opened():
    data = rg.make_artificial(60, n_docs=30, seed=4)
    one = rg.LambdaMART(n_trees=3).fit(data)
    found = block(rg.report({"f1": data.column(1), "trees": one}, data, n_documents=150).html)
    of = found["rankings"]["of"]
    assert len(of) == 60
    whole = [q for q, own in of.items() if "why" in own]
    assert len(whole) == 5
    brief = [own for q, own in of.items() if q not in whole]
    assert sum(len(own["docs"]) for own in brief) <= 8 * 150
    for own in brief:
        assert own["total"] == 30
        assert len(own["docs"]) == BRIEF_MOST
        for ranks in own["ranks"]:  # every system's first documents are there
            assert set(range(1, BRIEF_MOST // 2 + 1)) <= set(ranks)
    # where there are too many, those with the largest differences
    values = [np.zeros(500), np.linspace(0.0, 1.0, 500)]
    queries, most = brief_queries(values, np.full(500, 40), 100, [499])
    assert (most, queries) == (BRIEF_LEAST, list(range(499 - 8 * 100 // BRIEF_LEAST, 499)))


def test_all_sections_have_their_data(made, page):
    data = block(page.html)
    assert {(one["model"], one["unit"]) for one in data["learning"]} == {
        ("trees", "trees"), ("net", "epochs"), ("weights", "C"), ("classes", "rounds"),
        ("both", "trees"), ("both", "C"),
    }  # fmt: skip
    assert {one["model"]: one["kind"] for one in data["importance"]} == {
        "trees": "gain", "net": "permutation", "weights": "weight", "classes": "gain",
        "both": "permutation",
    }  # fmt: skip
    assert {one["model"] for one in data["sizes"]} == {"trees", "classes"}
    assert list(data["sizes"][0]["values"]) == ["this data", "vali"]
    assert set(data["micros"]) == set(data["models"])
    assert all(len(one["lines"]) == 5 for one in data["dependence"])
    (alpha,) = data["alpha"]
    weights = made[0]["both"].weights_
    assert alpha["alpha"] == pytest.approx(weights[1] / weights.sum())
    best = max(alpha["curves"][1]["largest"])  # on the data that the weight was found on
    assert best == pytest.approx(made[0]["both"].value_, abs=1e-5)


def test_adaptation_and_pruning(tmp_path):
    source, target = rg.make_artificial(40, n_docs=10, seed=1), rg.make_artificial(20, n_docs=10)
    base = rg.LambdaMART(n_trees=10).fit(source)
    pruned = rg.prune(base, target, "ndcg@10", 0.01)
    models = {"adapted": rg.Trada(base, beta=5).fit(target), "pruned": pruned}
    data = block(rg.report(models, target, "ndcg@10").html)
    (one,) = data["adaptation"]
    assert len(one["tree"]) == 10
    labels = {one["model"]: one["label"] for one in data["importance"]}
    assert labels["adapted"] == "share of all gains (the base model’s)"
    assert labels["pruned"] == "share of all gains"
    assert data["pruning"][0]["trees"] == [p.n_trees for p in pruned.passes]
    pruned.ranker.save(tmp_path / "pruned.rg")  # the file has it on record too
    again = rg.load(tmp_path / "pruned.rg")
    assert block(rg.report(again, target, "ndcg@10").html)["pruning"][0]["values"] == {
        name: [p.values[name] for p in pruned.passes] for name in pruned.measures
    }
    assert not hasattr(again.fit(source), "pruning_")


def test_hostile_texts(tmp_path):
    rng = np.random.default_rng(0)
    data = rg.QueryDataset(
        rng.normal(size=(40, 2)),
        rng.integers(0, 3, 40),
        qid=np.repeat([HOSTILE, "b"], 20),
        docid=[f"{HOSTILE}{i}" for i in range(40)],
        feature_names=[HOSTILE, "y"],
    )
    models = {HOSTILE: rg.MART(n_trees=2, min_leaf=1).fit(data), "s": data.column(1)}
    html = rg.report(models, data, "ndcg@10", tmp_path / "r.html", title=HOSTILE).html
    assert (tmp_path / "r.html").read_text(encoding="utf-8") == html
    assert html.count("<script") == html.count("</script>") == 2
    assert "alert(1)</script>" not in html
    assert "<b>&amp;" not in html.replace("&lt;b&gt;", "")
    found = block(html)
    assert found["models"][0] == found["queries"]["ids"][0] == HOSTILE
    assert found["rankings"]["of"]["0"]["docs"][3] == f"{HOSTILE}3"


def test_it_needs_nothing_else(page):
    """No address to load from: what a browser asks for is tested in one."""
    assert not re.findall(r'(?:src|href)="(?!#|data:,")', page.html)
    assert "@import" not in page.html
    assert "url(" not in page.html
    assert "default-src 'none'" in page.html


def test_json_in_a_script_is_the_value():
    value = {"<a>": [HOSTILE, None, 1.5]}
    text = embedded(value)
    assert json.loads(text) == value
    assert not set("<>&") & set(text)
    with pytest.raises(ValueError, match="JSON"):
        embedded(float("nan"))


# -- which queries are shown ----------------------------------------------------------------------


def test_queries_with_the_largest_differences_are_shown():
    first = np.zeros(6)
    other = np.array([0.1, -0.5, 0.0, 0.3, np.nan, 0.2])
    third = np.array([0.0, 0.0, 0.9, 0.0, 0.0, 0.0])
    sizes = np.full(6, 10)
    assert shown_queries([first, other], sizes, 20) == [1, 3]
    assert shown_queries([first, other, third], sizes, 20) == [1, 2]  # in turn
    assert shown_queries([first, other], sizes, 20, [4]) == [1, 4]
    assert shown_queries([first, other], sizes, 0, [4]) == [4]
    assert shown_queries([first, other], sizes, 60) == [0, 1, 2, 3, 4, 5]
    assert shown_queries([1.0 - third], sizes, 10) == [2]  # of one system: the lowest value
    assert shown_queries([first, other], np.array([10, 500, 10, 10, 10, 10]), 110) == [1, 3]


def test_many_documents(made):
    """Of a long ranking the documents that some system has near its top are kept."""
    rng = np.random.default_rng(1)
    data = rg.QueryDataset(rng.normal(size=(500, 1)), rng.integers(0, 2, 500), np.zeros(500, int))
    a, b = rng.normal(size=(2, 500))
    kept = block(rg.report({"a": a, "b": b}, data, "map").html)["rankings"]["of"]["0"]
    assert (kept["total"], len(kept["docs"])) == (500, MOST_DOCUMENTS)
    for k in (0, 1):
        assert set(range(1, MOST_DOCUMENTS // 2 + 1)) <= set(kept["ranks"][k])
    assert kept["why"]["of"] == [None, None]


# -- sentences ------------------------------------------------------------------------------------


def sentence(**scores):
    data = rg.QueryDataset(None, np.tile([1, 0], 40), qid=np.repeat(np.arange(40), 2))
    return verdict(rg.compare(scores, data, "mrr")).sentence


def test_verdicts():
    good, bad = np.tile([1.0, 0.0], 40), np.tile([0.0, 1.0], 40)
    nearly = good.copy()
    nearly[:2] = [0.0, 1.0]
    assert sentence(a=bad, b=good) == "b is significantly better than a."
    assert sentence(a=good, b=bad) == "a is significantly better than b."
    assert sentence(a=good, b=nearly) == "a is ahead of b, but not significantly."
    assert sentence(a=nearly, b=bad, c=good) == (
        "c, the best of 3, is ahead of a, but not significantly."
    )
    assert sentence(a=good, b=good) == "a and b have the same mrr on every query."
    assert sentence(a=good, b=good, c=bad) == (
        "a and b have the same mrr on every query, and are significantly better than c."
    )
    assert sentence(a=good, b=nearly, c=good, d=bad) == (
        "a and c have the same mrr on every query, and are ahead of b, the best of the other 2, "
        "but not significantly."
    )
    assert sentence(a=good, b=good, c=good) == "a, b and c have the same mrr on every query."


def test_one_query_and_equal_systems(made):
    one = rg.QueryDataset([[1.0], [0.0]], [1, 0], qid=[1, 1])
    good, bad = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    page = rg.report({"a": bad, "b": good}, one, "mrr")
    assert "on 1 query: a difference of +0.5000 (no interval), 1 query won and 0 lost" in (
        page.summary
    )
    for text in ("nan", "1 queries", "<b>1</b> queries", "<b>1</b> features"):
        assert text not in page.html.split("<main")[0].split("</style>")[1]
    assert "nan" not in page.html.split('<details class="tests">')[1].split("</details>")[0]
    assert rg.report(good, one, "mrr").summary.endswith("No interval, on 1 query.")
    alike = rg.report({"a": good, "b": good}, one, "mrr").summary
    assert alike == "a and b have the same mrr on every query. Mean mrr 1.0000 on 1 query."
    assert (signed(-0.00004), signed(-0.0), signed(-0.5)) == ("+0.0000", "+0.0000", "-0.5000")
    better = made[1].y + 0.0
    few = rg.report({"a": better, "b": better}, made[1], "ndcg@10")
    assert "-0.0000" not in few.html


def test_a_single_model(made):
    models, test, _ = made
    page = rg.report(models["trees"], test, "ndcg@10")
    assert page.summary.startswith("LambdaMART has a mean ndcg@10 of 0.")
    assert repr(page).startswith("Report('LambdaMART has")
    data = block(page.html)
    assert data["models"] == ["LambdaMART"]
    assert data["rankings"]["exact"] is True
    assert "three tests" not in page.html


def test_models_in_a_list_are_named_by_kind(made):
    models, test, _ = made
    listed = [models["trees"], models["net"], models["trees"].truncated(3)]
    page = rg.report(listed, test, "ndcg@10")
    assert block(page.html)["models"] == ["LambdaMART", "LambdaRank", "LambdaMART 2"]


class Foreign:
    def predict(self, X):
        return np.asarray(X)[:, 15]


def test_any_model_with_predict(made):
    models, test, _ = made
    data = block(rg.report({"trees": models["trees"], "own": Foreign()}, test, "ndcg@10").html)
    by_model = {one["model"]: one for one in data["importance"]}
    assert by_model["own"]["features"] == [test.feature_names[15]]
    assert data["rankings"]["exact"] is False


@pytest.mark.parametrize(
    ("labels", "scores"),
    [
        ([1, 0, 0], [1.0, 1.0, 1.0]),
        ([1, 0, 0], [-np.inf, 1.0, -np.inf]),
        ([0.3, 2.7, 1.1], [3.0, 2.0, 1.0]),
        ([1, 0, 1], [0.0, 1e300, -1e300]),
    ],
)
def test_degenerate_data(labels, scores):
    data = rg.QueryDataset(None, labels, qid=[7, 7, 7])
    for models in ({"a": scores}, {"a": scores, "b": [1.0, 2.0, 3.0]}):
        found = block(rg.report(models, data, "ndcg@3").html)
        assert found["queries"]["ids"] == ["7"]
        assert found["importance"] == found["dependence"] == []


def test_mistakes(made, tmp_path):
    models, test, _ = made
    model = models["trees"]
    with pytest.raises(rg.ParameterError, match="There is no query 'x' among the 30 queries"):
        rg.report(model, test, queries=["x"])
    with pytest.raises(rg.ParameterError, match="n_documents"):
        rg.report(model, test, n_documents=-1)
    with pytest.raises(rg.ParameterError, match="at least one measure"):
        rg.report(model, test, [])
    with pytest.raises(rg.ParameterError, match="folder that exists"):
        rg.report(model, test, out=tmp_path / "no" / "r.html")
    with pytest.raises(rg.DataError, match="QueryDataset"):
        rg.report(model, [1, 2])
    with pytest.raises(rg.ParameterError, match="one model, or several"):
        rg.report({}, test)
    with pytest.raises(rg.DataError, match="The model 'short': report: scores must be one number"):
        rg.report({"short": [1.0]}, test)
    alike = rg.QueryDataset(None, [1, 1], qid=[1, 1])
    with pytest.raises(rg.DataError, match="leaves out every query"):
        rg.report({"a": [1.0, 2.0]}, alike, "ndcg@10")


# -- what is computed for both the page and the plots ---------------------------------------------


def test_learning_curves_are_the_record(made):
    models, _, _ = made
    (one,) = learning_curves("trees", models["trees"])
    assert one.y.tolist() == models["trees"].history_["valid"]["ndcg@10"]
    assert one.x.tolist() == list(range(1, 13))
    assert one.best == models["trees"].best_round_
    (by_c,) = learning_curves("weights", models["weights"])
    assert by_c.x.tolist() == [0.1, 1.0]
    base = models["trees"]
    on = rg.LambdaMART(n_trees=3, submodel=base).fit(made[1], valid=made[2])
    (more,) = learning_curves("on", on)
    assert more.x.tolist() == [0, 1, 2, 3]  # with the value that it went on from


def test_sizes_are_those_of_cut_models(made):
    models, test, _ = made
    found = size_curve("trees", models["trees"], {"test": test}, "map")
    assert found.sizes[0] == 1
    assert found.sizes[-1] == models["trees"].ensemble_.n_trees
    for size, value in zip(found.sizes.tolist(), found.values["test"], strict=True):
        assert value == rg.evaluate(models["trees"].truncated(size), test, "map").mean["map"]
    assert (found.micros > 0).all()
    assert size_curve("net", models["net"], {"test": test}, "map") is None


def test_permutation_finds_the_only_feature_that_matters():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 4))
    data = rg.QueryDataset(x, (x[:, 2] > 0).astype(int), qid=np.repeat(np.arange(60), 10))

    class Third:
        def predict(self, X):
            return X[:, 2]

    found = feature_importance("m", Third(), data, "map")
    assert found.kind == "permutation"
    assert found.top(4) == [2]
    assert found.values[2] > 0.2
    assert overall([found, None], 3) == [2]
    content = _importance(found)  # what does not matter may still be used
    assert content["used"] == content["of"] == 4
    with pytest.raises(rg.DataError, match="no importance of the kind 'gain'"):
        feature_importance("m", Third(), data, "map", "gain")


def test_distributions_count_every_document():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 1000)
    scores = rng.normal(size=1000) + y
    scores[::50] = -np.inf
    found = score_distribution("m", scores, y)
    assert found.labels == ("0", "1", "2", "3")
    assert found.shares.sum(axis=1) == pytest.approx(1.0)
    assert found.counts.sum() == 980
    texts, groups = label_groups(rng.random(1000))
    assert len(texts) == 6
    assert np.bincount(groups).min() > 100


def test_numbers():
    assert rounded(np.array([1.23456, np.nan, 2.0, np.inf])) == [1.235, None, 2, None]
    assert thin(10, 4).tolist() == [0, 3, 6, 9]
    assert thin(3, 4).tolist() == [0, 1, 2]
    assert rounded(1e300) == 1e300


def test_dependence_on_categories_of_which_the_model_does_not_know_all(tmp_path):
    """A new category in the report's data must not hide the others."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 3, 160)
    qid = np.repeat(np.arange(16), 10)
    X = np.column_stack([codes, rng.normal(size=160)]).astype(np.float32)
    names = {1: ["acme", "bolt", "core"]}
    train = rg.QueryDataset(X, (codes == 1).astype(float), qid=qid, categorical=names)
    model = rg.LambdaMART(n_trees=3, min_leaf=2, n_threads=1).fit(train)
    X[:9, 0] = 3
    data = rg.QueryDataset(X, train.y, qid=qid, categorical={1: [*names[1], "new"]})
    rg.report(model, data, out=tmp_path / "page.html", n_threads=1)
    page = (tmp_path / "page.html").read_text()
    assert all(f'"{name}"' in page for name in names[1])
