"""``rankgrove reproduce`` as a user types it: own data, other data, results that are kept."""

from __future__ import annotations

import pytest

from tests.command import run_here as run
from tests.papers.running import tiny_collection


@pytest.fixture
def mine(tmp_path):
    return tiny_collection(tmp_path / "mine")


def test_own_data(mine, tmp_path):
    out = tmp_path / "out"
    command = ["reproduce", "ganjisaffar2011-figure3", "--data", mine, "--out", out]
    table, said = run(*command)
    assert "mine, fold 1: validation scores of two models" in table
    assert "Data: mine.\n" in table  # and nothing is measured
    assert "  fold 1\n" in said
    names = {path.name for path in out.iterdir()}
    assert {f"ganjisaffar2011-figure3-mine-small.{e}" for e in ("jsonl", "md", "png")} == names
    again, said = run(*command)
    assert again == table
    assert "  fold 1\n" not in said  # known already
    with open(mine / "S1.txt", "a") as more:
        more.write("1 qid:another 1:1\n")
    _, refused = run(*command, status=2)
    assert "holds other results: there data was 'mine" in refused


def test_what_does_not_run_on_the_data_is_left_out_or_refused(mine):
    _, refused = run("reproduce", "wu2010-table1", "--data", mine, status=2)
    assert "cannot run on a collection in LETOR form" in refused
    assert "ganjisaffar2011-table4" in refused
    table, said = run("reproduce", "yue2007", "--data", mine)
    assert "yue2007-trec: left out, it does not run on mine" in said
    assert "### mine: 60 queries" in table
    assert "Data: mine. Measures: convention letor." in table


def test_a_folder_without_data(tmp_path):
    _, refused = run("reproduce", "yue2007", "--data", tmp_path, status=2)
    assert "holds no data set" in refused


@pytest.mark.slow
def test_a_cluster_that_is_not_there(mine):
    pytest.importorskip("distributed", reason="dask is not installed")
    gone = "tcp://127.0.0.1:1"
    _, refused = run("reproduce", "yue2007-letor", "--data", mine, "--cluster", gone, status=2)
    assert gone in refused


def test_an_interrupted_run_says_what_is_kept(mine, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "rankgrove_papers.ganjisaffar2011.tuning_and_pruning._two_models", interrupt
    )
    command = ["reproduce", "ganjisaffar2011-figure3", "--data", mine]
    _, said = run(*command, status=130)
    assert "nothing was kept; with --out FOLDER" in said
    _, said = run(*command, "--out", tmp_path / "out", status=130)
    assert "the results finished so far are in" in said
    assert "the same command continues" in said


def test_the_list_says_what_takes_data():
    table, _ = run("reproduce")
    lines = {line.split()[0]: line for line in table.splitlines()}
    assert lines["ganjisaffar2011-table4"].endswith("[--data: a collection in LETOR form]")
    assert lines["yue2007-trec"].endswith("[--data: TREC runs and qrels]")
    assert "--data" not in lines["wu2010-table1"]
