"""The examples of the documentation run, all of them, each page in a folder of its own."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
import warnings
from contextlib import nullcontext
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import sklearn
from tools.published import PAGE as FIGURES
from tools.results import BLOCK, PAGE

import rankgrove as rg
from rankgrove.parity.engines import ENGINES
from tests.cluster.conftest import client  # noqa: F401
from tests.command import run_here
from tests.documentation import PAGES, examples, name_of, run
from tests.parity import log_files
from tests.reference import svm as naive

pytest.importorskip("matplotlib")
lightgbm = pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def made():
    """Return training, validation and test data, and what pages take as trained before."""
    parts = [rg.make_web(40, n_docs=15, n_features=20, seed=seed) for seed in (1, 2, 3)]
    names = dict(zip(("train", "vali", "test"), parts, strict=True))
    train = names["train"]
    names |= {"X": train.X, "y": train.y, "qid": train.qid, "scores": names["test"].column(3)}
    for letter, trees in zip("abc", (3, 5, 7), strict=True):
        names[letter] = rg.LambdaMART(n_trees=trees, n_leaves=5).fit(train)
    return names


@pytest.fixture
def names(made, tmp_path, monkeypatch):
    """Fill the folder with the files that pages name; return the names that they use."""
    monkeypatch.chdir(tmp_path)
    for part in ("train", "vali", "test"):
        rg.write_letor(made[part], f"{part}.txt")
    queries = np.arange(made["train"].n_queries)
    for i in range(3):
        rg.write_letor(made["train"].select(queries[i::3]), f"part{i + 1}.txt")
    for letter in "abc":
        made[letter].save(f"{letter}.rg")
    for name, column in (("bm25", 1), ("new", 3)):
        np.savetxt(f"{name}.txt", made["vali"].column(column))
    (tmp_path / "space.toml").write_text("n_leaves = [7, 15]\nlearning_rate = [0.05, 0.1]\n")
    return {"rg": rg, "model": made["a"], "__name__": "__main__"} | made


def before_formats(names):
    train = names["train"]
    names["X"], names["sizes"] = np.asarray(train.X), np.diff(train.query_ptr)
    names["lightgbm"] = lightgbm
    names["onnxruntime"] = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    lines = [f"feature_{k}\n" for k in range(train.n_features)]
    Path("names.txt").write_text("".join(lines))
    sets = lightgbm.Dataset(names["X"], train.y, group=names["sizes"])
    lightgbm.train({"objective": "lambdarank", "verbose": -1}, sets, 5).save_model("lightgbm.txt")


def before_readme(names):
    """A judged table that names its columns in its own way."""
    import pandas

    data = names["train"]
    frame = pandas.DataFrame(data.X, columns=data.feature_names).assign(
        grade=data.y, query=data.qid, product_id=[f"P{row}" for row in range(data.n_rows)]
    )
    frame.to_csv("products.csv", index=False)


def before_trained(names):
    """Two models are there, as files and by name."""
    for name, file, trees in (("old", "web.rg", 3), ("new", "best.rg", 6)):
        names[name] = rg.LambdaMART(n_trees=trees).fit(names["train"], valid=names["vali"])
        names[name].save(file)


BEFORE = {
    "README.md": before_readme,
    "explaining.md": before_trained,
    "formats.md": before_formats,
    "report.md": before_trained,
    "scoring.md": before_trained,
}


def after_lambdamart(names, printed):
    assert "Progress(round 10 of 12, valid ndcg@10" in printed
    assert list(names["model"].history_["valid"]) == ["ndcg@10", "map"]


def after_svm(names, printed):
    model, train = names["model"], names["train"]
    assert model.solution_["status"] == "converged"
    learned, before = (
        rg.evaluate(one, train, "map").mean["map"] for one in (model, np.zeros(train.n_rows))
    )
    assert learned > before + 0.05

    def loss(labels):
        before = np.cumsum(~np.asarray(labels))[np.asarray(labels)]
        return float(np.mean(np.log(1 + before) / np.log(1 + (~np.asarray(labels)).sum())))

    # what it finds is what brute force finds
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores, relevant = rng.normal(size=5), rng.permutation([True, True, False, False, False])
        found = model.most_violated(scores, relevant)
        values = [
            naive.violation(loss, scores, relevant, order)
            for order in [list(found[1]), *permutations(range(5))]
        ]
        assert values[0] == pytest.approx(max(values))
        assert found[0] == pytest.approx(loss(relevant[found[1]]))


def after_nets(names, printed):
    assert "[0.9 0.5]" in printed
    assert "a gradient: " in printed
    assert "no gradient: d lambda_0 / d s_1 is 0, and" in printed
    assert names["found"].n_directions == 459
    if "torch" in names:  # it learned: better than scores of nothing
        test = names["test"]
        trained = rg.evaluate(names["scores"], test, "ndcg@10").mean["ndcg@10"]
        nothing = rg.evaluate(np.zeros(test.n_rows), test, "ndcg@10").mean["ndcg@10"]
        assert trained > 0.1 + nothing


def after_trada(names, printed):
    assert "trada + 30" in printed
    assert "12 trees adapted" in printed
    assert rg.load("new.rg").n_adapted_ == 12


def after_bagging(names, printed):
    assert "BaggedRanker for ndcg@10: 5 models" in printed
    assert "PrunedRanker(" in printed


def table(names, values, query, scores):
    """Return a table of scored documents, as a page without a log of features asks for."""
    lines = [",".join(["query", "document", "score", *names])]
    for row, (features, score) in enumerate(zip(values.tolist(), scores.tolist(), strict=True)):
        lines.append(",".join(map(str, [query[row], f"d{row}", score, *features])))
    return "\n".join(lines) + "\n"


# The pages that put a model into a search engine: the engine, and the form of its answers.
ENGINE_PAGES = {
    "howto/elasticsearch.md": ("elasticsearch-ltr", log_files.elasticsearch),
    "howto/elasticsearch-native.md": ("elasticsearch-8.12", table),
    "howto/opensearch.md": ("opensearch-3.8", log_files.elasticsearch),
    "howto/solr.md": ("solr-9.2", log_files.solr),
    "howto/vespa.md": ("vespa", log_files.vespa),
}


def page_named(name):
    (page,) = [page for page in PAGES if name_of(page) == name]
    return page


def answered_by(name):
    """Return a check of a page: an emulator answers, and the page's last command compares."""

    def after(names, printed):
        engine, answers = ENGINE_PAGES[name]
        emulator = ENGINES[engine].read(Path("web.json").read_bytes())
        data, columns = rg.read_letor("train.txt"), Path("names.txt").read_text().split()
        values = np.float64(data.X)
        scores = emulator.scores(values[:, [columns.index(one) for one in emulator.features]])
        (check,) = [
            shlex.split(one.text)
            for one in examples(page_named(name))
            if one.mark == "not run" and "rankgrove parity" in one.text
        ]
        Path(check[3]).write_text(answers(columns, values, data.qid.tolist(), scores))
        run_here(*check[1:])  # status 0: all scores agree
        scores[0] += 1.0
        Path(check[3]).write_text(answers(columns, values, data.qid.tolist(), scores))
        run_here(*check[1:], status=1)

    return after


# What a page's examples write into their folder, and what is true of them beyond that they run.
WRITTEN = {
    "README.md": ["web.rg", "report.html", "web.json", "features.json"],
    "adaptation.md": ["small.rg"],
    "bagging.md": ["bag.rg", "trials.jsonl", "tuning.png", "small.rg", "pruning.png"],
    "clicks.md": ["clicks.parquet", "check.png", "examination.png", "qrels.txt", "web.rg"],
    "combining.md": ["best.rg", "curve.png", "combined.txt"],
    "explaining.md": ["why.png", "feature.png"],
    "formats.md": ["web.rg", "web.onnx", "web.json"],
    "howto/clicks.md": [
        *("clicks.csv", "check.png", "examination.png", "learning.png", "naive.rg", "web.rg"),
        *("report.html", "qrels.txt"),
    ],
    "howto/cluster.md": ["web.rg"],
    "howto/lightgbm-model.md": ["lightgbm.txt"],
    "howto/categorical-data.md": ["brands.rg", "codes.rg", "names.rg"],
    "howto/data-frames.md": ["ranked.csv", "ranked.parquet", "top.parquet", "web.rg"],
    "howto/model-files.md": ["web.rg", "end.rg", "pipeline.joblib"],
    "howto/ranklib.md": ["web.rg", "web.run", "queries.csv", "like-ranklib.rg"],
    "howto/another-market.md": ["big.rg", "adapted.rg", "tuned.rg"],
    "choosing.md": ["web.rg", "mart.rg"],
    "lambdamart.md": ["web.rg"],
    "mart.md": ["mcrank.rg"],
    "nets.md": ["net.rg", "stack.rg", "optimum.png"],
    "report.md": ["report.html", "learning.png"],
    "scoring.md": ["top.run"],
    "svm.md": ["map.rg", "acc.rg", "weights.png"],
    "trada.md": ["new.rg"],
    "install.md": ["first.rg"],
    "model-file.md": ["web.rg"],
    "tutorial.md": ["web.rg", "plain.rg", "names.txt", "trials.jsonl"],
}
AFTER = {
    "lambdamart.md": after_lambdamart,
    "svm.md": after_svm,
    "nets.md": after_nets,
    "trada.md": after_trada,
    "bagging.md": after_bagging,
} | {name: answered_by(name) for name in ENGINE_PAGES}
ON_CLUSTER = ("scale.md", "howto/cluster.md")  # their workers are started once for both
# Their packages warn of what is deprecated in other packages.
WARN = ("howto/mlflow.md", "howto/pyterrier.md", "howto/runs.md")
RUNNING = [
    page
    for page in PAGES
    if any(e.language in ("python", "sh") for e in examples(page))
    and page.parent.name != "notebooks"  # tests/test_notebooks.py runs these
]


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=name_of)
def test_examples_run(page, names, tmp_path, monkeypatch, request, capsys):
    name = name_of(page)
    if name in ON_CLUSTER:
        workers = request.getfixturevalue("client")
        for user in ("rankers.trees.fit_files", "cluster.engine"):
            monkeypatch.setattr(f"rankgrove.{user}.connected", lambda *_: nullcontext(workers))
    if name == "nets.md":  # data of which small nets learn much
        parts = [rg.make_artificial(60, n_docs=12, n_features=6, seed=seed) for seed in (1, 2, 3)]
        names |= dict(zip(("train", "vali", "test"), parts, strict=True))
    BEFORE.get(name, lambda _: None)(names)
    with sklearn.config_context(), warnings.catch_warnings():
        if name in WARN:
            warnings.simplefilter("ignore")
        for example in examples(page):
            if example.language in ("python", "sh"):
                print(run(example, names))
    printed = capsys.readouterr().out
    assert set(WRITTEN.get(name, [])) <= {path.name for path in tmp_path.iterdir()}
    AFTER.get(name, lambda *_: None)(names, printed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adaptation.md", "trada.md"])
def test_printed_tables_are_what_the_examples_print(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = page_named(name).read_text()
    found = re.search(r"^```python\n(.*?)^```\n\n```\n(.*?)^```$", text, re.S | re.M)
    exec(compile(found[1], name, "exec"), {"__name__": "__main__"})
    out = capsys.readouterr().out
    for line in found[2].splitlines()[1:]:
        label, value = line.rsplit(maxsplit=1)
        printed = re.search(rf"^{re.escape(label)} +([\d.]+)$", out, re.M)
        assert float(printed[1]) == pytest.approx(float(value), abs=0.002), label


def test_the_first_lines_of_the_readme_run_in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (page,) = [page for page in PAGES if page.name == "README.md"]
    names = {"__name__": "__main__"}
    for example in [one for one in examples(page) if one.language == "python"][:1]:
        run(example, names)
    assert {path.name for path in tmp_path.iterdir()} == {"web.rg", "report.html"}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_data_in_examples_is_well_formed(page):
    for example in examples(page):
        if example.language == "json":
            json.loads(example.text)
        elif example.language == "toml":
            tomllib.loads(example.text)


def test_marks_say_why():
    for page in PAGES:
        marked = [one for one in examples(page) if one.mark is not None]
        assert all(one.what for one in marked)
        text = BLOCK.sub("", page.read_text()) if page in (PAGE, FIGURES) else page.read_text()
        assert text.count("<!-- ") == len(marked), f"{name_of(page)}: a mark is astray"


def names_in(value):
    """Yield the names of features in a feature set, a list of features, or an inference_config."""
    if isinstance(value, list):
        for part in value:
            yield from names_in(part)
    elif isinstance(value, dict) and ({"template", "class", "query"} & set(value)):
        yield value.get("name", value.get("feature_name"))
    elif isinstance(value, dict):
        for part in value.values():
            yield from names_in(part)


@pytest.mark.parametrize("name", ["tutorial.md", *ENGINE_PAGES])
def test_the_features_of_an_engine_are_those_of_the_model(name):
    every = examples(page_named(name))
    line = next(line for one in every for line in one.text.splitlines() if "> names.txt" in line)
    given = line.split("'%s\\n'")[1].split(">")[0].split()
    if name == "howto/vespa.md":
        text = page_named(name).read_text()
        assert all(f"function {one}()" in text for one in given)
        assert text.split("match-features {")[1].split("}")[0].split() == given
        return
    sets = [one.text for one in every if one.language == "json" and given[0] in one.text]
    assert [list(names_in(json.loads(text))) for text in sets] == [given]
