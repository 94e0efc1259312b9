"""The report: what its data block says, what it keeps, and that hostile texts stay texts."""

from __future__ import annotations

import copy
import json
import re

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.reporting.content import _learning, rounded, thin
from rankgrove.reporting.dependence import dependences
from rankgrove.reporting.distribution import label_groups, score_distribution
from rankgrove.reporting.importance import feature_importance, overall
from rankgrove.reporting.learning import LearningCurve, learning_curves
from rankgrove.reporting.page import embedded
from rankgrove.reporting.rankings import MOST_DOCUMENTS, shown_queries
from rankgrove.reporting.reasons import reasons
from rankgrove.reporting.sizes import size_curve
from rankgrove.reporting.systems import as_systems
from rankgrove.reporting.verdict import verdict

HOSTILE = "</script><script>alert(1)</script><!--<b>&amp;\"'\u2028"


def block(html):
    """Return the page's data."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    return json.loads(text)


@pytest.fixture(scope="module")
def made():
    train, vali, test = (rg.make_artificial(30, n_docs=12, seed=seed) for seed in (1, 2, 3))
    models = {
        "trees": rg.LambdaMART(n_trees=12).fit(train, valid=vali),
        "net": rg.LambdaRank(n_epochs=4).fit(train, valid=vali),
        "weights": rg.SVMMap(C=(0.1, 1.0)).fit(train, valid=vali),
        "classes": rg.McRank(n_trees=3).fit(train, valid=vali),
    }
    best = rg.optimal_combination(models["trees"], models["weights"], vali, "ndcg@10")
    models["both"] = best.ranker
    return models, test, vali


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


@pytest.mark.parametrize("weights", [(1.0, -0.3), (-1.0, 0.5), (-2.0, -1.0), (0.0, -1.0)])
def test_alpha_curves_of_negative_weights(made, weights):
    """The model's place on the curve has the model's value."""
    models, test, vali = made
    pair = rg.CombinedRanker((models["trees"], models["weights"]))
    pair.with_weights(np.array(weights), vali, 0.0)
    data = block(rg.report({"pair": pair}, test, "ndcg@10", valid=vali).html)
    (found,) = data["alpha"]
    a, b = (abs(weight) for weight in weights)
    assert found["alpha"] == pytest.approx(b / (a + b))
    signs = {(1.0, -0.3): ("(1", "−"), (-1.0, 0.5): ("−(1", "+")}.get(weights)
    if signs is not None:
        assert found["formula"] == f"{signs[0]} − alpha) LambdaMART {signs[1]} alpha SVMMap"
    for curve, seen in zip(found["curves"], (test, vali), strict=True):
        value = rg.evaluate(pair, seen, "ndcg@10").mean["ndcg@10"]
        k = np.searchsorted(curve["alpha"], found["alpha"], side="right") - 1
        around = slice(max(0, k - 1), k + 2)  # a rounded edge may lie beside it
        assert min(curve["least"][around]) <= value + 1e-5
        assert max(curve["largest"][around]) >= value - 1e-5
        assert curve["best"][1] >= value - 1e-12
    nothing = pair.with_weights(np.zeros(2), vali, 0.0)
    assert block(rg.report({"pair": nothing}, test, "ndcg@10").html)["alpha"] == []


def test_adaptation_and_pruning(tmp_path):
    source, target = rg.make_artificial(40, n_docs=10, seed=1), rg.make_artificial(20, n_docs=10)
    base = rg.LambdaMART(n_trees=10).fit(source)
    pruned = rg.prune(base, target, "ndcg@10", 0.01)
    models = {"adapted": rg.Trada(base, beta=5).fit(target), "pruned": pruned}
    data = block(rg.report(models, target, "ndcg@10").html)
    (one,) = data["adaptation"]
    assert len(one["tree"]) == 10
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


@pytest.fixture(scope="module")
def bag(made):
    train = rg.make_artificial(30, n_docs=12, seed=1)
    base = rg.LambdaMART(n_trees=25, early_stopping=4, min_leaf=3)
    return rg.BaggedRanker(base, n_models=4, query_fraction=0.5).fit(train, valid=made[2])


def test_the_learning_curves_of_a_bag(bag):
    (one,) = learning_curves("bag", bag)
    records = [model.history_["valid"]["ndcg@10"] for model in bag.models_]
    lengths = [len(record) for record in records]
    assert min(lengths) < max(lengths)  # they ended at different rounds
    assert one.x.tolist() == list(range(1, max(lengths) + 1))
    for row, record in zip(one.of, records, strict=True):
        assert row[: len(record)].tolist() == record
        assert np.isnan(row[len(record) :]).all()
    shortest = min(lengths)
    mean = np.mean([record[:shortest] for record in records], axis=0)
    assert one.y[:shortest] == pytest.approx(mean)
    assert np.isnan(one.y[shortest:]).all()
    assert one.kept.tolist() == [model.best_round_ for model in bag.models_]
    assert one.name == "bag, mean of 4"


def test_the_page_has_the_curves_inside_of_models(made, bag):
    models, test, vali = made
    both = rg.CombinedRanker([models["trees"], bag, models["trees"].truncated(3)]).fit(vali)
    stack = rg.StackedRanker([models["net"]], n_epochs=2).fit(vali, valid=test)
    shown = {"trees": models["trees"], "bag": bag, "both": both, "stack": stack}
    found = block(rg.report(shown, test, "ndcg@10").html)["learning"]
    a, b, c = (f"{weight:.3g}".replace("-", "−") for weight in both.weights_)
    names = [(one["model"], one["member"], one["same"]) for one in found]
    assert names == [
        ("trees", None, None),
        ("bag", None, None),
        ("both", f"LambdaMART 1 × {a}", "trees"),  # shown by itself too
        ("both", f"BaggedRanker × {b}", "bag"),
        ("both", f"LambdaMART 2 × {c}", None),
        ("stack", None, None),
        ("stack", "LambdaRank", None),
    ]
    one = found[1]
    assert [len(row) for row in one["of"]] == [
        len(m.history_["valid"]["ndcg@10"]) for m in bag.models_
    ]
    best = [max(model.history_["valid"]["ndcg@10"]) for model in bag.models_]
    assert [value for _, value in one["kept"]] == pytest.approx(best, abs=1e-4)
    assert one["y"][-1] is None


def test_many_models_have_fewer_points(made):
    n, rounds = 60, 400
    x = np.arange(1.0, rounds + 1)
    of = np.random.default_rng(0).random((n, rounds))
    of[0, 200:] = np.nan
    curve = LearningCurve("b", "v", "map", "trees", x, of.mean(axis=0), None, of=of, kept=x[:n])
    found = _learning(curve, [curve])
    assert len(found["x"]) == 40
    assert found["x"][0] == 1
    assert found["x"][-1] == rounds
    assert len(found["of"][0]) < len(found["of"][1]) == 40
    assert found["kept"][7] == [8, pytest.approx(of[7, 7], rel=1e-4)]


def test_partial_dependence_of_a_bag_is_the_mean_of_its_models(made, bag):
    models, test, _ = made
    importance = feature_importance("m", models["trees"], test, "map")
    weighted = copy.copy(bag)
    weighted.weights_ = np.array([1.0, 2.0, 0.5, 1.0])
    systems = as_systems({"bag": weighted}, test, "t")
    for one in dependences(systems, test, [importance], 1):
        lines = []
        for model in bag.models_:
            scores = model.predict(test)
            line = rg.partial_dependence(model, test, one.feature, one.grid).mean
            lines.append((line - scores.mean()) / scores.std())
        expected = np.average(lines, axis=0, weights=weighted.weights_)
        assert one.lines["bag"] == pytest.approx(expected)


def test_sizes_of_a_bag_are_those_of_its_first_models(made, bag):
    _, test, _ = made
    found = size_curve("bag", bag, {"test": test}, "map")
    trees = [model.ensemble_.n_trees for model in bag.models_]
    assert found.sizes.tolist() == np.cumsum(trees).tolist()
    values = found.values["test"].tolist()
    assert values[0] == pytest.approx(rg.evaluate(bag.models_[0], test, "map").mean["map"])
    assert values[-1] == rg.evaluate(bag, test, "map").mean["map"]
    assert values[1] != values[-1]
    assert len(bag.models_) == 4


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
