"""``rankgrove info``: every kind of model file."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.cli.info import described
from rankgrove.rankers.load import trainable
from tests.command import run_here as run

SMALL = {"n_trees": 3, "n_leaves": 4, "min_leaf": 2, "n_epochs": 2, "rounds": 3, "n_rounds": 3}


@pytest.fixture(scope="module")
def parts():
    return [rg.make_artificial(20, n_docs=8, n_features=4, seed=seed) for seed in (1, 2)]


def trained(kind, parts):
    made = trainable()[kind]()
    made.set_params(**{k: v for k, v in SMALL.items() if k in made.get_params(deep=False)})
    if "C" in made.get_params(deep=False):
        made.set_params(C=1.0)
    return made.fit(parts[0], valid=parts[1])


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(trainable()))
def test_every_ranker(kind, parts, tmp_path):
    trained(kind, parts).save(tmp_path / "m.rg")
    out, _ = run("info", "m.rg", cwd=tmp_path)
    assert f"kind: {kind} (" in out
    assert "features: 4, without names" in out
    assert "parameters: " in out
    found = described(tmp_path / "m.rg")
    of_trees = {"lambdamart", "mart", "gbrank", "rankboost", "frank", "randomforest"}
    units = {"coordinate-ascent": "passes", "crr": "epochs", "mcrank": "rounds"}
    for one in found["training record"]:
        assert (one["unit"] == "trees") == (kind in of_trees)
        assert one["unit"] == units.get(kind, one["unit"])
    if found["training record"]:
        (one, *_) = found["training record"]
        assert f"valid {one['measure']}" in out
        assert f"kept: {one['kept'][1]:.4f}" in out


def test_models_of_models(parts, tmp_path):
    train, vali = parts
    one = rg.LambdaMART(n_trees=4, n_leaves=4, min_leaf=2).fit(train, valid=vali)
    other = rg.MART(n_trees=3, n_leaves=4, min_leaf=2).fit(train)
    bag = rg.BaggedRanker(rg.MART(n_trees=2, n_leaves=3, min_leaf=2), 3).fit(train)
    made = {
        "combined": rg.optimal_combination(one, other, vali, "ndcg@10").ranker,
        "stack": rg.StackedRanker([one, other], n_epochs=2).fit(train, valid=vali),
        "bag": bag,
        "trada": rg.Trada(one).fit(train),
        "pruned": rg.prune(one, vali, tolerance=1.0).ranker,
    }
    texts = {}
    for name, model in made.items():
        model.save(tmp_path / f"{name}.rg")
        texts[name], _ = run("info", f"{name}.rg", cwd=tmp_path)
    assert "weights: " in texts["combined"]
    assert "ranker 2:\n  kind: mart (MART)" in texts["combined"]
    assert "ranker 1:\n  kind: lambdamart (LambdaMART)" in texts["stack"]
    assert "trees: 6\n" in texts["bag"]
    assert "out of bag: ndcg@10 0." in texts["bag"]
    assert "ranker 1:\n  kind: lambdamart" in texts["trada"]
    assert "pruned: " in texts["pruned"]


def test_models_of_others_and_names(parts, tmp_path):
    train = parts[0]
    model = rg.LambdaMART(n_trees=3, n_leaves=4, min_leaf=2)
    model.fit(rg.QueryDataset(train.X, train.y, train.qid, feature_names=list("abcd")))
    model.save(tmp_path / "m.rg")
    for name, to in (("l.txt", "lightgbm"), ("x.json", "xgboost"), ("r.xml", "ranklib")):
        rg.convert(model, tmp_path / name, to, missing="zero")
    words = ["m.rg", "l.txt", "x.json", "r.xml", "--out", "all.json"]
    out, _ = run("info", *words, cwd=tmp_path)
    assert "features: 4 (a, b, c, d)" in out
    assert out.count("trees: 3") == 4
    assert "written to all.json" in out
    found = json.loads((tmp_path / "all.json").read_text())
    assert [one["file"] for one in found] == words[:4]
    assert found[0]["feature names"] == list("abcd")
    assert found[0]["parameters"]["n_trees"] == 3
    assert np.isfinite(found[0]["bytes"])


def test_what_is_no_model(tmp_path):
    (tmp_path / "x.txt").write_text("1 qid:1 1:0.5\n")
    _, error = run("info", "x.txt", cwd=tmp_path, status=2)
    assert "is not a rankgrove model" in error
    _, error = run("info", "nope.rg", cwd=tmp_path, status=2)
    assert "there is no such file" in error
