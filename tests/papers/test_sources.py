"""Where experiments find judged data: the forms of a collection, its name, and what is refused."""

from __future__ import annotations

import gzip
import pickle

import numpy as np
import pytest

import rankgrove as rg
from rankgrove_papers.sources import Collection, Redrawn, Sources, TrecRuns
from tests.papers.running import tiny_collection


def parts(folder):
    return [rg.read_letor(folder / f"S{k}.txt") for k in range(1, 6)]


def same(ours, theirs):
    np.testing.assert_array_equal(ours.X, theirs.X)
    np.testing.assert_array_equal(ours.y, theirs.y)
    assert ours.query_ids.tolist() == theirs.query_ids.tolist()


def test_five_parts_are_letors_folds(tmp_path):
    folder = tiny_collection(tmp_path / "mine")
    (collection,) = Sources.of(folder).collections("mq2008", "ohsumed")
    assert collection.name == "mine"
    assert collection.numbers(2) == range(1, 3)
    for k, expected in zip(collection.numbers(), rg.letor_folds(parts(folder)), strict=True):
        for part, expected_part in zip(collection.fold(k), expected, strict=True):
            same(part, expected_part)
    assert collection.whole().n_queries == 60


def test_queries_divided_anew(tmp_path):
    (collection,) = Sources.of(tiny_collection(tmp_path / "mine")).collections("mq2008")
    orders = []
    for seed in (1, 2):
        folds = [Redrawn(collection, seed).fold(k) for k in range(1, 6)]
        tested = [q for fold in folds for q in fold.test.query_ids.tolist()]
        assert sorted(tested) == sorted(collection.whole().query_ids.tolist())
        for fold in folds:
            ids = [set(part.query_ids.tolist()) for part in fold]
            assert sum(map(len, ids)) == len(set.union(*ids)) == 60
        orders.append(tested)
    assert orders[0] != orders[1]


@pytest.mark.parametrize("name", ["Fold{}", "fold_{}"])
@pytest.mark.parametrize(
    "files",
    [
        ("train.txt", "vali.txt", "test.txt"),
        ("trainingset.txt", "validationset.txt", "testset.txt"),
        ("Train.txt.gz", "valid.gz", "test.txt"),
    ],
)
def test_folders_of_folds(tmp_path, name, files):
    source = tiny_collection(tmp_path / "mine")
    data = parts(source)
    for k in (1, 2):
        folder = tmp_path / "there" / name.format(k)
        folder.mkdir(parents=True)
        for i, file in enumerate(files):
            text = (source / f"S{1 + (k + i) % 5}.txt").read_bytes()
            (folder / file).write_bytes(gzip.compress(text) if file.endswith("gz") else text)
    collection = Sources.of(tmp_path / "there").user_data
    assert collection.name == "there"
    assert list(collection.numbers()) == [1, 2]
    for k in collection.numbers():
        for i, part in enumerate(collection.fold(k)):
            same(part, data[(k + i) % 5])


def test_three_files_are_one_fold(tmp_path):
    folder = tiny_collection(tmp_path / "mine")
    for k, role in enumerate(("train", "vali", "test"), 1):
        (folder / f"S{k}.txt").rename(folder / f"{role}.txt")
    assert list(Sources.of(folder).user_data.numbers()) == [1]


def test_files_of_a_fold_have_the_same_width(tmp_path):
    folder = tiny_collection(tmp_path / "mine")
    (folder / "S5.txt").write_text("1 qid:x 1:1\n0 qid:x 2:1\n")
    collection = Sources.of(folder).user_data
    widths = {part.n_features for k in collection.numbers() for part in collection.fold(k)}
    assert widths == {8}


def test_a_query_in_two_parts_is_refused(tmp_path):
    folder = tiny_collection(tmp_path / "mine")
    (folder / "S5.txt").write_bytes((folder / "S1.txt").read_bytes())
    with pytest.raises(rg.DataError, match="quer"):
        Sources.of(folder)


def test_published_collections_are_known_by_their_sizes(data_dir, tmp_path):
    (tmp_path / "letor").symlink_to(data_dir / "mq2008")
    collection = Sources.of(tmp_path / "letor").user_data
    assert collection.name == "MQ2008"
    assert collection.described(range(1, 3)) == (
        "MQ2008: 784 queries, 15,211 documents, 46 features, 2 of 5 folds"
    )


def test_names_of_several(data_dir):
    sources = Sources.of(data_dir)
    assert sources.user_data is None
    assert [collection.name for collection in sources.collections("mq2008", "ohsumed")] == [
        "MQ2008",
        "OHSUMED",
    ]
    assert sources.trec("trec-web2012").read().n_queries == 50
    assert sources.baseline("RankBoost.MQ2008.txt")
    assert sources.baseline("nothing.txt") is None


def test_trec_runs(tmp_path):
    (tmp_path / "qrels.txt").write_text("1 0 a 1\n1 0 b 0\n2 0 a 0\n2 0 c 1\n")
    (tmp_path / "results-bm25.txt").write_text("1 Q0 a 1 3 x\n2 Q0 c 1 4 x\n")
    (tmp_path / "ql.txt.gz").write_bytes(gzip.compress(b"1 Q0 b 1 3 y\n2 Q0 a 1 4 y\n"))
    (tmp_path / "README").write_text("not a run")
    runs = Sources.of(tmp_path).user_data
    assert isinstance(runs, TrecRuns)
    data = runs.read()
    assert set(data.feature_names) == {"bm25", "ql"}
    assert data.n_queries == 2


def test_only_file_names_travel(tmp_path):
    collection = Sources.of(tiny_collection(tmp_path / "mine")).user_data
    assert len(pickle.dumps(collection)) < 5000
    assert pickle.loads(pickle.dumps(collection)) == collection
    assert collection.about() == collection.about()
    before = collection.about()
    with open(tmp_path / "mine" / "S3.txt", "a") as out:
        out.write("1 qid:new 1:1\n")
    assert collection.about() != before


def test_a_folder_without_data_is_refused(tmp_path):
    with pytest.raises(rg.DataError, match="There is no folder"):
        Sources.of(tmp_path / "nowhere")
    with pytest.raises(rg.DataError, match=r"holds no data set.*S1.txt to S5.txt.*qrels"):
        Sources.of(tmp_path)
    folder = tiny_collection(tmp_path / "mine")
    (folder / "S2.txt").unlink()
    with pytest.raises(rg.DataError, match=r"holds no data set \(of LETOR's parts it lacks S2\)"):
        Sources.of(folder)
    assert isinstance(Sources.of(tiny_collection(folder)).user_data, Collection)


def test_what_is_lacking_is_said(tmp_path):
    folder = tmp_path / "folds"
    for k, files in ((1, ("train.txt", "vali.txt", "test.txt")), (2, ("train.txt",))):
        (folder / f"Fold{k}").mkdir(parents=True)
        for file in files:
            (folder / f"Fold{k}" / file).write_text(f"1 qid:{k}{file} 1:1\n")
    with pytest.raises(rg.DataError, match=r"Fold2 lacks vali.txt, test.txt"):
        Sources.of(folder)
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "qrels.txt").write_text("1 0 a 1\n")
    (runs / "bm25.txt").write_text("1 Q0 a 1 3 x\n")
    with pytest.raises(rg.DataError, match=r"qrels: 1; other files: 1\).*two runs or more"):
        Sources.of(runs)


def test_names_in_any_case(tmp_path):
    tiny_collection(tmp_path / "MQ2008", name="a")
    (collection,) = Sources.of(tmp_path).collections("mq2008")
    assert collection.name == "MQ2008"
