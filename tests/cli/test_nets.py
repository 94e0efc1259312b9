"""Nets on the command line."""

from __future__ import annotations

import tomllib

import numpy as np
import pytest

import rankgrove as rg
from tests.command import run_here as run

NETS = {"lambdarank": rg.LambdaRank, "ranknet": rg.RankNet, "boltzrank": rg.BoltzRank}
QUICK = "--set n_epochs=4 --quiet".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("nets")
    for seed, name in enumerate(["train", "vali"], 1):
        data = rg.make_artificial(30, n_docs=8, n_features=4, seed=seed)
        rg.write_letor(data, path / f"{name}.txt")
    return path


@pytest.mark.parametrize(("name", "kind"), NETS.items())
def test_training_a_net(folder, name, kind):
    words = ["--ranker", name, "--valid", "vali.txt", "--set", "hidden=[6,3]", *QUICK]
    run("train", "train.txt", *words, "--out", f"{name}.rg", cwd=folder)
    train, vali = (rg.read_letor(folder / f"{n}.txt") for n in ("train", "vali"))
    expected = kind(hidden=(6, 3), n_epochs=4).fit(train, valid={"vali": vali})
    made = rg.load(folder / f"{name}.rg")
    assert made.history_ == expected.history_
    np.testing.assert_array_equal(made.network_.flat, expected.network_.flat)
    out, _ = run("evaluate", "vali.txt", "--model", f"{name}.rg", "-m", "pairs", cwd=folder)
    assert f"{made.score(vali):.4f}"[1:] in out if name == "ranknet" else "pairs" in out
    ranked, _ = run("rank", "vali.txt", "--model", f"{name}.rg", cwd=folder)
    assert len(ranked.splitlines()) == vali.n_rows


def test_the_summary_and_mistakes(folder):
    out, err = run(
        "train", "train.txt", "--ranker", "lambdarank", "--set", "n_epochs=2", "--out", "s.rg",
        cwd=folder,
    )  # fmt: skip
    assert "LambdaRank for ndcg@10: 4 inputs, 10 tanh units, 60 weights, 2 epochs" in out
    _, err = run(
        "train", "train.txt", "--ranker", "ranknet", "-m", "map", "--out", "x.rg",
        cwd=folder, status=2,
    )  # fmt: skip
    assert "--measure map: ranknet has its own loss" in err
    _, err = run(
        "train", "train.txt", "--ranker", "ranknet", "--set", "hidden=many", "--out", "x.rg",
        cwd=folder, status=2,
    )  # fmt: skip
    assert "'hidden' parameter of RankNet must be a whole number, or a list" in err


def test_beginning_with_another_net(folder):
    words = ["train", "train.txt", *QUICK, "--out"]
    run(*words, "first.rg", "--ranker", "ranknet", cwd=folder)
    run(*words, "then.rg", "--ranker", "lambdarank", "--start", "first.rg", cwd=folder)
    train = rg.read_letor(folder / "train.txt")
    first = rg.load(folder / "first.rg")
    expected = rg.LambdaRank(n_epochs=4).fit(train, start=first)
    made = rg.load(folder / "then.rg")
    np.testing.assert_array_equal(made.network_.flat, expected.network_.flat)
    for more, message in [
        (["--ranker", "lambdamart"], "which lambdamart cannot"),
        (["--ranker", "lambdarank", "--models", "2"], "which a bag cannot"),
    ]:
        _, err = run(
            "train", "train.txt", "--out", "x.rg", "--start", "first.rg", *more,
            cwd=folder, status=2,
        )  # fmt: skip
        assert message in err


@pytest.mark.parametrize("name", NETS)
def test_parameters_are_a_file_that_trains(folder, name):
    listed, _ = run("params", name)
    parsed = tomllib.loads(listed)
    assert parsed["hidden"] == list(NETS[name]().hidden)
    (folder / f"{name}.toml").write_text(listed)
    words = ["--ranker", name, "--config", f"{name}.toml", "--set", "progress=false", *QUICK]
    run("train", "train.txt", *words, "--out", "p.rg", cwd=folder)
    made = rg.load(folder / "p.rg")
    assert tuple(made.get_params()["hidden"]) == NETS[name]().hidden
