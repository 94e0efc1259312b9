"""ListNet, CoordinateAscent, RankSVM, SmoothRank and CRR on the command line."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

import rankgrove as rg
from tests.command import run_here

RANKERS = {
    "listnet": (rg.ListNet, "--set n_epochs=3 --set hidden=[4]"),
    "coordinate-ascent": (rg.CoordinateAscent, "--measure map --set n_restarts=1"),
    "ranksvm": (rg.RankSVM, "--set C=[0.1,1] --set pairs=query"),
    "smoothrank": (rg.SmoothRank, "--measure ndcg@5 --set sigma=[4,1]"),
    "crr": (rg.CRR, "--set alpha=0.3 --set n_epochs=3"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("linear")
    for seed, name in enumerate(["train.txt", "vali.txt"], 1):
        rg.write_letor(rg.make_web(30, n_docs=12, n_features=6, seed=seed), path / name)
    return path


@pytest.mark.parametrize("name", RANKERS)
def test_train_and_rank(folder, name):
    ranker, options = RANKERS[name]
    words = f"train train.txt --valid vali.txt --ranker {name} --out m.rg {options}"
    out, _ = run_here(*words.split(), cwd=folder)
    assert ranker.__name__ in out
    model = rg.load(folder / "m.rg")
    assert type(model) is ranker
    run_here(*"rank vali.txt --model m.rg --out s.txt".split(), cwd=folder)
    vali = rg.read_letor(folder / "vali.txt")
    np.testing.assert_array_equal(np.loadtxt(folder / "s.txt"), model.predict(vali))


@pytest.mark.parametrize("name", RANKERS)
def test_params_is_a_file_that_train_takes(folder, name):
    out, _ = run_here("params", name)
    assert set(tomllib.loads(out)) == set(RANKERS[name][0]().get_params())
    assert "\n# \n" not in f"\n{out}"  # every parameter is described
    (folder / "p.toml").write_text(out)
    words = f"train train.txt --ranker {name} --config p.toml --quiet --out p.rg"
    quick = {"listnet": "n_epochs=2", "crr": "n_epochs=2", "coordinate-ascent": "n_iterations=1"}
    more = ["--set", quick[name]] if name in quick else []
    run_here(*words.split(), *more, cwd=folder)
    assert rg.load(folder / "p.rg").kind == name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--ranker ranksvm --measure map", "has its own loss"),
        ("--ranker smoothrank --measure map", "map is none of them"),
        ("--ranker coordinate-ascent --set search=stepps", "did you mean 'steps'"),
        ("--ranker crr --set early_stopping=3", "early_stopping needs validation data"),
        ("--ranker ranksvmm", "did you mean 'ranksvm'"),
    ],
)
def test_mistakes_are_said_in_one_line(folder, words, message):
    _, err = run_here(*"train train.txt --out x.rg".split(), *words.split(), cwd=folder, status=2)
    assert message in " ".join(err.split())
    assert "Traceback" not in err
