"""From the rows of clicks to rankers: files of positions, their contexts, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.data.position_files import read_positions, write_positions
from rankgrove.data.positions import Positions
from tests.command import run_here as run

TRAIN = ("train", "rows.txt", "--set", "n_trees=3", "--set", "n_leaves=4", "--quiet", "--out")
PLACES = ("--position", "rows.txt.positions")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A log with devices, its rows with their positions, and the same rows as a table."""
    path = tmp_path_factory.mktemp("positions")
    data = rg.make_web(10, n_docs=8, n_features=4, seed=1)
    rg.write_letor(data, path / "data.txt")
    log = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=2000, seed=1,
                             contexts={"device": {"phone": 2.0, "desktop": 0.5}})  # fmt: skip
    log.write(path / "log.csv")
    run("clicks", "data", "log.csv", "data.txt", "--context", "device", "--out", "rows.txt",
        cwd=path)  # fmt: skip
    rows = rg.click_data(log, data, context="device")
    names = np.array(rows.positions.names)[rows.positions.context]
    columns = [rows.qid, rows.y, rows.positions.place, names]
    table = zip(*(column.tolist() for column in columns), rows.X.tolist(), strict=True)
    lines = [",".join(map(str, [*first, *last])) for *first, last in table]
    (path / "rows.csv").write_text("\n".join(["qid,label,rank,device,a,b,c,d", *lines]) + "\n")
    return path, log, rows


def test_clicks_data_writes_what_train_reads(folder):
    path, _, rows = folder
    there = read_positions(path / "rows.txt.positions", rows.n_rows)
    np.testing.assert_array_equal(there.place, rows.positions.place)
    both = set(zip(there.pair.tolist(), rows.positions.pair.tolist(), strict=True))
    assert len(both) == np.unique(there.pair).size == np.unique(rows.positions.pair).size
    assert there.names == rows.positions.names
    np.testing.assert_array_equal(there.context, rows.positions.context)


@pytest.mark.parametrize("method", ["ips", "additive"])
def test_the_model_is_that_of_python(folder, method):
    path, _, rows = folder
    run(*TRAIN, f"{method}.rg", *PLACES, "--set", f"position_bias={method}", cwd=path)
    model = rg.load(path / f"{method}.rg")
    other = rg.LambdaMART(n_trees=3, n_leaves=4, position_bias=method).fit(rows)
    assert model.position_bias_.contexts == ("desktop", "phone")
    np.testing.assert_array_equal(model.predict(rows), other.predict(rows))
    for name, values in other.position_bias_.values.items():
        np.testing.assert_array_equal(model.position_bias_.values[name], values)


@pytest.mark.slow
def test_columns_low_memory_and_held_out_sessions(folder):
    path, _, rows = folder
    words = [*TRAIN, "here.rg", *PLACES, "--set", "position_bias=ips", "--valid", "rows.txt"]
    words += ["--valid-position", "rows.txt.positions"]
    run(*words, cwd=path)
    words[words.index("here.rg")] = "low.rg"
    run(*words, "--low-memory", cwd=path)
    assert (path / "here.rg").read_bytes() == (path / "low.rg").read_bytes()
    run(*TRAIN, "share.rg", *PLACES, "--set", "position_bias=ips", "--valid-share", "0.2",
        cwd=path)  # fmt: skip
    assert "held out" in rg.load(path / "share.rg").history_
    words = ["train", "rows.csv", "--position", "rank", "--position-context", "device", "--quiet"]
    words += ["--set", "n_trees=3", "--set", "n_leaves=4", "--set", "position_bias=additive"]
    run(*words, "--out", "table.rg", cwd=path)
    run(*TRAIN, "text.rg", *PLACES, "--set", "position_bias=additive", cwd=path)
    models = [rg.load(path / f"{name}.rg") for name in ("table", "text")]
    assert models[0].feature_names_ == ("a", "b", "c", "d")
    np.testing.assert_array_equal(*(model.predict(rows.X) for model in models))


def test_positions_without_a_correction_are_noted(folder):
    _, said = run(*TRAIN, "plain.rg", *PLACES, cwd=folder[0])
    assert "note: positions are not used without a correction" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--set position_bias=ips", "there are none: give --position"),
        ("--position no.txt --set position_bias=ips", "no.txt: there is no such file"),
        ("--position log.csv --set position_bias=ips", "log.csv:1: write one position per line"),
        ("--position short.txt --set position_bias=ips", "short.txt: 1 position for"),
        ("--position rows.txt.positions --ranker ranksvm", "ranksvm does not correct"),
        ("--position rows.txt.positions --position-context device", "may have a column context"),
        ("--position-context device", "--position-context is used with --position"),
        ("--valid-position x", "--valid-position is used with --position"),
        ("--position rows.txt.positions --valid-position x", "one --valid-position for each"),
        ("--position rows.txt.positions --out rows.txt.positions", "would overwrite"),
    ],
)
def test_mistakes(folder, words, message):
    (folder[0] / "short.txt").write_text("1\n")
    chosen = [*TRAIN, "no.rg", *words.split()]
    _, said = run(*chosen, cwd=folder[0], status=2)
    assert message in said


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n0\n", "f:  ?Positions must be whole numbers from 1 to 10,000. Got 0 in row 1"),
        ("1\n10001\n", "from 1 to 10,000. Got 10001"),
        ("1\n1.5\n", "f:2: a position is a whole number from 1. Got '1.5'"),
        ("1\n\n1\n", "f: 3 positions for 2 rows"),
        ("1\n", "f: 1 position for 2 rows"),
        ("1\t2\n1\n", "f:1: the line has 2 columns, and the file 1: position"),
        ("position\tpair\n1\t2\n1\n", "f:3: the line has 1 column, and the file 2"),
        ("position\tdevice\n1\t2\n", "f:1: write one position per line; or a header"),
        ("pair\n1\n", "f:1: write one position per line; or a header"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    (tmp_path / "f").write_text(text)
    with pytest.raises(rg.ParseError, match=message):
        read_positions(tmp_path / "f", 2)


@given(
    st.lists(st.tuples(st.integers(1, 10_000), st.integers(0, 3), st.integers(0, 2)), min_size=1),
    st.booleans(),
    st.booleans(),
)
def test_what_is_written_is_read(tmp_path_factory, rows, with_pairs, with_contexts):
    place, pair, context = (np.array(column) for column in zip(*rows, strict=True))
    names, codes = np.unique(np.array(["a b", "", "c"])[context], return_inverse=True)
    given = Positions(
        place.astype(np.uint16),
        codes.astype(np.int16) if with_contexts else None,
        tuple(names.tolist()) if with_contexts else ("",),
        pair.astype(np.int32) if with_pairs else None,
    )
    path = tmp_path_factory.mktemp("written") / "p"
    write_positions(path, given)
    read = read_positions(path, len(rows))
    np.testing.assert_array_equal(read.place, place)
    assert (read.pair is not None) == with_pairs
    if with_pairs:  # numbers may be others; what is equal stays equal
        np.testing.assert_array_equal(read.pair[:, None] == read.pair, pair[:, None] == pair)
    if with_contexts and given.names != ("",):
        assert read.names == given.names
        np.testing.assert_array_equal(read.context, codes)


def test_contexts_of_check_fit_and_judge(folder):
    path, log, _ = folder
    out, _ = run("clicks", "check", "log.csv", "--context", "device", "-o", "c.json", cwd=path)
    parts = json.loads((path / "c.json").read_text())["contexts"]
    context = log.contexts["device"]
    phone = log.select(context.codes == context.names.index("phone"))
    assert set(parts) == {"device = desktop", "device = phone"}
    assert parts["device = phone"]["n_clicks"] == phone.n_clicks
    assert "\ndevice = desktop:\n" in out
    out, _ = run("clicks", "fit", "log.csv", "--context", "device", "-o", "f.json", cwd=path)
    found = json.loads((path / "f.json").read_text())["position-based"]
    assert found["contexts"] == ["desktop", "phone"]
    assert found["examination"][0][3] > 1.5 * found["examination"][1][3]
    assert "\nphone:\nposition  examination\n" in out
    words = ["clicks", "judge", "log.csv", "--samples", "0", "--context", "device", "--out"]
    run(*words, "c.csv", cwd=path)
    _, said = run(*words, "q.txt", "--model", "coec", cwd=path, status=2)
    assert "--context device is for --model position-based" in said
