"""Data as the commands read it: columns of tables, missing features, folders."""

from __future__ import annotations

import os

import numpy as np
import pandas
import pytest

import rankgrove as rg
from rankgrove.cli.inputs import load_dataset, load_systems, parse_sources
from rankgrove.cli.options import Reading
from rankgrove.errors import ParameterError
from tests.command import run_here as run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with titles, document ids and weights, and its bare features as a LETOR file."""
    path = tmp_path_factory.mktemp("tables")
    data = rg.make_artificial(30, n_docs=10, n_features=3, seed=1)
    rg.write_letor(data, path / "plain.txt")
    frame = pandas.DataFrame(data.X, columns=data.feature_names)
    frame = frame.assign(
        label=data.y,
        qid=data.qid,
        docid=[f"d{i}" for i in range(data.n_rows)],
        url=[f"u{i}" for i in range(data.n_rows)],
        w=np.arange(data.n_rows) % 3 + 1,
    )
    for name, columns in [
        ("titles", frame.assign(title="a title")),
        ("bare", frame.drop(columns="w")),
    ]:
        columns.to_csv(path / f"{name}.csv", index=False)
        columns.to_parquet(path / f"{name}.parquet")
    return path


FEATURES = ["--features", "f1, f2,f3"]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_evaluate_and_compare_a_table_with_texts(folder, ending):
    expected, _ = run("evaluate", "plain.txt", "--feature", 2, cwd=folder)
    name = f"titles.{ending}"
    assert run("evaluate", name, "--feature", "f2", *FEATURES, cwd=folder)[0] == expected
    expected_evaluation = expected
    systems = ["-s", "a=feature:1", "-s", "b=feature:2"]
    expected, _ = run("compare", "plain.txt", *systems, cwd=folder)
    assert run("compare", name, *systems, *FEATURES, cwd=folder)[0] == expected
    out, notes = run("evaluate", name, "--feature", "f2", cwd=folder)
    assert out == expected_evaluation
    assert "note: " in notes  # every row has a url of its own
    assert "'url' is taken as categorical" in notes
    assert "--features" in notes


def test_train_and_rank_a_table_with_texts(folder):
    train = ["train", "titles.csv", "--valid", "bare.csv", *FEATURES, "--quiet"]
    train += ["--set", "n_trees=5", "--set", "n_leaves=4", "--set", "min_leaf=1"]
    run(*train, "--weight", "w", "--docid", "url", "--out", "weighted.rg", cwd=folder)
    run(*train, "--out", "plain.rg", cwd=folder)
    rank = ["rank", "bare.parquet", *FEATURES, "--model", "weighted.rg"]
    run(*rank, "--format", "trec", "--out", "a.run", cwd=folder)
    run(*rank, "--format", "trec", "--out", "b.run", "--docid", "url", cwd=folder)
    assert set(rg.read_run(folder / "a.run")["1"]) == {f"d{i}" for i in range(10)}
    assert set(rg.read_run(folder / "b.run")["1"]) == {f"u{i}" for i in range(10)}
    weighted, _ = run(*rank, cwd=folder)
    plain, _ = run(*rank[:-1], "plain.rg", cwd=folder)
    assert weighted != plain


def test_weights_are_not_asked_of_validation_data(folder):
    frame = pandas.read_csv(folder / "titles.csv")
    frame.drop(columns=["title", "url"]).to_csv(folder / "train.csv", index=False)
    frame.drop(columns=["title", "url", "w"]).to_csv(folder / "vali.csv", index=False)
    words = "train train.csv --valid vali.csv --weight w --quiet --out w.rg --set n_trees=2"
    run(*words.split(), cwd=folder)
    assert rg.load(folder / "w.rg").history_["vali"]


def test_columns_are_not_for_letor_files(folder):
    for option in ({"docid": "d"}, {"features": "a,b"}, {"weight": "w"}):
        remedy = r"(Leave --\w+ out|train and cv take --features FILE)"
        with pytest.raises(ParameterError, match=rf"names columns of CSV.*{remedy}"):
            load_dataset([folder / "plain.txt"], **option)
    with pytest.raises(ParameterError, match=r"with a name between commas\. Got 'f1,,f2'"):
        load_dataset([folder / "titles.csv"], features="f1,,f2")


def feature_scores(path):
    """Return the scores of the first feature, and the data."""
    systems, data = load_systems(parse_sources(["feature:1"]), [path], None, Reading())
    return next(iter(systems.values())), data


def test_documents_without_the_feature_come_last(tmp_path):
    text = "0 qid:1 1:NULL\n2 qid:1 1:-3e38\n1 qid:1 1:-3.4e38\n0 qid:1 1:nan\n"
    (tmp_path / "a.txt").write_text(text)
    scores, data = feature_scores(tmp_path / "a.txt")
    assert np.isfinite(scores).all()
    assert scores[0] == scores[3] < scores[2] < scores[1]
    assert rg.evaluate(scores, data, "ndcg@4").mean["ndcg@4"] == pytest.approx(1)
    out, _ = run("evaluate", "a.txt", "--feature", 1, "-m", "ndcg@4", cwd=tmp_path)
    assert "1.0000" in out
    (tmp_path / "b.txt").write_text("0 qid:1 1:NULL\n2 qid:1 1:NULL\n")
    assert feature_scores(tmp_path / "b.txt")[0].tolist() == [0, 0]
    (tmp_path / "c.txt").write_text("0 qid:1 1:1\n2 qid:1 1:2\n")
    assert feature_scores(tmp_path / "c.txt")[0].tolist() == [1, 2]


def test_folders_are_refused(tmp_path):
    for words in (["evaluate", "."], ["evaluate", ".", "--cache"]):
        _, complaint = run(*words, "--feature", 1, cwd=tmp_path, status=2)
        assert "this is a folder" in complaint


def test_domains_need_two_files(tmp_path):
    os.symlink(".", tmp_path / "here")
    for other in ("x.txt", "./x.txt", "here/x.txt", tmp_path / "x.txt"):
        words = ["generate", "domains", "--queries", 2, "--out", "x.txt", "--target-out", other]
        _, complaint = run(*words, cwd=tmp_path, status=2)
        assert "give each its own name" in complaint
    assert not (tmp_path / "x.txt").exists()


def test_negative_seeds_are_refused(tmp_path):
    _, err = run(*"generate web --queries 2 --out x.txt --seed -1".split(), cwd=tmp_path, status=2)
    assert "--seed" in err
    assert not (tmp_path / "x.txt").exists()
