"""Categorical features on the command line."""

import numpy as np
import pandas
import pytest

import rankgrove as rg
from rankgrove.errors import DataError
from tests.command import run_here as run

TRAIN = ["--set", "n_trees=3", "--set", "min_leaf=2", "--threads", 1, "--quiet", "--out"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("categorical")
    data = rg.make_web(20, n_docs=8, n_features=3, seed=1)
    draw = np.random.default_rng(1)
    frame = pandas.DataFrame(data.X, columns=["a", "b", "c"]).assign(
        brand=draw.choice(["acme", "bolt", "core"], data.n_rows),
        zip=draw.choice([101, 202, 303], data.n_rows),
        label=data.y,
        qid=data.qid,
    )
    frame.to_csv(path / "table.csv", index=False)
    frame[frame.brand != "acme"].to_csv(path / "less.csv", index=False)
    codes = np.hstack([data.X, draw.integers(0, 5, (data.n_rows, 1))])
    rg.write_letor(rg.QueryDataset(codes, data.y, data.qid), path / "train.txt")
    run("train", "table.csv", "--categorical", "zip", *TRAIN, "table.rg", cwd=path)
    run("train", "train.txt", "--categorical", 4, *TRAIN, "text.rg", cwd=path)
    return path


def test_a_model_of_a_table(folder):
    model = rg.load(folder / "table.rg")
    assert set(model.categories_) == {3, 4}
    assert set(model.categories_[4]) == {"101", "202", "303"}
    # the model's categorical columns are found in other tables by themselves
    scores, _ = run("rank", "table.csv", "--model", "table.rg", cwd=folder)
    frame = pandas.read_csv(folder / "table.csv")
    expected = model.predict(frame[["a", "b", "c", "brand", "zip"]])
    assert np.array_equal(np.array(scores.split(), float), expected)
    some, _ = run("rank", "less.csv", "--model", "table.rg", cwd=folder)
    assert np.array_equal(np.array(some.split(), float), expected[frame.brand != "acme"])
    assert "ndcg@10" in run("evaluate", "less.csv", "-s", "table.rg", cwd=folder)[0]
    run("explain", "less.csv", "table.rg", "--query", 1, cwd=folder)


def test_a_model_of_text(folder):
    model = rg.load(folder / "text.rg")
    assert model.categories_ == {3: None}
    scores, _ = run("rank", "train.txt", "--model", "text.rg", cwd=folder)
    data = rg.read_letor(folder / "train.txt", categorical=[4])
    assert np.array_equal(np.array(scores.split(), float), model.predict(data))
    words = ["train", "train.txt", "--categorical", "1,4", *TRAIN, "no.rg"]
    _, complaint = run(*words, cwd=folder, status=2)
    assert "'f1' (number 1) has" in complaint
    _, complaint = run(*words[:3], "4,,1", *TRAIN, "no.rg", cwd=folder, status=2)
    assert "features of --categorical as A,B,C" in " ".join(complaint.split())


def test_validation_data_is_read_alike(folder):
    words = ["train", "table.csv", "--valid", "less.csv", "--categorical", "zip"]
    run(*words, *TRAIN, "valid.rg", cwd=folder)
    assert rg.load(folder / "valid.rg").history_["less"]
    words = ["train", "train.txt", "--valid", "train.txt", "--categorical", 4]
    run(*words, *TRAIN, "valid.rg", cwd=folder)


def test_info_shows_categories(folder):
    out, _ = run("info", "table.rg", "text.rg", cwd=folder)
    assert "categorical feature brand: 3 categories (" in out
    assert "categorical feature f4: codes without names" in out


@pytest.mark.parametrize("command", ["cv", "tune", "auto", "report", "evaluate", "rank", "explain"])
def test_commands_have_the_option(command):
    assert "--categorical" in run(command, "--help")[0]


def test_nets_say_what_helps(folder):
    words = ["train", "table.csv", "--ranker", "ranknet", "--quiet", "--out", "no.rg"]
    _, complaint = run(*words, cwd=folder, status=2)
    assert "'brand' is categorical" in " ".join(complaint.split())
    assert "--encode auto" in " ".join(complaint.split())
    run(*words[:-1], "net.rg", "--encode", "auto", "--set", "n_epochs=1", cwd=folder)
    assert rg.load(folder / "net.rg").encode == "auto"


def test_a_column_that_is_text_only_in_the_training_data(folder):
    """In the validation data its categories look like numbers; it is read as in training."""
    frame = pandas.read_csv(folder / "table.csv").drop(columns="zip")
    frame["brand"] = frame.brand.replace({"acme": "7"})
    frame.to_csv(folder / "mixed.csv", index=False)
    frame[frame.brand == "7"].to_csv(folder / "sevens.csv", index=False)
    run("train", "mixed.csv", "--valid", "sevens.csv", *TRAIN, "mixed.rg", cwd=folder)
    assert rg.load(folder / "mixed.rg").history_["sevens"]


def test_numbers_where_the_model_has_names(folder):
    frame = pandas.read_csv(folder / "table.csv").assign(brand=3)
    frame.to_csv(folder / "numbers.csv", index=False)
    said = run("rank", "numbers.csv", "--model", "table.rg", cwd=folder, status=2)[1]
    assert "'brand'" in said
    assert "the data has numbers there" in said
    with pytest.raises(DataError, match="give the texts"):
        rg.load(folder / "table.rg").predict(frame[["a", "b", "c", "brand", "zip"]])


def test_numbers_of_text_are_codes_of_names_and_that_is_said(folder):
    codes = np.zeros((4, 5), np.float32)
    rg.write_letor(rg.QueryDataset(codes, np.arange(4.0), np.zeros(4)), folder / "codes.txt")
    said = run("rank", "codes.txt", "--model", "table.rg", cwd=folder)[1]
    assert "features 4, 5 are taken as the model's codes" in " ".join(said.split())


def test_a_search_on_names(folder):
    options = ["--fits", 10, "--threads", 1, "--quiet", "--out", "auto.rg"]
    run("auto", "table.csv", "--categorical", "zip", *options, cwd=folder)
    assert set(rg.load(folder / "auto.rg").categories_) == {3, 4}
