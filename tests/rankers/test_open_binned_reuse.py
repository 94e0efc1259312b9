"""Bins that are there already: what is used again, what is refused, and parts of them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.growth import columns as growth_columns


@pytest.fixture
def data() -> rg.QueryDataset:
    return rg.make_web(20, n_docs=20, n_features=12, seed=1)


def write_csv(data: rg.QueryDataset, path) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(np.asarray(data.X), columns=[f"f{j}" for j in range(12)])
    table.insert(0, "qid", data.qid)
    table.insert(0, "label", data.y)
    table.to_csv(path, index=False)


def test_zstd_text_in_blocks(tmp_path, data, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setattr("rankgrove.rankers.trees.open_binned.LEAST_BLOCK", 2000)
    rg.write_letor(data, tmp_path / "a.txt")
    with pyarrow.output_stream(str(tmp_path / "a.txt.zst"), compression="zstd") as out:
        out.write((tmp_path / "a.txt").read_bytes())
    plain = rg.open_binned(tmp_path / "a.txt")
    packed = rg.open_binned(tmp_path / "a.txt.zst", memory=1 << 16)
    assert (plain.bins.codes == packed.bins.codes).all()
    assert (plain.row_keys == packed.row_keys).all()


def test_a_pickled_data_set_is_not_another_one(tmp_path, data):
    rg.write_letor(data, tmp_path / "a.txt")
    rg.write_letor(rg.make_web(9, n_features=12, seed=2), tmp_path / "b.txt")
    folder = tmp_path / "bins"
    whole = rg.open_binned(tmp_path / "a.txt", folder=folder)
    pickles = [pickle.dumps(whole), pickle.dumps(whole.select(np.arange(5)))]
    assert [pickle.loads(one).n_queries for one in pickles] == [20, 5]
    said = []
    rg.open_binned(tmp_path / "b.txt", folder=folder, say=said.append)
    assert f"made from {tmp_path / 'a.txt'}" in said[0]
    for one in pickles:
        with pytest.raises(rg.DataError, match="other bins than when the data set was pickled"):
            pickle.loads(one)


def test_what_is_not_used_is_refused(tmp_path, data):
    rg.write_letor(data, tmp_path / "a.txt")
    bins = rg.open_binned(tmp_path / "a.txt")
    for files, options in (
        (bins.folder, {"max_bins": 63}),
        (tmp_path / "a.txt", {"like": bins, "max_bins": 63}),
    ):
        with pytest.raises(rg.ParameterError, match="max_bins=63, but the bins of"):
            rg.open_binned(files, **options)
    with pytest.raises(rg.ParameterError, match="made already: leave out like"):
        rg.open_binned(bins.folder, like=bins)
    with pytest.raises(rg.ParameterError, match="'like' parameter"):
        rg.open_binned(tmp_path / "a.txt", like="bins")
    write_csv(data, tmp_path / "a.csv")
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(rg.ParameterError, match="either CSV and TSV files, or parquet"):
        rg.open_binned([tmp_path / "a.csv", tmp_path / "a.parquet"])


@pytest.mark.parametrize("most", [1, 1 << 30])
def test_neighbouring_queries_keep_their_files(tmp_path, data, monkeypatch, most):
    monkeypatch.setattr(growth_columns, "KEPT_BYTES", most)
    rg.write_letor(data, tmp_path / "a.txt")
    bins, read = rg.open_binned(tmp_path / "a.txt"), rg.read_letor(tmp_path / "a.txt")
    some = np.arange(3, 17)
    part = bins.select(some)
    assert part.bins.columns is not None
    column = np.empty(part.n_rows, np.uint8)
    for feature in range(part.bins.n_kept):
        part.bins.columns.read(feature, column)
        assert (column == part.bins.codes[:, feature]).all()
        assert (part.bins.by_column()[feature] == column).all()
    again = pickle.loads(pickle.dumps(part.bins.columns))
    again.read(0, column)
    assert (column == part.bins.codes[:, 0]).all()
    model = rg.LambdaMART(n_trees=3).fit(part)
    assert np.isfinite(model.predict(read)).all()


@pytest.mark.parametrize("categorical", [None, [1]])
def test_splits_of_missing_values_from_the_rest_score_bins(tmp_path, categorical):
    """Their threshold is infinite, and none of the bins'."""
    rng = np.random.default_rng(3)
    missing = rng.random(1000) < 0.5
    x = rng.normal(size=1000)
    first = np.where(missing, np.nan, x if categorical is None else rng.integers(0, 3, 1000))
    second = np.where(rng.random(1000) < 0.1, np.inf, x)
    rows = rg.QueryDataset(np.column_stack([first, second]), missing * 1.0, np.arange(1000) // 20)
    rg.write_letor(rows, tmp_path / "a.txt")
    how = {"categorical": categorical, "absent": "missing"}
    binned = rg.open_binned(tmp_path / "a.txt", **how)
    read = rg.read_letor(tmp_path / "a.txt", **how)
    model = rg.LambdaMART(n_trees=3).fit(binned)
    assert (np.inf in model.ensemble_.threshold) == (categorical is None)
    assert (model.predict(binned) == model.predict(read)).all()
    assert "5 folds" in str(rg.cross_validate(model, binned, measures="ndcg@10"))


def test_options_of_other_functions_are_named(tmp_path, data):
    rg.write_letor(data, tmp_path / "a.txt")
    path, ranker = tmp_path / "a.txt", rg.LambdaMART(n_trees=2)
    with pytest.raises(rg.ParameterError, match="'bins': the folder of the bins is folder= here"):
        rg.open_binned(path, bins="b")
    with pytest.raises(rg.ParameterError, match="'folder': the folder of the bins is bins= here"):
        ranker.fit_files(path, folder="b")
    with pytest.raises(rg.ParameterError, match=r"LambdaMART.fit_files has no parameter 'valdi'"):
        ranker.fit_files(path, valdi=path)
    with pytest.raises(rg.ParameterError, match="'folder' parameter of open_binned"):
        rg.open_binned(path, folder=3)
    with pytest.raises(rg.ParameterError, match=r"Got .*a.txt, .*b.csv"):
        rg.open_binned([path, tmp_path / "b.csv"])
    with pytest.raises(rg.ParameterError, match=r"b.csv.zst: tables packed as .csv.zst are not"):
        rg.open_binned(tmp_path / "b.csv.zst")
