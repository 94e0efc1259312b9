"""Compressed data is data to every command; only a compressed model is refused."""

from __future__ import annotations

import gzip

import pytest

import rankgrove as rg
from tests.command import run_here


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("compressed")
    data = rg.make_artificial(20, n_docs=8, n_features=5, seed=1)
    rg.write_letor(data, made / "data.txt.gz")
    (made / "table.csv.gz").write_bytes(gzip.compress(b"qid,label,f1\n1,0,0.5\n1,1,0.7\n"))
    for name, trees in (("one", 3), ("two", 4)):
        rg.LambdaMART(n_trees=trees, min_leaf=5).fit(data).save(made / f"{name}.rg")
    scores = "".join(f"{value}\n" for value in data.column(2).tolist())
    (made / "scores.txt.gz").write_bytes(gzip.compress(scores.encode()))
    (made / "packed.rg").write_bytes(gzip.compress((made / "one.rg").read_bytes()))
    return made


@pytest.mark.parametrize(
    "words",
    [
        "report data.txt.gz -s one.rg --out page.html",
        "report data.txt.gz -s scores.txt.gz --out page.html",
        "explain data.txt.gz one.rg --query 1",
        "combine data.txt.gz one.rg two.rg",
        "prune data.txt.gz one.rg --out small.rg",
        "evaluate data.txt.gz -s scores.txt.gz",
        "evaluate table.csv.gz -s feature:f1",
    ],
)
def test_compressed_data(folder, words):
    _, told = run_here(*words.split(), cwd=folder)
    assert "hint" not in told


def test_a_compressed_model(folder):
    _, told = run_here("evaluate", "data.txt.gz", "-s", "packed.rg", cwd=folder, status=2)
    assert "it is compressed. Decompress it first: gunzip" in told


def test_compressed_data_is_no_model(folder):
    _, told = run_here("rank", "data.txt.gz", "--model", "data.txt.gz", cwd=folder, status=2)
    assert "is not a rankgrove model" in told


def test_damaged_compressed_data(folder):
    (folder / "cut.txt.gz").write_bytes((folder / "data.txt.gz").read_bytes()[:300])
    (folder / "bad.txt.gz").write_bytes(b"\x1f\x8b" + b"?" * 40)
    for name in ("cut.txt.gz", "bad.txt.gz"):
        _, told = run_here("explain", name, "one.rg", "--query", "1", cwd=folder, status=2)
        assert f"{name}: the gzip" in told
