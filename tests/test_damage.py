"""Damaged and hostile files: a small run of ``tools.damage``, and crafted models."""

from __future__ import annotations

import json
import random
import warnings

import numpy as np
import pytest
from tools import damaging
from tools.damage import FAULTS, run_case
from tools.damaging_subjects import (
    N_FEATURES,
    WITH_CATEGORIES,
    make_subjects,
    some_categories,
    some_data,
)

import rankgrove as rg
from rankgrove.model.store import read_model, write_model


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("damage")


@pytest.fixture(scope="module")
def subjects(folder):
    return make_subjects(folder)


@pytest.fixture(scope="module")
def models(subjects, folder):
    """The model files that `subjects` wrote."""
    names = [one.name[6:] for one in subjects if one.name.startswith("model:")]
    return {name: folder / f"{name}.rg" for name in names}


@pytest.mark.slow
def test_no_fault_of_any_kind_of_file(subjects, folder):
    faults = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for subject in subjects:
            n = 6 if subject.name.startswith("checkpoint") else 24
            for case in range(n):
                outcome, what = run_case(subject, 1, case, folder)
                if outcome in FAULTS:
                    faults.append(f"{subject.name}, case {case}: {outcome}, {what}")
    assert not faults


WITH_TREES = [
    "lambdamart", "mart", "mcrank", "bag", "bag-borda", "bag-pruned", "combination", "stacked",
    "submodel", "nested", "trada", "trees", "pruned", "randomforest", "categories",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", WITH_TREES)
@pytest.mark.parametrize("words", [False, True])
def test_a_split_beyond_the_features_of_the_outer_model_is_refused(models, tmp_path, kind, words):
    # its own count of features raised to match, in arrays and (words) in the header
    path = models[kind]
    _, content, arrays = read_model(path)
    holders = [name for name in arrays if name.split("/")[-1] == "n_features"]
    assert holders
    for name in holders:
        prefix = name.removesuffix("n_features")
        if not arrays.get(f"{prefix}feature", np.empty(0)).size:
            continue
        made = tmp_path / "crafted.rg"
        changed, told = dict(arrays), json.loads(json.dumps(content))
        changed[f"{prefix}feature"] = arrays[f"{prefix}feature"] + 10**6
        changed[name] = np.array(10**6 + N_FEATURES)
        if words:
            _raise_counts(told)
        write_model(made, read_model(path)[0], told, changed)
        if words and prefix == "base/":  # what was adapted may be of other features, and is apart
            with pytest.raises(rg.DataError, match="expecting 1000006 features"):
                rg.load(made).base_.predict(some_data(5).X)
            continue
        with pytest.raises(rg.ModelFileError, match=r"crafted\.rg.*features? in a"):
            rg.load(made)


def _raise_counts(content):
    """Raise the words of members; those of the model around them stay."""
    for value in content.values():
        for inside in value if isinstance(value, list) else [value]:
            if isinstance(inside, dict) and "n_features" in inside:
                inside["n_features"] = 10**6 + N_FEATURES
                inside.pop("feature_names", None)
                _raise_counts(inside)


ABSURD = {
    "base": ("lambdamart", "base", np.array(1e308)),
    "two columns": ("lambdamart", "n_columns", np.array(2)),
    "bag: two columns": ("bag", "model 0/n_columns", np.array(2)),
    "no columns": ("mart", "n_columns", np.array(0)),
    "values": ("mart", "value", lambda a: a * 1e307),
    "borders that overflow": ("mart", "node_ptr", lambda a: a + (np.arange(a.size) == 1) * 2**62),
    "features as fractions": ("mart", "feature", lambda a: a + 0.5),
    "scale of a net": ("lambdarank", "scale", lambda a: a * np.nan),
    "weights of a net": ("lambdarank", "flat", lambda a: a * 1e200),
    "sizes of a net": ("lambdarank", "sizes", lambda a: a + 1),
    "scale of a linear model": ("svm-map", "scale", lambda a: a * 1e-320),
    "thresholds": ("svm-thresholds", "threshold_ptr", lambda a: a * 1000),
    "features of thresholds": ("svm-thresholds", "n_features", np.array(N_FEATURES + 1)),
    "sets that are not there": ("categories", "set_of", lambda a: a + 100),
    "borders of sets": ("categories", "set_ptr", lambda a: a * 1000),
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_numbers_are_refused(models, tmp_path, name):
    kind, array, change = ABSURD[name]
    word, content, arrays = read_model(models[kind])
    arrays[array] = change(arrays[array]) if callable(change) else change
    if name == "two columns":  # as many trees as fit
        assert not (arrays["node_ptr"].size - 1) % 2
    write_model(tmp_path / "crafted.rg", word, content, arrays)
    with pytest.raises(rg.ModelFileError, match=r"crafted\.rg"):
        rg.load(tmp_path / "crafted.rg")


WORDS = {
    "parameters": ("lambdamart", {"parameters": "x"}),
    "history": ("lambdamart", {"history": "x"}),
    "history inside": ("lambdamart", {"history": {"valid": {"ndcg@10": "x"}}}),
    "steps": ("lambdamart", {"steps": [1.0]}),
    "submodel": ("submodel", {"submodel": 0.5}),
    "models": ("bag", {"models": 1}),
    "models inside": ("bag", {"models": ["x"]}),
    "weights": ("bag", {"weights": [0.0, 0.0, 0.0]}),
    "weights below 0": ("bag", {"weights": [2.0, -1.0, 1.0]}),
    "rankers": ("combination", {"rankers": {}}),
    "names": ("lambdamart", {"feature_names": ["a"]}),
    "names that are none": ("lambdamart", {"feature_names": [1] * N_FEATURES}),
    "number of features": ("lambdamart", {"n_features": N_FEATURES + 1}),
    "classes": ("mcrank", {"classes": ["a", "b"]}),
    "form": ("mcrank", {"parameters": {"form": "x"}}),
    "combine": ("bag", {"parameters": {"combine": "x"}}),
    "rounds": ("adarank", {"rounds": [[99, 1.0, 1.0]]}),
    "report": ("trada", {"report_names": ["a"]}),
    "names of categories": ("categories", {"categories": [[1, ["a", "a"]], [2, None]]}),
    "encodings of other names": ("encoded", {"categories": [[1, ["a", "b"]], [2, None]]}),
    "encodings of numbers": ("encoded", {"categories": [[2, None]]}),
}


@pytest.mark.parametrize("name", WORDS)
def test_headers_of_another_shape_are_refused(models, tmp_path, name):
    kind, change = WORDS[name]
    word, content, arrays = read_model(models[kind])
    write_model(tmp_path / "crafted.rg", word, content | change, arrays)
    with pytest.raises(rg.ModelFileError, match=r"crafted\.rg"):
        rg.load(tmp_path / "crafted.rg")


def test_a_file_does_not_say_how_to_run(models, tmp_path):
    word, content, arrays = read_model(models["lambdamart"])
    content["parameters"] |= {"checkpoint": str(tmp_path / "theirs.rg"), "n_threads": 10**9}
    write_model(tmp_path / "m.rg", word, content, arrays)
    assert rg.load(tmp_path / "m.rg").checkpoint is None
    assert rg.load(tmp_path / "m.rg").n_threads is None


def test_rankers_nested_without_end_are_refused(models, tmp_path):
    word, content, arrays = read_model(models["submodel"])
    inner = content
    for _ in range(400):
        inner = {**content, "kind": word, "submodel": inner}
    write_model(tmp_path / "deep.rg", word, inner, arrays)
    with pytest.raises(rg.ModelFileError, match=r"deep\.rg"):
        rg.load(tmp_path / "deep.rg")


NPY = {
    "terabytes": ("(1000000000000,)", "needs 8,000,000,000,000"),
    "negative": ("(-1,)", "shape"),
    "beyond": ("(99999999999999999999,)", "needs"),
    "no header": ("(", "impossible header"),
    "objects": ("'descr': '|O'", "type"),
}


@pytest.mark.parametrize("name", NPY)
def test_the_shape_in_an_array_is_not_believed(models, tmp_path, name):
    new, message = NPY[name]
    blob = models["mart"].read_bytes()

    def change(_, arrays, __):
        text = arrays["value"][10:128]
        old = b"'descr': '<f8'" if "descr" in new else text[text.find(b"(") : text.find(b")") + 1]
        header = text.replace(old, new.encode())
        arrays["value"] = (
            arrays["value"][:8] + len(header).to_bytes(2, "little") + header + arrays["value"][128:]
        )

    path = tmp_path / "shape.rg"
    path.write_bytes(damaging._crafted(blob, random.Random(1), change))
    with pytest.raises(rg.ModelFileError, match=rf"shape\.rg.*'value'.*{message}"):
        rg.load(path)


def test_an_encrypted_entry_is_named(models, tmp_path):
    rng = random.Random(0)
    seen = []
    for _ in range(60):
        path = tmp_path / "locked.rg"
        path.write_bytes(damaging._entries(models["mart"].read_bytes(), rng))
        try:
            rg.load(path)
        except rg.ModelFileError as error:
            seen.append(str(error))
    assert any("encrypted" in text for text in seen)
    assert all("locked.rg" in text for text in seen)


def test_models_are_whole_before_they_are_damaged(models):
    for name, path in models.items():
        data = some_categories(5) if name in WITH_CATEGORIES else some_data(5)
        assert np.isfinite(rg.load(path).predict(data)).all()
