"""Click logs in plots and in the report: what is drawn is what was learned."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.clicks.training_data import log_of_rows
from tests.command import run_here as run
from tests.reporting.blocks import block


@pytest.fixture(scope="module")
def clicked():
    data = rg.make_web(30, n_docs=10, n_features=4, seed=1)
    log, truth = rg.simulate_clicks(data, data.column(1), noise=1.0, sessions=4000, seed=1,
                                    contexts={"device": {"phone": 1.5, "desktop": 0.5}},
                                    return_truth=True)  # fmt: skip
    rows = rg.click_data(log, data, context="device")
    models = {
        method: rg.LambdaMART(n_trees=3, n_leaves=4, position_bias=method).fit(rows)
        for method in ("additive", "ratios", "ips", "affine")
    }
    models["naive"] = rg.LambdaMART(n_trees=3, n_leaves=4).fit(rows)
    return data, log, truth, rows, models


@pytest.fixture(scope="module")
def check(clicked):
    return rg.check_clicks(clicked[1])


def lines_of(figure):
    (axes,) = figure.axes
    return {line.get_label(): np.asarray(line.get_ydata()) for line in axes.lines}


@pytest.mark.parametrize(
    ("method", "column", "shown"),
    [
        ("additive", "bias", lambda bias: np.exp(bias - bias[0])),
        ("ratios", "clicked", lambda ratio: ratio / ratio[0]),
        ("ips", "propensity", lambda propensity: propensity / propensity[0]),
        ("affine", "alpha", lambda alpha: alpha / alpha[0]),
    ],
)
def test_examination_of_rankers(clicked, method, column, shown):
    model = clicked[4][method]
    drawn = lines_of(rg.plot.examination({"it": model}))
    table = model.position_bias_
    assert list(drawn) == [f"it, {context}" for context in table.contexts]
    for c, line in enumerate(drawn.values()):
        assert line == pytest.approx(shown(table.values[column][c]))


def test_examination_of_a_check_with_intervals(check):
    figure = rg.plot.examination(check)
    (line,) = lines_of(figure).values()
    assert line == pytest.approx(check.examination)
    ((edges,),) = [band.get_paths() for band in figure.axes[0].collections]
    at = edges.vertices[edges.vertices[:, 0] == 3, 1]
    assert at.max() == pytest.approx(line[2] * np.exp(1.96 * check.standard_error[2]))
    assert at.min() == pytest.approx(line[2] / np.exp(1.96 * check.standard_error[2]))
    assert figure.axes[0].get_ylim()[0] == 0


def test_examination_of_click_models_the_truth_and_arrays(clicked):
    from matplotlib.figure import Figure

    _, log, truth, _, _ = clicked
    model = rg.PositionBased(context="device").fit(log)
    own = Figure().subplots()
    curves = {"model": model, "truth": truth, "half": 0.5 ** np.arange(10)}
    figure = rg.plot.examination(curves, log, samples=4, ax=own)
    assert figure is own.figure
    drawn = lines_of(figure)
    assert set(drawn) == {"model, phone", "model, desktop", "truth, context 1",
                          "truth, context 2", "half"}  # fmt: skip
    assert drawn["model, phone"] == pytest.approx(drawn["truth, context 1"], abs=0.1)
    edges = model.intervals(log, n=4)
    k = model.context_names_.index("phone")
    band = own.collections[k].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx(edges.high["examination"][k].max(), rel=1e-6)


def test_the_check(check):
    figure = rg.plot.click_check(check)
    assert figure.get_suptitle() == f"Safe: {', '.join(check.safe)}"
    left, right = figure.axes
    assert np.asarray(left.lines[0].get_ydata()) == pytest.approx(check.examination)
    assert [text.get_text() for text in right.get_yticklabels()] == [
        "affine", "ips", "ratios", "additive", "judgements"
    ]  # fmt: skip
    assert right.lines[0].get_xdata()[0] == pytest.approx(check.error / check.bias)


@pytest.mark.parametrize("wrong", ["x", None, {}, {"m": rg.LambdaMART()}, rg.DBN(), [[[1.0]]]])
def test_what_has_no_examination_is_refused(wrong):
    with pytest.raises(rg.ParameterError, match="must be"):
        rg.plot.examination(wrong)
    with pytest.raises(rg.ParameterError, match=r"the result of rg\.check_clicks"):
        rg.plot.click_check(wrong)


# -- the report ------------------------------------------------------------------------------------


def test_the_report_of_a_log(clicked, check):
    data, log, _, _, models = clicked
    shown = block(rg.report(models, data, "ndcg@10", clicks=log).html)["clicks"]
    summary = log.summary()
    assert shown["impressions"] == summary.impressions.tolist()
    assert shown["clicks"] == summary.clicks.tolist()
    assert shown["rate"] == pytest.approx(summary.click_through_rate, rel=1e-3)
    assert shown["safe"] == list(check.safe)
    assert shown["verdict"] == check.verdict
    assert ["sessions", "4,000"] in shown["facts"]
    first, *others = shown["examination"]
    assert first["model"] is None
    assert first["y"] == pytest.approx(check.examination, rel=1e-3)
    assert first["low"][4] < first["y"][4] < first["high"][4]
    assert {one["model"] for one in others} == {"additive", "ratios", "ips", "affine"}
    ips = next(one for one in others if one["name"] == "ips, phone")
    table = models["ips"].position_bias_
    values = table.values["propensity"][table.contexts.index("phone")]
    assert ips["y"] == pytest.approx(values / values[0], rel=1e-3)


def test_the_report_of_rows_is_that_of_their_log(clicked):
    data, log, _, rows, models = clicked
    pages = [
        block(rg.report(models["ips"], data, "ndcg@10", clicks=one).html)["clicks"]
        for one in (log, rows)
    ]
    assert pages[0] == pages[1]
    again = log_of_rows(rows, "test")
    assert again.n_queries == np.unique(log.session_query).size
    np.testing.assert_array_equal(again.position, log.position)
    np.testing.assert_array_equal(again.click, log.click)


def test_rows_in_any_order(clicked):
    rows = clicked[3]
    order = np.random.default_rng(0).permutation(rows.n_rows)
    mixed = rg.QueryDataset(rows.X[order], rows.y[order], rows.qid[order]).with_positions(
        rows.positions.take(order)
    )
    check, other = (rg.check_clicks(log_of_rows(one, "test")) for one in (rows, mixed))
    np.testing.assert_allclose(other.examination, check.examination)
    assert other.strength == pytest.approx(check.strength)


def test_what_cannot_be_checked_is_said(clicked):
    data, _, _, rows, models = clicked
    without = rows.with_positions(rows.positions.place)
    shown = block(rg.report(models["ips"], data, "ndcg@10", clicks=without).html)["clicks"]
    assert shown["safe"] == []
    assert "not known which rows are the same document" in shown["verdict"]
    assert [one["model"] for one in shown["examination"]] == ["LambdaMART", "LambdaMART"]
    one = rg.ClickLog([1, 1], ["a", "a"], ["x", "y"], [1, 2], [0, 1])
    shown = block(rg.report(models["ips"], data, "ndcg@10", clicks=one).html)["clicks"]
    assert "needs a log of at least two sessions" in shown["verdict"]


def test_without_clicks_there_is_no_data(clicked):
    data, _, _, _, models = clicked
    page = rg.report(models["ips"], data, "ndcg@10")
    assert block(page.html)["clicks"] == {}


@pytest.mark.parametrize("wrong", ["log.csv", 3])
def test_clicks_of_a_wrong_kind(clicked, wrong):
    data, _, _, _, models = clicked
    with pytest.raises(rg.ParameterError, match="a ClickLog with sessions"):
        rg.report(models["naive"], data, clicks=wrong)
    with pytest.raises(rg.DataError, match="the data has no positions"):
        rg.report(models["naive"], data, clicks=data)
    with pytest.raises(rg.ParameterError, match="give dataset too"):
        rg.report(models["naive"], clicks=clicked[1])


@pytest.mark.slow
def test_the_command(clicked, tmp_path):
    data, log, _, _, models = clicked
    log.write(tmp_path / "log.csv")
    rg.write_letor(data, tmp_path / "data.txt")
    models["ips"].save(tmp_path / "ips.rg")
    words = ["report", "data.txt", "-s", "ips.rg", "--clicks"]
    run(*words, "log.csv", cwd=tmp_path)
    shown = block((tmp_path / "report.html").read_text())["clicks"]
    assert shown["clicks"] == log.summary().clicks.tolist()
    _, said = run(*words, "no.csv", cwd=tmp_path, status=2)
    assert "no.csv: there is no such file" in said
