"""SVMs on the command line: C by validation in one command, parameters, mistakes."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.cli.parameters import parameters
from tests.command import run_here


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("svm")
    for seed, name in enumerate(["train.txt", "vali.txt"], 1):
        data = rg.make_web(40, n_docs=15, n_features=10, seed=seed)
        rg.write_letor(data, path / name)
    return path


def test_c_by_validation_in_one_command(folder):
    words = "train train.txt --valid vali.txt --ranker svm-map --set relevant=2 --out m.rg"
    out, _ = run_here(*words.split(), "--set", "C=[0.01,1,100]", cwd=folder)
    assert "SVMMap: 10 weights of 10 features, C " in out
    assert "the best of 3" in out
    assert "status converged" in out
    assert "vali map[relevant=2]:" in out
    model = rg.load(folder / "m.rg")
    train, vali = (rg.read_letor(folder / name) for name in ("train.txt", "vali.txt"))
    same = rg.SVMMap(C=[0.01, 1, 100], relevant=2).fit(train, valid=vali)
    assert same.C_ == model.C_
    np.testing.assert_array_equal(model.predict(vali), same.predict(vali))
    out, _ = run_here(*"evaluate vali.txt --model m.rg -m map".split(), cwd=folder)
    assert "map" in out


@pytest.mark.parametrize("ranker", ["svm-map", "svm-roc", "svm-mrr", "svm-ndcg", "svm-acc"])
def test_every_svm(folder, ranker):
    words = f"train train.txt --valid vali.txt --ranker {ranker} --set C=auto --quiet --out q.rg"
    options = "--set thresholds=5 --set scaling=query --valid-measure ndcg@5"
    run_here(*words.split(), *options.split(), cwd=folder)
    model = rg.load(folder / "q.rg")
    assert model.kind == ranker
    assert model.C == "auto"
    assert list(model.history_["vali"]) == ["ndcg@5"]
    run_here(*"rank vali.txt --model q.rg --out s.txt".split(), cwd=folder)
    vali = rg.read_letor(folder / "vali.txt")
    np.testing.assert_array_equal(np.loadtxt(folder / "s.txt"), model.predict(vali))


@pytest.mark.parametrize("ranker", ["svm-map", "svm-acc"])
def test_params_is_a_file_that_train_takes(folder, ranker):
    out, _ = run_here("params", ranker)
    own = {"svm-map": rg.SVMMap, "svm-acc": rg.SVMAcc}[ranker]().get_params()
    assert set(tomllib.loads(out)) == set(own)
    assert "lowest label that counts as relevant" in out
    assert "\n# \n" not in f"\n{out}"  # every parameter is described
    (folder / "all.toml").write_text(out)
    assert parameters(folder / "all.toml", []) == own
    words = f"train train.txt --ranker {ranker} --config all.toml --quiet --out p.rg"
    run_here(*words.split(), cwd=folder)
    assert rg.load(folder / "p.rg").get_params() == own


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--ranker svm-mpa", "did you mean 'svm-map'"),
        ("--ranker svm-map --set C=auto", "several values of C need validation data"),
        ("--ranker svm-map --set C=-1", "'C' parameter of SVMMap must be a finite number above 0"),
        ("--ranker svm-map --measure ndcg@10", "--valid-measure sets the measure"),
        ("--ranker svm-map --set n_trees=5", "SVMMap has no parameter 'n_trees'"),
        (
            "--ranker svm-map --checkpoint x",
            "--checkpoint x: svm-map cannot continue a killed run. Leave it out.",
        ),
        ("--ranker svm-map --set relevant=9", "label is at least 9"),
        ("--ranker svm-acc --set scaling=z", "'scaling' parameter of SVMAcc must be one of"),
    ],
)
def test_mistakes_get_one_clear_line(folder, words, message):
    _, complaint = run_here(*f"train train.txt --out n.rg {words}".split(), cwd=folder, status=2)
    assert message in complaint
    assert not (folder / "n.rg").exists()
