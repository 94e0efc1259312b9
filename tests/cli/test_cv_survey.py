"""``rankgrove cv`` and ``rankgrove survey``."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import rankgrove as rg
from tests.command import run_here as run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("cv")
    for seed, name in enumerate(["train", "vali", "test"], 1):
        data = rg.make_artificial(20, n_docs=8, n_features=5, seed=seed)
        rg.write_letor(data, path / f"{name}.txt")
    return path


def test_cross_validation(folder):
    words = "cv train.txt --folds 4 -m ndcg@10 -m map --set n_trees=4 --set min_leaf=2"
    out, told = run(
        *f"{words} --out cv.json --scores-out cv.txt --convention letor".split(), cwd=folder
    )
    data = rg.read_letor(folder / "train.txt")
    found = rg.cross_validate(
        rg.LambdaMART(n_trees=4, min_leaf=2), data, ["ndcg@10", "map"], 4, convention="letor"
    )
    assert out == f"{found}\nwritten to cv.json\nwritten to cv.txt\n"
    assert "convention: letor" in out
    assert told.count(" of 4: ndcg@10 0.") == 4
    # by hand: folds of k_fold, and the mean over all queries
    values, scores = [], np.loadtxt(folder / "cv.txt")
    for k, (train, test) in enumerate(rg.k_fold(data, 4)):
        model = rg.LambdaMART(n_trees=4, min_leaf=2).fit(train)
        own = rg.evaluate(model, test, "ndcg@10", "letor")
        assert f"{own.mean['ndcg@10']:.4f}" in out
        assert own.mean["ndcg@10"] == found.folds[k].mean["ndcg@10"]
        values.append(own.per_query["ndcg@10"])
    assert math.isclose(found.pooled.mean["ndcg@10"], np.concatenate(values).mean())
    assert rg.evaluate(scores, data, "map", "letor").mean["map"] == found.pooled.mean["map"]
    assert json.loads((folder / "cv.json").read_text())["convention"] == "letor"


def test_cross_validation_with_validation_and_normalisation(folder):
    words = "cv train.txt --folds 3 --valid-fold --set n_trees=4 --set early_stopping=2 --quiet"
    out, told = run(*words.split(), "--normalise", "zscore", cwd=folder)
    assert out.startswith("LambdaMART on normalised features (zscore), 3 folds by query")
    assert not told
    _, error = run(*words.replace("--valid-fold ", "").split(), cwd=folder, status=2)
    assert "needs validation data" in error
    _, error = run(*"cv train.txt --folds 30".split(), cwd=folder, status=2)
    assert "choose fewer parts" in error


def test_a_survey_of_parts(folder):
    few = "--ranker RankBoost --ranker adarank-map --ranker LambdaMART"
    words = f"survey train.txt --valid vali.txt --test test.txt {few} -m ndcg@10 -m map"
    out, told = run(*words.split(), "--out", "s.json", "--report", "s.html", cwd=folder)
    assert out.startswith("3 rankers: rounds and C are chosen on the validation data; 20 test")
    assert "written to s.json\nwritten to s.html" in out
    assert told.count(" s\n") == 3
    train, vali, test = (rg.read_letor(folder / f"{n}.txt") for n in ("train", "vali", "test"))
    model = rg.AdaRank("map").fit(train, valid=vali, valid_measures="ndcg@10")
    own = rg.evaluate(model, test, ["ndcg@10", "map"])
    lines = [line for line in out.splitlines() if line.startswith("| AdaRank-MAP")]
    assert f"{own.mean['ndcg@10']:.4f} (" in lines[0]
    rows = [line.split("|") for line in out.splitlines() if line.startswith("| ")][1:]
    means = [float(row[2].split()[0]) for row in rows]
    assert means == sorted(means, reverse=True)
    assert not rows[0][4].strip()  # the best is not compared with itself
    found = json.loads((folder / "s.json").read_text())
    assert [one["name"] for one in found["rankers"]] == [row[1].strip() for row in rows]
    assert found["rankers"][1]["p against the best"] <= 1.0
    assert "The best 3 of 3 rankers" in (folder / "s.html").read_text(encoding="utf-8")


def test_a_survey_by_folds(folder):
    words = "survey train.txt --folds 3 --ranker RankBoost --ranker AdaRank-NDCG -m map"
    out, _ = run(*words.split(), "--out", "t.md", cwd=folder)
    assert "2 rankers: 3 folds by query, each used once for testing" in out
    assert (folder / "t.md").read_text() in out
    data = rg.read_letor(folder / "train.txt")
    values = []
    for train, vali, test in rg.k_fold(data, 3, valid=True):
        model = rg.AdaRank("ndcg").fit(train, valid=vali, valid_measures="map")
        values += rg.evaluate(model, test, "map").per_query["map"].tolist()
    assert f"| AdaRank-NDCG | {np.nanmean(values):.4f} (" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("survey train.txt --ranker lambdamrt", "did you mean 'lambdamart'"),
        ("survey train.txt --valid vali.txt", "--valid needs --test too"),
        ("survey train.txt --out train.txt", "would overwrite"),
        ("survey train.txt -m ndgc", "ndgc"),
        ("survey gone.txt", "there is no such file"),
    ],
)
def test_mistakes(folder, words, message):
    _, error = run(*words.split(), cwd=folder, status=2)
    assert message in error
