"""The examples of the documentation run."""

from __future__ import annotations

import re
from itertools import permutations

import numpy as np
import pytest

import rankgrove as rg
from tests.conftest import ROOT
from tests.reference import svm as naive


def test_the_example_of_callbacks(capsys):
    text = (ROOT / "docs" / "lambdamart.md").read_text()
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if "log" in block]
    names = {"rg": rg, "train": rg.make_artificial(60, seed=1), "vali": rg.make_artificial(30)}
    exec(code, names)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == [
        f"Progress(round {n} of 40" for n in (10, 20, 30, 40)
    ]
    assert list(names["model"].history_["valid"]) == ["ndcg@10", "map"]


def test_the_example_of_scoring():
    text = (ROOT / "docs" / "scoring.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    names = {
        "rg": rg,
        "train": rg.make_web(30, n_features=8),
        "test": rg.make_web(10, n_features=8),
    }
    exec(code, names)
    expected = names["model"].predict(names["query"])
    np.testing.assert_array_equal(names["scores"], expected)
    order = np.argsort(-expected, kind="stable")[:10]
    np.testing.assert_array_equal(names["top"].rows, order)
    assert np.isfinite(names["best"].scores).sum() >= 100


def test_the_examples_of_svms(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "svm.md").read_text()
    made = [rg.make_web(40, n_docs=15, n_features=6, seed=seed) for seed in (1, 2, 3)]
    names = {"rg": rg} | dict(zip(("train", "vali", "test"), made, strict=True))
    first, plot, own = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(first, names)
    names["model"] = rg.SVMMap(thresholds=50).fit(names["train"])
    exec(plot, names)
    assert (tmp_path / "weights.png").exists()
    exec(own, names)
    model = names["model"]
    assert model.solution_["status"] == "converged"
    nothing = np.zeros(names["train"].n_rows)
    learned, before = (
        rg.evaluate(one, names["train"], "map").mean["map"] for one in (model, nothing)
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


def test_the_examples_of_linear_rankers(capsys):
    text = (ROOT / "docs" / "linear.md").read_text()
    made = [rg.make_web(30, n_docs=12, n_features=5, seed=seed) for seed in (1, 2)]
    names = {"rg": rg} | dict(zip(("train", "vali"), made, strict=True))
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(code, names)
    printed = capsys.readouterr().out
    for model in names["models"]:
        assert f"{type(model).__name__}" in printed


def blocks_of_nets():
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "nets.md").read_text(), re.S)


@pytest.fixture
def net_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = [rg.make_artificial(60, n_docs=12, n_features=6, seed=seed) for seed in (1, 2, 3)]
    return {"rg": rg} | dict(zip(("train", "vali", "test"), made, strict=True))


def test_the_examples_of_nets(net_names, tmp_path, capsys):
    for block in blocks_of_nets():
        if "import torch" not in block:
            exec(block, net_names)
    printed = capsys.readouterr().out
    assert "[0.9 0.5]" in printed
    assert "a gradient: " in printed
    assert "no gradient: d lambda_0 / d s_1 is 0, and" in printed
    assert net_names["found"].n_directions == 459
    assert {"net.rg", "stack.rg", "optimum.png"} <= {path.name for path in tmp_path.iterdir()}


def test_the_example_of_torch(net_names, capsys):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    torch.set_num_threads(1)  # the matrices are small
    (block,) = [block for block in blocks_of_nets() if "import torch" in block]
    exec(block, net_names)
    assert "ndcg@10" in capsys.readouterr().out
    # it learned: better than scores of nothing
    trained = rg.evaluate(net_names["scores"], net_names["test"], "ndcg@10").mean["ndcg@10"]
    nothing = np.zeros(net_names["test"].n_rows)
    assert trained > 0.1 + rg.evaluate(nothing, net_names["test"], "ndcg@10").mean["ndcg@10"]


def test_the_example_of_adaptation(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "trada.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    for large, little in [("2000", "60"), ("1000", "40"), ("n_trees=300", "n_trees=10")]:
        assert large in code
        code = code.replace(large, little)
    exec(code, {"rg": rg})
    out = capsys.readouterr().out
    assert "trada + 30" in out
    assert "10 trees adapted" in out
    assert rg.load(tmp_path / "new.rg").n_adapted_ == 10


def test_the_examples_of_bagging(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "bagging.md").read_text()
    made = [rg.make_web(40, n_docs=12, n_features=6, seed=seed) for seed in (1, 2, 3)]
    names = {"rg": rg} | dict(zip(("train", "vali", "test"), made, strict=True))
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, names)
    printed = capsys.readouterr().out
    assert "BaggedRanker for ndcg@10: 5 models" in printed
    assert "PrunedRanker(" in printed
    written = {path.name for path in tmp_path.iterdir()}
    assert {"bag.rg", "trials.jsonl", "tuning.png", "small.rg", "pruning.png"} <= written


def test_the_examples_of_formats(tmp_path, monkeypatch, capsys):
    lightgbm = pytest.importorskip("lightgbm")
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "formats.md").read_text()
    made = [rg.make_artificial(60, n_docs=12, n_features=6, seed=seed) for seed in (1, 2, 3)]
    train = made[0]
    names = {"rg": rg, "lightgbm": lightgbm, "onnxruntime": onnxruntime, "X": np.asarray(train.X)}
    names |= {"y": train.y, "sizes": np.diff(train.query_ptr)}
    names |= dict(zip(("train", "vali", "test"), made, strict=True))
    first, onnx = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(first, names)
    assert "LightGBM" in capsys.readouterr().out
    assert names["more"].submodel_.source_ == "LightGBM"
    rg.convert("web.rg", "web.onnx")
    exec(onnx, names)
    np.testing.assert_allclose(names["scores"][:, 0], names["model"].predict(train), atol=1e-5)


def test_the_examples_of_explaining(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "explaining.md").read_text()
    test = rg.make_web(40, n_docs=12, n_features=8, seed=1)
    names = {"rg": rg, "test": test, "model": rg.LambdaMART(n_trees=20, min_leaf=5).fit(test)}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, names)
    assert "difference" in capsys.readouterr().out
    assert {"why.png", "feature.png"} <= {path.name for path in tmp_path.iterdir()}


def test_the_example_of_classical_rankers(capsys):
    text = (ROOT / "docs" / "classical.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    small = code.replace("make_web(100,", "make_web(15, n_docs=15, n_features=8,")
    assert small != code
    names = {}
    exec(small, names)
    shown = capsys.readouterr().out
    assert all(name in shown for name in names["systems"])
    assert names["systems"]["BagBoo"].models_


def test_the_examples_of_the_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "report.md").read_text()
    train, test = (rg.make_artificial(30, n_docs=10, n_features=6, seed=seed) for seed in (1, 2))
    names = {"rg": rg, "test": test} | {
        name: rg.LambdaMART(n_trees=trees, min_leaf=5).fit(train, valid=test)
        for name, trees in (("old", 3), ("new", 20))
    }
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, names)
    assert "new is " in capsys.readouterr().out
    assert {"report.html", "learning.png"} <= {path.name for path in tmp_path.iterdir()}
    drawn = set(re.findall(r"`(\w+)`", text.split("Beside them:")[1]))
    drawn |= set(re.findall(r"rg\.plot\.(\w+)", text))
    assert drawn == set(rg.plot.__all__)
