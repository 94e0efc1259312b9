"""Results as tables of pandas, polars and pyarrow."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.frames import Tabular, write_columns

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


def as_dict(table):
    """Return the columns of any table as lists."""
    if isinstance(table, pd.DataFrame):
        table = table.reset_index() if table.index.names != [None] else table
        return {name: table[name].tolist() for name in table}
    if isinstance(table, pl.DataFrame):
        return table.to_dict(as_series=False)
    return table.to_pydict()


@pytest.fixture
def results(data, model):
    other = rg.MART(n_trees=2, min_leaf=5).fit(data)
    comparison = rg.compare({"a": model, "b": other}, data, ["ndcg@10", "map"])
    first = data.select([0])
    return {
        "evaluation": (rg.evaluate(model, data, ["ndcg@10", "map"]), data.n_queries),
        "comparison": (comparison["map"], 1),
        "comparisons": (comparison, 2),
        "explanation": (rg.explain(model, first), first.n_rows),
        "importance": (rg.partial_dependence(model, data, data.feature_names[0]), None),
        "two": (rg.partial_dependence(model, data, data.feature_names[:2]), None),
        "data": (data, data.n_rows),
        "ranking": (rg.rank(model, data), data.n_rows),
        "run": (rg.Run({"1": {"a": 1, "b": 0.5}, "2": {}}), 2),
        "qrels": (rg.Qrels({"1": {"a": 1}}), 1),
    }


def test_all_libraries_hold_the_same(results):
    for name, (result, n_rows) in results.items():
        assert isinstance(result, Tabular), name
        columns = {key: list(values) for key, values in result.table_columns().items()}
        tables = [as_dict(t) for t in (result.to_pandas(), result.to_polars(), result.to_arrow())]
        for table in tables:
            assert list(table) == list(columns), name
            assert n_rows in (None, len(next(iter(table.values())))), name
            for key, values in columns.items():
                for ours, theirs in zip(values, table[key], strict=True):
                    both_null = pd.isna(ours) and pd.isna(theirs)
                    assert both_null or ours == theirs, (name, key)


def test_pandas_has_the_ids_as_its_index(results):
    indexes = {name: one.to_pandas().index.names for name, (one, _) in results.items()}
    assert indexes["evaluation"] == ["qid"]
    assert indexes["explanation"] == ["qid", "document"]
    assert indexes["data"] == [None]


def test_a_data_set_comes_back_from_its_table():
    rng = np.random.default_rng(0)
    first = rg.QueryDataset(
        np.column_stack([rng.normal(size=6), [0, 1, np.nan, 1, 1, 0]]),
        [0, 1, 2, 0, 1, 0],
        ["b", "a", "b", "a", "b", "c"],
        docid=[f"d{i}" for i in range(6)],
        feature_names=["bm25", "brand"],
        weight=np.arange(6.0),
        base_score=rng.normal(size=6),
        categorical={"brand": ["bolt", "acme"]},
        position=[1, 2, 3, 1, 2, 3],
        position_context=list("xyxyxx"),
    )
    roles = {"weight": "weight", "base_score": "base_score", "position": "position"}
    for table in (first.to_pandas(), first.to_polars(), first.to_arrow()):
        again = rg.QueryDataset.from_frame(table, position_context="position_context", **roles)
        for name in ("y", "qid", "docid", "weight", "base_score"):
            assert getattr(again, name).tolist() == getattr(first, name).tolist()
        assert again.feature_names == first.feature_names
        assert np.array_equal(again.column("bm25"), first.column("bm25"))
        assert again.to_pandas()["brand"].tolist()[:2] == ["bolt", "acme"]
        assert pd.isna(again.to_pandas()["brand"][2])
        assert again.positions.place.tolist() == first.positions.place.tolist()


def test_views_and_sparse_data_and_weights_of_queries():
    from scipy.sparse import csr_matrix

    values = np.array([[0, 1.5], [2, 0], [0, 3]])
    whole = rg.QueryDataset(csr_matrix(values), [0, 1, 2], [5, 6, 6], query_weight=[1.0, 2.5])
    frame = whole.select([1]).to_pandas()
    assert frame["f1"].tolist() == [2, 0]
    assert frame["query_weight"].tolist() == [2.5, 2.5]


def test_a_feature_with_the_name_of_another_column():
    data = rg.QueryDataset([[1.0], [2.0]], [0, 1], [1, 1], feature_names=["label"])
    with pytest.raises(rg.DataError, match="'label' has the name of another column"):
        data.to_pandas()


@pytest.mark.parametrize(
    ("method", "package", "extra"),
    [
        ("to_pandas", "pandas", "pandas"),
        ("to_polars", "polars", "polars"),
        ("to_arrow", "pyarrow", "tables"),
    ],
)
def test_an_absent_library(method, package, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(rg.MissingExtraError, match=rf"Run.{method}.*'{package}'.*\[{extra}\]"):
        getattr(rg.Run({"1": {"a": 1.0}}), method)()


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "tsv", "parquet", "arrow"])
def test_written_tables_are_read_again(ending, data, model, tmp_path):
    path = tmp_path / f"ranked.{ending}"
    ranking = rg.rank(model, data, features=True)
    ranking.write(path)
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "arrow": pd.read_feather}
    kind = ending.split(".")[0].replace("tsv", "csv")
    again = read[kind](path, **({"sep": "\t"} if ending == "tsv" else {}))
    assert again["docid"].tolist() == ranking.docid.tolist()
    assert again["score"].tolist() == ranking.score.tolist()
    assert [x if isinstance(x, str) else None for x in again["brand"]] == list(
        ranking.features["brand"]
    )


def test_names_that_are_no_tables(tmp_path):
    with pytest.raises(rg.DataError, match=r"must end in \.parquet, \.csv.*Got .*x\.json"):
        write_columns({"a": [1]}, tmp_path / "x.json", "a ranking")


def test_nothing_optional_is_imported():
    code = (
        "import sys, rankgrove as rg; rg.mlflow, rg.pyterrier, rg.rank, rg.Run({'1': {'a': 1}});"
        "print([n for n in ('mlflow', 'pyterrier', 'pandas', 'polars', 'pyarrow', 'ranx', 'torch',"
        " 'sklearn', 'optuna') if n in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_notebooks_show_them(data, model):
    folds = rg.cross_validate(rg.MART(n_trees=2, min_leaf=5), data, n_folds=2)
    qrels = rg.Qrels({"1": {"a": 2, "b": 0}})
    shown = {
        "Cross-validation": folds,
        "Run &#x27;rankgrove&#x27;": rg.rank(model, data).to_run(),
        "grade 2": qrels,
        "RankedDocuments": rg.rank(model, data),
    }
    for text, result in shown.items():
        assert text in result._repr_html_()
