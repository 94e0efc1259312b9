"""Damaged and hostile files: always a ModelFileError that names the file, or a harmless change."""

from __future__ import annotations

import gzip
import json
import pickle
import re
import struct
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.formats import ubjson
from rankgrove.formats.write import Labels, encode
from tests.formats.made import random_ensemble
from tests.formats.mutations import load_or_fail, mutated

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


def lightgbm_json(categorical=()) -> bytes:
    import lightgbm as lgb

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 4)), rng.integers(0, 3, 100)
    for column in categorical:
        X[:, column] = rng.integers(0, 7, 100)
    params = {
        "objective": "regression", "verbose": -1, "min_data_in_leaf": 5, "num_leaves": 5,
        "min_data_per_group": 1, "cat_smooth": 0.1,
    }  # fmt: skip
    data = lgb.Dataset(X, y, categorical_feature=list(categorical))
    return json.dumps(lgb.train(params, data, 3).dump_model()).encode()


def quickrank(xml: str) -> str:
    body = xml[xml.index("<ensemble>") :]
    return f"<ranker><info><type>MART</type><trees>3</trees></info>{body}</ranker>"


def whole_files() -> dict[str, bytes]:
    """A small model of every kind that is read."""
    trees = random_ensemble(4, 3, 6, base=0.25)
    formats = ("lightgbm", "xgboost", "ranklib", "solr")
    made = {to: encode(trees, to, LABELS, zero=True)[0] for to in formats}
    made["ubj"] = packed(json.loads(made["xgboost"]))
    sets = random_ensemble(5, 3, 6, categories="both")
    named = replace(LABELS, categories={1: tuple("stuvw"), 3: tuple(map(str, range(300)))})
    made["lightgbm sets"] = encode(sets, "lightgbm", named)[0]
    made["xgboost sets"] = encode(sets, "xgboost", named)[0]
    made["ubj sets"] = packed(json.loads(made["xgboost sets"]))
    unnamed = replace(named, categories={1: named.categories[1], 3: None})
    made["vespa"] = encode(sets, "vespa", unnamed)[0]
    made["lightgbm json"] = lightgbm_json()
    made["lightgbm json sets"] = lightgbm_json([0, 3])
    made["lightgbm zeros"] = made["lightgbm"].replace(b"decision_type=8", b"decision_type=4")
    definition = json.loads(encode(trees, "elasticsearch", LABELS, zero=True)[0])
    dump = definition["model"]["model"]["definition"]
    for j, name in enumerate(LABELS.features):
        dump = dump.replace(f'"split": "{name}"', f'"split": "f{j}"')
    made["xgboost dump"] = dump.encode()
    xml = made["ranklib"].decode()
    ensemble = xml[xml.index("<ensemble>") :]
    made["forest"] = f"## Random Forests\n## No. of bags = 2\n\n{ensemble}\n{ensemble}".encode()
    made["quickrank"] = quickrank(xml).encode()
    made["weights"] = b"## Linear Regression\n## Lambda = 1\n0:0.5 1:0.25 3:-1.5E-3 2:7 # end\n"
    made["stumps"] = b"## RankBoost\n## Iteration = 2\n1:0.5:0.25 3:-1.5:0.1 2:7.0:1.0E-3\n"
    return made


@pytest.fixture(scope="module")
def files():
    return whole_files()


KINDS = [
    "lightgbm", "xgboost", "ranklib", "ubj", "lightgbm json", "lightgbm zeros", "solr",
    "xgboost dump", "forest", "quickrank", "weights", "stumps", "lightgbm sets", "xgboost sets",
    "ubj sets", "lightgbm json sets", "vespa",
]  # fmt: skip
LINES = ("weights", "stumps")  # whose last number may be cut, and be another number


@pytest.mark.parametrize("kind", KINDS)
def test_whole_files_are_read(kind, files, tmp_path):
    assert load_or_fail(tmp_path / "model", files[kind]) is not None


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_is_noticed(kind, files, tmp_path):
    whole = files[kind].rstrip()
    rng = np.random.default_rng(1)
    for n in {0, 1, 2, 5, 30, len(whole) - 1, *rng.integers(0, len(whole), 60).tolist()}:
        found = load_or_fail(tmp_path / "cut", whole[:n])
        # its last line may be cut and nothing is lost; of a line of numbers nobody knows the end
        assert found is None or kind in ("lightgbm", "lightgbm zeros", "lightgbm sets", *LINES)
        if found is not None and kind == "lightgbm sets":  # the names of categories may be cut off
            assert n >= whole.rindex(b"end of trees")
        elif found is not None and kind not in LINES:
            assert n > len(whole) - 3


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files(kind, files, tmp_path):
    """Bytes, words, lines and values that are changed, lost or come twice."""
    for seed in range(300):
        load_or_fail(tmp_path / "broken", mutated(files[kind], np.random.default_rng(seed)))


@pytest.mark.slow
def test_numbers_are_checked_before_anything_is_made_of_them(files, tmp_path):
    """Numbers of features, leaves and trees that a small file cannot have."""
    text = files["lightgbm"].decode()
    tracemalloc.start()
    for old, new in [
        ("max_feature_idx=3", "max_feature_idx=16777215"),
        ("num_tree_per_iteration=1", "num_tree_per_iteration=65536"),
        (re.search(r"num_leaves=\d+", text)[0], "num_leaves=2147483648"),
        ("feature_names=a b c d", "feature_names="),
    ]:
        load_or_fail(tmp_path / "m.txt", text.replace(old, new, 1).encode())
    both = text.replace("max_feature_idx=3", "max_feature_idx=16777215")
    load_or_fail(tmp_path / "m.txt", both.replace("feature_names=a b c d", "").encode())
    load_or_fail(tmp_path / "m.txt", b"## AdaRank\n1048576:1 1:2\n")
    load_or_fail(tmp_path / "m.txt", zeros_in_a_row(40))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300e6


def zeros_in_a_row(depth: int) -> bytes:
    """A LightGBM tree whose every split takes zero for missing, on the other side."""
    n = range(depth)
    lines = [
        f"num_leaves={depth + 1}", "num_cat=0", f"split_feature={' '.join('0' for _ in n)}",
        f"threshold={' '.join(str(j + 1.0) for j in n)}",
        f"decision_type={' '.join('4' for _ in n)}",
        f"left_child={' '.join(str(j + 1) if j + 1 < depth else '-1' for j in n)}",
        f"right_child={' '.join(str(-j - 2) for j in n)}",
        f"leaf_value={' '.join('1' for _ in range(depth + 1))}",
    ]  # fmt: skip
    head = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nmax_feature_idx=0\n"
    return f"{head}\nTree=0\n{chr(10).join(lines)}\n\nend of trees\n".encode()


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
    with pytest.raises(rg.ModelFileError, match=r"written but not read.*text of its 'definition'"):
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
        (gzip.compress(b"tree\nversion=v3\n", mtime=0), "gunzip"),
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
