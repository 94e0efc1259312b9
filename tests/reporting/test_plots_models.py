"""The plots of models: what they show is what was computed, and what they refuse."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import rankgrove as rg
from rankgrove.reporting.figure import log_x, new_figure


@pytest.fixture(scope="module")
def made():
    train, test = (rg.make_artificial(30, n_docs=12, n_features=6, seed=seed) for seed in (1, 2))
    models = {
        "trees": rg.LambdaMART(n_trees=12).fit(train, valid=test, valid_measures=["map", "mrr"]),
        "net": rg.LambdaRank(n_epochs=4).fit(train, valid=test, valid_measures="map"),
        "weights": rg.SVMMap().fit(train),
    }
    return models, test


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_learning_curve(made, tmp_path):
    models, _ = made
    figure = rg.plot.learning_curve(models)
    by_trees, by_epochs = figure.axes
    assert (by_trees.get_xlabel(), by_epochs.get_xlabel()) == ("trees", "epochs")
    assert (by_trees.get_ylabel(), texts(by_trees)) == ("mean map", ["trees", "kept"])
    line = by_trees.get_lines()[0]
    assert line.get_ydata().tolist() == models["trees"].history_["valid"]["map"]
    (axes,) = rg.plot.learning_curve(models["trees"], "mrr").axes
    assert axes.get_lines()[0].get_ydata().tolist() == models["trees"].history_["valid"]["mrr"]
    figure.savefig(tmp_path / "curve.png")
    with pytest.raises(rg.DataError, match=r"no training history of 'err'\. Train with valid="):
        rg.plot.learning_curve(models, "err")
    with pytest.raises(rg.DataError, match="no training history"):
        rg.plot.learning_curve(models["weights"])


def test_plots_with_one_panel_draw_on_given_axes(made):
    from matplotlib.figure import Figure

    models, test = made
    compared = rg.compare({"net": models["net"], "trees": models["trees"]}, test, "map")
    why = rg.explain(models["trees"], test, test.query_ids[0])
    best = rg.optimal_combination(models["trees"], models["net"], test, "map")
    tree, shape = models["trees"], rg.partial_dependence(models["trees"], test, 1, grid=5)
    draw = [
        lambda ax: rg.plot.learning_curve(tree, ax=ax),
        lambda ax: rg.plot.importance(tree, ax=ax),
        lambda ax: rg.plot.wins_and_losses(compared, ax=ax),
        lambda ax: rg.plot.score_distribution(tree, test, ax=ax),
        lambda ax: rg.plot.comparison(models, test, "map", ax=ax),
        lambda ax: rg.plot.explanation(why, ax=ax),
        lambda ax: rg.plot.explanation(why.table(0), ax=ax),
        lambda ax: rg.plot.partial_dependence(shape, ax=ax),
        lambda ax: rg.plot.combination_curve(best, ax=ax),
        lambda ax: rg.plot.pruning(rg.prune(tree, test, "map"), ax=ax),
        lambda ax: rg.plot.curves({"a": (np.arange(2), np.arange(2))}, "x", "y", "t", ax=ax),
    ]
    for one in draw:
        figure = Figure()
        left, right = figure.subplots(1, 2)
        assert one(right) is figure
        assert right.has_data()
        assert not left.has_data()
        assert right.get_xlabel()
        figure.draw_without_rendering()
    both = rg.partial_dependence(models["trees"], test, (1, 2), grid=3)
    figure = Figure()
    rg.plot.partial_dependence(both, ax=figure.add_subplot())
    assert len(figure.axes) == 2  # and the colours' scale
    with pytest.raises(rg.ParameterError, match="None here: there are 2 panels"):
        rg.plot.learning_curve(models, ax=right)
    with pytest.raises(rg.ParameterError, match="axes of Matplotlib"):
        rg.plot.importance(models["trees"], ax="left")


def test_learning_curve_of_a_bag_and_a_combination(made):
    models, test = made
    base = rg.LambdaMART("map", n_trees=6)
    bag = rg.BaggedRanker(base, n_models=3, query_fraction=0.5).fit(test, valid=test)
    both = rg.CombinedRanker([models["trees"], bag], "map").fit(test)
    (axes,) = rg.plot.learning_curve({"bag": bag, "both": both}).axes
    a, b = (f"{weight:.3g}" for weight in both.weights_)
    assert texts(axes) == [
        "bag, mean of 3", f"both: LambdaMART × {a}", f"both: BaggedRanker × {b}, mean of 3", "kept",
    ]  # fmt: skip
    drawn = [line.get_ydata().tolist() for line in axes.get_lines()]
    assert models["trees"].history_["valid"]["map"] in drawn
    for model in bag.models_:
        assert drawn.count(model.history_["valid"]["map"]) == 2


def test_importance(made):
    models, test = made
    figure = rg.plot.importance(models, test)
    assert [axes.get_title("left") for axes in figure.axes] == list(models)
    shown = [bar.get_width() for bar in figure.axes[0].patches]
    assert shown == sorted(models["trees"].feature_importances_, reverse=True)
    assert figure.axes[1].get_xlabel() == "fall of the measure if permuted"
    (axes,) = rg.plot.importance(models["trees"], kind="split", n_features=3).axes
    assert len(axes.patches) == 3
    with pytest.raises(rg.DataError, match="give dataset="):
        rg.plot.importance(models["net"])
    with pytest.raises(rg.DataError, match="no importance of the kind 'weight'"):
        rg.plot.importance(models["trees"], kind="weight")
    with pytest.raises(rg.ParameterError, match="trained"):
        rg.plot.importance(rg.LambdaMART())


def test_wins_and_losses(made):
    models, test = made
    compared = rg.compare(models, test, "ndcg@10")
    (axes,) = rg.plot.wins_and_losses(compared, "weights", "net").axes
    difference = compared.per_query["weights"] - compared.per_query["net"]
    won, lost = (difference > 0).sum(), (difference < 0).sum()
    assert f"weights against net: {won} queries won, {lost} lost" in axes.get_title("left")
    assert axes.get_lines()[1].get_ydata()[0] == pytest.approx(difference.mean())
    assert "net against trees" in rg.plot.wins_and_losses(compared).axes[0].get_title("left")
    with pytest.raises(rg.ParameterError, match="did you mean 'weights'"):
        rg.plot.wins_and_losses(compared, "weight")
    with pytest.raises(rg.ParameterError, match=r"the result of rg\.compare"):
        rg.plot.wins_and_losses(models)


def test_score_distribution(made):
    models, test = made
    figure = rg.plot.score_distribution({**models, "scores": test.column(1)}, test)
    assert [axes.get_title("left") for axes in figure.axes] == [*models, "scores"]
    labels = [f"{v:g}" for v in np.unique(test.y)]
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == labels
    with pytest.raises(rg.DataError, match="all infinite"):
        rg.plot.score_distribution({"none": np.full(test.n_rows, -np.inf)}, test)


def test_trees_against_quality(made):
    models, test = made
    by_size, by_time = rg.plot.trees_against_quality(models, test, "map", valid=test).axes
    assert texts(by_size) == ["trees, data", "trees, valid"]
    assert texts(by_time) == list(models)
    whole = rg.evaluate(models["trees"], test, "map").mean["map"]
    assert by_size.get_lines()[0].get_ydata()[-1] == whole
    with pytest.raises(rg.DataError, match="models that can score"):
        rg.plot.trees_against_quality({"a": test.column(1)}, test)


def test_axes_of_trees_against_quality(made):
    models, test = made
    trees, net = models["trees"], models["net"]
    classes = rg.McRank(n_trees=2, min_leaf=3).fit(test)
    for shown, label in (
        ({"a": trees, "net": net}, "trees"),
        ({"a": trees, "<c>": classes}, "trees (of <c>: rounds)"),
        ({"<c>": classes}, "rounds of trees"),
    ):
        by_size, by_time = rg.plot.trees_against_quality(shown, test, "map").axes
        assert by_size.get_xlabel() == label
    (by_time,) = rg.plot.trees_against_quality(net, test, "map").axes  # no empty panel
    assert by_time.get_xlabel() == "µs per document"


@pytest.mark.parametrize("ends", [(0.02, 0.025), (0.018, 0.35), (1, 300), (1, 20_000), (1e-3, 1e6)])
def test_labels_of_a_log_axis_do_not_overlap(ends):
    figure = new_figure("test", 5.5, 4.5)
    axes = figure.subplots()
    axes.plot(ends, (0.0, 1.0))
    log_x(axes)
    FigureCanvasAgg(figure).draw()
    low, high = axes.get_xlim()
    labels = [
        tick.label1
        for which in (axes.xaxis.get_major_ticks(), axes.xaxis.get_minor_ticks())
        for tick in which
        if tick.label1.get_text() and low <= tick.get_loc() <= high
    ]
    boxes = sorted((one.get_window_extent() for one in labels), key=lambda box: box.x0)
    assert len(boxes) >= 2
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_pruning_of_a_loaded_ranker(made, tmp_path):
    models, test = made
    pruned = rg.prune(models["trees"], test, ["map", "mrr"], 0.02)
    pruned.ranker.save(tmp_path / "pruned.rg")
    shown = []
    for given in (pruned, pruned.ranker, rg.load(tmp_path / "pruned.rg")):
        (axes,) = rg.plot.pruning(given).axes
        shown.append([line.get_xydata().tolist() for line in axes.get_lines()])
    assert shown[0] == shown[1] == shown[2]
    start = pruned.passes[0].values["mrr"]
    assert shown[0][1] == [[one.n_trees, one.values["mrr"] - start] for one in pruned.passes]
    with pytest.raises(rg.ParameterError, match="or its ranker"):
        rg.plot.pruning(models["trees"])


def test_the_curve_of_a_combined_ranker(made):
    models, test = made
    pair = rg.CombinedRanker((models["trees"], models["net"])).fit(test)
    with pytest.raises(rg.ParameterError, match=r"Give rg\.optimal_combination\(\*model\.rankers_"):
        rg.plot.combination_curve(pair)
    rg.plot.combination_curve(rg.optimal_combination(*pair.rankers_, test, "map"))


def test_comparison(made):
    models, test = made
    figure = rg.plot.comparison(models, test, ["map", "err"])
    assert [axes.get_title("left") for axes in figure.axes] == ["map", "err"]
    found = rg.evaluate(models["trees"], test, "map")
    interval, mean = figure.axes[0].get_lines()[:2]
    assert tuple(interval.get_xdata()) == found.interval["map"]
    assert mean.get_xdata()[0] == found.mean["map"]
