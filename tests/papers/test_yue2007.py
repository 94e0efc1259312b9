"""The SVM-map paper's experiment: its tables, the published figures, and data that is not there."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.tuning.result_store import ResultStore
from rankgrove_papers import yue2007
from rankgrove_papers.sources import Sources
from rankgrove_papers.study import Study


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
    findings = yue2007.run_trials(small_study(path))
    text = findings.text
    assert set(findings.figures["yue2007-figure2"].lines) == set(part.feature_names)
    assert text.count("| SVM-map ") == 4
    assert text.count("| SVM-roc ") == 2
    assert text.count("| SVM-map, C |") == text.count("| SVM-roc, C |") == 2
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


# -- the settings are the paper's -----------------------------------------------------------------


def test_trials_are_the_papers():
    # section 5: 50 trials of 10 training, 5 validation and 35 test queries; all queries have
    # every role the same number of times
    assert yue2007.N_TRIALS == 50
    topics = rg.QueryDataset(np.zeros((100, 1)), np.tile([0, 1], 50), np.repeat(np.arange(50), 2))
    assert yue2007._sizes(topics) == (10, 5, 35)
    roles = {"train": {}, "valid": {}, "test": {}}
    for trial in yue2007.random_trials(topics, yue2007.N_TRIALS, *yue2007._sizes(topics)):
        for role, counts in roles.items():
            for qid in getattr(trial, role).query_ids.tolist():
                counts[qid] = counts.get(qid, 0) + 1
    assert [set(counts.values()) for counts in roles.values()] == [{10}, {5}, {35}]


def test_systems_are_the_papers():
    # tables 9 to 11; sections 5 and 5.2.1
    assert yue2007.N_THRESHOLDS == 50  # section 4.2
    assert yue2007.REFERENCE == "SVM-map"
    plain = {"tolerance": 0.1, "max_iterations": 200}
    expected = {
        "SVM-map": (rg.SVMMap, {}),
        "SVM-roc": (rg.SVMRoc, {}),
        "SVM-acc": (rg.SVMAcc, plain),
        "SVM-acc2": (rg.SVMAcc, plain | {"balanced": True}),
        "SVM-acc3": (rg.SVMAcc, plain | {"scaling": "percentile"}),
        "SVM-acc4": (rg.SVMAcc, plain | {"scaling": "query"}),
    }
    systems = {
        name: (ranker, {k: v for k, v in options.items() if k != "C"})
        for name, (ranker, options) in yue2007.SYSTEMS.items()
    }
    assert systems == expected
    assert list(systems) == list(yue2007.PAPER)
    for ranker, options in yue2007.SYSTEMS.values():
        model = ranker(thresholds=yue2007.N_THRESHOLDS, **options)
        model.check_parameters()
        assert ranker is not rg.SVMAcc or model.loss == "hinge"


def fitted(name):
    """Train a system of the paper on graded noise; return it, and what it was trained on."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(400, 3)), (rng.random(400) < 0.2).astype(float)
    data = rg.QueryDataset(X, y, np.repeat(np.arange(4), 100))
    ranker, options = yue2007.SYSTEMS[name]
    params = {**options, "C": 1.0}
    return ranker(thresholds=yue2007.N_THRESHOLDS, **params).fit(data), data


@pytest.mark.parametrize("name", ["SVM-acc3", "SVM-acc4"])
def test_thresholds_of_scaled_features_stand_evenly_between_0_and_1(name):
    model, _ = fitted(name)
    for at, _ in model.linear_.by_feature():
        assert at == pytest.approx(np.arange(50) / 50, abs=1e-6)


def test_thresholds_of_plain_features_cover_their_range():
    model, data = fitted("SVM-acc")
    for (at, _), column in zip(model.linear_.by_feature(), data.X.T, strict=True):
        assert (len(at), at[0]) == (50, column.min())
        assert np.diff(at) == pytest.approx((column.max() - column.min()) / 50, rel=1e-3)


def test_the_cost_ratio_is_that_of_irrelevant_to_relevant_documents():
    # section 5.2.1: a system with the ratio is the plain one on data with repeated documents
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    y = (np.arange(60) % 4 == 0).astype(float)  # three irrelevant for every relevant one
    repeated = np.concatenate([np.arange(60), *[np.flatnonzero(y)] * 2])
    exact = {"C": 1.0, "tolerance": 1e-8, "max_iterations": 100_000, "thresholds": 5}
    models = []
    for name, rows in (("SVM-acc2", np.arange(60)), ("SVM-acc", repeated)):
        data = rg.QueryDataset(X[rows], y[rows], np.zeros(rows.size))
        _, options = yue2007.SYSTEMS[name]
        factor = rows.size / 60  # C is of the mean over documents
        models.append(rg.SVMAcc(**{**options, **exact, "C": factor}).fit(data))
    weights = [model.linear_.weights for model in models]
    assert weights[0] == pytest.approx(weights[1], abs=1e-3)
    plain = rg.SVMAcc(**{**yue2007.SYSTEMS["SVM-acc"][1], **exact}).fit(
        rg.QueryDataset(X, y, np.zeros(60))
    )
    assert np.abs(weights[0] - plain.linear_.weights).max() > 0.05


def test_figures_of_the_paper():
    # tables 9, 10 and 11, their columns TREC 9 and TREC 10
    assert yue2007.PAPER["SVM-map"] == (".242 .236, .290 .287", ".284 .288")
    assert yue2007.PAPER["SVM-acc2"] == (".219 .207, .270 .261", ".267 .258")
    assert yue2007.PAPER["SVM-acc3"] == (".113 .153, .133 .182", ".133 .174")
    assert yue2007.PAPER["SVM-acc4"] == (".155 .155, .233 .238", ".228 .234")


def test_chosen_values_and_the_ends_of_training_are_reported():
    cells = {
        "SVM-map": [{"C": 1e-6, "status": "converged", "valid": [0.2] * 14}] * 4,
        "SVM-acc3": [{"C": 1e7, "status": "iteration limit", "valid": list(range(15))}] * 3
        + [{"C": 0.1, "status": "converged", "valid": [0.1] * 15}],
    }
    text = yue2007._chosen(cells, yue2007.SYSTEMS)
    assert "SVM-acc3, C (75%)" in text
    assert "SVM-map, C (" not in text  # every C ranks alike, so that nothing lies beyond
    assert "0.001 to 1e+07, 15 values" in text
    assert "ended at the limit of passes: SVM-acc3 75%." in text
