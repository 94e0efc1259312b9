"""``rankgrove adapt`` as a user types it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import rankgrove as rg
from tests.command import run_here as run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("adapt")
    words = "generate domains --queries 40 --docs 15 --target-queries 20"
    run(*words.split(), "--out", "big.txt", "--target-out", "small.txt", cwd=path)
    run(*words.split(), "--seed", 2, "--out", "b2.txt", "--target-out", "vali.txt", cwd=path)
    words = "train big.txt --ranker mart --set n_trees=8 --set n_leaves=5 --out big.rg --quiet"
    run(*words.split(), cwd=path)
    return path


def test_trada(folder):
    words = (
        "adapt small.txt --base big.rg --beta 3 --tune splits --level leaf --trim --extra-trees 4 "
        "--valid vali.txt --set min_leaf=5 --out new.rg --report new.csv --plot new.png"
    )
    out, _ = run(*words.split(), cwd=folder)
    assert "adapted from a MART of 8 trees: beta 3, splits tuned, level leaf, trimmed" in out
    changes = rg.load(folder / "new.rg").report_
    assert f"what changed most, by feature:\n{changes.table('feature', 10)}\n" in out
    assert "gain" not in out
    big, small = rg.load(folder / "big.rg"), rg.read_letor(folder / "small.txt")
    vali = rg.read_letor(folder / "vali.txt")
    model = rg.Trada(
        big, beta=3, tune="splits", level="leaf", trim=True, extra_trees=4, min_leaf=5
    ).fit(small, valid={"vali": vali})
    np.testing.assert_array_equal(rg.load(folder / "new.rg").predict(vali), model.predict(vali))
    with open(folder / "new.csv", newline="") as lines:
        assert len(list(csv.DictReader(lines))) == 8
    assert (folder / "new.png").read_bytes().startswith(b"\x89PNG")
    out, _ = run(*"evaluate vali.txt -s new.rg".split(), cwd=folder)
    assert "ndcg@10" in out


@pytest.mark.parametrize(
    "words",
    [
        "--method submodel --extra-trees 2",
        "--method additive --extra-trees 2",
        "--method combine --source big.txt --target-weight 5",
        "--method small --set n_trees=4",
        "--method base",
        "--source big.txt --beta cv --set folds=2 --set betas=[1,10]",
    ],
)
def test_other_methods(folder, words):
    run(
        *"adapt small.txt --base big.rg --out other.rg --threads 1".split(),
        *words.split(),
        cwd=folder,
    )
    vali = rg.read_letor(folder / "vali.txt")
    assert np.isfinite(rg.load(folder / "other.rg").predict(vali)).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--beta much", "Write --beta as a number of at least 0, or cv. Got 'much'."),
        ("--beta -1", "'beta' parameter of Trada must be"),
        ("--method small --trim", "--trim is for --method trada. Got --method small."),
        ("--method base --extra-trees 3", "--extra-trees is for trada, additive and submodel"),
        ("--method combine", "--method combine needs the source's data: give --source."),
        ("--method small --source big.txt", "small does not use the source's data"),
        ("--target-weight 3", "--target-weight is for --method combine"),
        ("--set n_tree=3", "Trada has no parameter 'n_tree'"),
        ("--plot x.abc", "--plot writes png, svg or pdf"),
        ("--set early_stopping=3 --extra-trees 3", "early_stopping needs validation data"),
        ("--set base=x.rg", "--set does not take 'base': give --base instead."),
        ("--set source=3", "--set does not take 'source': give --source instead."),
        ("--set weight=3", "--set does not take 'weight': give --target-weight instead."),
        ("--beta 10 --set beta=20", "'beta' is given twice"),
        ("--threads 1 --set n_threads=2", "'n_threads' is given twice"),
        ("--method additive --set beta=3", "The method 'additive' does not take beta="),
        ("--method additive --set n_trees=20", "takes the number of trees as extra_trees="),
        ("--method additive --source big.txt", "additive does not use the source's data"),
        ("--method submodel --set submodel=x.rg", "'submodel' does not take submodel="),
        ("--method base --valid vali.txt", "neither parameters nor validation data"),
        ("--report small.txt", "--report small.txt would overwrite a file that is read"),
    ],
)
def test_mistakes(folder, words, message):
    start = "adapt small.txt --base big.rg --out none.rg"
    _, complaint = run(*start.split(), *words.split(), cwd=folder, status=2)
    assert message in complaint
    assert not (folder / "none.rg").exists()


def test_missing_files(folder):
    for words in ("adapt small.txt --base no.rg", "adapt no.txt --base big.rg"):
        _, complaint = run(*words.split(), "--out", "none.rg", cwd=folder, status=2)
        assert "no such file" in complaint
