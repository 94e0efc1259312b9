"""``rankgrove report``: names of models, options, mistakes."""

from __future__ import annotations

import json
import re

import pytest

import rankgrove as rg
from tests.command import run_here


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("report")
    for seed, part in enumerate(("train", "vali", "test")):
        data = rg.make_artificial(20, n_docs=8, n_features=5, seed=seed)
        rg.write_letor(data, made / f"{part}.txt")
    train, vali = (rg.read_letor(made / f"{part}.txt") for part in ("train", "vali"))
    for name, trees in (("old", 2), ("new", 8)):
        rg.LambdaMART(n_trees=trees, min_leaf=5).fit(train, valid=vali).save(made / f"{name}.rg")
    return made


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.findall(r'id="data">(.*?)</script>', text, re.S)[0])


def test_two_models(folder):
    out, _ = run_here(
        *("report", "old.rg", "--against", "better=new.rg", "--data", "test.txt"),
        *("--valid", "vali.txt", "-m", "map", "-m", "err", "--convention", "letor"),
        *("--queries", "3,5", "--documents", 0, "--title", "Old and new", "--out", "r.html"),
        cwd=folder,
    )
    data = data_of(folder / "r.html")
    assert data["models"] == ["old", "better"]
    assert data["measures"] == ["map", "err"]
    assert {data["queries"]["ids"][int(q)] for q in data["rankings"]["of"]} == {"3", "5"}
    assert list(data["sizes"][0]["values"]) == ["this data", "vali"]
    assert "written to r.html" in out
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "<title>Old and new</title>" in page
    assert "convention <b>letor</b>" in page


def test_one_model(folder):
    out, _ = run_here("report", "new.rg", "--data", "test.txt", cwd=folder)
    assert out.startswith("new has a mean ndcg@10 of 0.")
    assert data_of(folder / "report.html")["measures"] == ["ndcg@10", "ndcg@1", "map", "mrr", "err"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["none.rg"], "none.rg: there is no such file"),
        (["old.rg", "--against", "old.rg"], "Two models are named 'old': name them yourself"),
        (["=old.rg"], "Write a model as FILE or NAME=FILE"),
        (["old.rg", "--out", "test.txt"], "--out test.txt would overwrite a file that is read"),
        (["old.rg", "--out", "no/r.html"], "folder that exists"),
        (["old.rg", "-m", "ndgc"], "ndgc"),
        (["old.rg", "--queries", "99"], "There is no query '99' among the 20 queries"),
    ],
)
def test_mistakes(folder, words, complaint):
    _, said = run_here("report", *words, "--data", "test.txt", cwd=folder, status=2)
    assert complaint in said
