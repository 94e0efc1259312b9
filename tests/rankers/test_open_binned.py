"""Training on bins in files gives the model file of training in memory, byte for byte."""

from __future__ import annotations

import gzip
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import rankgrove as rg


def file_of(model, folder):
    path = folder / "model.rg"
    model.save(path)
    return path.read_bytes()


def hard_data(seed: int, n_queries: int = 20) -> rg.QueryDataset:
    """Rows with holes, missing values, constant features and queries in no order."""
    data = rg.make_web(n_queries, n_docs=25, seed=seed)
    rng = np.random.default_rng(seed)
    X = np.array(data.X[:, :30])
    X[rng.random(X.shape) < 0.3] = 0.0
    X[rng.random(X.shape) < 0.02] = np.nan
    X[:, 4], X[:, 29] = 1.0, 0.0
    return rg.QueryDataset(X, data.y, rng.permutation(data.qid))


@pytest.mark.parametrize(
    ("absent", "sizes"),
    [
        ("zero", {}),
        ("missing", {}),
        ("zero", {"memory": 1 << 16}),
        ("missing", {"memory": 1 << 16}),
    ],
)
def test_letor_text(tmp_path, monkeypatch, absent, sizes):
    if sizes:  # small blocks
        monkeypatch.setattr("rankgrove.rankers.trees.open_binned.LEAST_BLOCK", 2000)
    rg.write_letor(hard_data(1), tmp_path / "a.txt")
    rg.write_letor(hard_data(2), tmp_path / "v.txt")
    train = rg.read_letor(tmp_path / "a.txt", absent=absent, n_features=32)
    valid = rg.read_letor(tmp_path / "v.txt", absent=absent, n_features=32)
    bins = rg.open_binned(tmp_path / "a.txt", absent=absent, n_features=32, **sizes)
    like = rg.open_binned(tmp_path / "v.txt", like=bins)
    assert (bins.row_keys == train.row_keys).all()
    model = rg.LambdaMART(n_trees=8, early_stopping=4, row_fraction=0.7, query_fraction=0.8)
    here = rg.LambdaMART(**model.get_params()).fit(train, valid=valid)
    there = model.fit(bins, valid=like)
    assert file_of(here, tmp_path) == file_of(there, tmp_path)
    assert here.history_ == there.history_
    for data, binned in ((train, bins), (valid, like)):
        assert (here.predict(data) == there.predict(binned)).all()


@pytest.mark.slow
def test_all_rankers_on_bins(tmp_path):
    rg.write_letor(hard_data(1), tmp_path / "a.txt")
    train, bins = rg.read_letor(tmp_path / "a.txt"), rg.open_binned(tmp_path / "a.txt")
    for make in (
        lambda: rg.MART(n_trees=3),
        lambda: rg.McRank(n_trees=2),
        lambda: rg.GBRank(n_trees=2),
        lambda: rg.RandomForest(n_trees=3, n_leaves=8),
        lambda: rg.BaggedRanker(rg.LambdaMART(n_trees=2), 3),
    ):
        here, there = make().fit(train), make().fit(bins)
        assert file_of(here, tmp_path) == file_of(there, tmp_path)
        assert (here.predict(train) == there.predict(bins)).all()


def test_packed_text_side_files_and_several_files(tmp_path):
    data = rg.make_web(12, n_docs=15, seed=3)
    rg.write_letor(data.select(range(6)), tmp_path / "a.txt")
    rg.write_letor(data.select(range(6, 12)), tmp_path / "b.txt")
    text = (tmp_path / "b.txt").read_bytes()
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(text))
    wanted = rg.read_letor([tmp_path / "a.txt", tmp_path / "b.txt"])
    found = rg.open_binned([tmp_path / "a.txt", tmp_path / "b.txt.gz"])
    assert found.folder.name == "a.txt.and-1-more.bins"
    assert (found.row_keys == wanted.row_keys).all()
    plain = b"\n".join(
        b" ".join(p for p in line.split() if not p.startswith(b"qid")) for line in text.splitlines()
    )
    (tmp_path / "c.txt").write_bytes(plain)
    sizes = "".join(f"{n}\n" for n in np.diff(data.query_ptr)[6:])
    (tmp_path / "c.txt.query").write_text(sizes)
    wanted, found = rg.read_letor(tmp_path / "c.txt"), rg.open_binned(tmp_path / "c.txt")
    assert (found.row_keys == wanted.row_keys).all()
    assert found.query_ids.tolist() == [1, 2, 3, 4, 5, 6]


def test_categories_of_letor_text(tmp_path):
    rng = np.random.default_rng(5)
    n = 3000
    X = np.column_stack([rng.integers(0, 9, n), rng.integers(0, 700, n), rng.normal(size=n)])
    y = np.clip(np.round(X[:, 2] + X[:, 1] % 7 / 4), 0, 4)
    rg.write_letor(rg.QueryDataset(X, y, np.arange(n) // 30), tmp_path / "a.txt")
    train = rg.read_letor(tmp_path / "a.txt", categorical=[1, 2])
    bins = rg.open_binned(tmp_path / "a.txt", categorical=[1, 2], memory=1 << 16)
    assert bins.binner.has_ordered
    like = rg.open_binned(tmp_path / "a.txt", like=bins)
    here = rg.LambdaMART(n_trees=5).fit(train, valid=train)
    there = rg.LambdaMART(n_trees=5).fit(bins, valid=like)
    assert file_of(here, tmp_path) == file_of(there, tmp_path)
    assert here.history_ == there.history_
    assert (here.predict(train) == there.predict(like)).all()
    for refused in (
        lambda: there.predict(bins),
        lambda: rg.LambdaMART(n_trees=2).fit(bins, valid=bins),
        lambda: rg.LambdaMART(n_trees=2).fit(bins.select([1, 2, 5])),
    ):
        with pytest.raises(rg.DataError, match="depend on"):
            refused()


def test_models_of_other_thresholds_are_refused(tmp_path):
    rg.write_letor(hard_data(1), tmp_path / "a.txt")
    rg.write_letor(hard_data(2), tmp_path / "b.txt")
    one, two = rg.open_binned(tmp_path / "a.txt"), rg.open_binned(tmp_path / "b.txt")
    model = rg.LambdaMART(n_trees=3).fit(two)
    with pytest.raises(rg.DataError, match="has bins only, and the model"):
        model.predict(one)
    with pytest.raises(rg.DataError, match=r"the valid data .* are not those of the training data"):
        rg.LambdaMART(n_trees=3).fit(one, valid=two)


def test_parts_and_searches(tmp_path):
    rg.write_letor(rg.make_web(20, n_docs=20, seed=1), tmp_path / "a.txt")
    rg.write_letor(rg.make_web(10, n_docs=20, seed=2), tmp_path / "v.txt")
    train, valid = rg.read_letor(tmp_path / "a.txt"), rg.read_letor(tmp_path / "v.txt")
    bins = rg.open_binned(tmp_path / "a.txt")
    like = rg.open_binned(tmp_path / "v.txt", like=bins)
    base, space = rg.LambdaMART(n_trees=3), {"n_leaves": [4, 8]}
    here = rg.tune(base, (train, valid), space, measures="ndcg@10")
    there = rg.tune(base, (bins, like), space, measures="ndcg@10")
    assert str(here) == str(there)
    queries = np.array([5, 2, 9, 11, 0])
    whole = base.bins(train)
    places = np.concatenate([np.arange(*train.query_ptr[[q, q + 1]]) for q in queries])
    expected = rg.LambdaMART(n_trees=3).fit_binned(train.select(queries), whole.some(places))
    part = rg.LambdaMART(n_trees=3).fit(bins.select(queries))
    assert file_of(expected, tmp_path) == file_of(part, tmp_path)
    crossed = rg.cross_validate(base, bins, measures="ndcg@10")
    assert "5 folds by query" in str(crossed)


def scores(data):
    return rg.LambdaMART(n_trees=2, n_threads=1).fit(data).predict(data)


@pytest.mark.slow
def test_processes_share_the_files(tmp_path):
    rg.write_letor(rg.make_web(10, n_docs=20, seed=1), tmp_path / "a.txt")
    bins = rg.open_binned(tmp_path / "a.txt")
    with ProcessPoolExecutor(1) as pool:
        there = pool.submit(scores, bins).result()
    assert (there == scores(bins)).all()


def test_fit_files_without_a_cluster(tmp_path):
    rg.write_letor(hard_data(1), tmp_path / "a.txt")
    rg.write_letor(hard_data(2), tmp_path / "v.txt")
    train, valid = rg.read_letor(tmp_path / "a.txt"), rg.read_letor(tmp_path / "v.txt")
    here = rg.LambdaMART(n_trees=4).fit(train, valid={"v": valid})
    file, folder = tmp_path / "a.txt", tmp_path / "kept"
    for files, kept in ((file, None), (str(file), folder), ([file], folder)):
        there = rg.LambdaMART(n_trees=4).fit_files(
            files, valid={"v": tmp_path / "v.txt"}, bins=kept, n_features=train.n_features
        )
        assert file_of(here, tmp_path) == file_of(there, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"a.txt", "v.txt", "model.rg", "kept", "kept.1.valid"}
    with pytest.raises(rg.ParameterError, match="only without a cluster"):
        rg.LambdaMART().fit_files(files, cluster="local", bins=tmp_path / "kept")


def test_what_cannot_be_opened(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n0 qid:1 1:1\n")
    with pytest.raises(rg.DataError, match="nothing to split"):
        rg.open_binned(tmp_path / "a.txt")
    with pytest.raises(rg.ParameterError, match="no parameter 'label'; LETOR files are read by"):
        rg.open_binned(tmp_path / "a.txt", label="y")
    with pytest.raises(rg.ParameterError, match="either LETOR files or tables"):
        rg.open_binned([tmp_path / "a.txt", tmp_path / "b.csv"])
    with pytest.raises(rg.MissingFileError):
        rg.open_binned(tmp_path / "none.txt")
    with pytest.raises(rg.ParameterError, match="'memory'"):
        rg.open_binned(tmp_path / "a.txt", memory=1)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
