"""The page of an AutoRanker: its figures, its texts, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from sklearn.exceptions import NotFittedError

import rankgrove as rg
from rankgrove.errors import ParameterError
from rankgrove.rankers.auto.leaderboard import Leaderboard
from rankgrove.rankers.inner_rankers import described
from tests.reporting.blocks import block

HOSTILE = "</script><b>&"


@pytest.fixture(scope="module")
def best():
    data = rg.make_web(60, n_docs=10, n_features=5, seed=1)
    return rg.AutoRanker("ndcg@10", n_fits=15, n_threads=1).fit(data)


def test_the_figures_are_those_of_the_search(best, tmp_path):
    page = rg.report(best, out=tmp_path / "auto.html")
    assert (tmp_path / "auto.html").read_text(encoding="utf-8") == page.html
    assert page.summary == best.estimate_text()
    for entry in best.leaderboard_:
        assert f">{entry.value:.4f}</td>" in page.html
        assert f"{entry.low:.4f} – {entry.high:.4f}" in page.html
        if entry.weight > 0.0:
            assert f"{100 * entry.weight:.1f} %" in page.html
            rate = entry.settings["parameters"]["learning_rate"]
            assert f"learning_rate={rate!r}" in page.html
    assert "ndcg@10[papers]" in page.html
    assert "the bars are drawn from" in page.html
    for name, value in best.ways():
        assert f"{name}</th><td>{value:.4f}</td>" in page.html
    steps = block(page.html)["steps"]
    assert [step["fits"] for step in steps] == [5, 10, 15]
    assert [step["best"] for step in steps] == [round(step.best, 6) for step in best.search_]
    assert 'id="failed"' not in page.html


def test_times_that_are_not_known_are_left_out(best, tmp_path):
    assert re.search(r"<td>[0-9.]+ s</td>", rg.report(best).html)
    best.save(tmp_path / "best.rg")  # by a number of fits: the file holds no times
    html = rg.report(rg.load(tmp_path / "best.rg")).html
    assert not re.search(r"<td>[0-9.]+ s</td>", html)
    assert '<th scope="col">time</th>' not in html
    assert {step["seconds"] for step in block(html)["steps"]} == {None}


def test_it_needs_nothing_else_and_reads_no_text_as_markup(best, monkeypatch):
    monkeypatch.setattr(best, "failed_", {HOSTILE: HOSTILE})
    html = rg.report(best, title=HOSTILE).html
    assert "Candidates that could not be trained" in html
    assert html.count("<script") == html.count("</script>") == 2
    assert "<b>&" not in html
    assert not re.findall(r'(?:src|href)="(?!#|data:,")', html)
    assert "url(" not in html
    assert "default-src 'none'" in html


def test_the_parameters_make_the_candidate_again(best, monkeypatch):
    """A preparation has its base inside: both have a parameter `normalise`."""
    net = rg.LambdaRank("map", hidden=(8,), l2=0.1)
    ranker = rg.PreparedRanker(net, normalise="zscore")
    entry = replace(best.leaderboard_[0], settings=described(ranker))
    monkeypatch.setattr(best, "leaderboard_", Leaderboard([entry], "map"))
    code = re.search(r"<code>(rg.*?)</code>", rg.report(best).html)[1]
    again = eval(unescape(code), {"rg": rg})
    assert described(again) == described(ranker)


def test_mistakes(best):
    with pytest.raises(ParameterError, match="needs judged data"):
        rg.report(rg.LambdaMART())
    with pytest.raises(ParameterError, match="needs judged data"):
        rg.report({"a": best})
    with pytest.raises(NotFittedError):
        rg.report(rg.AutoRanker())
