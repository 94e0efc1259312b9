"""One grammar for all commands: data first, --out, old spellings, flags in help."""

from __future__ import annotations

import pytest

import rankgrove as rg
from rankgrove.cli.grammar import in_new_spelling
from rankgrove.cli.main import app
from tests.command import run_here as run

QUICK = "--quiet --set n_trees=3 --set n_leaves=4 --set min_leaf=2".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("grammar")
    for seed, name in enumerate(["train", "vali"], 1):
        data = rg.make_artificial(30, n_docs=8, n_features=4, seed=seed)
        rg.write_letor(data, path / f"{name}.txt")
    run("train", "train.txt", *QUICK, "--out", "a.rg", cwd=path)
    run("train", "train.txt", *QUICK, "--ranker", "mart", "-o", "b.rg", cwd=path)
    return path


@pytest.mark.parametrize(
    ("words", "written"),
    [
        (["train", "train.txt", *QUICK], "t.rg"),
        (["adapt", "vali.txt", "--base", "a.rg", "--quiet"], "d.rg"),
        (["prune", "vali.txt", "a.rg", "--tolerance", "1"], "p.rg"),
        (["prune", "a.rg", "vali.txt", "--tolerance", "1"], "p.rg"),
        (["combine", "vali.txt", "a.rg", "b.rg"], "c.rg"),
    ],
)
def test_out_is_output_and_model_still_works(folder, words, written):
    _, quiet = run(*words, "--out", written, cwd=folder)
    assert "hint" not in quiet
    new = (folder / written).read_bytes()
    (folder / written).unlink()
    for old in (["--model", written], [f"--model={written}"]):
        _, told = run(*words, *old, cwd=folder)
        assert told.count(f"hint: {words[0]} --model is now written --out;") == 1
        assert (folder / written).read_bytes() == new


def test_combined_scores_are_told_from_the_model(folder):
    words = ["combine", "vali.txt", "a.rg", "b.rg"]
    out, told = run(*words, "--out", "m.rg", "--scores-out", "new.txt", cwd=folder)
    assert "written to m.rg" in out
    assert "written to new.txt" in out
    assert not told
    # as it was: --out for scores
    _, told = run(*words, "--model", "n.rg", "--out", "old.txt", cwd=folder)
    assert "combine --model is now written --out;" in told
    assert "combine --out is now written --scores-out;" in told
    _, told = run(*words, "--out", "older.txt", cwd=folder)
    assert "hint: combine: --out older.txt is a score file" in told
    texts = {(folder / f"{name}.txt").read_text() for name in ("new", "old", "older")}
    assert len(texts) == 1
    assert (folder / "m.rg").read_bytes() == (folder / "n.rg").read_bytes()
    _, error = run(
        *words, "--scores", "new.txt", "--out", "x", "--scores-out", "y", cwd=folder, status=2
    )
    assert "give one of --out and --scores-out" in error


def test_commands_say_what_they_wrote(folder):
    out, _ = run("rank", "vali.txt", "--model", "a.rg", "--out", "s.txt", cwd=folder)
    assert out == "written to s.txt\n"
    out, _ = run("prune", "vali.txt", "a.rg", "--out", "q.rg", "--curve", "q.csv", cwd=folder)
    assert "written to q.rg\nwritten to q.csv\n" in out
    out, _ = run("combine", "vali.txt", "a.rg", "b.rg", "--curve", "c.csv", cwd=folder)
    assert "written to c.csv\n" in out


def test_words_after_two_dashes_are_not_options():
    args = ["--model", "a", "--", "--model"]
    assert in_new_spelling("train", args, {"--out"}) == ["--out", "a", "--", "--model"]
    assert in_new_spelling("train", args[2:], {"--out"}) == args[2:]


def test_nothing_is_lost_where_matplotlib_is_missing(folder, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = ["combine", "vali.txt", "a.rg", "b.rg", "--out", "z.rg", "--plot", "z.png"]
    _, error = run(*words, cwd=folder, status=2)
    assert "pip install" in error
    assert "matplotlib" in error
    assert not (folder / "z.rg").exists()


@pytest.mark.parametrize(
    "command", ["", *(one.callback.__name__.replace("_", "-") for one in app.registered_commands)]
)
def test_flags_have_no_type_in_help(command):
    out, _ = run(*([command] if command else []), "--help")
    assert "<bool>" not in out
    assert "BOOLEAN" not in out


@pytest.mark.parametrize("option", [["--normalize", "zscore"], ["--normalize=zscore"]])
def test_the_other_spelling_of_normalise(folder, option):
    _, told = run("train", "train.txt", *QUICK, *option, "--out", "z.rg", cwd=folder)
    assert "hint" not in told
    assert rg.load(folder / "z.rg").normalise == "zscore"
    assert "normalize" not in run("train", "--help")[0]
    assert "No such option" in run("rank", "vali.txt", "--normalize", "sum", status=2)[1]


def test_options_of_ranklib(folder):
    _, told = run("-train", "train.txt", "-ranker", "6", "-save", "m.txt", cwd=folder, status=2)
    assert told.startswith("error: -train is an option of RankLib. Here a command comes first")
    assert "docs/howto/ranklib.md" in told
