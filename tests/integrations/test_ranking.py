"""``rg.rank`` and tables of ``rankgrove rank``: documents in the order of scores."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from tests.command import run_here

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("pyarrow")


def naive(data, scores):
    """Return (qid, row, rank) of all documents, by a plain sort."""
    found = []
    for qid in data.query_ids.tolist():
        rows = [row for row in range(data.n_rows) if data.qid[row] == qid]
        rows.sort(key=lambda row: -scores[row])  # stable: equal scores in the order of rows
        found += [(qid, row, place) for place, row in enumerate(rows, start=1)]
    return found


def rows_of(ranking):
    return list(zip(ranking.qid.tolist(), ranking.row.tolist(), ranking.rank.tolist(), strict=True))


class Halves:
    """A model with many equal scores."""

    def predict(self, X):
        return np.round(np.asarray(X)[:, 0])


def scattered(seed=0):
    rng = np.random.default_rng(seed)
    return rg.QueryDataset(
        rng.normal(size=(60, 3)), rng.integers(3, size=60), rng.integers(7, size=60)
    )


@pytest.mark.parametrize("top", [None, 1, 3])
def test_agrees_with_a_plain_sort(top):
    data = scattered()
    ranking = rg.rank(Halves(), data, top=top)
    expected = naive(data, Halves().predict(data.X))
    assert rows_of(ranking) == [one for one in expected if top is None or one[2] <= top]
    assert ranking.score.tolist() == [Halves().predict(data.X)[row] for row in ranking.row]
    assert ranking.docid.tolist() == [f"row{row}" for row in ranking.row]


def test_a_ranker_and_its_top(data, model):
    whole = rg.rank(model, data, features=True)
    assert rows_of(whole) == naive(data, model.predict(data))
    best = rg.rank(model, data, top=3)
    assert rows_of(best) == [one for one in rows_of(whole) if one[2] <= 3]
    assert whole.docid.tolist() == [data.docid[row] for row in whole.row]
    names = [*data.categories[5], None]
    codes = [-1 if np.isnan(code) else int(code) for code in data.column("brand")[whole.row]]
    assert whole.features["brand"].tolist() == [names[code] for code in codes]
    run = whole.to_run("mine")
    assert run.name == "mine"
    assert sum(map(len, run.values())) == data.n_rows
    assert run[str(data.qid[7])][data.docid[7]] == model.predict(data)[7]


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "mapping"])
def test_tables_in_any_order_of_columns(library, data, model):
    frame = data.to_pandas().drop(columns="label")
    frame["unknown"] = "text"
    frame = frame[frame.columns[::-1]]
    table = {
        "pandas": lambda: frame,
        "polars": lambda: pl.from_pandas(frame),
        "arrow": lambda: pl.from_pandas(frame).to_arrow(),
        "mapping": lambda: {name: frame[name].to_numpy() for name in frame},
    }[library]()
    ranking = rg.rank(model, table)
    assert ranking.to_pandas().equals(rg.rank(model, data).to_pandas())


def test_rankers_that_scale_within_queries(scaled):
    ranker, data = scaled
    frame = data.to_pandas().rename(columns={"qid": "query", "docid": "document"})
    ranking = rg.rank(ranker, frame, qid="query", docid="document")
    assert ranking.to_pandas().equals(rg.rank(ranker, data).to_pandas())


def test_models_without_names():
    data = scattered()
    model = rg.MART(n_trees=3, min_leaf=5).fit(data)
    expected = rows_of(rg.rank(model, data))
    frame = data.to_pandas().drop(columns="label")
    assert rows_of(rg.rank(model, frame[["f3", "f1", "qid", "f2"]])) == expected
    renamed = frame.rename(columns={"f1": "a", "f2": "b", "f3": "c"})
    assert rows_of(rg.rank(model, renamed)) == expected
    with pytest.raises(rg.DataError, match=r"3 features without names.* 2 columns"):
        rg.rank(model, renamed.drop(columns="a"))


def test_bad_input(data, model):
    frame = data.to_pandas()
    with pytest.raises(rg.DataError, match=rf"lacks '{frame.columns[3]}'.*nulls"):
        rg.rank(model, frame.drop(columns=frame.columns[3]))
    with pytest.raises(rg.DataError, match="no column 'query' for the query ids"):
        rg.rank(model, frame, qid="query")
    with pytest.raises(rg.DataError, match="no column 'doc' for the document ids"):
        rg.rank(model, frame, docid="doc")
    with pytest.raises(rg.DataError, match="the table has no rows"):
        rg.rank(model, frame.iloc[:0])
    with pytest.raises(rg.DataError, match=r"takes a QueryDataset, or a pandas.*Got ndarray"):
        rg.rank(model, np.zeros((3, 6)))
    with pytest.raises(rg.ParameterError, match="'top' parameter of rank"):
        rg.rank(model, data, top=0)
    twice = rg.QueryDataset([[1.0], [2.0]], [0, 1], [1, 1], docid=["a", "a"])
    with pytest.raises(rg.DataError, match="'a' appears twice"):
        rg.rank(Halves(), twice).to_run()
    named = rg.QueryDataset([[1.0], [2.0]], [0, 1], [1, 1], feature_names=["score"])
    with pytest.raises(rg.DataError, match="'score' has the name of a column"):
        rg.rank(Halves(), named, features=True)


def test_text_and_html(data, model):
    ranking = rg.rank(model, data)
    assert repr(ranking) == f"RankedDocuments({len(ranking)} documents, 20 queries)"
    assert "other documents" in ranking._repr_html_()
    assert (
        "<script"
        not in rg.rank(
            Halves(), rg.QueryDataset([[1.0], [2.0]], [0, 1], [1, 1], docid=["<script>", "b"])
        )._repr_html_()
    )


def test_command(data, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.save("web.rg")
    data.to_pandas().to_csv("test.csv", index=False)
    run_here("rank", "test.csv", "--model", "web.rg", "--out", "ranked.csv", "--top", "2")
    written = pd.read_csv("ranked.csv")
    assert list(written) == ["qid", "docid", "rank", "score", "row"]
    assert written["docid"].tolist() == rg.rank(model, data, top=2).docid.tolist()
    run_here("rank", "test.csv", "--model", "web.rg", "-o", "all.parquet", "--with-features")
    assert "brand" in pd.read_parquet("all.parquet")
    run_here("rank", "test.csv", "--model", "web.rg", "-o", "s.csv", "--format", "scores")
    assert np.loadtxt("s.csv").tolist() == model.predict(data).tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--top", "2"], "--top is for runs and tables"),
        (["--with-features"], "--with-features is for tables"),
        (["--format", "table"], "A table is written to a file"),
        (["--format", "table", "--out", "x.json"], "must end in .parquet"),
    ],
)
def test_command_refuses(options, message, data, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.save("web.rg")
    data.to_pandas().to_csv("test.csv", index=False)
    _, err = run_here("rank", "test.csv", "--model", "web.rg", *options, status=2)
    assert message in err
