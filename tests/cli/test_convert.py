"""`rankgrove convert`, and other commands on models of other programs, as a user types them."""

from __future__ import annotations

import json
import re

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import rankgrove as rg
from rankgrove.cli.convert import To
from rankgrove.formats.endings import ENDING_OF, FORMAT_OF
from rankgrove.formats.write import FORMATS
from tests.command import run as run_apart
from tests.command import run_here as run
from tests.conftest import ROOT
from tests.reference import formats as mirrored


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("convert")
    for k, name in enumerate(["train", "vali", "test"]):
        data = rg.make_web(30, n_docs=10, n_features=5, seed=k)
        plain = rg.QueryDataset(data.X, data.y, [f"{k}{q}" for q in data.qid])
        rg.write_letor(plain, path / f"{name}.txt")
    train = rg.read_letor(path / "train.txt")
    X, sizes = np.asarray(train.X), np.diff(train.query_ptr)
    params = {"objective": "lambdarank", "verbose": -1, "num_leaves": 6, "min_data_in_leaf": 5}
    lgb.train(params, lgb.Dataset(X, train.y, group=sizes), 10).save_model(path / "lgb.txt")
    matrix = xgb.DMatrix(X, train.y)
    matrix.set_group(sizes)
    booster = xgb.train({"objective": "rank:ndcg", "max_depth": 3}, matrix, 10)
    booster.save_model(path / "xgb.json")
    booster.save_model(path / "xgb.ubj")
    (path / "names.txt").write_text("title\nbody\nage\nclicks\nlinks\n")
    run("convert", "lgb.txt", "rank.xml", "--missing", "zero", cwd=path)
    return path


def test_every_place_names_all_formats():
    assert list(ENDING_OF) == [*FORMATS, "rankgrove"] == [to.value for to in To]
    described = rg.convert.__doc__.split("to : ")[1].split("features :")[0]
    assert all(f'``"{name}"``' in described for name in ENDING_OF)
    listed = ", ".join(FORMAT_OF)
    assert listed in " ".join(described.split())
    assert f"by the ending: {listed.replace(',', '')}\n" in (ROOT / "docs/formats.md").read_text()
    help_text, _ = run("convert", "--help")
    assert all(re.search(rf" {re.escape(ending)}\b", help_text) for ending in FORMAT_OF)


MODELS = ["lgb.txt", "xgb.json", "xgb.ubj", "rank.xml"]


def test_rank_scores_as_the_library_does(folder):
    out, _ = run("rank", "test.txt", "--model", "lgb.txt", cwd=folder)
    X = np.asarray(rg.read_letor(folder / "test.txt").X)
    expected = lgb.Booster(model_file=folder / "lgb.txt").predict(X, raw_score=True)
    assert [float(line) for line in out.split()] == expected.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_the_first_documents_of_every_query(folder, model):
    words = ["rank", "test.txt", "--model", model, "--format", "trec"]
    every, _ = run(*words, cwd=folder)
    some, complaints = run_apart(*words, "--top", "3", cwd=folder)
    wanted = [line for line in every.splitlines() if int(line.split()[3]) <= 3]
    assert some.splitlines() == wanted
    assert "left out" not in complaints  # queries are short


@pytest.mark.parametrize("model", MODELS)
def test_scores_are_explained(folder, model):
    query = (folder / "test.txt").read_text().split()[1].removeprefix("qid:")
    words = ["explain", model, "test.txt", "--query", query, "--above", "1", "--below", "2"]
    if model == "rank.xml":  # RankLib's files have no counts
        _, complaints = run(*words, cwd=folder, status=2)
        assert "--background" in complaints
        words += ["--background", "train.txt"]
    out, _ = run(*words, cwd=folder)
    assert "difference" in out


@pytest.mark.parametrize("model", MODELS)
def test_every_command_takes_it(folder, model):
    out, _ = run("evaluate", "test.txt", "--model", model, "-m", "ndcg@10", cwd=folder)
    assert "ndcg@10" in out
    run(*f"compare test.txt -s a=model:{model} -s b=feature:1 -m ndcg@10".split(), cwd=folder)
    run(*f"combine {model} lgb.txt vali.txt --out both.rg".split(), cwd=folder)
    assert type(rg.load(folder / "both.rg")).__name__ == "CombinedRanker"
    run(*f"prune {model} vali.txt -m ndcg@10 --out small.rg".split(), cwd=folder)
    words = f"train train.txt --submodel {model} --set n_trees=2 --set min_leaf=3 --out m.rg"
    run(*words.split(), "--quiet", cwd=folder)
    assert type(rg.load(folder / "m.rg").submodel_).__name__ == "TreeRanker"
    words = f"adapt vali.txt --base {model} --source train.txt"
    run(*words.split(), "--out", "adapted.rg", "--quiet", cwd=folder)
    assert rg.load(folder / "adapted.rg").n_adapted_ > 0


@pytest.mark.slow
def test_converting_as_a_user_does(folder):
    out, complaints = run_apart("convert", "xgb.json", "web.rg", cwd=folder)
    assert (out, complaints) == ("written to web.rg\n", "")
    words = "convert web.rg web.json --to elasticsearch --features names.txt --name ranker"
    older = [*words.split(), "--engine", "elasticsearch-ltr-2023"]
    _, complaints = run(*older, cwd=folder, status=2)
    assert "treats a missing value as 0" in complaints
    assert not (folder / "web.json").exists()
    _, complaints = run_apart(*words.split(), "--missing", "zero", cwd=folder)
    assert "web.json: All scores are higher by" in complaints
    body = json.loads((folder / "web.json").read_text())
    assert body["model"]["name"] == "ranker"
    assert "title" in body["model"]["model"]["definition"]
    run(*words.split(), "--missing", "zero", "--no-shift", cwd=folder)
    for ending in ("txt", "xml", "onnx", "py", "c", "rg"):
        missing = ("--missing", "zero") if ending != "rg" else ()
        run("convert", "xgb.ubj", f"made.{ending}", *missing, cwd=folder)
        assert (folder / f"made.{ending}").stat().st_size > 500
    for to in ("solr", "xgboost"):
        run("convert", "web.rg", "made.json", "--to", to, "--missing", "zero", cwd=folder)


def test_data_with_more_features_than_ranklibs_trees_know(folder):
    rows = "".join(f"{i % 3} qid:1 1:{i} 5:{-i} 9:{i}\n" for i in range(9))
    (folder / "wide.txt").write_text(rows)
    (folder / "narrow.txt").write_text(rows.replace(" 5:", " 2:").replace(" 9:", " 3:"))
    for name in ("wide.txt", "narrow.txt"):
        out, _ = run("rank", name, "--model", "rank.xml", cwd=folder)
        assert len(out.split()) == 9
    _, said = run("rank", "wide.txt", "--model", "lgb.txt", cwd=folder)
    assert "the model lgb.txt has 5 features, wide.txt 9: the last 4 are left out" in said
    run("rank", "wide.txt", "--model", "lgb.txt", "--strict", cwd=folder, status=2)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("gone.rg m.txt", "there is no such file"),
        ("lgb.txt lgb.txt", "would overwrite"),
        ("lgb.txt m.json", "does not say which format"),
        ("lgb.txt m.ubj", "does not say which format"),
        ("lgb.txt m.ubj --to xgboost", "use the ending .json"),
        ("train.txt m.rg", "train.txt is not a rankgrove model, nor one of LightGBM"),
        ("lgb.txt m.xml --features train.txt", "the model has 5 features"),
        ("lgb.txt nowhere/m.rg", "in a folder that exists"),
        ("lgb.txt m.xml --missing zero --features gone.txt", "gone.txt"),
    ],
)
def test_mistakes(folder, words, message):
    _, complaints = run("convert", *words.split(), cwd=folder, status=2)
    assert message in complaints
    assert complaints.count("\n") == 1


@pytest.mark.slow
def test_a_bag_is_converted_by_the_mean_of_its_models(folder):
    base = rg.LambdaMART(n_trees=3, min_leaf=3)
    rg.BaggedRanker(base, n_models=2).fit(rg.read_letor(folder / "train.txt")).save(
        folder / "bag.rg"
    )
    _, complaints = run("convert", "bag.rg", "bag.txt", cwd=folder, status=2)
    assert "--combine mean" in complaints
    _, complaints = run_apart("convert", "bag.rg", "bag.txt", "--combine", "mean", cwd=folder)
    assert "plain mean of the bag's 2 models" in complaints
    assert lgb.Booster(model_file=folder / "bag.txt").num_trees() == 6


@pytest.mark.slow
def test_a_dump_of_xgboost_is_converted(folder):
    booster = xgb.Booster(model_file=folder / "xgb.json")
    booster.feature_names = ["title", "body", "age", "clicks", "links"]
    booster.dump_model(folder / "dump.json", dump_format="json")
    _, complaints = run("convert", "dump.json", "dump.rg", cwd=folder, status=2)
    assert "--features names.txt" in complaints
    words = "convert dump.json dump.rg --features names.txt"
    _, complaints = run_apart(*words.split(), cwd=folder)
    assert "does not have the base score" in complaints
    _, complaints = run_apart(*words.split(), "--base-score", "0.5", cwd=folder)
    assert "base score" not in complaints
    assert rg.load(folder / "dump.rg").ensemble_.base == 0.5


@pytest.mark.slow
def test_a_model_that_saw_no_missing_value_goes_to_solr_at_once(folder):
    run(
        *"train train.txt --set n_trees=3 --set min_leaf=3 --model own.rg --quiet".split(),
        cwd=folder,
    )
    _, complaints = run_apart("convert", "own.rg", "own.json", "--to", "solr", cwd=folder)
    assert "No value was missing in training" in complaints


def test_the_file_to_write_by_its_option(folder):
    out, _ = run("convert", "xgb.json", "--out", "again.rg", cwd=folder)
    assert out == "written to again.rg\n"
    _, complaints = run("convert", "xgb.json", cwd=folder, status=2)
    assert "Name one file to write" in complaints


def test_a_model_for_vespa_is_read_again(folder):
    words = "convert lgb.txt --to vespa --out vespa.json --features names.txt"
    out, _ = run(*words.split(), cwd=folder)
    assert out == "written to vespa.json\n"
    model, again = rg.load(folder / "lgb.txt"), rg.load(folder / "vespa.json")
    assert again.feature_names_ == ("title", "body", "age", "clicks", "links")
    X = np.asarray(rg.read_letor(folder / "test.txt").X)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_categories_are_expanded_for_programs_without_sets(folder):
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.normal(size=300), rng.integers(0, 4, 300)])
    table = pd.DataFrame({"price": X[:, 0]})
    table["brand"] = pd.Categorical.from_codes(X[:, 1].astype(int), ["acme", "bolt", "c", "d"])
    params = {"verbose": -1, "num_leaves": 4, "min_data_per_group": 1, "objective": "regression"}
    booster = lgb.train(params, lgb.Dataset(table, (X[:, 1] == 1) + 0.1 * X[:, 0]), 3)
    booster.save_model(folder / "brands.txt")
    words = ["convert", "brands.txt", "brands.json", "--to", "solr"]
    _, complaints = run(*words, cwd=folder, status=2)
    assert "sets of categories, and the model has some on 'brand'" in complaints
    assert "--expand-categories" in complaints
    run(*words, "--expand-categories", "--missing", "zero", cwd=folder)
    text = (folder / "brands.json").read_text()
    assert '"name": "brand=bolt"' in text
    found = mirrored.solr(text, ["price", "brand=bolt"], np.column_stack([X[:, 0], X[:, 1] == 1]))
    np.testing.assert_allclose(found, booster.predict(table), atol=1e-6)
    _, complaints = run(
        "convert", "brands.txt", "b.rg", "--expand-categories", cwd=folder, status=2
    )
    assert "our own files hold categories" in complaints
