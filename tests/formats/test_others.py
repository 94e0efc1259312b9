"""ONNX, Python and C source, treelite: what is written runs there."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.errors import MissingExtraError, ParameterError
from rankgrove.formats import source
from rankgrove.formats.write import FORMATS, Labels, encode
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from tests.formats.made import random_ensemble, rows_for, walked
from tests.reference import formats as mirrored

NAMES = list("abcd")
LABELS = Labels("web", NAMES, True)


def run_onnx(model, rows):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (found,) = session.run(["score"], {"features": np.asarray(rows, np.float32)})
    return found


@given(
    st.integers(0, 2**32),
    st.integers(0, 6),
    st.sampled_from([2, 3, 40, 256]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([0.0, -0.7]),
    st.sampled_from([1, 3]),
)
@settings(max_examples=30)
def test_onnx(seed, n_trees, leaves, dtype, base, columns):
    trees = random_ensemble(seed, n_trees, leaves, dtype=dtype, base=base, n_columns=columns)
    model, notes = encode(trees, "onnx", LABELS)
    rows = rows_for(trees, seed)
    found = run_onnx(model, rows)
    assert found.shape == (len(rows), columns)
    # every decision is the same; sums are float32, in an order of the runtime's own
    np.testing.assert_allclose(found.T, walked(trees, rows), rtol=0, atol=1e-5)
    assert notes == []


def module_of(text, tmp_path):
    path = tmp_path / "generated.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("generated", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_python_source_gives_the_same_bits(seed, single, tmp_path):
    trees = random_ensemble(seed, 6, 30, base=0.3 * seed, single=single)
    module = module_of(source.write_python(trees, "a \"strange\" name\n'''"), tmp_path)
    rows = rows_for(trees, seed)
    found = [module.score(row.tolist()) for row in rows]
    np.testing.assert_array_equal(found, walked(trees, rows)[0])
    with pytest.raises(ValueError, match="expected 4 features, got 3"):
        module.score([1.0, 2.0, 3.0])
    none = module_of(source.write_python(random_ensemble(1, 0, base=1.5), "none"), tmp_path)
    assert none.score([0.0] * 4) == 1.5


def test_python_source_needs_nothing(tmp_path):
    (tmp_path / "m.py").write_text(source.write_python(random_ensemble(1), "m"))
    code = "import sys, m; m.score([0.0] * 4); assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-S", "-E", "-c", code], cwd=tmp_path, check=True)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize(("seed", "single"), [(0, False), (1, True), (2, False)])
def test_c_source_gives_the_same_bits(seed, single, tmp_path):
    trees = random_ensemble(seed, 6 * seed, 30, base=0.3 * seed, single=single)
    (tmp_path / "m.c").write_text(source.write_c(trees, "a */ name"))
    flags = "-std=c99 -O2 -Wall -Wextra -Werror -pedantic -shared -fPIC".split()
    subprocess.run(["cc", *flags, "m.c", "-o", "m.so"], cwd=tmp_path, check=True)
    library = ctypes.CDLL(str(tmp_path / "m.so"))
    library.score.restype = ctypes.c_double
    rows, scores = rows_for(trees, seed), np.empty(200)
    pointer = ctypes.c_void_p
    library.score_batch(
        rows.ctypes.data_as(pointer), ctypes.c_size_t(200), scores.ctypes.data_as(pointer)
    )
    expected = walked(trees, rows)[0]
    np.testing.assert_array_equal(scores, expected)
    assert library.score(rows[7].ctypes.data_as(pointer)) == expected[7]


@pytest.mark.parametrize("categories", ["", "right", "both"])
def test_treelite_reads_what_is_written(categories, tmp_path):
    treelite = pytest.importorskip("treelite")
    trees = random_ensemble(3, 8, 20, categories=categories)
    rows = rows_for(trees, 3)
    expected = walked(trees, rows)[0]
    (tmp_path / "m.txt").write_bytes(encode(trees, "lightgbm", LABELS)[0])
    (tmp_path / "m.json").write_bytes(encode(trees, "xgboost", LABELS)[0])
    for model in (
        treelite.frontend.load_lightgbm_model(tmp_path / "m.txt"),
        treelite.frontend.load_xgboost_model(tmp_path / "m.json", format_choice="use_suffix"),
    ):
        found = treelite.gtil.predict(model, rows, pred_margin=True).reshape(-1)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


# -- linear models and nets -----------------------------------------------------------------------


def linear(scaling="standard", intercept=0.5):
    rng = np.random.default_rng(1)
    shift = rng.normal(size=4) if scaling == "standard" else np.zeros(4)
    scale = np.array([2.0, 0.5, 0.0, 1.0]) if scaling == "standard" else np.ones(4)
    none = np.empty(0)
    return Linear(4, rng.normal(size=4), scaling, shift, scale, none, none, intercept)


def net(activation="tanh", hidden=(6, 3)):
    rng = np.random.default_rng(2)
    sizes = (4, *hidden)
    from rankgrove.model.mlp import n_weights

    scale = np.array([2.0, 0.5, 0.0, 1.0])
    return Network(sizes, rng.normal(size=n_weights(sizes)), rng.normal(size=4), scale, activation)


def scores_of(model, rows):
    from rankgrove.scoring.linear_scores import score_linear

    if isinstance(model, Linear):
        return score_linear(model, rows)
    return model.scores(rows)


ROWS = rows_for(random_ensemble(1), 1)
MODELS = [linear(), linear("none", 0.0), net(), net("relu"), net("relu", ())]


@pytest.mark.parametrize("model", MODELS)
def test_linear_models_and_nets_as_onnx(model):
    found = run_onnx(encode(model, "onnx", LABELS)[0], ROWS)[:, 0]
    np.testing.assert_allclose(found, scores_of(model, ROWS), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("model", MODELS)
def test_linear_models_and_nets_for_solr(model):
    written, notes = encode(model, "solr", LABELS)
    found = mirrored.solr(written.decode(), NAMES, ROWS)
    intercept = model.intercept if isinstance(model, Linear) else 0.0
    expected = scores_of(model, np.nan_to_num(ROWS)) - intercept
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert any("no intercept" in note for note in notes) == bool(intercept)
    # with the feature store that is written, a missing value is the mean
    store = json.loads(FORMATS["solr"].definitions(model, LABELS))
    defaults = {
        one["name"]: np.float32(one["params"]["defaultValue"])
        for one in store
        if "defaultValue" in one["params"]
    }
    found = mirrored.solr(written.decode(), NAMES, ROWS, defaults)
    np.testing.assert_allclose(found, scores_of(model, ROWS) - intercept, rtol=1e-5, atol=1e-5)
    assert any("uses the mean of the feature" in note for note in notes) == bool(defaults)
    assert bool(defaults) == (model is not MODELS[1])
    assert encode(model, "solr", LABELS, zero=True)[0] == written


def test_a_large_mean_does_not_cost_digits_in_solr():
    """Raw weights would: 1e4 times a weight is added up and taken off again in float32."""
    rows = (1e4 + np.random.default_rng(0).normal(size=(50, 4))).astype(np.float32)
    empty = np.empty(0)
    mean, scale = np.full(4, 1e4), np.full(4, 0.9)
    model = Linear(4, np.array([1.0, -2.0, 0.5, 3.0]), "standard", mean, scale, empty, empty)
    text = encode(model, "solr", LABELS)[0].decode()
    np.testing.assert_allclose(mirrored.solr(text, NAMES, rows), scores_of(model, rows), atol=1e-5)
    weights = model.raw_weights()[0]
    plain = Linear(4, weights, "none", np.zeros(4), np.ones(4), empty, empty)
    found = mirrored.solr(encode(plain, "solr", LABELS)[0].decode(), NAMES, rows)
    assert np.abs(found + model.raw_weights()[1] - scores_of(model, rows)).max() > 1e-4


def test_linear_models_for_elasticsearch():
    model = MODELS[1]
    written, notes = encode(model, "elasticsearch", LABELS)
    found = mirrored.elasticsearch(written.decode(), NAMES, ROWS)
    np.testing.assert_allclose(found, scores_of(model, np.nan_to_num(ROWS)), rtol=1e-5, atol=1e-5)
    assert "refuses scores below 0" in notes[0]
    with pytest.raises(ParameterError, match="shift is only for trees"):
        encode(model, "elasticsearch", LABELS, shift=True)


@pytest.mark.parametrize("to", ["lightgbm", "xgboost", "ranklib", "python", "c"])
def test_what_holds_trees_alone(to):
    with pytest.raises(ParameterError, match=r"cannot hold linear models.*to='solr', to='elastic"):
        encode(linear(), to, LABELS)
    with pytest.raises(
        ParameterError, match=r"cannot hold nets.*to='solr', to='vespa' or to='onnx'"
    ):
        encode(net(), to, LABELS)


def test_onnx_is_an_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"rankgrove\[formats\]"):
        encode(random_ensemble(1), "onnx", LABELS)
    assert isinstance(rg.MissingExtraError, type)
