"""The experiments of the BL-MART paper run end to end on a small collection, and only once."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.tuning.result_store import ResultStore
from rankgrove.tuning.search_space import PRESETS
from rankgrove_papers.ganjisaffar2011 import bags, model_pool, nested, repeated, tuning_and_pruning
from rankgrove_papers.ganjisaffar2011.lightgbm_bags import fit_lightgbm
from rankgrove_papers.ganjisaffar2011.settings import (
    DECIDES,
    FRACTION,
    LEAST_SQUARES,
    MEASURES,
    MSE,
    SETTINGS,
    TOLERANCE,
    base_ranker,
    edges_of,
    fitted_bag,
    n_models,
    setting_of,
    the_collection,
)
from rankgrove_papers.ganjisaffar2011.table4 import by_query, systems_table
from rankgrove_papers.sources import Collection, Sources
from rankgrove_papers.study import Study
from tests.papers.running import Tiny, run_twice, tiny_collection

pytestmark = pytest.mark.slow

EXPERIMENTS = [
    *bags.EXPERIMENTS,
    *nested.EXPERIMENTS,
    *repeated.EXPERIMENTS,
    *tuning_and_pruning.EXPERIMENTS,
]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path):
    folder = tiny_collection(tmp_path / "mine", name="mine")
    text = run_twice(experiment, tmp_path, Sources.of(folder)).text
    assert "mine" in text
    for named in ("least squares", "not normalised", "l2 0"):  # which LambdaMART it is
        assert named in text
    tunes = experiment.name.rsplit("-", 1)[1] in ("nested", "repeated", "tuning")
    assert ("How often the edge" in text) == tunes


def test_absent_data_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKGROVE_DATA", str(tmp_path))
    with pytest.raises(rg.DataError, match=r"'mq2008'.*set RANKGROVE_DATA.*--data"):
        the_collection(Tiny("small", None))


def test_settings_are_of_the_papers_grid_and_collections():
    for setting in SETTINGS.values():
        grid = PRESETS[setting.grid]
        for parameters in (setting.randomised, setting.plain):
            assert {
                name: value in grid[name] for name, value in parameters.items()
            } == dict.fromkeys(grid, True)
        assert setting.plain["query_fraction"] == setting.plain["feature_fraction"] == 1.0
        over = setting.paper["BL-MART with overfitting"]
        assert over == {m: max(row[m] for row in setting.paper.values()) for m in over}


def test_an_unknown_collection_has_no_figures_of_the_paper():
    setting = setting_of(Collection("mine", ()))
    assert setting.paper == {}
    assert setting.randomised == SETTINGS["MQ2007"].randomised


def test_the_peer_keeps_the_rounds_after_the_best():
    pytest.importorskip("lightgbm")
    train, valid = (rg.make_artificial(30, n_docs=12, seed=seed) for seed in (1, 2))
    parameters = SETTINGS["MQ2007"].plain
    study = Study("small", ResultStore(None, {}), n_threads=1)
    model = fit_lightgbm(study, parameters, "map", train, valid, 0)
    assert 0 < model.best < model.over
    best, over = (model.scores(valid, rounds) for rounds in (model.best, model.over))
    assert (best != over).any()
    values = [
        rg.evaluate(scores, valid, "map[relevant=1]").mean["map[relevant=1]"]
        for scores in (best, over)
    ]
    assert values[0] > values[1] >= 0.98 * values[0]


def test_queries_of_all_draws_stand_in_one_order(tmp_path):
    folder = tiny_collection(tmp_path / "mine")
    (collection,) = Sources.of(folder).collections("mq2008")
    numbers, draws = range(1, 6), []
    for seed in (1, 2):
        draw = repeated.Redrawn(collection, seed)
        folds = [draw.fold(k).test for k in numbers]
        values = [dict.fromkeys(MEASURES, (part.query_keys % 1000).tolist()) for part in folds]
        cells = {"a system": [[{"values": of_fold, "trees": 3}] for of_fold in values]}
        draws.append(repeated._in_one_order(cells, draw, numbers))
    assert draws[0] == draws[1]
    together = repeated._together(draws)["a system"]
    assert by_query(together, "map").tolist() == draws[0]["a system"][0][0]["values"]["map"]


# -- the settings are the paper's -----------------------------------------------------------------


def test_grids_are_the_papers():
    # Table 2; shares of rows in place of percentages; section 3.4: 1,008 and 162 combinations
    assert PRESETS["small"] == {
        "n_leaves": [2, 4, 7, 10, 15, 20, 25],
        "min_leaf": [0.0012, 0.0025, 0.005],
        "learning_rate": [0.05, 0.1, 0.2, 0.3],
        "query_fraction": [0.3, 0.5, 1.0],
        "feature_fraction": [0.1, 0.3, 0.5, 1.0],
    }
    assert PRESETS["large"] == {
        "n_leaves": [10, 40, 70],
        "min_leaf": [0.0012, 0.0025, 0.005],
        "learning_rate": [0.05, 0.1, 0.2],
        "query_fraction": [0.5, 1.0],
        "feature_fraction": [0.3, 0.5, 1.0],
    }
    sizes = [np.prod([len(values) for values in grid.values()]) for grid in PRESETS.values()]
    assert sizes == [1008, 162]


def test_parameters_are_the_first_rows_of_table_3():
    rows = {
        "TD2004": (20, 0.0025, 0.1, 0.5, 0.1),
        "MQ2007": (7, 0.0025, 0.05, 0.3, 0.3),
        "MSLR-WEB10K": (40, 0.0025, 0.1, 1.0, 0.5),
    }
    for name, row in rows.items():
        assert tuple(SETTINGS[name].randomised.values()) == row


def test_bags_are_the_papers():
    # sections 3.5.2 and 4: a tolerance of 2 %, 250 trees at the most after the best round; 45
    # models, of a pool of 1,000 (here of 100); 20 of 50 on MSLR-WEB10K; 67 % of the queries; 100
    # draws for Figure 4, 20 for Table 4; parameters by validation NDCG@3 (section 3.4)
    full = Study("full", ResultStore(None, {}), 1)
    assert (TOLERANCE, FRACTION, DECIDES) == (0.02, 0.67, "ndcg@3")
    assert model_pool.n_draws(full) == 100
    assert model_pool.n_bags(full) == 20
    for name, setting in SETTINGS.items():
        of_bag = n_models(full, setting), model_pool.pool_size(full, setting)
        assert of_bag == ((20, 50) if name == "MSLR-WEB10K" else (45, 100))
    assert model_pool.counts(1000)[-1] == 300  # as far as the paper's Figure 4 goes
    assert base_ranker(full, {}).early_stopping == 250


def test_the_base_model_is_named_as_what_it_is():
    study = Study("full", ResultStore(None, {}), 1)
    ours = base_ranker(study, SETTINGS["MQ2008"].randomised)
    paper = base_ranker(study, SETTINGS["MQ2008"].randomised | LEAST_SQUARES)
    assert (ours.split, paper.split) == ("newton", "mse")
    for model in (ours, paper):
        assert (model.measure, model.truncation) == ("ndcg", None)
        assert (model.normalise, model.l2, model.sigma) == (False, 0.0, 1.0)


def test_bags_of_a_pool_are_bags(tmp_path):
    # a draw of all models is the bag that BaggedRanker makes of them
    collection = Sources.of(tiny_collection(tmp_path / "mine")).collections("mq2008")[0]
    study = Tiny("small", ResultStore(None, {}), 1)
    setting, fold = setting_of(collection), collection.fold(1)
    pool = model_pool.of_pool(study, collection, 1)
    size = model_pool.pool_size(study, setting)
    parameters = setting.randomised | LEAST_SQUARES
    bag = fitted_bag(study, parameters, size, fold.train, fold.valid, 0)
    expected = rg.evaluate(bag, fold.test, MEASURES, setting.convention)
    assert size < n_models(study, setting)  # so that all of the pool is in every bag
    for draw in pool["over"]["bags"]:
        assert draw["trees"] == sum(model.ensemble_.n_trees for model in bag.models_)
        for measure in MEASURES:
            assert np.mean(draw["values"][measure]) == pytest.approx(expected.mean[measure])
    numbers = model_pool.counts(size)
    assert [len(pool[part]["map"]["valid"]) for part in ("best", "over")] == [len(numbers)] * 2
    assert pool["over"]["map"]["test"] != pool["over"]["map"]["valid"]


def test_draws_from_a_pool_differ_and_repeat_nothing():
    first, second = (model_pool.drawn(1000, 45, i) for i in (0, 1))
    assert set(first) != set(second)
    assert len(set(first)) == 45
    assert first.tolist() == model_pool.drawn(1000, 45, 0).tolist()


def test_the_papers_figures_stand_beside_both_kinds_of_splits():
    cell = {"values": {m: [0.5, 0.25] for m in MEASURES}, "trees": 1}
    names = ("LambdaMART", f"LambdaMART{MSE}", "BL-MART with overfitting", "LightGBM bagged")
    table = systems_table({name: [[cell]] for name in names}, SETTINGS["MQ2007"])
    assert table.count("0.3750 (0.4147)") == 2  # NDCG@1 of LambdaMART, Table 4 (b)
    assert table.count("0.3750 (0.4200)") == 1


def test_natural_limits_are_no_edges():
    best = {"n_leaves": 2, "min_leaf": 0.005, "learning_rate": 0.1, "query_fraction": 1.0}
    chosen = edges_of({"ours": [best | {"feature_fraction": 0.1}]}, PRESETS["small"])
    shares = {name: choices.at_edges for name, choices in chosen.items()}
    assert shares == {
        "ours, n_leaves": 0.0,
        "ours, min_leaf": 1.0,
        "ours, learning_rate": 0.0,
        "ours, query_fraction": 0.0,
        "ours, feature_fraction": 1.0,
    }
