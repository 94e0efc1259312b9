"""Columns of tables: a model's own features are found by name, whatever else a table holds."""

from __future__ import annotations

import pytest

import rankgrove as rg
from tests.command import run_here

MODEL = "train table.csv --weight trust --docid doc --set n_trees=3 --threads 1 --quiet --out"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("columns")
    data = rg.make_web(20, n_docs=8, n_features=4, seed=1)
    import pandas as pd

    frame = pd.DataFrame(data.X, columns=["a", "b", "c", "d"]).assign(
        label=data.y, qid=data.qid, trust=1.0, doc=[f"d{i}" for i in range(data.n_rows)]
    )
    frame.to_csv(path / "table.csv", index=False)
    frame.to_parquet(path / "table.parquet")
    frame[["d", "trust", "qid", "b", "label", "a", "c"]].to_csv(path / "turned.csv", index=False)
    frame.rename(columns={"b": "bm25"}).drop(columns="d").to_csv(path / "less.csv", index=False)
    run_here(*MODEL.split(), "web.rg", cwd=path)
    return path


def test_other_columns_are_no_features_of_a_trained_model(folder):
    named = "rank table.csv --model web.rg --features a,b,c,d"
    expected, _ = run_here(*named.split(), cwd=folder)
    for table in ("table.csv", "table.parquet", "turned.csv"):
        scores, _ = run_here("rank", table, "--model", "web.rg", cwd=folder)
        assert scores == expected
    out, _ = run_here("evaluate", "turned.csv", "-s", "web.rg", cwd=folder)
    assert "ndcg@10" in out


def test_missing_columns_are_named(folder):
    _, err = run_here("rank", "less.csv", "--model", "web.rg", cwd=folder, status=2)
    assert "no columns 'b', 'd', which the model web.rg was trained on" in " ".join(err.split())


def test_ranking_needs_no_labels(folder):
    import pandas as pd

    pd.read_csv(folder / "table.csv").drop(columns="label").to_csv(folder / "new.csv", index=False)
    expected, _ = run_here(*"rank table.csv --model web.rg".split(), cwd=folder)
    scores, _ = run_here(*"rank new.csv --model web.rg".split(), cwd=folder)
    assert scores == expected
    _, said = run_here(*"rank new.csv --model web.rg --label grade".split(), cwd=folder, status=2)
    assert "no column 'grade'" in said
    _, said = run_here(*"evaluate new.csv -s web.rg".split(), cwd=folder, status=2)
    assert "in 'label' (--label)" in said
