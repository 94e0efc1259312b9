"""Tables as bins in files: the types, categories and errors of `read_table`."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

import rankgrove as rg

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")


def table(n: int, seed: int):
    rng = np.random.default_rng(seed)
    shop, number = rng.integers(0, 600, n), np.round(rng.normal(size=n), 3)
    brand = rng.choice(["acme", "bolt", "co,re", "d"], n, p=[0.5, 0.3, 0.1, 0.1])
    y = np.clip(np.round(number + shop % 7 / 4 + (brand == "bolt")), 0, 4)
    return pa.table(
        {
            "qid": [f"q{i}" for i in np.arange(n) // 20],
            "label": y.astype(int),
            "number": pa.array(number, mask=rng.random(n) < 0.1),
            "shop": [f"s{i}" for i in shop],
            "brand": pa.array(brand, mask=rng.random(n) < 0.05),
            "code": rng.integers(0, 9, n),
            "late": [None] * (n - 3) + [1.5, 2.0, 3.0],
            "flag": rng.random(n) < 0.5,
            "w": np.round(rng.random(n) + 0.1, 2),
        }
    )


def write(rows, path):
    name = path.name
    if name.endswith((".csv", ".csv.gz")):
        csv.write_csv(rows, path.with_suffix(".plain"))
        blob = path.with_suffix(".plain").read_bytes()
        path.write_bytes(gzip.compress(blob) if name.endswith(".gz") else blob)
    elif name.endswith(".parquet"):
        parquet.write_table(rows, path, row_group_size=700)
    elif name.endswith(".feather"):
        feather.write_feather(rows, path, chunksize=500)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
            stream.write_table(rows, max_chunksize=400)


FEATURES = ["number", "shop", "brand", "code", "late", "flag"]


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "parquet", "feather", "arrow"])
@pytest.mark.parametrize(
    "reading",
    [{}, {"features": FEATURES, "weight": "w", "categorical": ["code"]}],
    ids=["all", "chosen"],
)
def test_tables(tmp_path, monkeypatch, ending, reading):
    monkeypatch.setattr("rankgrove.rankers.trees.open_binned.LEAST_BLOCK", 3000)
    paths = [tmp_path / f"{name}.{ending}" for name in "tv"]
    for seed, path in enumerate(paths):
        write(table(2400 - 1600 * seed, seed), path)
    of_valid = {name: value for name, value in reading.items() if name != "weight"}
    train, valid = rg.read_table(paths[0], **reading), rg.read_table(paths[1], **of_valid)
    bins = rg.open_binned(paths[0], memory=1 << 16, **reading)
    like = rg.open_binned(paths[1], like=bins, memory=1 << 16)
    assert bins.categories == train.categories
    assert bins.absent == train.absent == "missing"
    assert bins.query_ids.tolist() == train.query_ids.tolist()
    assert (bins.row_keys == train.row_keys).all()
    here = rg.LambdaMART(n_trees=4, row_fraction=0.8).fit(train, valid=valid)
    there = rg.LambdaMART(n_trees=4, row_fraction=0.8).fit(bins, valid=like)
    for model, name in ((here, "here"), (there, "there")):
        model.save(tmp_path / name)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()
    assert here.history_ == there.history_
    assert (here.predict(valid) == there.predict(like)).all()


def told(path, read, **reading):
    with pytest.raises(rg.RankgroveError) as found:
        read(path, **reading)
    return str(found.value)


@pytest.mark.parametrize(
    ("lines", "reading"),
    [
        ({500: "q1,1,oops,1"}, {}),
        ({500: "q1,1,0.5"}, {}),
        ({500: "q1,,0.5,1"}, {}),
        ({500: ",1,0.5,1"}, {}),
        ({500: "q1,1,0.5,unknown"}, {"categorical": {"b": [str(i) for i in range(9)]}}),
        ({}, {"label": "nothing"}),
        ({}, {"features": ["a", "nothing"]}),
        ({500: "q1,1,1e60,1"}, {}),
    ],
)
def test_errors_are_those_of_read_table(tmp_path, monkeypatch, lines, reading):
    monkeypatch.setattr("rankgrove.rankers.trees.open_binned.LEAST_BLOCK", 1000)
    path = tmp_path / "a.csv"
    rows = [lines.get(i, f"q{i // 9},{i % 3},{i}.5,{i % 9}") for i in range(900)]
    path.write_text("\n".join(["qid,label,a,b", *rows]) + "\n")
    expected = told(path, rg.read_table, **reading)
    assert told(path, rg.open_binned, memory=1 << 16, **reading) == expected
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.csv"]


def test_types_of_csv_hold_for_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("rankgrove.rankers.trees.open_binned.LEAST_BLOCK", 100)
    path = tmp_path / "a.csv"
    cells = [
        f"q{i // 9},{i % 3},{i if i < 50 else i + 0.5},{'' if i < 40 else i % 4}" for i in range(90)
    ]
    path.write_text("\n".join(["qid,label,a,b", *cells]))
    train, bins = rg.read_table(path), rg.open_binned(path, memory=1 << 16)
    assert (bins.row_keys == train.row_keys).all()
    assert (bins.bins.codes == rg.LambdaMART().bins(train).codes).all()


def test_an_empty_text_is_a_missing_value(tmp_path):
    paths = [tmp_path / "t.csv", tmp_path / "v.csv"]
    for path, empty, wide in zip(paths, (5, 9), (2, 3), strict=True):
        cells = ["" if i == empty else "abc"[i * i % wide] for i in range(200)]
        rows = [f"{i // 20},{i * 7 % 3},{i * 11 % 17},{cell}" for i, cell in enumerate(cells)]
        path.write_text("\n".join(["qid,label,x,c", *rows]) + "\n")
    train, bins = rg.read_table(paths[0]), rg.open_binned(paths[0])
    assert bins.absent == train.absent == "missing"
    assert rg.open_binned(paths[1], like=bins).absent == "missing"
    for data, name in ((train, "here"), (bins, "there")):
        rg.LambdaMART(n_trees=3).fit(data).save(tmp_path / name)
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()
    paths[1].write_text("qid,label,x,c\n1,0,1,a\n1,1,2,b\n")
    assert rg.open_binned(paths[1], like=bins).absent == "zero"


def test_rare_categories_are_not_missing_values(tmp_path):
    rows = "".join(f"{i // 20},{i * 7 % 3},{i * 11 % 17},c{i % 300}\n" for i in range(400))
    (tmp_path / "a.csv").write_text("qid,label,x,c\n" + rows)
    assert rg.open_binned(tmp_path / "a.csv").absent == "zero"
