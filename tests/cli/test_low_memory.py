"""train --low-memory: the model of training in memory."""

from __future__ import annotations

import numpy as np
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
    assert "a.txt.bins: making bins ..." in said
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
        ("--normalise zscore --low-memory", "--normalise zscore does not work with"),
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


@pytest.fixture(scope="module")
def bins(folder):
    """Bins of training data and of validation data, and a table."""
    pandas = pytest.importorskip("pandas")
    for seed, (name, like) in enumerate((("t", None), ("other", None), ("w", "t"))):
        data = rg.make_web(20, n_docs=20, n_features=8, seed=seed)
        rg.write_letor(data, folder / f"{name}.txt")
        first = None if like is None else rg.open_binned(folder / f"{like}.txt")
        rg.open_binned(folder / f"{name}.txt", folder=folder / f"{name}.bins", like=first)
    table = pandas.DataFrame(np.asarray(data.X), columns=[f"f{j + 1}" for j in range(8)])
    table.insert(0, "qid", data.qid)
    table.insert(0, "label", data.y)
    table.to_csv(folder / "w.csv", index=False)
    return folder


def test_sets_of_the_same_name_in_two_folders(folder):
    for name in ("d1", "d2"):
        (folder / name).mkdir()
        rg.write_letor(rg.make_web(5, n_docs=20, seed=len(name)), folder / name / "va.txt")
    words = ("--valid", "d1/va.txt", "--valid", "d2/va.txt", "--bins", "BB", "--out", "y.rg")
    run_here("train", "a.txt", "--low-memory", *SETTINGS, *words, cwd=folder)
    assert {path.name for path in folder.glob("BB*")} == {"BB", "BB.d1-va.txt", "BB.d2-va.txt"}


def test_bins_are_taken_for_training_and_validation(bins):
    words = ("train", "--low-memory", *SETTINGS, "--quiet")
    run_here(*words, "t.bins", "--valid", "w.bins", "--out", "t1.rg", cwd=bins)
    run_here(*words, "t.txt", "--valid", "w.txt", "--out", "t2.rg", cwd=bins)
    assert (bins / "t1.rg").read_bytes() == (bins / "t2.rg").read_bytes()
    found = [run_here("evaluate", data, "-s", "t1.rg", cwd=bins) for data in ("w.bins", "w.txt")]
    assert found[0] == found[1]
    scores = [run_here("rank", data, "--model", "t1.rg", cwd=bins) for data in ("w.bins", "w.txt")]
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("train t.bins --low-memory --label f3", "made already: leave --label out"),
        ("train t.bins --low-memory --categorical 3", "made already: leave --categorical out"),
        ("train t.bins --low-memory --absent missing", "made already: leave --absent out"),
        ("train t.bins --low-memory --weight w", "made already: leave --weight out"),
        ("train t.bins --low-memory --features f1", "made already: leave --features out"),
        ("train t.txt --low-memory --valid other.bins", "are not those of the training data"),
        ("train t.txt --low-memory --valid w.csv", "--valid w.csv is a table, and the training"),
        ("train t.bins", "t.bins is a folder of bins: give --low-memory too"),
        ("train t.txt --valid w.bins", "w.bins is a folder of bins, which have no features"),
        ("train t.txt w.csv --low-memory", "Got t.txt, w.csv"),
        ("train t.csv.zst", "tables packed as .csv.zst are not read"),
    ],
)
def test_what_bins_cannot_do(bins, words, reason):
    (bins / "t.csv.zst").touch()
    _, said = run_here(*words.split(), "--out", "no.rg", cwd=bins, status=2)
    assert reason in " ".join(said.split())


def test_features_of_bins_are_refused(bins):
    _, said = run_here("evaluate", "w.bins", "-s", "feature:3", cwd=bins, status=2)
    assert "is a folder of bins, which have no features" in said
