from __future__ import annotations

import gzip
import math
import pickle

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from rankgrove.data.queries import QueryDataset
from rankgrove.data.trec import (
    Qrels,
    Run,
    dataset_from_runs,
    pool,
    read_qrels,
    read_run,
    write_run,
)
from rankgrove.errors import DataError, ParameterError, ParseError

RUN = "1 Q0 d1 1 2.5 mine\n1 Q0 d2 2 -1e-3 mine\n\n2\tQ0\td1\t1\t3\tmine\r\n"
QRELS = "1 0 d1 2\n1 0 d3 -2\n2 0 d9 0\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "run.txt").write_text(RUN, newline="")
    (tmp_path / "packed").write_bytes(gzip.compress(RUN.encode()))
    (tmp_path / "qrels.txt").write_text(QRELS)
    return tmp_path


# -- reading ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run.txt", "packed"])
def test_read_run(files, name):
    run = read_run(files / name)
    assert run == {"1": {"d1": 2.5, "d2": -0.001}, "2": {"d1": 3.0}}
    assert run.name == "mine"
    assert read_run(files / name, name="other").name == "other"
    assert repr(run) == "Run('mine', 2 queries, 3 documents)"
    assert pickle.loads(pickle.dumps(run)).name == "mine"


def test_read_qrels(files):
    qrels = read_qrels(str(files / "qrels.txt"))
    assert qrels == {"1": {"d1": 2, "d3": -2}, "2": {"d9": 0}}
    assert repr(qrels) == "Qrels(2 queries, 3 judgements)"


def test_a_byte_order_mark_is_not_part_of_the_first_id(tmp_path):
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbf" + QRELS.encode())
    assert "1" in read_qrels(tmp_path / "f")


GOOD = b"1 Q0 d1 1 2.5 t\n"


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (GOOD + b"1 Q0 d2 2 2.5\n", 2, "6 fields.*Got 5"),
        (GOOD + b"1 Q0 d two 2 2.5 t\n", 2, "6 fields.*Got 7"),
        (GOOD + b"\n1 Q0 d2 2 high t\n", 3, "a finite number. Got 'high'"),
        (b"1 Q0 d2 2 nan t\n", 1, "a finite number. Got 'nan'"),
        (b"1 Q0 d2 2 inf t\n", 1, "a finite number"),
        (b"1 Q0 d2 2 1_0 t\n", 1, "a finite number"),
        (GOOD + GOOD, 2, "'d1' appears twice in query '1'"),
        (b"1 Q0 d1 1 2.5 t\r1 Q0 d2 2 1.5 t\r", 1, "carriage return without a line feed"),
        (GOOD + b"# made today\r1 Q0 d2 2 1.5 t\n", 2, "carriage return without a line feed"),
        (b"", None, "no lines"),
        (b" \n\n", None, "no lines"),
        (GOOD + b"1 Q0 d\xff 1 2.5 t\n", 2, "not a text file.*0xff"),
        (GOOD + b"1 Q0 d\0 1 2.5 t\n", 2, "not a text file.*byte 0"),
        (gzip.compress(GOOD * 50, mtime=0)[:-9], None, "end too early"),
        (gzip.compress(GOOD, mtime=0)[:10] + b"\xff" * 30, None, "damaged"),
        (gzip.compress(GOOD, mtime=0)[:-8] + b"\0" * 8, None, "damaged"),
    ],
)
def test_bad_runs(tmp_path, content, line, message):
    path = tmp_path / "bad.run"
    path.write_bytes(content)
    with pytest.raises(ParseError, match=message) as caught:
        read_run(path)
    assert caught.value.line == line
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 0 d1\n", ":1: a line must have 4 fields, 'qid iteration docid grade'"),
        ("1 0 d1 1\n1 0 d2 1.5\n", ":2: a grade must be a whole number. Got '1.5'"),
        ("1 0 d1 1\n1 0 d1 1\n", ":2: the document 'd1' appears twice"),
        ("1 0 d1 1\r1 0 d2 1\r", ":1: lines end in a carriage return without a line feed"),
    ],
)
def test_bad_qrels(tmp_path, content, message):
    (tmp_path / "q").write_bytes(content.encode())
    with pytest.raises(ParseError, match=message):
        read_qrels(tmp_path / "q")


def test_a_missing_file(tmp_path):
    with pytest.raises(ParseError, match="there is no such file"):
        read_run(tmp_path / "none")


def test_comments_and_long_tags(tmp_path):
    path = tmp_path / "x.run"
    path.write_text("# made today\n7 Q0 d2 1 1.5 my  BM25 run\n  # more\n7 Q0 d1 2 0.5 other\n")
    run = read_run(path)
    assert run == {"7": {"d2": 1.5, "d1": 0.5}}
    assert run.name == "my BM25 run"
    write_run(run, tmp_path / "y.run")
    assert read_run(tmp_path / "y.run").name == "my_BM25_run"
    path.write_text("#qid 0 docid grade\n7 0 d1 1\n")
    assert read_qrels(path) == {"7": {"d1": 1}}


# -- writing ----------------------------------------------------------------------------------

IDS = st.text("abcé0", min_size=1, max_size=3)
SCORES = st.floats(allow_nan=False, allow_infinity=False)
RUNS = st.dictionaries(IDS, st.dictionaries(IDS, SCORES, min_size=1), min_size=1, max_size=4)


@given(RUNS, st.booleans())
@settings(max_examples=50)
def test_what_is_written_is_read_back(tmp_path_factory, run, packed):
    path = tmp_path_factory.mktemp("runs") / ("r.gz" if packed else "r")
    write_run(Run(run, name="x"), path)
    assert (path.read_bytes()[:2] == b"\x1f\x8b") == packed
    again = read_run(path)
    assert again == run
    assert again.name == "x"
    for documents in again.values():
        best_first = sorted(documents.items(), key=lambda d: (d[1], d[0].encode()), reverse=True)
        assert list(documents.items()) == best_first


def test_write_scores_of_a_data_set(tmp_path):
    path = tmp_path / "out"
    data = QueryDataset(None, [0, 1, 2, 0], qid=[2, 1, 2, 1])
    write_run((data, [1.0, -np.inf, 3.0, 0.5]), path)
    assert path.read_text() == (
        "2 Q0 row2 1 3.0 rankgrove\n2 Q0 row0 2 1.0 rankgrove\n1 Q0 row3 1 0.5 rankgrove\n"
    )
    named = QueryDataset(None, [0, 1], qid=[1, 1], docid=["a", None])
    write_run((named, [1, 2]), path, name="me")
    assert path.read_text() == "1 Q0 row1 1 2.0 me\n1 Q0 a 2 1.0 me\n"


@pytest.mark.parametrize(
    ("run", "name", "message"),
    [
        ({"1": {"a b": 1.0}}, None, "document id.*'a b'"),
        ({"1": {"": 1.0}}, None, "document id"),
        ({"1 2": {"a": 1.0}}, None, "query id"),
        ({"1": {"a": 1.0}}, "my run", "run name"),
        ({"1": {"a": math.nan}}, None, "has the score nan"),
        ({"1": {"a": math.inf}}, None, "has the score inf"),
        ((QueryDataset(None, [0, 0], qid=[1, 1], docid=["a", "a"]), [1, 2]), None, "twice"),
        ((QueryDataset(None, [0, 0], qid=[1, 1]), [1]), None, "one number per row"),
    ],
)
def test_a_failed_write_leaves_the_old_file(tmp_path, run, name, message):
    path = tmp_path / "out"
    path.write_text("old")
    with pytest.raises(DataError, match=message):
        write_run(run, path, name=name)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["out"]


def test_packed_bytes_do_not_depend_on_the_clock(tmp_path, monkeypatch):
    run = Run({"1": {"a": 1.0}})
    for name, now in [("a.gz", 1.0), ("b.gz", 2e9)]:
        monkeypatch.setattr("time.time", lambda now=now: now)
        write_run(run, tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_an_unwritable_place(tmp_path):
    with pytest.raises(DataError, match="cannot be written"):
        write_run(Run({"1": {"a": 1.0}}), tmp_path / "no" / "such" / "folder")


def test_arguments_in_the_wrong_order(tmp_path):
    run = Run({"1": {"a": 1.0}})
    for path in (tmp_path / "out", str(tmp_path / "out")):
        with pytest.raises(ParameterError, match=r"Write write_run\(run, path\)"):
            write_run(path, run)
    data = QueryDataset(None, [0], qid=[1])
    for wrong in (data, [1.0], (data,), (1, 2), None):
        with pytest.raises(
            ParameterError, match=r"must be a Run, a mapping \{.*\{.*\}\} or a pair"
        ):
            write_run(wrong, tmp_path / "out")
    with pytest.raises(ParameterError, match="'path' parameter of write_run must be a path"):
        write_run(run, 7)
    assert not list(tmp_path.iterdir())


# -- what runs and judgements may hold --------------------------------------------------------

BAD_RUNS = [
    ({"7": {"a": 1.0, "b": "x"}}, "'b' of query '7' has the score 'x': scores must be finite"),
    ({"7": {"a": [1.0]}}, r"'a' of query '7' has the score \[1.0\]"),
    ({"7": {"a": None}}, "has the score None"),
    ({"7": {"a": math.nan}}, "'a' of query '7' has the score nan"),
    ({"7": {"a": np.float64("nan")}}, "has the score nan"),
    ({"7": {"a": math.inf, "b": -math.inf}}, "'a' of query '7' has the score inf"),
    ({"7": {"a": 10**400}}, "'a' of query '7' has the score 1000"),
    ({"7": {"b": 1.5, "a": 10**400}}, "'a' of query '7' has the score 1000"),
    ({"7": [1.0]}, "The query '7' of a run must have a mapping.*Got list"),
    ({"7": 1.0}, "The query '7' of a run must have a mapping.*Got float"),
]
BAD_QRELS = [
    ({"7": {"a": 1, "b": "good"}}, "'b' of query '7' has the grade 'good': grades must be finite"),
    ({"7": {"a": math.nan}}, "has the grade nan"),
    ({"7": {"a": -math.inf}}, "has the grade -inf"),
    ({"7": ["a"]}, "The query '7' of qrels must have a mapping"),
]


@pytest.mark.parametrize(("scores", "message"), BAD_RUNS)
def test_bad_scores(tmp_path, scores, message):
    good = {"7": {"a": 1}}
    for use in (
        Run,
        lambda run: Run(run.items()),
        lambda run: pool(run, good),
        lambda run: write_run(run, tmp_path / "out"),
    ):
        with pytest.raises(DataError, match=message):
            use(scores)
    with pytest.raises(DataError, match=f"{message}|A run must be"):
        dataset_from_runs([scores], good)
    run = Run({"7": {"a": 1.0}})
    run.update(scores)  # past the constructor
    with pytest.raises(DataError, match=message):
        pool(run, good)


@pytest.mark.parametrize(("grades", "message"), BAD_QRELS)
def test_bad_grades(grades, message):
    run = {"7": {"a": 1.0}}
    for use in (
        Qrels,
        lambda qrels: pool(run, qrels),
        lambda qrels: dataset_from_runs([run], qrels),
    ):
        with pytest.raises(DataError, match=message):
            use(grades)


def test_not_mappings():
    for wrong in (7, "run", [1, 2]):
        with pytest.raises(DataError, match="A run must be a mapping"):
            Run(wrong)
        with pytest.raises(DataError, match="A run must be a mapping"):
            pool(wrong, {})
        with pytest.raises(DataError, match="Qrels must be a mapping"):
            Qrels(wrong)
        with pytest.raises(DataError, match="Qrels must be a mapping"):
            pool({}, wrong)


def test_numbers_of_all_kinds():
    scores = {
        "i": 1,
        "n": np.float32(0.5),
        "m": np.int64(3),
        "r": -math.inf,
        "h": 1e308,
        "g": 1e308,
    }
    assert Run({"7": scores})["7"] == scores
    assert Qrels({"7": {"a": np.int64(2), "b": 1.0}})["7"] == {"a": 2, "b": 1}
    assert Run() == Qrels() == {}


# -- pools ------------------------------------------------------------------------------------


def rank_measures(dataset, scores):
    """P@5, reciprocal rank and AP of retrieved documents, ties by row order: a naive oracle."""
    out = {}
    for i, qid in enumerate(dataset.query_ids.tolist()):
        rows = slice(dataset.query_ptr[i], dataset.query_ptr[i + 1])
        y, s = dataset.y[rows], scores[rows]
        order = np.argsort(-s, kind="stable")
        good = [bool(y[r] > 0) for r in order if s[r] > -np.inf]
        hits = np.cumsum(good)
        precision = [hits[r] / (r + 1) for r in range(len(good)) if good[r]]
        n_good = int((y > 0).sum())
        out[qid] = {
            "P_5": sum(good[:5]) / 5,
            "recip_rank": 1 / (good.index(True) + 1) if any(good) else 0.0,
            "map": sum(precision) / n_good if n_good else 0.0,
        }
    return out


def assert_as_trec_eval(run, qrels):
    dataset, scores = pool(run, qrels)
    evaluator = pytrec_eval.RelevanceEvaluator(Qrels(qrels), {"P.5", "recip_rank", "map"})
    peer = evaluator.evaluate(Run(run))
    ours = rank_measures(dataset, scores)
    assert ours.keys() == peer.keys()
    for qid, values in peer.items():
        assert ours[qid] == pytest.approx(values, abs=1e-12)


# Scores that differ as float64 and mostly not as float32, beyond its range too.
CLOSE = st.sampled_from([1.0, 1 + 1e-9, 1 - 1e-9, 1 + 1e-6, -1e300, -2e300, 1e300, 0.0])
DOCS = st.sampled_from(["a", "b", "c", "é", "z", "Z", "aa", "10", "9"])


@given(
    st.dictionaries(st.sampled_from("123"), st.dictionaries(DOCS, CLOSE, min_size=1), min_size=1),
    st.dictionaries(st.sampled_from("123"), st.dictionaries(DOCS, st.integers(0, 2), min_size=1)),
)
def test_pool_ranks_as_trec_eval(run, qrels):
    if not run.keys() & qrels.keys():
        with pytest.raises(DataError, match="no query in common"):
            pool(run, qrels)
        return
    assert_as_trec_eval(run, qrels)


def test_pool_of_incomplete_runs():
    run, qrels = {"2": {"a": 1.0}}, {"1": {"x": 1, "y": 0}, "2": {"b": 1}}
    dataset, scores = pool(run, qrels)
    assert dataset.qid.tolist() == ["2", "2"]
    assert scores.tolist() == [-math.inf, 1.0]
    dataset, scores = pool(run, qrels, complete=True)
    assert dataset.qid.tolist() == ["1", "1", "2", "2"]
    assert dataset.docid.tolist() == ["y", "x", "b", "a"]
    assert scores.tolist() == [-math.inf] * 3 + [1.0]


# -- runs as features -------------------------------------------------------------------------


@pytest.fixture
def runs():
    return [
        Run({"1": {"a": 3.0, "b": 2.0}, "2": {"a": 5.0}, "9": {"a": 0.5}}, name="x"),
        Run({"1": {"b": -1.0, "c": -2.0}, "9": {"a": -7.0}}, name="x"),
    ]


QRELS_OF_RUNS = Qrels({"2": {"a": 1}, "1": {"a": -2, "d": 4}, "3": {"a": 1}})


def test_runs_become_features(runs):
    data = dataset_from_runs(runs, QRELS_OF_RUNS)
    assert data.feature_names == ("x", "x_2")
    assert data.qid.tolist() == ["2", "1", "1", "1"]
    assert data.docid.tolist() == ["a", "c", "b", "a"]
    assert data.y.tolist() == [1, 0, 0, -2]
    # Run 2 has nothing for query 2: its smallest score anywhere stands in.
    assert data.X.tolist() == [[5, -7], [2, -2], [2, -1], [3, -2]]


def test_absent_scores_may_be_missing(runs):
    data = dataset_from_runs(runs, QRELS_OF_RUNS, absent="missing")
    nan = math.nan
    expected = [[5, nan], [nan, -2], [2, -1], [3, nan]]
    assert np.array_equal(data.X, np.array(expected, np.float32), equal_nan=True)


def test_unjudged_documents_may_be_dropped(runs):
    data = dataset_from_runs({"first": runs[0], "second": runs[1]}, QRELS_OF_RUNS, unjudged="drop")
    assert data.docid.tolist() == ["a", "a"]
    assert data.feature_names == ("first", "second")
    # The minimum is over what the run retrieved, dropped documents too.
    assert data.X.tolist() == [[5, -7], [3, -2]]


def test_features_named_by_files_where_tags_clash(tmp_path, runs):
    for name, run in zip(["bm25.run", "ql.run.gz"], runs, strict=True):
        write_run(run, tmp_path / name)
    data = dataset_from_runs([tmp_path / "bm25.run", str(tmp_path / "ql.run.gz")], QRELS_OF_RUNS)
    assert data.feature_names == ("bm25.run", "ql.run")
    assert dataset_from_runs(tmp_path / "bm25.run", QRELS_OF_RUNS).feature_names == ("x",)


def test_names_stay_distinct():
    one = {"1": {"a": 1.0}}
    runs = [Run(one, name=name) for name in ["x", "x_2", "x", "x"]]
    names = dataset_from_runs(runs, {"1": {"a": 1}}).feature_names
    assert names == ("x", "x_2", "x_3", "x_4")


@pytest.mark.parametrize(
    ("runs", "options", "message"),
    [
        ([], {}, "at least one run"),
        ([Run({"7": {"a": 1.0}})], {}, "No documents are left"),
        ([Run({"1": {"zz": 1.0}})], {"unjudged": "drop"}, "No documents are left"),
        ([Run({"1": {}}, name="e")], {}, "'e' has no documents"),
        ({"1": {"a": 1.0}}, {}, "must have a mapping"),
        ([3], {}, "As run, give a mapping"),
        ([Run({"1": {"a": 1e300}})], {}, "float32"),
        ([Run({"1": {"a": 1.0}})], {"absent": "mni"}, "did you mean 'min'"),
        ([Run({"1": {"a": 1.0}})], {"unjudged": "keep"}, "'irrelevant', 'drop'"),
    ],
)
def test_bad_runs_as_features(runs, options, message):
    with pytest.raises(ValueError, match=message):
        dataset_from_runs(runs, {"1": {"a": 1}}, **options)


# -- real data --------------------------------------------------------------------------------


def test_web_track_runs_as_features(data_dir):
    folder = data_dir / "trec-web2012"
    paths = sorted(folder.glob("*.results-*.txt.gz"))
    data = dataset_from_runs(paths, folder / "qrels.web.151-200.txt.gz")
    assert (data.n_queries, data.n_features) == (50, 8)
    assert data.query_ids[0] == "151"
    assert data.y.min() == -2
    assert np.isfinite(data.X).all()
    judged = dataset_from_runs(paths, folder / "qrels.web.151-200.txt.gz", unjudged="drop")
    assert judged.n_rows < data.n_rows


def test_pool_of_real_runs(data_dir):
    folder = data_dir / "trec-eval-test"
    run, qrels = read_run(folder / "results.test.gz"), read_qrels(folder / "qrels.test.gz")
    assert_as_trec_eval(run, qrels)
    dataset, scores = pool(run, qrels)
    # As trec_eval's own output for these files has it.
    assert np.isfinite(scores).sum() == 1500
    means = [value["map"] for value in rank_measures(dataset, scores).values()]
    assert np.mean(means) == pytest.approx(0.1785, abs=5e-5)
    web = data_dir / "trec-web2012"
    qrels = read_qrels(web / "qrels.web.151-200.txt.gz")
    positive = {q: {d: max(g, 0) for d, g in docs.items()} for q, docs in qrels.items()}
    assert_as_trec_eval(read_run(web / "ql.results-catb.txt.gz"), positive)
