"""The SVM-map paper's experiment: its tables, the published figures, and data that is not there."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.experiments import yue2007
from rankgrove.experiments.sources import Sources
from rankgrove.experiments.store import ResultStore
from rankgrove.experiments.study import Study


def small_study(path=None):
    return Study("small", ResultStore(path, {"study": "test"}))


def test_absent_data_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("RANKGROVE_DATA", str(tmp_path))
    with pytest.raises(rg.DataError, match=r"'trec-web2012'.*set RANKGROVE_DATA"):
        yue2007.run_trials(small_study())


def test_a_table_counts_wins_and_tests_them():
    rng = np.random.default_rng(0)
    ours = {str(q): value for q, value in enumerate(rng.random(40))}
    worse = {q: value - 0.01 * (1 + int(q)) for q, value in ours.items()}
    alike = {q: value + (-1) ** int(q) * 0.01 * (1 + int(q)) for q, value in ours.items()}
    lines = yue2007._table(ours, {"worse": worse, "alike": alike}).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells[0] == ["Model", "MAP", "W/L", "p"]
    assert cells[2][:2] == ["SVM-map", f"{math.fsum(ours.values()) / 40:.3f}"]
    assert cells[3][2] == "40/0 **"
    assert cells[4][2] == "20/20"
    assert float(cells[4][3]) > 0.5


def test_small_trials(data_dir, monkeypatch, tmp_path):
    # a part of the real runs, three systems: every cell is kept, and a second run computes nothing
    monkeypatch.setenv("RANKGROVE_DATA", str(data_dir))
    data = Sources().trec("trec-web2012").read()
    assert (data.n_queries, data.n_features, data.n_rows) == (50, 8, 105_636)
    rows = np.concatenate(
        [np.arange(a, a + 60) for a in data.query_ptr[:-1]]
    )  # the first documents of every query
    rows = np.union1d(rows, np.flatnonzero(data.y >= 1))
    part = rg.QueryDataset(
        data.X[rows], data.y[rows], data.qid[rows], feature_names=data.feature_names
    )
    monkeypatch.setattr(
        yue2007,
        "base_functions",
        lambda _, without=None: part if without is None else yue2007._without(part, without),
    )
    monkeypatch.setattr(yue2007, "SYSTEMS", {k: yue2007.SYSTEMS[k] for k in ("SVM-map", "SVM-roc")})
    path = tmp_path / "results.jsonl"
    found = yue2007.run_trials(small_study(path))
    text = found.text
    assert set(found.figures["yue2007-figure2"].lines) == set(part.feature_names)
    assert text.count("| SVM-map") == 4
    assert text.count("| SVM-roc") == 2
    cells = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    trials = [cell["value"] for cell in cells if cell["key"] != "figure 2"]
    assert len(trials) == 2 * 2 * 2
    assert all(len(trial["ap"]) == 35 for trial in trials)
    monkeypatch.setattr(yue2007, "_one_trial", lambda *_: pytest.fail("it is known already"))
    assert yue2007.run_trials(small_study(path)).text == text


@pytest.mark.parametrize("name", yue2007.PUBLISHED)
def test_all_published_files_are_read(data_dir, name):
    lines = (data_dir / "letor4-baselines" / f"{name}.MQ2008.txt").read_text().splitlines()
    figures = yue2007.published_figures(lines)
    for measure in yue2007.LETOR_MEASURES:
        assert len(figures[measure]) == 5


def test_published_figures(data_dir):
    lines = (data_dir / "letor4-baselines" / "AdaRank-MAP.MQ2008.txt").read_text().splitlines()
    figures = yue2007.published_figures(lines)
    assert figures["map"] == [0.4627, 0.4232, 0.4582, 0.5180, 0.5198]
    assert figures["ndcg@10"][0] == 0.2155
    assert figures["p@5"][4] == 0.3567
    assert figures["meanndcg"][2] == 0.4761
    assert set(yue2007.LETOR_MEASURES) <= set(figures)
