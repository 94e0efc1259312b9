"""``rankgrove explain``."""

from __future__ import annotations

import pytest

import rankgrove as rg
from tests.command import run_here


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("explain")
    data = rg.make_web(30, n_docs=10, n_features=6, seed=1)
    rg.write_letor(data, path / "test.txt")
    rg.LambdaMART(n_trees=10, min_leaf=5).fit(data).save(path / "web.rg")
    rg.SVMMap().fit(data).save(path / "svm.rg")
    rg.RankNet(hidden=(3,), n_epochs=1).fit(data).save(path / "net.rg")
    return path


@pytest.mark.parametrize("model", ["web.rg", "svm.rg"])
def test_a_document(folder, model):
    out, _ = run_here("explain", model, "test.txt", "--query", 3, cwd=folder)
    data = rg.read_letor(folder / "test.txt")
    found = rg.explain(folder / model, data, 3)
    assert out.strip() == str(found.table(int(found.ranking[0])))
    name = found.documents[2]
    asked = ("explain", model, "test.txt", "-q", 3, "-d", name, "--top", 2)
    out, _ = run_here(*asked, cwd=folder)
    assert out.strip() == found.table(2).text(2)


def test_two_documents(folder):
    data = rg.read_letor(folder / "test.txt")
    found = rg.explain(folder / "web.rg", data, 3, background=data)
    words = ("explain", "web.rg", "test.txt", "--query", 3, "--background", "test.txt")
    out, _ = run_here(*words, "--above", 1, "--below", 2, "--plot", "why.png", cwd=folder)
    assert out == f"{found.why(*found.ranking[:2].tolist())}\nwritten to why.png\n"
    assert (folder / "why.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["web.rg", "test.txt", "--query", "nothing"], "no query 'nothing'"),
        (["web.rg", "test.txt", "--query", "3", "--above", "1"], "belong together"),
        (
            ["web.rg", "test.txt", "--query", "3", "--above", "1", "--below", "2", "-d", "1"],
            "Give either --document",
        ),
        (["web.rg", "test.txt", "--query", "3", "-d", "99"], "no rank 99"),
        (["web.rg", "test.txt", "--query", "3", "-d", "D"], "no document 'D'"),
        (["net.rg", "test.txt", "--query", "3"], "partial_dependence"),
        (["no.rg", "test.txt", "--query", "3"], "no such file"),
        (["web.rg", "no.txt", "--query", "3"], "no such file"),
        (["web.rg", "test.txt", "--query", "3", "--plot", "web.rg"], "would overwrite"),
    ],
)
def test_mistakes(folder, words, complaint):
    _, said = run_here("explain", *words, cwd=folder, status=2)
    assert complaint in said
    assert said.startswith("error: ")
