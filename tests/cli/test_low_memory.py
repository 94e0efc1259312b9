"""train --low-memory: the model of training in memory."""

from __future__ import annotations

import pytest

import rankgrove as rg
from tests.command import run_here

SETTINGS = ("--set", "n_trees=4", "--set", "early_stopping=3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("low")
    for name, seed in (("a.txt", 1), ("v.txt", 2)):
        rg.write_letor(rg.make_web(20, n_docs=20, seed=seed), made / name)
    return made


def test_the_model_is_the_same(folder):
    words = ("train", "a.txt", "--valid", "v.txt", *SETTINGS)
    run_here(*words, "--out", "here.rg", cwd=folder)
    _, said = run_here(*words, "--out", "there.rg", "--low-memory", cwd=folder)
    assert "a.txt.bins: bins are made." in said
    _, said = run_here(*words, "--out", "again.rg", "--low-memory", cwd=folder)
    assert "a.txt.bins: the bins that were made before are used." in said
    models = [(folder / f"{name}.rg").read_bytes() for name in ("here", "there", "again")]
    assert models[0] == models[1] == models[2]


def test_folders_bags_and_held_out_queries(folder):
    words = ("train", "a.txt", "--set", "n_trees=2", "--low-memory", "--bins", "kept", "--quiet")
    assert run_here(*words, "--models", "2", "--out", "bag.rg", cwd=folder) == ("", "")
    assert run_here(*words, "--valid-share", "0.2", "--out", "m.rg", cwd=folder) == ("", "")
    assert (folder / "kept" / "header.json").exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--ranker ranknet --low-memory", "ranknet needs the features"),
        ("--normalise zscore --low-memory", "do not work with --low-memory"),
        ("--cluster local --low-memory", "does not work with --cluster"),
        ("--bins x", "is the folder of --low-memory"),
    ],
)
def test_what_does_not_go_together(folder, words, reason):
    chosen = ("train", "a.txt", "--out", "no.rg", *words.split())
    _, said = run_here(*chosen, cwd=folder, status=2)
    assert reason in " ".join(said.split())


@pytest.mark.parametrize("words", [(), ("--valid", "v.txt")])
def test_after_an_interrupt_the_trees_so_far_are_written(folder, monkeypatch, words):
    fit = rg.LambdaMART.fit

    def interrupted(ranker, *data, **how):
        def press(progress):
            if progress.round == 2:
                raise KeyboardInterrupt

        return fit(ranker, *data, callbacks=[press], **how)

    monkeypatch.setattr(rg.LambdaMART, "fit", interrupted)
    chosen = ("train", "a.txt", *words, "--low-memory", "--set", "n_trees=9", "--out", "some.rg")
    _, said = run_here(*chosen, cwd=folder, status=130)
    assert "interrupted: some.rg holds the best model so far." in said
    assert "no model was written" not in said
    assert 1 <= rg.load(folder / "some.rg").tree_count() <= 2


def test_an_interrupt_before_the_first_tree_keeps_the_bins(folder, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rg.LambdaMART, "fit", interrupted)
    words = ("train", "a.txt", "--low-memory", "--out", "none.rg")
    _, said = run_here(*words, cwd=folder, status=130)
    assert "interrupted: no model was written; " in said
    assert not (folder / "none.rg").exists()
