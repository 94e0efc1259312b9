"""The report of models that are made of others: bags and combinations."""

from __future__ import annotations

import copy
import re

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.reporting.content import _learning
from rankgrove.reporting.dependence import dependences
from rankgrove.reporting.importance import Importance, feature_importance
from rankgrove.reporting.learning import LearningCurve, learning_curves
from rankgrove.reporting.sizes import size_curve
from rankgrove.reporting.systems import as_systems
from tests.reporting.blocks import block


@pytest.fixture(scope="module")
def bag(made):
    train = rg.make_artificial(30, n_docs=12, seed=1)
    base = rg.LambdaMART(n_trees=25, early_stopping=4, min_leaf=3)
    bag = rg.BaggedRanker(base, n_models=4, query_fraction=0.5, random_state=4)
    return bag.fit(train, valid=made[2])


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


def test_a_bag_and_a_smaller_one_are_told_apart(made, bag):
    _, test, vali = made
    bags = {"bag": bag, "pruned": rg.prune(bag, vali, "ndcg@10", 0.01)}
    about = [one.about for one in as_systems(bags, test, "t")]
    assert about[0].endswith(f"combined by minmax; {bag.n_trees_} trees in all")
    assert about[0] != about[1]
    nets = rg.BaggedRanker(rg.LambdaRank(n_epochs=1), n_models=2).fit(vali)
    assert as_systems(nets, test, "t")[0].about.endswith("combined by minmax")


def test_a_combination_names_what_is_in_prepared_rankers(made):
    models, test, vali = made
    half = rg.PreparedRanker(rg.LambdaMART(n_trees=2), features=[1, 2]).fit(vali)
    both = rg.optimal_combination(half, models["net"], vali, "ndcg@10").ranker
    about = as_systems(both, test, "t")[0].about
    assert re.fullmatch(r"\S+ LambdaMART [+−] \S+ LambdaRank", about)


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


def test_partial_dependence_of_a_bag_in_a_combination(made, bag):
    """The sum of its parts' lines; 0 for a feature that does nothing."""
    models, test, vali = made
    trees, bag = models["trees"].truncated(2), copy.copy(bag)
    bag.models_, bag.weights_ = [one.truncated(1) for one in bag.models_[:2]], np.array([1.0, 2.0])
    pair = rg.CombinedRanker((trees, bag)).with_weights(np.array([0.5, 3.0]), vali, 0.0)
    stack = rg.StackedRanker([bag, trees], n_epochs=1).fit(vali)
    by_query = rg.SVMMap(C=1.0, scaling="query").fit(vali)
    left_out = rg.CombinedRanker((bag, by_query)).with_weights(np.ones(2), vali, 0.0)
    shown = {"trees": trees, "bag": bag, "pair": pair, "stack": stack, "none": left_out}
    used = sum(one.feature_importance("split") for one in (trees, *bag.models_))
    order = np.append(np.argsort(-used)[:3], np.flatnonzero(used == 0)[0])  # the last does nothing
    lines = {name: [] for name in ("trees", "bag", "pair", "stack")}
    for j in order:
        values = np.eye(test.n_features)[j]
        one = Importance("m", "gain", tuple(test.feature_names), values)
        (found,) = dependences(as_systems(shown, test, "t"), test, [one], 1)
        assert list(found.lines) == list(lines)
        for name, line in found.lines.items():
            lines[name].append(line)
    for of in lines.values():
        assert of[-1] == pytest.approx(np.zeros(of[-1].size), abs=1e-6)
    first, second, both, net = (np.concatenate(of) for of in lines.values())
    a, b = 0.5 * trees.predict(test).std(), 3.0 * bag.predict(test).std()
    total = (a * first + b * second) / (a + b)
    scale = (both @ total) / (total @ total)
    assert both == pytest.approx(scale * total, abs=1e-9)
    assert 0.9 < scale < 1.5  # the parts' scores do not quite vary together
    assert net.std() > 0.5 * second.std()


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
