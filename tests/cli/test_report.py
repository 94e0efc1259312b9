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
        *("report", "test.txt", "-s", "old.rg", "-s", "better=new.rg"),
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
    out, _ = run_here("report", "test.txt", "-s", "new.rg", cwd=folder)
    assert out.startswith("new has a mean ndcg@10 of 0.")
    assert data_of(folder / "report.html")["measures"] == ["ndcg@10", "ndcg@1", "map", "mrr", "err"]


@pytest.mark.slow
def test_a_feature_and_scores_beside_a_model(folder):
    rg_scores = rg.load(folder / "new.rg").predict(rg.read_letor(folder / "test.txt"))
    (folder / "s.txt").write_text("".join(f"{one}\n" for one in rg_scores))
    words = "report test.txt -s bm25=feature:2 -s model:new.rg -s same=s.txt --out f.html"
    _, told = run_here(*words.split(), cwd=folder)
    data = data_of(folder / "f.html")
    assert data["models"] == ["bm25", "new", "same"]
    test = rg.read_letor(folder / "test.txt")
    bm25, new, same = data["queries"]["values"][0]
    values = rg.evaluate(test.column(2), test, "ndcg@10").per_query["ndcg@10"]
    assert bm25 == [round(10_000 * value) for value in values]
    assert new == same
    assert "hint" not in told


def test_the_old_spelling(folder):
    words = "report old.rg --against better=new.rg --data test.txt --out o.html"
    _, told = run_here(*words.split(), cwd=folder)
    assert data_of(folder / "o.html")["models"] == ["old", "better"]
    assert "hint: report --against is now written --system;" in told
    assert "hint: report --data is now written report FILE" in told
    assert "hint: report old.rg is now written report DATA -s old.rg;" in told


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["-s", "none.rg"], "none.rg: there is no such file"),
        (["-s", "old.rg", "-s", "old.rg"], "Two systems are named 'old': give each its own name"),
        (["-s", "=old.rg"], "Write a system as SOURCE or NAME=SOURCE"),
        (
            ["-s", "old.rg", "--out", "test.txt"],
            "--out test.txt would overwrite a file that is read",
        ),
        (["-s", "old.rg", "--out", "no/r.html"], "folder that exists"),
        (["-s", "old.rg", "-m", "ndgc"], "ndgc"),
        (["-s", "old.rg", "--queries", "99"], "There is no query '99' among the 20 queries"),
    ],
)
def test_mistakes(folder, words, complaint):
    _, said = run_here("report", "test.txt", *words, cwd=folder, status=2)
    assert complaint in said
