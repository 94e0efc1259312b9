"""``rankgrove auto`` as a user types it."""

from __future__ import annotations

import pytest

import rankgrove as rg
from tests.command import run_here


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("auto")
    rg.write_letor(rg.make_web(40, n_docs=10, n_features=6, seed=1), path / "train.txt")
    return path


def test_a_model_and_the_evidence(folder):
    model = folder / "best.rg"
    out, _ = run_here("auto", folder / "train.txt", "--fits", 10, "--out", model, "--threads", 1)
    assert "candidate" in out
    assert "Nested estimate for new queries: ndcg@10" in out
    assert f"written to {model}" in out
    loaded = rg.load(model)
    assert loaded.kind == "auto"
    assert len(loaded.leaderboard_) == 1  # 40 queries: ten folds
    info, _ = run_here("info", model)
    assert "AutoRanker" in info


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--minutes", 1, "--fits", 5], "give one of them"),
        (["--fits", 5, "-m", "nothing"], "nothing"),
        (["--minutes", 0], "minutes"),
        (["--fits", 10, "--group", "GROUPS"], "one line per query"),
    ],
)
def test_mistakes(folder, words, message):
    groups = folder / "groups.txt"
    groups.write_text("a\nb\n")
    words = [groups if word == "GROUPS" else word for word in words]
    _, err = run_here("auto", folder / "train.txt", "--out", folder / "x.rg", *words, status=2)
    assert message in err
    assert not (folder / "x.rg").exists()
