"""Explanations and partial dependence of models with categorical features."""

from __future__ import annotations

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest

import rankgrove as rg
from rankgrove.operations.flat_models import flat_model
from rankgrove.reporting.dependence import dependences
from rankgrove.reporting.importance import Importance
from rankgrove.reporting.systems import System
from rankgrove.scoring.score import score

NAMES = ("acme", "bolt", "core", "dune", "echo", "fern")


def made(names=NAMES, seed=0):
    """Return data whose third feature is a category that decides much."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(600, 4)).astype(np.float32)
    brand = rng.integers(0, len(NAMES), 600)
    y = np.clip(np.round(1.5 + x[:, 0] + (brand % 3 - 1) * 1.5), 0, 4)
    x[:, 2] = [names.index(NAMES[b]) for b in brand]
    x[rng.random(600) < 0.1, 2] = np.nan
    features = ["price", "age", "brand", "bm25"]
    return rg.QueryDataset(
        x, y, np.arange(600) // 20, feature_names=features, categorical={"brand": names}
    )


DATA = made()


@pytest.fixture(scope="module")
def model():
    return rg.LambdaMART(n_trees=15, min_leaf=5, n_threads=1).fit(DATA)


def test_contributions_sum_to_scores_and_show_names(model):
    assert model.ensemble_.has_sets
    found = rg.explain(model, DATA)
    for i in range(0, 600, 37):
        listed = [found.base[i], *found.contributions[i], found.rounding[i]]
        assert math.fsum(listed) == found.scores[i]
    np.testing.assert_array_equal(found.scores, model.predict(DATA))
    known = int(np.flatnonzero(np.isfinite(found.values[:, 2]))[0])
    name = NAMES[int(found.values[known, 2])]
    table = found.table(known)
    assert name in table.text()
    assert name in table.to_pandas()["value"].tolist()
    missing = int(np.flatnonzero(np.isnan(found.values[:, 2]))[0])
    assert "missing" in found.why(known, missing).text()
    (axes,) = rg.plot.explanation(found, known).axes
    assert any(f"brand = {name}" in text.get_text() for text in axes.get_yticklabels())
    plt.close("all")


def test_the_grid_of_a_categorical_feature_is_its_categories(model):
    found = rg.partial_dependence(model, DATA, "brand")
    assert found.labels == (NAMES,)
    np.testing.assert_array_equal(found.grid, np.arange(6))
    for code, mean in enumerate(found.mean.tolist()):
        x = np.array(DATA.X)
        x[:, 2] = code
        changed = rg.QueryDataset(
            x, DATA.y, DATA.qid, feature_names=DATA.feature_names, categorical=DATA.categorical
        )
        scores = model.predict(changed)
        assert mean == math.fsum(scores) / scores.size
    assert found.to_pandas().index.tolist() == list(NAMES)
    assert "dune" in found._repr_html_()
    steps = rg.partial_dependence(model, DATA, "brand", "thresholds")
    np.testing.assert_array_equal(steps.mean, found.mean)


def test_categories_by_name_by_code_and_by_frequency(model):
    found = rg.partial_dependence(model, DATA, "brand", ["fern", "bolt", math.nan])
    assert found.labels == (("bolt", "fern", "missing"),)
    codes = rg.partial_dependence(model, DATA, "brand", [1, 5, 77, math.nan])
    assert codes.labels == (("bolt", "fern", "77", "missing"),)
    np.testing.assert_array_equal(codes.mean[[0, 1, 3]], found.mean)
    assert codes.mean[2] == codes.mean[3]  # unknown categories go where missing values go
    values = DATA.column("brand")
    most = np.argsort(-np.bincount(values[~np.isnan(values)].astype(int)))
    few = rg.partial_dependence(model, DATA, "brand", 2)
    assert set(few.labels[0]) == {NAMES[code] for code in most[:2]}
    with pytest.raises(rg.DataError, match=r"no category 'acne'.*did you mean 'acme'"):
        rg.partial_dependence(model, DATA, "brand", ["acne"])


def test_two_features_of_which_one_is_categorical(model):
    both = rg.partial_dependence(model, DATA, ("brand", "price"), (["acme", "core"], [0.0, 1.0]))
    assert both.labels == (("acme", "core"), None)
    assert both.to_pandas().index[0] == ("acme", 0.0)
    assert "core" in both._repr_html_()
    (axes, *_) = rg.plot.partial_dependence(both).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["acme", "core"]
    plt.close("all")


def test_the_plot_has_a_point_per_category(model):
    (axes,) = rg.plot.partial_dependence(rg.partial_dependence(model, DATA, "brand")).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == list(NAMES)
    (points,) = axes.lines
    assert points.get_xdata().size == 6
    plt.close("all")


def test_categories_without_names_have_codes():
    plain = rg.QueryDataset(np.array(DATA.X), DATA.y, DATA.qid, categorical=[3])
    numbers = rg.MART(n_trees=5, min_leaf=5).fit(plain)
    found = rg.partial_dependence(numbers, plain, 3)
    assert found.labels[0] is not None
    assert set(found.labels[0]) <= {str(code) for code in range(6)}


def test_models_with_categories_in_another_order_share_a_chart(model):
    turned = made(NAMES[::-1])
    other = rg.LambdaMART(n_trees=15, min_leaf=5, n_threads=1).fit(turned)
    np.testing.assert_array_equal(other.predict(DATA), other.predict(turned))
    systems = [
        System(name, one, one.predict(DATA)) for name, one in (("one", model), ("two", other))
    ]
    importance = Importance("one", "gain", DATA.feature_names, np.array([1.0, 0, 2.0, 0]))
    shown = dependences(systems, DATA, [importance], 1)
    (brand,) = [one for one in shown if one.feature == "brand"]
    assert brand.names == NAMES
    assert brand.tenths.size == 0
    found = rg.partial_dependence(other, DATA, "brand")
    by_name = dict(zip(found.labels[0], found.mean.tolist(), strict=True))
    line = brand.lines["two"]
    order = np.argsort([by_name[name] for name in NAMES])
    assert (np.diff(line[order]) >= 0).all()


def test_the_report_page_names_categories(model, tmp_path):
    page = tmp_path / "report.html"
    rg.report({"trees": model}, DATA, "ndcg@5", page)
    text = page.read_text()
    assert '"names":["acme","bolt"' in text.replace(" ", "")


def test_trees_of_different_codes_are_not_joined(model):
    same = rg.MART(n_trees=4, n_threads=1).fit(DATA)
    both = rg.CombinedRanker([model, same]).fit(DATA)
    joined = flat_model(both)
    np.testing.assert_allclose(score(joined, np.array(DATA.X)), both.predict(DATA), rtol=1e-9)
    other = rg.MART(n_trees=4, n_threads=1).fit(made(NAMES[::-1]))
    with pytest.raises(rg.ParameterError, match="different codes for the categories of 'brand'"):
        flat_model(rg.CombinedRanker([model, other]).fit(DATA))


def test_pruning_bags_and_importance_follow_sets(model):
    pruned = rg.prune(model, DATA, "ndcg@5", tolerance=1.0).ranker
    assert pruned.ensemble_.has_sets
    kept = pruned.ensemble_
    by_tree = sum(kept.tree(t).predict(np.array(DATA.X)) for t in range(kept.n_trees))
    np.testing.assert_allclose(pruned.predict(DATA), by_tree + kept.base, rtol=1e-12)
    bag = rg.BaggedRanker(rg.MART(n_trees=3, n_threads=1), n_models=2, combine="mean").fit(DATA)
    mean = np.mean([one.predict(DATA) for one in bag.models_], axis=0)
    np.testing.assert_allclose(bag.predict(DATA), mean, rtol=1e-12)
    assert bag.flat().has_sets
    assert model.feature_importance("gain")[2] > 0.2
    assert rg.refine_weights(model, DATA, "ndcg@5", 1).ranker.ensemble_.has_sets
