"""The experiments of the BL-MART paper run end to end on a small collection, and only once."""

from __future__ import annotations

import pytest

import rankgrove as rg
from rankgrove.experiments import (
    ganjisaffar2011,
    ganjisaffar2011_nested,
    ganjisaffar2011_repeated,
    ganjisaffar2011_tuning,
)
from rankgrove.experiments.ganjisaffar2011_peer import fit_lightgbm
from rankgrove.experiments.ganjisaffar2011_setting import (
    MEASURES,
    SETTINGS,
    setting_of,
    the_collection,
)
from rankgrove.experiments.ganjisaffar2011_table import by_query
from rankgrove.experiments.sources import Collection, Sources
from rankgrove.experiments.spaces import PRESETS
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.study import Study
from tests.experiments.running import Tiny, run_twice, tiny_collection

EXPERIMENTS = [
    *ganjisaffar2011.EXPERIMENTS,
    *ganjisaffar2011_nested.EXPERIMENTS,
    *ganjisaffar2011_repeated.EXPERIMENTS,
    *ganjisaffar2011_tuning.EXPERIMENTS,
]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.name)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path):
    folder = tiny_collection(tmp_path / "mine", name="mine")
    found = run_twice(experiment, tmp_path, Sources.of(folder))
    assert "mine" in found.text


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
    (own,) = Sources.of(folder).collections("mq2008")
    numbers, made = range(1, 6), []
    for seed in (1, 2):
        draw = ganjisaffar2011_repeated.Redrawn(own, seed)
        folds = [draw.fold(k).test for k in numbers]
        values = [dict.fromkeys(MEASURES, (part.query_keys % 1000).tolist()) for part in folds]
        cells = {"a system": [[{"values": one, "trees": 3}] for one in values]}
        made.append(ganjisaffar2011_repeated._in_one_order(cells, draw, numbers))
    assert made[0] == made[1]
    together = ganjisaffar2011_repeated._together(made)["a system"]
    assert by_query(together, "map").tolist() == made[0]["a system"][0][0]["values"]["map"]
