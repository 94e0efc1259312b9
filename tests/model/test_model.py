"""The ensemble and the model file."""

from __future__ import annotations

import _thread
import json
import zipfile

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.model import store
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.store import read_model, write_model


@pytest.fixture(scope="module")
def model():
    data = rg.make_web(30, n_docs=20, n_features=10, seed=1)
    return rg.LambdaMART(n_trees=5, n_leaves=6, min_leaf=3).fit(data), data


def test_scores_are_the_sum_of_walks(model):
    ranker, data = model
    X = np.array(data.X)
    X[::7, 2] = np.nan
    trees = ranker.ensemble_
    expected = np.zeros(len(X))
    for t in range(trees.n_trees):
        expected += trees.tree(t).predict(X)
    np.testing.assert_array_equal(ranker.predict(X), expected)
    np.testing.assert_array_equal(ranker.predict(X.astype(np.float64)), expected)
    np.testing.assert_array_equal(ranker.predict(X, n_threads=1), expected)
    np.testing.assert_array_equal(ranker.predict(X[:1]), expected[:1])


def test_trees_survive_the_flat_form(model):
    trees = model[0].ensemble_
    again = Ensemble.from_trees([trees.tree(t) for t in range(trees.n_trees)], trees.n_features)
    for name, array in trees.to_arrays().items():
        np.testing.assert_array_equal(array, again.to_arrays()[name])
    assert Ensemble.from_trees([], 3).n_trees == 0
    assert trees.truncated(0).n_trees == 0
    assert not trees.value.flags.writeable
    # counts: what reaches a node reaches its children
    tree = trees.tree(0)
    reached = dict(enumerate(tree.count[: tree.n_nodes]))
    for node in range(tree.n_nodes):
        children = [
            reached[c] if c >= 0 else tree.count[tree.n_nodes + ~c]
            for c in (tree.left[node], tree.right[node])
        ]
        assert sum(children) == tree.count[node]


def test_ctrl_c_comes_after_the_file_is_written(tmp_path, monkeypatch):
    """Ctrl-C in the middle of an entry of a zip file would end in an error of its own."""
    plain = store._add

    def interrupted(archive, name, blob):
        _thread.interrupt_main()
        plain(archive, name, blob)

    monkeypatch.setattr(store, "_add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_model(tmp_path / "m.rg", "test", {"a": 1}, {"x": np.arange(3.0)})
    kind, content, arrays = read_model(tmp_path / "m.rg")
    assert (kind, content) == ("test", {"a": 1})
    np.testing.assert_array_equal(arrays["x"], np.arange(3.0))


def test_saving_is_deterministic_and_loads_back(model, tmp_path):
    ranker, data = model
    ranker.save(tmp_path / "a.rg")
    ranker.save(tmp_path / "b.rg")
    assert (tmp_path / "a.rg").read_bytes() == (tmp_path / "b.rg").read_bytes()
    loaded = rg.load(tmp_path / "a.rg")
    assert loaded.get_params() == ranker.get_params()
    np.testing.assert_array_equal(loaded.predict(data), ranker.predict(data))
    loaded.save(tmp_path / "c.rg")
    assert (tmp_path / "c.rg").read_bytes() == (tmp_path / "a.rg").read_bytes()


def test_every_cut_and_every_flipped_byte_is_noticed_or_harmless(model, tmp_path):
    ranker, data = model
    ranker.save(tmp_path / "m.rg")
    whole = (tmp_path / "m.rg").read_bytes()
    expected = ranker.predict(data)
    rng = np.random.default_rng(0)
    for n in [0, 1, 100, *rng.integers(0, len(whole), 20)]:
        (tmp_path / "cut.rg").write_bytes(whole[:n])
        with pytest.raises(rg.ModelFileError, match=r"cut\.rg"):
            rg.load(tmp_path / "cut.rg")
    for place in rng.integers(0, len(whole), 150):
        broken = bytearray(whole)
        broken[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "broken.rg").write_bytes(broken)
        try:
            loaded = rg.load(tmp_path / "broken.rg")
        except rg.ModelFileError:
            continue
        np.testing.assert_array_equal(loaded.predict(data), expected)


def test_foreign_and_newer_files(model, tmp_path):
    path = tmp_path / "x.rg"
    path.write_text("not a model")
    with pytest.raises(rg.ModelFileError, match="is not a rankgrove model"):
        rg.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "hello")
    with pytest.raises(rg.ModelFileError, match="not a rankgrove model"):
        rg.load(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"format": "rankgrove model", "version": 99}))
    with pytest.raises(rg.ModelFileError, match="upgrade rankgrove"):
        rg.load(path)
    write_model(path, "teapot", {}, {})
    with pytest.raises(rg.ModelFileError, match="'teapot'"):
        rg.load(path)
    with pytest.raises(rg.ModelFileError, match="no such file"):
        rg.load(tmp_path / "nowhere.rg")
    with pytest.raises(rg.ModelFileError, match="is a folder: give the name of a model file"):
        rg.load(tmp_path)


def test_damaged_is_not_foreign(model, tmp_path):
    path = tmp_path / "m.rg"
    model[0].save(path)
    whole = path.read_bytes()
    with zipfile.ZipFile(path) as archive:  # the middle of what some entries hold
        places = [
            entry.header_offset + 30 + len(entry.filename) + entry.compress_size // 2
            for entry in archive.infolist()[:4]
        ]
    for place in (0, *places):
        broken = bytearray(whole)
        broken[place] ^= 0xFF
        path.write_bytes(broken)
        with pytest.raises(rg.ModelFileError, match=r"is damaged.*: copy it again") as caught:
            rg.load(path)
        assert "not a rankgrove model" not in str(caught.value)
    path.write_bytes(whole[:200])
    with pytest.raises(rg.ModelFileError, match="is damaged or truncated: copy it again"):
        rg.load(path)
    for foreign in (b"not a model", b"P", b"PKK" + whole[3:100]):
        path.write_bytes(foreign)
        with pytest.raises(rg.ModelFileError, match="is not a rankgrove model, nor one of"):
            rg.load(path)
    path.write_bytes(b"")
    with pytest.raises(rg.ModelFileError, match="is empty"):
        rg.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("feature", lambda a: a + 1000),
        ("left", lambda a: a * 0),
        ("right", lambda a: a + 1),
        ("left", lambda a: a - 100),
        ("value", lambda a: a[1:]),
        ("value", lambda a: a * np.nan),
        ("threshold", lambda a: a * np.nan),
        ("node_ptr", lambda a: a[::-1]),
        ("leaf_ptr", lambda a: a + 1),
    ],
)
def test_trees_that_do_not_fit_are_refused(model, tmp_path, name, change):
    # a well-formed file whose trees would send a walk astray
    ranker, _ = model
    ranker.save(tmp_path / "m.rg")
    kind, content, arrays = read_model(tmp_path / "m.rg")
    arrays[name] = change(arrays[name])
    write_model(tmp_path / "m.rg", kind, content, arrays)
    with pytest.raises(rg.ModelFileError):
        rg.load(tmp_path / "m.rg")


def test_nothing_is_unpickled(model, tmp_path):
    ranker, _ = model
    ranker.save(tmp_path / "m.rg")
    kind, content, arrays = read_model(tmp_path / "m.rg")
    with pytest.raises(ValueError, match="Object arrays"):
        write_model(tmp_path / "m.rg", kind, content, {**arrays, "bad": np.array([{}])})
    assert rg.load(tmp_path / "m.rg")  # the file before is still whole
