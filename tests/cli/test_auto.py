"""``rankgrove auto`` as a user types it."""

from __future__ import annotations

import json

import pytest

import rankgrove as rg
from rankgrove.rankers.auto import search as searching
from rankgrove.rankers.auto.crossfit import fit_fold
from tests.command import run_here


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("auto")
    rg.write_letor(rg.make_web(40, n_docs=10, n_features=6, seed=1), path / "train.txt")
    rg.write_letor(rg.make_web(20, n_docs=10, n_features=6, seed=2), path / "more.txt")
    return path


def test_a_model_and_the_evidence(folder):
    model = folder / "best.rg"
    out, _ = run_here(
        "auto",
        folder / "train.txt",
        "--fits",
        10,
        "--out",
        model,
        "--threads",
        1,
        "--report",
        folder / "best.html",
    )
    assert "candidate" in out
    assert "Search report" in (folder / "best.html").read_text()
    assert f"written to {folder / 'best.html'}" in out
    assert "Nested estimate for new queries: ndcg@10" in out
    assert f"written to {model}" in out
    loaded = rg.load(model)
    assert loaded.kind == "auto"
    assert len(loaded.leaderboard_) == 1  # 40 queries: ten folds
    info, _ = run_here("info", model)
    assert "AutoRanker" in info
    assert "Nested estimate for new queries: ndcg@10" in info
    assert "value on the data" not in info
    assert "10 models of 1 candidate" in info
    run_here("info", model, "--out", folder / "info.json")
    (facts,) = json.loads((folder / "info.json").read_text())
    assert facts["search"]["nested estimate"] == loaded.value_
    assert [c["weight"] for c in facts["search"]["candidates"]] == [1.0]


def test_validation_queries_are_more_data_for_the_folds(folder):
    words = ["auto", "train.txt", "--fits", 5, "--valid", "more.txt", "--quiet", "--out", "both.rg"]
    run_here(*words, "--threads", 1, cwd=folder)
    parts = [rg.read_letor(folder / name) for name in ("train.txt", "more.txt")]
    both = rg.AutoRanker("ndcg@10", n_fits=5, n_threads=1).fit(parts[0], valid={"more": parts[1]})
    assert (rg.load(folder / "both.rg").predict(parts[1]) == both.predict(parts[1])).all()
    assert both.leaderboard_[0].fits == 5  # 60 queries: five folds


def test_ctrl_c(folder, monkeypatch):
    """The status says that it was interrupted; fits in a folder are not called lost."""
    done = []

    def interrupted(shared, task, n_threads):
        done.append(task)
        if len(done) in (4, 16):
            raise KeyboardInterrupt
        return fit_fold(shared, task, n_threads)

    monkeypatch.setattr(searching, "fit_fold", interrupted)
    model, fits = folder / "part.rg", folder / "fits"
    words = ["auto", folder / "train.txt", "--n-fits", 20, "--threads", 1, "--out", model]
    _, err = run_here(*words, "--checkpoint", fits, "--quiet", status=130)
    assert f"the fits finished so far are in {fits}" in err
    out, err = run_here(*words, "--checkpoint", fits, "--quiet", status=130)
    assert f"interrupted: {model} holds the best model so far" in err
    assert not out
    info, _ = run_here("info", model)
    assert "The search was interrupted" in info


def test_the_help_speaks_of_no_model():
    out, _ = run_here("auto", "--help")
    assert "model's training data" not in out
    assert "those of the model" not in out


def test_train_names_the_command_that_searches(folder):
    words = ["train", folder / "train.txt", "--ranker", "auto", "--out", folder / "x.rg"]
    _, err = run_here(*words, status=2)
    assert "rankgrove auto" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--minutes", 1, "--fits", 5], "give one of them"),
        (["--fits", 5, "-m", "nothing"], "nothing"),
        (["--minutes", 0], "minutes"),
        (["--fits", 10, "--valid", "none.txt"], "none.txt"),
        (["--fits", 10, "--valid", "TRAIN"], "is read already"),
        (["--fits", 10, "--group", "GROUPS"], "one line per query"),
        (["--fits", 10, "--report", "nowhere/best.html"], "--report"),
    ],
)
def test_mistakes(folder, words, message):
    groups = folder / "groups.txt"
    groups.write_text("a\nb\n")
    paths = {"GROUPS": groups, "TRAIN": folder / "train.txt"}
    words = [paths.get(word, word) for word in words]
    _, err = run_here("auto", folder / "train.txt", "--out", folder / "x.rg", *words, status=2)
    assert message in err
    assert not (folder / "x.rg").exists()
