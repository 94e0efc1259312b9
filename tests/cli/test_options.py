"""Options that several commands share, and what they make of mistakes."""

from __future__ import annotations

import json
import re
import tomllib

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.cli.inputs import load_dataset, named_sets
from rankgrove.cli.outputs import check_outputs
from rankgrove.cli.parameters import parameters
from tests.command import run_here as run

QUICK = "--set n_leaves=4 --set min_leaf=2".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three files of one task, and the first one counted from 0."""
    path = tmp_path_factory.mktemp("options")
    for seed, name in enumerate(["train", "vali", "test"], 1):
        data = rg.make_artificial(30, n_docs=8, n_features=4, seed=seed)
        rg.write_letor(data, path / f"{name}.txt")
        text = (path / f"{name}.txt").read_text()
        lower = re.sub(r" (\d+):", lambda found: f" {int(found[1]) - 1}:", text)
        (path / f"{name}0.txt").write_text(lower)
    run("train", "train.txt", "--quiet", "--set", "n_trees=3", *QUICK, "--out", "m.rg", cwd=path)
    return path


# -- files that count from 0 --------------------------------------------------------------------


def test_files_that_count_from_0(folder):
    words = ["--valid", "vali0.txt", "--quiet", "--set", "n_trees=3", *QUICK]
    run("train", "train0.txt", "--zero-based", *words, "--out", "m0.rg", cwd=folder)
    words[1] = "vali.txt"
    run("train", "train.txt", *words, "--out", "m1.rg", cwd=folder)
    m0, m1 = rg.load(folder / "m0.rg"), rg.load(folder / "m1.rg")
    assert m0.n_features_in_ == 4
    np.testing.assert_array_equal(m0.ensemble_.value, m1.ensemble_.value)
    systems = ["-s", "a=feature:1", "-s", "b=model:m0.rg"]
    for words in (
        ["rank", "--model", "m0.rg"],
        ["evaluate", "--model", "m0.rg"],
        ["evaluate", "--feature", "1"],
        ["compare", *systems],
        ["combine", "m0.rg", "m1.rg"],
    ):
        out, _ = run(words[0], "test0.txt", "--zero-based", *words[1:], cwd=folder)
        assert out == run(words[0], "test.txt", *words[1:], cwd=folder)[0]
        _, complaint = run(words[0], "test0.txt", *words[1:], cwd=folder, status=2)
        assert "--zero-based" in complaint
    with pytest.raises(rg.ParameterError, match=r"--zero-based is for LETOR files, and .*a\.csv"):
        load_dataset([folder / "a.csv"], zero_based=True)


# -- validation sets ----------------------------------------------------------------------------


def test_every_valid_is_a_set_of_its_own(folder):
    words = ["train", "train.txt", "--set", "n_trees=4", *QUICK, "--valid-measure", "map"]
    out, _ = run(*words, "--valid", "vali.txt", "--valid", "test.txt", "--out", "v.rg", cwd=folder)
    model = rg.load(folder / "v.rg")
    train, vali, test = (rg.read_letor(folder / f"{n}.txt") for n in ("train", "vali", "test"))
    expected = rg.LambdaMART(n_trees=4, n_leaves=4, min_leaf=2).fit(
        train, valid={"vali": vali, "test": test}, valid_measures="map"
    )
    assert model.history_ == expected.history_
    assert model.best_round_ == expected.best_round_
    assert "vali map: " in out
    assert "test map: " in out
    run(*words, "--valid", "vali.txt,test.txt", "--out", "w.rg", "--quiet", cwd=folder)
    both = rg.read_letor([folder / "vali.txt", folder / "test.txt"])
    expected = rg.LambdaMART(n_trees=4, n_leaves=4, min_leaf=2).fit(
        train, valid={"vali+test": both}, valid_measures="map"
    )
    assert rg.load(folder / "w.rg").history_ == expected.history_


def test_names_of_sets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.txt", "b.txt.gz", "c,d.txt", "x/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    as_text = {k: [str(p) for p in v] for k, v in named_sets(["a.txt,b.txt.gz", "c,d.txt"]).items()}
    assert as_text == {"a+b": ["a.txt", "b.txt.gz"], "c,d": ["c,d.txt"]}
    assert list(named_sets(["a.txt", "x/a.txt", "b.txt.gz"])) == ["a.txt", "x/a.txt", "b"]
    assert named_sets([]) == {}
    with pytest.raises(rg.ParameterError, match=r"--valid a\.txt is given twice"):
        named_sets(["a.txt", "b.txt.gz", "a.txt"])
    with pytest.raises(rg.ParseError, match=r"^nope\.txt: there is no such file"):
        named_sets(["a.txt,nope.txt"])
    with pytest.raises(rg.ParameterError, match=r"files of --valid as A,B,C.*Got 'a\.txt,'"):
        named_sets(["a.txt,"])


# -- parameters ---------------------------------------------------------------------------------


def test_none_true_and_false_in_any_case(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('max_depth = "None"\nearly_stopping = "none"\nnormalise = "FALSE"\nl2 = 1\n')
    given = parameters(path, ["n_threads=NONE", "progress=True", "measure=map", "l2=0.5", "a=none"])
    assert given == {
        "max_depth": None,
        "early_stopping": None,
        "normalise": False,
        "n_threads": None,
        "progress": True,
        "measure": "map",
        "l2": 0.5,
        "a": None,
    }


def test_params_is_a_file_that_train_takes(folder):
    out, _ = run("params")
    written = tomllib.loads(out)
    assert written["max_depth"] == "none"  # as --set and --best write it
    assert set(written) == set(rg.LambdaMART().get_params())
    (folder / "all.toml").write_text(out)
    assert parameters(folder / "all.toml", []) == rg.LambdaMART().get_params()
    words = ["train", "train.txt", "--config", "all.toml", "--set", "n_trees=2", "--quiet"]
    run(*words, "--set", "early_stopping=none", "--out", "p.rg", cwd=folder)
    assert rg.load(folder / "p.rg").get_params() == rg.LambdaMART(n_trees=2).get_params()


# -- what is written ----------------------------------------------------------------------------


def test_a_run_goes_to_the_screen(folder):
    words = ["rank", "test.txt", "--model", "m.rg", "--format", "trec", "--run-name", "mine"]
    out, _ = run(*words, cwd=folder)
    run(*words, "--out", "x.run", cwd=folder)
    assert out == (folder / "x.run").read_text()
    data = rg.read_letor(folder / "test.txt")
    rg.write_run((data, rg.load(folder / "m.rg").predict(data)), folder / "y.run", name="mine")
    assert out == (folder / "y.run").read_text()


def test_no_file_that_is_read_is_overwritten(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for words, message in [
        ("train train.txt --out train.txt", "--out train.txt would overwrite a file that is"),
        ("train train.txt --valid vali.txt --out ./vali.txt", "would overwrite a file that is"),
        ("train train.txt --out x --checkpoint x", "would overwrite the file of --out"),
        ("train train.txt --out x --set checkpoint=train.txt", "--checkpoint train.txt would"),
        ("rank test.txt --model m.rg --out m.rg", "--out m.rg would overwrite"),
        ("evaluate test.txt --feature 1 --json test.txt", "--out test.txt would overwrite"),
        ("evaluate test.txt --feature 1 --json x --per-query x", "the file of --per-query"),
        ("compare test.txt -s a=model:m.rg -s b=feature:1 --json m.rg", "--out m.rg would"),
    ]:
        _, complaint = run(*words.split(), cwd=folder, status=2)
        assert message in complaint
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    check_outputs({"--out": None, "--json": folder / "new"}, [folder / "test.txt", None])


def test_a_model_is_compared_on_a_file_without_the_last_features(folder):
    text = (folder / "test.txt").read_text()
    (folder / "thin.txt").write_text(re.sub(r" 4:\S+", "", text))
    words = "compare thin.txt -s a=feature:1 -s b=model:m.rg --json thin.json".split()
    run(*words, cwd=folder)
    means = json.loads((folder / "thin.json").read_text())["mean"]
    data = rg.read_letor(folder / "thin.txt", n_features=4)
    expected = rg.evaluate(rg.load(folder / "m.rg"), data, "ndcg@10").mean["ndcg@10"]
    assert means["b"] == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("evaluate test.txt --model .", "error: . is a folder: give the name of a model file"),
        ("train train.txt --out .", "not of a folder"),
        ("train train.txt --out x.rg --checkpoint no/state", "a folder that exists"),
        ("train train.txt --out x.rg --valid nope.txt", "nope.txt: there is no such file"),
        ("train train.txt --out x.rg --valid-measure map", "give --valid too"),
        ("compare test.txt -s a=feature:1 -s b=model:nope.rg", "nope.rg: there is no such file"),
    ],
)
def test_mistakes(folder, words, message):
    assert message in run(*words.split(), cwd=folder, status=2)[1]


@pytest.mark.parametrize("words", [["--sample", "0.5"], ["--combine", "mean"]])
def test_options_of_bags_need_a_bag(tmp_path, words):
    rg.write_letor(rg.make_artificial(10, n_docs=5, n_features=4, seed=1), tmp_path / "train.txt")
    command = ["train", "train.txt", *QUICK, *words, "--out", "m.rg", "--set", "n_trees=2"]
    _, refused = run(*command, cwd=tmp_path, status=2)
    assert "give --models too" in refused
    run(*command, "--models", "2", cwd=tmp_path)
