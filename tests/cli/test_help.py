"""Help and errors name what the command has, and what the user can do."""

from __future__ import annotations

import pytest

import rankgrove as rg
from tests.command import run_here as run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("help")
    rg.write_letor(rg.make_artificial(6, n_docs=5, n_features=4, seed=1), path / "data.txt")
    (path / "chosen.txt").write_text("1\n2\n")
    (path / "noqid.txt").write_text("1 1:0.5 2:3\n0 1:0.2 2:1\n")
    return path


def help_of(command):
    return " ".join(run(command, "--help")[0].replace("\u2502", " ").split())


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        ("train", "train [OPTIONS] DATA..."),
        ("evaluate", "evaluate [OPTIONS] [DATA...]"),
        ("explain", "explain [OPTIONS] DATA... MODEL"),
        ("convert", "convert [OPTIONS] IN [OUT]"),
        ("serve", "serve [OPTIONS] [NAME=]FILE..."),
    ],
)
def test_the_line_of_usage(command, usage):
    assert f"Usage: rankgrove {usage} " in help_of(command)


def test_report_takes_no_runs():
    assert "--qrels" not in help_of("report")
    assert "with --qrels a TREC run" in help_of("evaluate")


@pytest.mark.parametrize("command", ["evaluate", "compare", "rank", "tune", "survey", "report"])
def test_features_are_columns_where_no_file_is_taken(command):
    text = help_of(command)
    assert "Columns to use as features" in text
    assert "train and cv" not in text
    assert "one feature per line" not in text


@pytest.mark.parametrize("command", ["train", "cv"])
def test_features_may_be_a_file_of_train_and_cv(command):
    assert "Or a file with the number or name of one feature per line" in help_of(command)


def test_info_names_all_models_that_are_read():
    assert "QuickRank's or Solr's" in help_of("info")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("train data.txt --features no.txt --out m.rg", "no.txt: there is no such file (--feat"),
        ("train data.txt --features no/file --out m.rg", "no/file: there is no such file (--fe"),
        ("train data.txt --features 1,2 --out m.rg", "Features of LETOR text are chosen when a"),
        ("survey data.txt --features chosen.txt", "train and cv take --features FILE, a file with"),
        ("evaluate data.txt -s feature:1 --docid d", "which has none. Leave --docid out."),
        ("cv data.txt --set early_stopping=5", "needs validation data: give --valid-fold."),
        ("cv data.txt --ranker svm-map --set C=[1,2]", "to choose by: give --valid-fold."),
        ("train noqid.txt --out m.rg", "to a file of the same name plus .query (in Python"),
    ],
)
def test_errors(folder, words, message):
    _, told = run(*words.split(), cwd=folder, status=2)
    assert message in told


def test_sizes_of_queries_beside_the_file(folder):
    (folder / "noqid.txt.query").write_text("2\n")
    run("evaluate", "noqid.txt", "-s", "feature:1", cwd=folder)
    (folder / "noqid.txt.query").unlink()


def test_tune_without_validation_data_says_nothing_else(folder):
    _, told = run("tune", "data.txt", cwd=folder, status=2)
    assert told == "error: Tuning needs validation data: give --valid, or --letor-folds.\n"


def test_a_missing_extra_in_a_checkout():
    text = str(rg.MissingExtraError("uvicorn", "serve", "The service"))
    assert text.endswith("pip install 'rankgrove[serve]' (in a checkout: pip install '.[serve]')")
