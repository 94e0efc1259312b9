"""Damaged and hostile files: always a ModelFileError that names the file, or a harmless change."""

from __future__ import annotations

import gzip
import json
import pickle
import struct

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.formats import ubjson
from rankgrove.formats.write import Labels, encode
from tests.formats.made import random_ensemble

LABELS = Labels("web", list("abcd"), True)


def packed(value) -> bytes:
    """UBJSON as XGBoost writes it: lists of numbers have a type."""
    if isinstance(value, dict):
        inside = b"".join(text(key) + packed(one) for key, one in value.items())
        return b"{" + inside + b"}"
    if isinstance(value, list):
        if value and all(type(one) is int for one in value):
            return b"[$l#L" + struct.pack(f">q{len(value)}i", len(value), *value)
        if value and all(type(one) is float for one in value):
            return b"[$d#L" + struct.pack(f">q{len(value)}f", len(value), *value)
        return b"[" + b"".join(map(packed, value)) + b"]"
    if isinstance(value, str):
        return b"S" + text(value)
    return b"l" + struct.pack(">i", value)


def text(value: str) -> bytes:
    return b"L" + struct.pack(">q", len(value.encode())) + value.encode()


def lightgbm_json() -> bytes:
    import lightgbm as lgb

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 4)), rng.integers(0, 3, 100)
    params = {"objective": "regression", "verbose": -1, "min_data_in_leaf": 5, "num_leaves": 5}
    return json.dumps(lgb.train(params, lgb.Dataset(X, y), 3).dump_model()).encode()


@pytest.fixture(scope="module")
def files():
    trees = random_ensemble(4, 3, 6, base=0.25)
    formats = ("lightgbm", "xgboost", "ranklib")
    made = {to: encode(trees, to, LABELS, zero=True)[0] for to in formats}
    made["ubj"] = packed(json.loads(made["xgboost"]))
    made["lightgbm json"] = lightgbm_json()
    return made


KINDS = ["lightgbm", "xgboost", "ranklib", "ubj", "lightgbm json"]


def load_or_fail(path, content):
    """Load, or see a ModelFileError that names the file; what loads predicts."""
    path.write_bytes(content)
    caught = ""
    try:
        model = rg.load(path)
    except rg.ModelFileError as error:
        caught = str(error)
    if caught:
        assert path.name in caught
        assert len(caught) < 600
        return None
    if model.ensemble_.n_features < 10000:
        scores = model.raw_scores(np.zeros((2, model.n_features_in_)))
        assert np.isfinite(scores).all()
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_whole_files_are_read(kind, files, tmp_path):
    assert load_or_fail(tmp_path / "model", files[kind]) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_is_noticed(kind, files, tmp_path):
    whole = files[kind].rstrip()
    rng = np.random.default_rng(1)
    for n in {0, 1, 2, 5, 30, len(whole) - 1, *rng.integers(0, len(whole), 60).tolist()}:
        found = load_or_fail(tmp_path / "cut", whole[:n])
        assert found is None or kind == "lightgbm"  # its last line may be cut and nothing is lost
        if found is not None:
            assert n > len(whole) - 3


@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes(kind, files, tmp_path):
    rng = np.random.default_rng(2)
    whole = files[kind]
    for _ in range(250):
        broken = bytearray(whole)
        for place in rng.integers(0, len(whole), rng.integers(1, 4)):
            broken[place] = rng.integers(256)
        load_or_fail(tmp_path / "broken", bytes(broken))


@pytest.mark.parametrize("kind", ["lightgbm", "xgboost", "ranklib", "lightgbm json"])
def test_changed_words(kind, files, tmp_path):
    """Numbers become huge, negative, no numbers; words and lines are lost or come twice."""
    import re

    rng = np.random.default_rng(3)
    whole = files[kind].decode()
    places = [match.span() for match in re.finditer(r"[-\w.+]+", whole)]
    strange = ["1e999", "-1", "999999999999", "nan", "NaN", "null", "", "[]", "{}", "0x10",
               "1e-400", "true", '"x"', "9" * 5000, "Infinity", "-Infinity"]  # fmt: skip
    for _ in range(300):
        start, end = places[rng.integers(len(places))]
        load_or_fail(tmp_path / "odd", (whole[:start] + rng.choice(strange) + whole[end:]).encode())
    lines = whole.splitlines(keepends=True)
    for _ in range(60 if len(lines) > 5 else 0):
        at, other = rng.integers(len(lines), size=2)
        changed = [*lines[:at], *([lines[other]] * int(rng.integers(3))), *lines[at + 1 :]]
        load_or_fail(tmp_path / "lines", "".join(changed).encode())


def replaced(value, rng, depth=0):
    """A document with one value, somewhere, of another type."""
    strange = [None, -1, 10**30, 1e308, "x", [], {}, True, float("nan"), [[1]], "5E-1"]
    if not isinstance(value, dict | list) or not value or (depth and rng.random() < 0.15):
        return strange[rng.integers(len(strange))]
    if isinstance(value, dict):
        key = list(value)[rng.integers(len(value))]
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: replaced(value[key], rng, depth + 1)}
    at = int(rng.integers(len(value)))
    return [*value[:at], replaced(value[at], rng, depth + 1), *value[at + 1 :]]


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm json"])
def test_values_of_other_types(kind, files, tmp_path):
    rng = np.random.default_rng(4)
    document = json.loads(files[kind])
    for _ in range(400):
        load_or_fail(tmp_path / "other.json", json.dumps(replaced(document, rng)).encode())


@pytest.mark.parametrize(
    "content",
    [
        b"{" + b'"a":{' * 100000,
        b'{"learner":' + b"[" * 100000,
        b'{"tree_info": [], "average_output": false, "max_feature_idx": 1e9}',
        b'{"learner": {"learner_model_param": []}}',
        b"{[$d#L" + struct.pack(">q", 1 << 60),
        b"{L" + struct.pack(">q", 1 << 62),
        b"{L" + struct.pack(">q", -5),
        b"{i\x01a" + b"[" * 100000,
        b"{i\x01a[$T#L" + struct.pack(">q", 1 << 50),
        b"{i\x01a[$Z#l" + struct.pack(">i", 20),
        b"{i\x01aS" + b"\xff\xff",
        b"tree\nversion=v4\nend of trees\n",
        b"tree\nversion=v4\nnum_tree_per_iteration=1\nmax_feature_idx=9999999999\n\nend of trees\n",
        b"<ensemble>" + b"<tree>" * 10,
        b"<ensemble><tree><split>" + b"<split>" * 100000,
        b'<?xml version="1.0"?><!DOCTYPE x SYSTEM "file:///etc/passwd"><ensemble/>',
        b"## LambdaMART\n\xff\xfe",
        b'{"class": "org.apache.solr.ltr.model.LinearModel"}',
        b'{"model": {}}',
        b"{}",
        b"\x80\x04\x95 a pickle",
        b"binf",
        b"hello",
    ],
)
def test_hostile_files(content, tmp_path):
    assert load_or_fail(tmp_path / "hostile", content) is None


def test_files_that_are_written_but_not_read_say_so(tmp_path):
    trees = random_ensemble(1)
    (tmp_path / "model").write_bytes(encode(trees, "elasticsearch", LABELS, zero=True)[0])
    with pytest.raises(rg.ModelFileError, match=r"written, not read.*text of its 'definition'"):
        rg.load(tmp_path / "model")


def old_binary(prefix=b""):
    """The beginning of a model in XGBoost's format before JSON."""
    numbers = struct.pack("<fI", 0.5, 46) + bytes(128)
    return (
        prefix + numbers + struct.pack("<Q", 13) + b"rank:pairwise" + struct.pack("<Q", 6)
        + b"gbtree" + bytes(200)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (old_binary(), "XGBoost's old binary format.*save_model"),
        (old_binary(b"binf"), "XGBoost's old binary format"),
        (old_binary(b"\0\x05_cls_"), "XGBoost's old binary format"),  # with Spark's words before
        (b"bs64\tYmluZg==", "XGBoost's old binary format"),
        (b"booster[0]:\n0:[f0<0.5] yes=1,no=2,missing=1\n", "dump as text.*dump_format='json'"),
        (pickle.dumps({"a": 1}), "a Python pickle, which is never read"),
        (b"ccopy_reg\n_reconstructor\np0\n", "a Python pickle"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\n", "git lfs pull"),
        (gzip.compress(b"tree\nversion=v3\n"), "gunzip"),
        (b"Tree=0\nnum_leaves=1\nleaf_value=1\n", "begins with a tree"),
    ],
)
def test_files_that_are_not_read_are_named(content, message, tmp_path):
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(rg.ModelFileError, match=f"model: .*{message}"):
        rg.load(tmp_path / "model")


def test_values_of_ubjson():
    data = (
        b"{i\x01aTi\x01bFi\x01cZi\x01dCxi\x01eHi\x041.25i\x01fD" + struct.pack(">d", 0.1)
        + b"i\x01g[$U#i\x03\x01\x02\xffi\x01h[#i\x02i\x05Si\x02hii\x01iN{$i#i\x01i\x01k\x07"
        + b"i\x01jI\xff\xfei\x01k[i\x01NU\x02]}"
    )  # fmt: skip
    found = ubjson.decode(data)
    assert found.pop("g").tolist() == [1, 2, 255]
    assert found == {
        "a": True, "b": False, "c": None, "d": "x", "e": 1.25, "f": 0.1, "h": [5, "hi"],
        "i": {"k": 7}, "j": -2, "k": [1, 2],
    }  # fmt: skip
