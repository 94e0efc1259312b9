"""Calibrated rankers in programs that take the sigmoid of the score."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.parity.engines import ENGINES


@pytest.fixture(scope="module")
def parts():
    return [rg.make_web(60, 15, 8, seed=seed) for seed in (1, 2, 3)]


@pytest.fixture(scope="module")
def calibrated(parts):
    model = rg.LambdaMART(n_trees=12, n_leaves=6, n_threads=1).fit(parts[0])
    return rg.calibrate(model, parts[1], method="sigmoid", samples=20)


@pytest.fixture(scope="module")
def expected(calibrated, parts):
    return calibrated.predict_relevance(parts[2]).at_least(2)


@pytest.mark.parametrize("to", ["elasticsearch", "opensearch"])
def test_plugins(calibrated, expected, parts, tmp_path, to):
    rg.convert(calibrated, tmp_path / "m.json", to=to, relevance=2)
    engine = next(engine for engine in ENGINES.values() if engine.format == to)
    model = engine.read((tmp_path / "m.json").read_bytes())
    columns = [parts[2].feature_names.index(name) for name in model.features]
    scores = model.scores(parts[2].X[:, columns].astype(np.float64))
    assert scores == pytest.approx(expected, abs=2e-6)


def test_vespa(calibrated, expected, parts, tmp_path):
    names = [f"f{j}" for j in range(1, 9)]  # Vespa has rules for names
    rg.convert(calibrated, tmp_path / "m.json", to="vespa", relevance=2, features=names)
    engine = next(engine for engine in ENGINES.values() if engine.format == "vespa")
    model = engine.read((tmp_path / "m.json").read_bytes())
    columns = [names.index(name) for name in model.features]
    scores = model.scores(parts[2].X[:, columns].astype(np.float64))
    assert scores == pytest.approx(expected, abs=1e-9)


def test_lightgbm(calibrated, expected, parts, tmp_path):
    lightgbm = pytest.importorskip("lightgbm")
    rg.convert(calibrated, tmp_path / "m.txt", to="lightgbm", relevance=2)
    booster = lightgbm.Booster(model_file=tmp_path / "m.txt")
    assert booster.predict(parts[2].X) == pytest.approx(expected, abs=1e-9)


def test_xgboost(calibrated, expected, parts, tmp_path):
    xgboost = pytest.importorskip("xgboost")
    rg.convert(calibrated, tmp_path / "m.json", to="xgboost", relevance=2)
    booster = xgboost.Booster(model_file=tmp_path / "m.json")
    assert booster.inplace_predict(parts[2].X) == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize("with_sets", [False, True])
def test_onnx(calibrated, parts, tmp_path, with_sets):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    data = parts[2]
    if with_sets:
        codes = np.random.default_rng(1).integers(0, 6, data.n_rows)
        X = np.array(data.X)
        X[:, 0] = codes
        data = rg.QueryDataset(X, data.y, data.qid, categorical={1: None})
        model = rg.LambdaMART(
            n_trees=8, n_leaves=6, n_threads=1, category_rules={"penalty": 0.0}
        ).fit(data)
        calibrated = rg.calibrate(model, data, method="sigmoid", samples=20)
    rg.convert(calibrated, tmp_path / "m.onnx", relevance=1)
    session = runtime.InferenceSession((tmp_path / "m.onnx").read_bytes())
    (scores,) = session.run(None, {"features": np.asarray(data.X, np.float32)})
    wanted = calibrated.predict_relevance(data).at_least(1)
    assert scores.ravel() == pytest.approx(wanted, abs=2e-6)


def test_refusals(calibrated, parts, tmp_path):
    with pytest.raises(rg.ParameterError, match="cannot take the sigmoid"):
        rg.convert(calibrated, tmp_path / "m.json", to="solr", relevance=2)
    with pytest.raises(rg.ParameterError, match="a grade above the lowest, one of 1, 2, 3, 4"):
        rg.convert(calibrated, tmp_path / "m.onnx", relevance=7)
    isotonic = rg.calibrate(calibrated.ranker_, parts[1], samples=20)
    with pytest.raises(rg.ParameterError, match="method='sigmoid'"):
        rg.convert(isotonic, tmp_path / "m.onnx", relevance=2)
    with pytest.raises(rg.ParameterError, match="Leave it out"):
        rg.convert(calibrated, tmp_path / "m.rg", relevance=2)


def test_early_exit_is_left_out_of_files(calibrated, expected, parts, tmp_path, caplog):
    """A file has the scores of the ranker in it, or their meaning."""
    fast = rg.EarlyExitRanker(calibrated, "ndcg@10").fit(parts[1])
    rg.convert(fast, tmp_path / "fast.txt")
    assert "by all trees: early exit is left out" in caplog.text
    assert "without the calibration" in caplog.text
    rg.convert(calibrated, tmp_path / "plain.txt")
    read = [rg.load(tmp_path / name).predict(parts[2].X) for name in ("fast.txt", "plain.txt")]
    assert np.array_equal(*read)
    rg.convert(fast, tmp_path / "m.json", to="elasticsearch", relevance=2)
    model = ENGINES["elasticsearch-ltr"].read((tmp_path / "m.json").read_bytes())
    columns = [parts[2].feature_names.index(name) for name in model.features]
    scores = model.scores(parts[2].X[:, columns].astype(np.float64))
    assert scores == pytest.approx(expected, abs=2e-6)


def test_probabilities_of_linear_models_are_refused_with_what_to_do(parts, tmp_path):
    linear = rg.calibrate(rg.RankSVM().fit(parts[0]), parts[1], method="sigmoid", samples=20)
    with pytest.raises(rg.ParameterError, match="Leave it out to write this ranker's own scores"):
        rg.convert(linear, tmp_path / "m.json", to="elasticsearch", relevance=2)
