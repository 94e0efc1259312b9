"""Going on from a submodel on the command line."""

from __future__ import annotations

import tomllib

import numpy as np
import pandas
import pytest

import rankgrove as rg
from tests.command import run_here as run

FEW = ["--quiet", "--set", "n_leaves=4", "--set", "min_leaf=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A big and a small market, a model of the big one, and its scores of the small one."""
    path = tmp_path_factory.mktemp("markets")
    big, small = rg.make_domains(40, 20, n_docs=10, n_features=6, seed=1)
    _, valid = rg.make_domains(1, 20, n_docs=10, n_features=6, seed=2)
    model = rg.LambdaMART(n_trees=5, n_leaves=4).fit(big)
    model.save(path / "big.rg")
    for name, data in (("small", small), ("valid", valid)):
        rg.write_letor(data, path / f"{name}.txt")
        np.savetxt(path / f"{name}.scores", model.predict(data), fmt="%.17g")
        frame = pandas.DataFrame(np.asarray(data.X), columns=[f"f{j}" for j in range(1, 7)])
        frame = frame.assign(label=data.y, qid=data.qid, old=model.predict(data))
        frame.to_parquet(path / f"{name}.parquet")
    return path


def test_train_on_from_a_model_file(folder):
    words = ["train", "small.txt", *FEW, "--set", "n_trees=4", "--set", "row_fraction=0.7"]
    run(*words, "--submodel", "big.rg", "--out", "a.rg", cwd=folder)
    run(*words, "--set", "submodel=big.rg", "--out", "b.rg", cwd=folder)
    assert (folder / "a.rg").read_bytes() == (folder / "b.rg").read_bytes()
    small = rg.read_letor(folder / "small.txt")
    here = rg.LambdaMART(
        n_trees=4, n_leaves=4, min_leaf=2, row_fraction=0.7, submodel=folder / "big.rg"
    ).fit(small)
    np.testing.assert_array_equal(rg.load(folder / "a.rg").predict(small), here.predict(small))
    out, _ = run("rank", "small.txt", "--model", "a.rg", cwd=folder)
    assert [float(line) for line in out.split()] == here.predict(small).tolist()
    out, _ = run("train", "small.txt", *FEW[1:], "--submodel", "a.rg", "--set", "n_trees=0",
                 "--out", "c.rg", cwd=folder)  # fmt: skip
    assert "starting from a LambdaMART of 9 trees, weight 1" in out
    same, _ = run("rank", "small.txt", "--model", "c.rg", cwd=folder)
    assert [float(line) for line in same.split()] == here.predict(small).tolist()


def test_a_small_file_without_the_last_features(folder):
    lines = (folder / "small.txt").read_text().splitlines()
    thin = [" ".join(w for w in line.split() if w[:2] not in ("5:", "6:")) for line in lines]
    (folder / "thin.txt").write_text("\n".join(thin) + "\n")
    words = ["train", "thin.txt", *FEW, "--set", "n_trees=2", "--out", "thin.rg"]
    run(*words, "--submodel", "big.rg", cwd=folder)
    assert rg.load(folder / "thin.rg").n_features_in_ == 6


def test_scores_beside_the_data(folder):
    words = [*FEW, "--set", "n_trees=4"]
    run("train", "small.txt", "--valid", "valid.txt", *words, "--base-score", "small.scores",
        "--valid-base-score", "valid.scores", "--out", "text.rg", cwd=folder)  # fmt: skip
    run("train", "small.parquet", "--valid", "valid.parquet", *words, "--base-score", "old",
        "--out", "table.rg", cwd=folder)  # fmt: skip
    text, table = rg.load(folder / "text.rg"), rg.load(folder / "table.rg")
    assert text.submodel == table.submodel == "base_score"
    assert text.history_ == table.history_
    for command in (["evaluate"], ["rank"]):
        by_text, _ = run(*command, "valid.txt", "--model", "text.rg", "--base-score",
                         "valid.scores", cwd=folder)  # fmt: skip
        by_table, _ = run(*command, "valid.parquet", "--model", "table.rg", "--base-score", "old",
                          cwd=folder)  # fmt: skip
        assert by_text == by_table
    out, _ = run("compare", "valid.txt", "-s", "old=valid.scores", "-s", "new=model:text.rg",
                 "--base-score", "valid.scores", cwd=folder)  # fmt: skip
    assert "new - old" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train small.txt --out m.rg --submodel no.rg", "no such file. Got 'no.rg'"),
        ("train small.txt --out m.rg --submodel small.txt", "small.txt is not a rankgrove model"),
        ("train small.txt --out m.rg --submodel base_score", "give --base-score"),
        (
            "train small.txt --out m.rg --submodel big.rg --base-score small.scores",
            "either a submodel or --base-score",
        ),
        ("train small.txt --out m.rg --base-score big.rg", "big.rg"),
        ("train small.txt --out m.rg --base-score valid.txt", "expected one score per line"),
        ("train small.parquet --out m.rg --base-score odl", "'odl' for the base_score"),
        (
            "train small.txt --valid valid.txt --out m.rg --base-score small.scores",
            "give --valid-base-score",
        ),
        ("train small.txt --out m.rg --set n_trees=0", "at least 1"),
        ("train small.txt --out m.rg --set row_fraction=2", "'row_fraction'"),
    ],
)
def test_mistakes(folder, words, message):
    _, complaint = run(*words.split(), cwd=folder, status=2)
    assert message in complaint
    assert complaint.startswith("error: ")
    assert not (folder / "m.rg").exists()


def test_a_model_that_needs_scores_asks_for_them(folder):
    words = "train small.txt --base-score small.scores --set n_trees=1 --quiet --out needs.rg"
    run(*words.split(), cwd=folder)
    for command in ("rank", "evaluate"):
        _, complaint = run(command, "valid.txt", "--model", "needs.rg", cwd=folder, status=2)
        assert "on the command line with --base-score" in complaint


def test_params_are_a_toml_file(folder):
    out, _ = run("params", cwd=folder)
    assert tomllib.loads(out)["submodel"] == "none"
    assert tomllib.loads(out)["row_fraction"] == 1.0
