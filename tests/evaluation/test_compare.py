"""Comparison: the tests against scipy and brute force, and what they must not depend on."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import rankgrove as rg
from rankgrove.evaluation.compare import paired
from rankgrove.evaluation.significance import holm, paired_t, randomisation, wilcoxon_signed_rank


@pytest.fixture(scope="module")
def systems():
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, 200 * 20)
    data = rg.QueryDataset(None, labels, qid=np.repeat(np.arange(200), 20))
    noise = {"bad": 3.0, "good": 1.5, "same": 1.5}
    return data, {name: labels + rng.normal(size=labels.size) * s for name, s in noise.items()}


def test_against_scipy(systems):
    data, scores = systems
    result = rg.compare(scores, data, "ndcg@10")
    values = {n: rg.evaluate(s, data, "ndcg@10").per_query["ndcg@10"] for n, s in scores.items()}
    assert [(c.system, c.against) for c in result.contrasts] == [("good", "bad"), ("same", "bad")]
    for c in result.contrasts:
        a, b = values[c.system], values[c.against]
        assert c.p_t == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-9)
        assert c.p_wilcoxon == pytest.approx(stats.wilcoxon(a, b).pvalue, rel=1e-9)
        assert c.difference == pytest.approx(np.mean(a - b))
        assert (c.low, c.high) == pytest.approx(
            stats.t.interval(0.95, a.size - 1, np.mean(a - b), stats.sem(a - b))
        )
        assert (c.wins, c.losses, c.ties) == ((a > b).sum(), (a < b).sum(), (a == b).sum())


def test_several_measures(systems, tmp_path):
    data, scores = systems
    found = rg.compare(scores, data, ["ndcg@10", "map"], "letor", n_samples=200)
    assert list(found) == ["ndcg@10", "map"]
    for name, one in found.items():
        alone = rg.compare(scores, data, name, "letor", n_samples=200)
        assert one.to_dict() == alone.to_dict()
        assert str(alone) in str(found)
    found.to_json(tmp_path / "both.json")
    assert list(json.loads((tmp_path / "both.json").read_text())) == ["ndcg@10", "map"]


def test_queries_that_runs_lack():
    qrels = {q: {"a": 1, "b": 0} for q in "123"}
    good = {q: {"a": 2.0, "b": 1.0} for q in "12"}
    poor = {q: {"a": 1.0, "b": 2.0} for q in "123"}
    with pytest.warns(UserWarning, match="good lacks 1 judged query, counted as 0"):
        found = rg.compare({"good": good, "poor": poor}, qrels, "map", "trec")
    assert found.mean == {"good": pytest.approx(2 / 3), "poor": 0.5}
    assert str(found).endswith("good lacks 1 judged query, counted as 0.")
    with pytest.warns(UserWarning, match="left out for all systems"):
        found = rg.compare(
            {"good": good, "poor": poor}, qrels, "map", "trec", missing_queries="drop"
        )
    assert found.mean == {"good": 1.0, "poor": 0.5}
    assert found.query_ids.tolist() == ["1", "2"]


def test_randomisation_enumerates_small_cases():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 9):
        d = rng.normal(0.3, 1, n)
        sums = [abs(np.dot(s, d)) for s in itertools.product([-1, 1], repeat=n)]
        expected = np.mean(np.array(sums) >= abs(d.sum()) - 1e-12)
        assert randomisation(d) == pytest.approx(expected)


@pytest.mark.slow
def test_randomisation_samples_large_cases():
    rng = np.random.default_rng(1)
    d = rng.normal(0.08, 1, 400)
    options = {"n_resamples": 20_000, "random_state": np.random.default_rng(2)}
    theirs = stats.permutation_test((d,), np.mean, permutation_type="samples", **options).pvalue
    ours = randomisation(d)
    assert ours == pytest.approx(theirs, abs=0.01)
    assert ours == randomisation(d, n_threads=1) == randomisation(rng.permutation(d))
    assert ours != randomisation(d, seed=1)
    assert randomisation(np.abs(d)) == pytest.approx(1e-5, rel=1e-3)


def test_thousands_of_queries():
    d = np.random.default_rng(3).normal(0.01, 1, 5000)
    assert 0 < randomisation(d, n_samples=1000) <= 1
    labels = np.tile([1, 0, 0, 0], 3000)
    data = rg.QueryDataset(None, labels, qid=np.repeat(np.arange(3000), 4))
    scores = {name: np.random.default_rng(s).normal(size=12_000) for s, name in enumerate("ab")}
    assert rg.compare(scores, data, "ndcg@10").query_ids.size == 3000


def test_no_difference():
    zeros = np.zeros(30)
    assert paired_t(zeros) == wilcoxon_signed_rank(zeros) == randomisation(zeros) == 1.0
    assert paired_t(np.full(5, 0.5)) == 0.0


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm(p_values):
    adjusted = holm(p_values)
    # the definition: the largest of (m - rank) p over all p-values up to this one
    order = sorted(p_values)
    for p, q in zip(p_values, adjusted, strict=True):
        wanted = max(
            min(1, (len(order) - i) * order[i]) for i in range(len(order)) if order[i] <= p
        )
        assert q == pytest.approx(wanted) or order.count(p) > 1
        assert q >= p


def test_holm_of_a_textbook_case():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


def test_all_pairs_and_output(systems, tmp_path):
    data, scores = systems
    result = rg.compare(scores, data, "map", against="all")
    pairs = [(c.system, c.against) for c in result.contrasts]
    assert pairs == [("good", "bad"), ("same", "bad"), ("same", "good")]
    assert result.contrasts[0].p_t < 1e-6 < 0.01 < result.contrasts[2].p_t
    text = str(result)
    assert "same - good" in text
    assert "Holm-corrected" in text
    assert "convention: papers" in text
    assert json.loads(result.to_json(tmp_path / "c.json"))["mean"] == result.mean
    assert result.to_pandas().shape[0] == 3


def test_queries_that_the_measure_leaves_out():
    data = rg.QueryDataset(None, [1, 0, 0, 0, 2, 1], qid=[1, 1, 2, 2, 3, 3])
    scores = {"a": [1.0, 2, 3, 4, 5, 6], "b": [2.0, 1, 3, 4, 6, 5]}
    result = rg.compare(scores, data, "map")
    assert result.dropped == {2: "all labels equal"}
    assert "2 queries; convention: papers; left out of 3 queries: 1 with all" in str(result)
    assert "left out of 3 queries: 1 with all labels equal" in result._repr_html_()
    assert result.to_dict()["dropped"] == {"2": "all labels equal"}
    assert "left out" not in str(rg.compare(scores, data, "map", "letor"))


def test_runs(tmp_path):
    qrels = rg.Qrels({"1": {"a": 1, "b": 0}, "2": {"a": 1, "b": 0}, "3": {"a": 1}})
    good = rg.Run({"1": {"a": 2.0, "b": 1.0}, "2": {"a": 2.0, "b": 1.0}}, name="good")
    bad = rg.Run(
        {"1": {"a": 1.0, "b": 2.0}, "2": {"a": 2.0, "b": 1.0}, "3": {"b": 1.0}}, name="bad"
    )
    with pytest.warns(UserWarning, match="good lacks 1 judged query"):
        result = rg.compare({"bad": bad, "good": good}, qrels, "map", convention="trec")
    assert result.query_ids.tolist() == ["1", "2", "3"]
    assert result.contrasts[0].difference == pytest.approx(0.5 / 3)


def test_bad_input(systems):
    data, scores = systems
    with pytest.raises(rg.ParameterError, match="at least two"):
        rg.compare({"a": scores["bad"]}, data, "map")
    with pytest.raises(rg.ParameterError, match="'first', 'all'"):
        rg.compare(scores, data, "map", against="each")
    empty = rg.QueryDataset(None, [0, 0], qid=[1, 1])
    with pytest.raises(rg.DataError, match="no query"):
        rg.compare({"a": [1, 2], "b": [2, 1]}, empty, "map")


def test_rounding_is_no_win():
    one = np.array([0.1 + 0.2, 0.5, 0.25, 0.0, 1.0])
    other = np.array([0.3, 0.5, 0.5, 0.0, 1.0 - 1e-9])
    assert one[0] > other[0]
    assert paired(one, other)[:4].tolist() == [0.0, 0.0, -0.25, 0.0]
    assert paired(one, other)[4] > 0
