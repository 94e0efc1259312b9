"""Categorical features on a cluster: codes, and the order of many, are those of all files."""

import numpy as np
import pandas
import pytest

import rankgrove as rg
from rankgrove.data.category_bins import MOST_BINS
from rankgrove.errors import DataError
from tests.cluster.test_files import model_bytes


def write_parts(folder):
    draw = np.random.default_rng(1)
    names = ["acme", "bolt", "core", "dyne"]
    effect = draw.normal(size=450)
    files = []
    for i in range(3):
        n = 800
        shop = draw.integers(0, 450, n)
        frame = pandas.DataFrame(
            {
                "qid": np.arange(n) // 8 + 100 * i,
                "label": np.round(np.exp(effect[shop] / 2 + draw.normal(size=n) / 2), 3),
                "x": draw.normal(size=n),
                "brand": draw.choice(names[i : i + 2], n),
                "shop": [f"shop {number}" for number in shop],
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
    assert sum(here.bins(whole).binner.splits_by_set) == 1  # shops are ordered by labels
    assert len(whole.categories[2]) > MOST_BINS
    assert {1, 2} <= set(here.ensemble_.feature[here.ensemble_.set_of >= 0].tolist())
    assert model_bytes(there, tmp_path) == model_bytes(here, tmp_path)
    pandas.read_parquet(files[2]).assign(brand=1.0).to_parquet(files[2])
    with pytest.raises(DataError, match=r"'brand' is categorical in .*0\.parquet, and in .*2\.par"):
        rg.LambdaMART(**settings).fit_files(files, cluster=client)
