"""``rankgrove combine`` as a user types it."""

from __future__ import annotations

import csv

import numpy as np
import pytest

import rankgrove as rg
from tests.command import run_here as run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("combine")
    run("generate", "artificial", "--queries", 40, "--docs", 20, "--out", "vali.txt", cwd=path)
    data = rg.read_letor(path / "vali.txt")
    for name, measure, trees in [("a", "ndcg@10", 8), ("b", "map", 5), ("c", "pairs", 3)]:
        model = rg.LambdaMART(measure, n_trees=trees, n_leaves=4).fit(data)
        model.save(path / f"{name}.rg")
        run("rank", "vali.txt", "--model", f"{name}.rg", "-o", f"{name}.txt", cwd=path)
    return path


def test_two_models(folder):
    words = "combine a.rg b.rg vali.txt --measure ndcg@10 --out best.rg --curve curve.csv"
    out, _ = run(*words.split(), "--plot", "curve.png", "--scores-out", "best.txt", cwd=folder)
    data = rg.read_letor(folder / "vali.txt")
    best = rg.optimal_combination(
        rg.load(folder / "a.rg"), rg.load(folder / "b.rg"), data, "ndcg@10", names=["a.rg", "b.rg"]
    )
    assert out.startswith(str(best))
    for name in ("best.rg", "best.txt", "curve.csv", "curve.png"):
        assert f"\nwritten to {name}\n" in out
    assert np.array_equal(rg.load(folder / "best.rg").predict(data), best.predict(data))
    assert np.array_equal(np.loadtxt(folder / "best.txt"), best.predict(data))
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    with open(folder / "curve.csv", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert [float(row["value"]) for row in rows[1:-1]] == best.curve.value.tolist()


def test_score_files_and_the_additive_form(folder):
    words = "combine vali.txt --scores a.txt --scores b.txt --form additive --bounds 0.1,100"
    out, _ = run(*words.split(), "-m", "map", "-o", "sum.txt", cwd=folder)
    a, b = (np.loadtxt(folder / name) for name in ("a.txt", "b.txt"))
    data = rg.read_letor(folder / "vali.txt")
    best = rg.optimal_combination(
        a, b, data, "map", "additive", (0.1, 100), names=["a.txt", "b.txt"]
    )
    assert out == f"{best}\nwritten to sum.txt\n"
    assert np.array_equal(np.loadtxt(folder / "sum.txt"), a + best.alpha * b)
    out, _ = run(*"combine a.rg vali.txt --scores b.txt -o mixed.txt".split(), cwd=folder)
    assert "a: a.rg" in out
    assert np.loadtxt(folder / "mixed.txt").shape == a.shape


@pytest.mark.parametrize("method", ["cyclic", "powell"])
def test_three_models(folder, method):
    words = f"combine a.rg b.rg c.rg vali.txt --method {method} --out three.rg"
    out, _ = run(*words.split(), cwd=folder)
    assert f"combined ({method})" in out
    data = rg.read_letor(folder / "vali.txt")
    value = rg.evaluate(rg.load(folder / "three.rg"), data, "ndcg@10").mean["ndcg@10"]
    assert f"{value:.4f}" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("combine a.rg b.rg", "Give the judged data before the model"),
        ("combine a.rg vali.txt", "at least two systems"),
        ("combine a.rg b.rg c.rg vali.txt --method exact", "combines two systems. Got 3"),
        ("combine a.rg b.rg c.rg vali.txt --curve c.csv", "are for two systems"),
        ("combine a.rg b.rg vali.txt --form additive", "given for the additive form"),
        ("combine a.rg b.rg vali.txt --bounds 0;1", "two numbers separated by a comma"),
        ("combine a.rg b.rg vali.txt --bounds 0,2", "between 0 and 1"),
        ("combine a.rg b.rg vali.txt --plot curve.doc", "writes png, svg or pdf"),
        ("combine a.rg b.rg nothing.txt", "there is no such file"),
        ("combine a.rg vali.txt --scores b.txt --out x.rg", "have no model"),
        ("combine a.rg b.rg vali.txt --measure ndgc", "did you mean"),
    ],
)
def test_mistakes(folder, words, message):
    before = sorted(folder.iterdir())
    _, complaint = run(*words.split(), cwd=folder, status=2)
    assert message in complaint
    assert sorted(folder.iterdir()) == before
