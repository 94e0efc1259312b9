"""The classical rankers on the command line."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

import rankgrove as rg
from tests.command import run_here

KINDS = {
    "rankboost": rg.RankBoost,
    "adarank": rg.AdaRank,
    "frank": rg.FRank,
    "gbrank": rg.GBRank,
    "randomforest": rg.RandomForest,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("classical")
    for seed, name in enumerate(["train.txt", "vali.txt"], 1):
        rg.write_letor(rg.make_web(30, n_docs=12, n_features=8, seed=seed), path / name)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_train_rank_and_evaluate(folder, kind):
    rounds = "n_rounds" if kind == "adarank" else "n_trees"
    words = f"train train.txt --valid vali.txt --ranker {kind} -m map --set {rounds}=5 --out m.rg"
    out, _ = run_here(*words.split(), cwd=folder)
    assert f"{KINDS[kind].__name__} for map" in out
    model = rg.load(folder / "m.rg")
    vali = rg.read_letor(folder / "vali.txt")
    same = KINDS[kind]("map", **{rounds: 5}).fit(rg.read_letor(folder / "train.txt"), valid=vali)
    np.testing.assert_array_equal(model.predict(vali), same.predict(vali))
    run_here(*"rank vali.txt --model m.rg --out s.txt".split(), cwd=folder)
    np.testing.assert_array_equal(np.loadtxt(folder / "s.txt"), model.predict(vali))


@pytest.mark.parametrize("kind", KINDS)
def test_params_describes_every_parameter(kind):
    out, _ = run_here("params", kind)
    assert set(tomllib.loads(out)) == set(KINDS[kind]().get_params())
    assert "\n# \n" not in f"\n{out}"


def test_help_names_every_ranker():
    out, _ = run_here("train", "--help")
    shown = "".join(out.replace("│", " ").split())
    assert all(kind in shown for kind in KINDS)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("--ranker rankbost", "did you mean 'rankboost'"),
        ("--ranker rankboost --set n_leaves=3", "RankBoost has no parameter 'n_leaves'"),
        ("--ranker rankboost --set spacing=log", "'spacing' parameter of RankBoost"),
        ("--ranker adarank -m dcg", "a measure with values between -1 and 1"),
        ("--ranker randomforest --submodel x.rg", "randomforest cannot start from another model"),
    ],
)
def test_mistakes_are_named(folder, words, complaint):
    command = f"train train.txt --quiet --out x.rg {words}"
    _, complaints = run_here(*command.split(), cwd=folder, status=2)
    assert complaint in " ".join(complaints.split())


def test_going_on_and_bags(folder):
    run_here(*"train train.txt --quiet --set n_trees=4 --out base.rg".split(), cwd=folder)
    words = "train train.txt --quiet --ranker rankboost --submodel base.rg --set n_trees=4"
    run_here(*words.split(), "--out", "on.rg", cwd=folder)
    assert rg.load(folder / "on.rg").submodel_.kind == "lambdamart"
    words = "train train.txt --quiet --ranker mart --set n_trees=4 --models 3 --combine mean"
    run_here(*words.split(), "--out", "bagboo.rg", cwd=folder)
    assert len(rg.load(folder / "bagboo.rg").models_) == 3
