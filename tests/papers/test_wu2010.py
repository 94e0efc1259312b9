"""The experiments run end to end at a size of seconds, and a second run computes nothing."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.tuning.result_store import ResultStore
from rankgrove_papers.catalogue import EXPERIMENTS, chosen
from rankgrove_papers.sources import Sources
from rankgrove_papers.study import Study
from rankgrove_papers.tables import first_round_at
from rankgrove_papers.wu2010 import adaptation, artificial, figure1, web
from rankgrove_papers.wu2010.systems import DEFAULTS
from tests.command import run_here as run
from tests.papers.running import Tiny, run_twice, tiny_collection

pytestmark = pytest.mark.slow


def table_after(text, words):
    """Return the cells of the first table after some words, rows only."""
    lines = text[text.index(words) :].splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.split("|")[1:-1]])
    return rows


@pytest.mark.parametrize(
    "experiment",
    [artificial.EXPERIMENTS[1], *web.EXPERIMENTS],
    ids=lambda experiment: experiment.name,
)
def test_experiments_run_and_are_not_repeated(experiment, tmp_path):
    findings = run_twice(experiment, tmp_path)
    assert "LambdaMART" in findings.text or "optimal" in findings.text
    assert all(name.startswith("wu2010-figure") for name in findings.figures)


def test_names():
    assert [experiment.name for experiment in chosen("wu2010-table1")] == ["wu2010-table1"]
    assert len(chosen("all")) == len(EXPERIMENTS)
    with pytest.raises(rg.ParameterError, match="wu2010-table1"):
        chosen("wu2010-tabel1")


def test_the_command_lists_experiments_and_refuses_others():
    out, _ = run("reproduce")
    assert "wu2010-table1" in out
    _, error = run("reproduce", "nothing", status=2)
    assert "no experiment 'nothing'" in error


def test_the_highest_level_is_reached_by_the_curve_it_is_of():
    for top in np.random.default_rng(0).random(50):
        curve = [0.1 * top, top]
        wanted = artificial.levels(curve[0], top, (0.5, 1))
        assert wanted[0] < wanted[1] <= top < wanted[1] + 0.001
        assert first_round_at(curve, wanted[1]) == 2


def test_gaps_and_distances():
    systems = {"LambdaMART": {m: [0.5, 0.7] for m in artificial.MEASURES}}
    systems["McRank"] = {m: [0.5, 0.6] for m in artificial.MEASURES}
    rows = table_after(artificial.gaps_table({"a": systems}, artificial.PAPER_TABLE_1), "|")
    # Table 1: 87.9 - 83.7, 81.7 - 75.6, 79.6 - 72.2
    assert rows[0] == ["the paper's, Table 1", "+4.2", "", "+6.1", "", "+7.4", ""]
    assert rows[1][:2] == ["a", "+5.00"]
    assert artificial.distance(artificial.PAPER_TABLE_1) == 0
    away = {"LambdaMART": (88.9, 80.7, 79.6), "McRank": (83.7, 75.6, 72.2)}
    assert artificial.distance(away) == pytest.approx(np.sqrt(2 / 6))
    assert artificial.level_row("x", away)[3:] == ["+5.2/+5.1/+7.4", "0.58"]


def test_trees_against_a_baseline():
    curves = {
        "slow": {"test": [0.1, 0.2, 0.3, 0.4]},
        "quick": {"test": [0.2, 0.35, 0.35, 0.35]},
    }
    (row,) = table_after(
        artificial.against_baseline(curves, {"quick": "slow"}, (0.2, 0.3, 0.4)), "|"
    )
    assert row == ["quick", "slow", "2.0", "1.5", "not reached", "-5.00"]
    (row,) = table_after(artificial.against_baseline(curves, {"slow": "quick"}, (0.4,)), "|")
    assert row == ["slow", "quick", "not reached by baseline", "+5.00"]


def test_table_1_shows_every_system_of_every_setting(tmp_path):
    findings = run_twice(artificial.EXPERIMENTS[0], tmp_path)
    cells = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text().splitlines()[1:]]
    cells = {cell["key"]: cell["value"] for cell in cells}
    for labels, n_settings in (("skewed", 3), ("fitted", 3), ("equal", 1)):
        rows = table_after(findings.text, f"Labels {labels}")
        assert len(rows) == 2 * n_settings
        for row in rows:
            values = cells[f"{labels}, {row[1]}, {row[0]}"]["values"]
            means = [100 * np.mean(values[m]) for m in artificial.MEASURES]
            assert [cell.split()[0] for cell in row[2:5]] == [f"{mean:.2f}" for mean in means]
            paper = {"LambdaMART": "87.9/81.7/79.6", "McRank": "83.7/75.6/72.2"}[row[0]]
            assert row[5] == (paper if row[1] == "paper's own, as in Table 1" else "")
    assert sorted(findings.figures) == ["wu2010-figure2-fitted", "wu2010-figure2-skewed"]
    assert all(len(figure.lines) == 4 for figure in findings.figures.values())
    assert [row[0] for row in table_after(findings.text, "The paper's own settings of Table 1 on")][
        1:
    ] == ["skewed", "fitted", "equal"]


# -- web data -----------------------------------------------------------------------------------


class TwoFolds(Tiny):
    """A tiny study of two folds of a collection."""

    def size(self, small, full):
        return 2 if (small, full) == (1, 5) else super().size(small, full)


def run_on_two_folds(experiment, tmp_path):
    """Return an experiment's findings on two folds, and its cells."""
    data = Sources.of(tiny_collection(tmp_path / "mine"))
    path = tmp_path / "results.jsonl"
    findings = experiment.run(TwoFolds("small", ResultStore(path, {"a": 1}), data=data))
    assert "mine: 60 queries, 720 documents, 8 features, 2 of 5 folds" in findings.text
    cells = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return findings, {cell["key"]: cell["value"] for cell in cells}


def test_table_1_of_two_folds_has_all_their_queries(tmp_path, monkeypatch):
    monkeypatch.setitem(web.BM25, "mine", 3)
    findings, cells = run_on_two_folds(web.EXPERIMENTS[0], tmp_path)
    rows = table_after(findings.text, "Test NDCG")
    setting = "paper's own, as in Table 1"
    assert [row[:2] for row in rows if row[1] in (setting, "nothing trained")] == [
        ["LambdaMART", setting],
        ["McRank", setting],
        ["LambdaRank", setting],
        ["BM25 alone", "nothing trained"],
    ]
    assert len(rows) == 8
    for row in rows:
        first, second = (cells[f"fold {k}, {row[0]}, {row[1]}"]["values"] for k in (1, 2))
        for measure, cell in zip(artificial.MEASURES, row[2:5], strict=True):
            assert cell.startswith(f"{100 * np.mean(first[measure] + second[measure]):.2f} (")
        assert bool(row[5]) == (row[1] == setting)
    lines = findings.figures["wu2010-figure2-web"].lines
    assert len(lines) == 4
    both = [cells[f"fold {k}, McRank, {DEFAULTS}"] for k in (1, 2)]
    trees, ndcg = lines["McRank, rankgrove's defaults"]
    np.testing.assert_allclose(ndcg, np.mean([fold["curve"] for fold in both], axis=0))
    assert trees.tolist() == [both[0]["trees a round"] * (k + 1) for k in range(trees.size)]


def test_bm25_is_the_feature_alone_where_it_is_known(tmp_path, monkeypatch):
    monkeypatch.setitem(web.BM25, "mine", 3)
    data = Sources.of(tiny_collection(tmp_path / "mine"))
    study = Tiny("small", ResultStore(None, {}), data=data)
    assert web._bm25(study) == 3
    test = data.user_data.fold(1).test
    expected = rg.evaluate(test.X[:, 2], test, "ndcg@3").per_query["ndcg@3"]
    values = web._one_feature(study, 3, 1)["values"]["ndcg@3"]
    assert values == expected[~np.isnan(expected)].tolist()
    other = Tiny("small", ResultStore(None, {}), data=Sources.of(tiny_collection(tmp_path / "x")))
    assert web._bm25(other) is None
    assert "MQ2008 25" in web._bm25_words(other, None)
    assert "no counterpart" in web._bm25_words(Tiny("small", ResultStore(None, {})), None)


def test_ohsumed_has_bm25_and_its_logarithm_side_by_side(data_dir):
    # OHSUMED's features 41 and 42 are BM25 and log BM25 of title and abstract
    data = Sources(data_dir).collections("ohsumed")[0].whole()
    number = web.BM25["OHSUMED"]
    ndcg = [
        rg.evaluate(data.X[:, column], data, "ndcg@10").mean["ndcg@10"]
        for column in (number - 2, number - 1, number)
    ]
    assert ndcg[1] == pytest.approx(ndcg[2], abs=1e-4)
    assert ndcg[1] != pytest.approx(ndcg[0], abs=1e-2)


def test_figures_3_and_4_of_two_folds(tmp_path):
    findings, cells = run_on_two_folds(web.EXPERIMENTS[1], tmp_path)
    for name, (_, ndcg) in findings.figures["wu2010-figure3-web"].lines.items():
        both = [cells[f"fold {k}, {name}"]["test"] for k in (1, 2)]
        np.testing.assert_allclose(ndcg, np.mean(both, axis=0))
    weights = findings.figures["wu2010-figure4-web"].lines
    assert set(weights) == {name for name in web.STEPS if "optimal" in name}
    for name, (_, alpha) in weights.items():
        assert alpha.tolist() == cells[f"fold 1, {name}"]["alpha"]
        assert alpha.min() >= 0.1
        assert "100" in name or alpha.max() <= 5


# -- adaptation ---------------------------------------------------------------------------------


def test_adaptation_has_the_papers_systems(tmp_path):
    (experiment,) = adaptation.EXPERIMENTS
    text = run_twice(experiment, tmp_path).text
    for task in adaptation.TASKS.values():
        rows = {row[0]: row for row in table_after(text, task.title)}
        for system, figures in task.paper.items():
            assert rows[system][4:] == [f"{value:.2f}" for value in figures]
        assert rows["trees alone"][4:] == ["", "", ""]


def test_backgrounds_are_as_far_away_as_the_papers_baselines():
    # the better a background's own model is for the domain, in the paper, the closer it is here
    study = Study("small", ResultStore(None, {}))
    task = adaptation.TASKS["languages"]
    train, *_ = adaptation._domain(study, task, 0)
    model = rg.LambdaMART(n_trees=60).fit(train)
    ndcg = {}
    for k, background in enumerate(task.backgrounds):
        data = adaptation._background_data(study, task, background, 1 + k)
        data = data.select(np.arange(300))
        ndcg[background.name] = rg.evaluate(model, data, "ndcg@10").mean["ndcg@10"]
    paper = {name: task.paper[name][0] for name in ndcg}
    assert sorted(ndcg, key=ndcg.get) == sorted(paper, key=paper.get)


# -- Figure 1 -----------------------------------------------------------------------------------


def test_every_crossing_is_found_and_no_other():
    rng = np.random.default_rng(0)
    for _ in range(50):
        scores = rng.random((2, 6))
        crossings = figure1._crossings(scores)
        ranks = scores.argsort(axis=1).argsort(axis=1)
        swapped = [
            (i, j)
            for i in range(6)
            for j in range(i + 1, 6)
            if (ranks[0, i] < ranks[0, j]) != (ranks[1, i] < ranks[1, j])
        ]
        assert sorted((i, j) for _, i, j in crossings) == swapped
        for alpha, i, j in crossings:
            both = (1 - alpha) * scores[0] + alpha * scores[1]
            assert both[i] == pytest.approx(both[j])
        assert crossings == sorted(crossings)


def test_figure_1_is_what_sorting_finds(tmp_path):
    (experiment,) = figure1.EXPERIMENTS
    findings = run_twice(experiment, tmp_path)
    lines = findings.figures["wu2010-figure1"].lines
    labels = [float(re.search(r"label (\d)", name)[1]) for name in lines]
    start, end = np.array([y for _, y in lines.values()]).T
    data = rg.QueryDataset(None, labels, qid=[1] * len(labels))
    alphas, ndcg = findings.figures["wu2010-figure1-ndcg"].lines["NDCG@10"]
    rows = table_after(findings.text, "One of")
    before = None
    for row in rows:
        left, right = map(float, row[0].split(" to "))
        for alpha in np.linspace(left, right, 7)[1:-1]:
            scores = (1 - alpha) * start + alpha * end
            order = np.argsort(-scores)
            value = rg.evaluate(scores, data, "ndcg@10").mean["ndcg@10"]
            assert row[1] == " ".join(str(d + 1) for d in order)
            assert row[2] == " ".join(f"{labels[d]:g}" for d in order)
            assert row[3] == f"{value:.4f}"
            assert np.interp(alpha, alphas, ndcg) == pytest.approx(value)
        if before is not None:  # exactly those that cross have changed places
            moved = {d for d, e in zip(before[1].split(), row[1].split(), strict=True) if d != e}
            assert moved == set(re.findall(r"\d+", before[4]))
        before = row
    assert f"{len(rows) - 1} crossings" in findings.text
