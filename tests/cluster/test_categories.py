"""Categorical features on a cluster: the codes are those of all files together."""

import numpy as np
import pandas
import pytest

import rankgrove as rg
from rankgrove.errors import DataError


def write_parts(folder):
    draw = np.random.default_rng(1)
    names = ["acme", "bolt", "core", "dyne"]
    files = []
    for i in range(3):
        n = 80
        frame = pandas.DataFrame(
            {
                "qid": np.arange(n) // 8 + 100 * i,
                "label": draw.integers(0, 3, n),
                "x": draw.normal(size=n),
                "brand": draw.choice(names[i : i + 2], n),
            }
        )
        files.append(folder / f"{i}.parquet")
        frame.to_parquet(files[-1])
    return files


@pytest.mark.slow
def test_files_with_other_categories(client, tmp_path):
    files = write_parts(tmp_path)
    pandas.concat(map(pandas.read_parquet, files)).to_parquet(tmp_path / "all.parquet", index=False)
    whole = rg.read_table(tmp_path / "all.parquet")
    settings = {"n_trees": 4, "min_leaf": 3, "row_fraction": 0.7}
    here = rg.LambdaMART(**settings).fit(whole, valid=rg.read_table(files[1]))
    there = rg.LambdaMART(**settings).fit_files(files, cluster=client, valid=files[1])
    assert there.categories_ == here.categories_ == whole.categories
    assert np.array_equal(there.predict(whole), here.predict(whole))
    assert there.history_ == here.history_
    pandas.read_parquet(files[2]).assign(brand=1.0).to_parquet(files[2])
    with pytest.raises(DataError, match=r"'brand' is categorical in .*0\.parquet, and in .*2\.par"):
        rg.LambdaMART(**settings).fit_files(files, cluster=client)
