"""Interleaving: what is shown, who gets the credit, and that chance favours nobody."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import rankgrove as rg
from rankgrove.evaluation.interleaving_analysis import bootstrap_interval
from rankgrove.evaluation.optimised_interleaving import (
    allowed_lists,
    information,
    rank_credits,
    unbiased_lists,
)
from tests.reference import interleaving as naive

PAIRS = [
    ("abcd", "badc"),
    ("abcd", "bcda"),
    ("abcde", "edcba"),
    ("abcd", "efgh"),
    ("abcde", "bxaye"),
    ("ab", "ba"),
    ("abc", "abc"),
]


def worths(first, second, lists, credit):
    absent = len(first) + 1
    ranks = [{d: r for r, d in enumerate(one, 1)} for one in (first, second)]
    return np.array(
        [rank_credits(*([r.get(d, absent) for d in one] for r in ranks), credit) for one in lists]
    )


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_allowed_lists_are_those_of_the_definition(first, second):
    lists = allowed_lists(first, second)
    assert len(lists) == len(set(lists))
    assert set(lists) == naive.allowed(first, second)


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(6)), st.permutations(range(9)), st.sampled_from(["inverse", "linear"]))
def test_optimised_lists_favour_nobody_at_any_rank(first, second, credit):
    lists, chances = unbiased_lists(tuple(first), tuple(second[:6]), credit)
    assert sum(chances) == pytest.approx(1)
    assert min(chances) > 0
    worth = worths(first, second[:6], lists, credit)
    assert np.allclose(np.array(chances) @ worth, 0, atol=1e-9)


@pytest.mark.parametrize(
    ("first", "second"), [("abcd", "badc"), ("abcd", "dcba"), ("abcd", "cdef")]
)
def test_optimised_lists_are_the_most_informative_unbiased_ones(first, second):
    """The best of all corners of the programme: unbiased mixtures of as few lists as can be."""
    lists = allowed_lists(first, second)
    worth = worths(first, second, lists, "inverse")
    bits = information(worth)
    chosen, chances = unbiased_lists(tuple(first), tuple(second), "inverse")
    told = sum(bits[lists.index(one)] * p for one, p in zip(chosen, chances, strict=True))
    system = np.vstack([np.ones(len(lists)), worth.T])
    goal = np.r_[1.0, np.zeros(len(first))]
    corners = []
    for some in combinations(range(len(lists)), np.linalg.matrix_rank(system)):
        part = system[:, some]
        mixture = np.linalg.lstsq(part, goal, rcond=None)[0]
        if mixture.min() > -1e-12 and np.allclose(part @ mixture, goal):
            corners.append(mixture @ bits[list(some)])
    assert max(corners) > min(corners) + 1e-6  # there is a choice
    assert told == pytest.approx(max(corners))


def test_information():
    # ranks 1 and 2 have chances 2/3 and 1/3
    assert information(np.array([[1.0, -1.0]]))[0] == pytest.approx(
        stats.entropy([2 / 3, 1 / 3], base=2)
    )
    assert information(np.array([[0.0, 0.0], [1.0, 1.0]])).tolist() == [0, 0]
    assert information(np.array([[0.0, 1.0, -1.0]]))[0] == pytest.approx(
        5 / 11 * stats.entropy([3 / 5, 2 / 5], base=2)
    )


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_team_draft_lists_come_as_often_as_they_should(first, second):
    n = 1500
    expected = naive.team_draft_lists(first, second, len(first))
    shown = [rg.interleave(first, second, session=i) for i in range(n)]
    seen = Counter((one.documents, one.teams) for one in shown)
    assert set(seen) <= set(expected)
    counts = [seen[key] for key in expected]
    if len(expected) > 1:
        chances = np.array(list(expected.values()))
        assert stats.chisquare(counts, n * chances).pvalue > 1e-4


def test_balanced_lists():
    first, second = "abcd", "bxay"
    seen = {rg.interleave(first, second, method="balanced", seed=i).documents for i in range(30)}
    assert seen == {tuple(naive.balanced(first, second, 4, begins)) for begins in (True, False)}


def test_balanced_credit_is_that_of_the_first_j():
    shown = rg.Interleaved(tuple("abcd"), (-1,) * 4, ((1, 2, 3, 4), (4, 1, 2, 3)), (), "balanced")
    # the lowest click is on c: rank 3 of the first, 2 of the second; b, c are in the second's top 2
    assert shown.credit([0, 1, 1, 0]).tolist() == [1, 2]
    assert shown.credit([1, 0, 0, 0]).tolist() == [1, 0]
    assert shown.credit([0, 0, 0, 0]).tolist() == [0, 0]


@pytest.mark.parametrize("method", ["team-draft", "optimised"])
@pytest.mark.parametrize(("first", "second"), [("abcd", "bcda"), ("abcde", "bxaye")])
def test_random_clicks_favour_neither_ranking(method, first, second):
    """Clicks that depend on the position alone: the expected credit is equal."""
    rng = np.random.default_rng(0)
    shown = [rg.interleave(first, second, method=method, session=i) for i in range(2500)]
    chance = 0.5 / np.arange(1, len(first) + 1)
    difference = np.array([np.diff(one.credit(rng.random(len(one)) < chance))[0] for one in shown])
    assert difference.any()
    assert abs(difference.mean()) < 4 * difference.std() / np.sqrt(difference.size)


def test_random_clicks_on_optimised_lists_are_no_preference():
    """One ranking has few large credits, the other one many small ones: it wins most sessions."""
    rng = np.random.default_rng(0)
    shown = [rg.interleave("abcde", "bcdef", method="optimised", session=i) for i in range(2000)]
    clicks = np.eye(5)[rng.integers(5, size=2000)]
    (one,) = rg.analyse_interleaving(shown, clicks, n_samples=1000).preferences
    assert one.wins > 3 * one.losses
    assert one.p_sign is None
    assert one.low < 0 < one.high
    found = []
    for part in range(100):
        rows = slice(20 * part, 20 * part + 20)
        result = rg.analyse_interleaving(shown[rows], clicks[rows], n_samples=500)
        found.append(result.preferences[0].p_randomisation)
    assert np.mean(np.array(found) < 0.05) < 0.12


def test_credits_of_optimised_lists_are_shared_out():
    shown = [rg.interleave("abcde", "bcdef", method="optimised", session=i) for i in range(40)]
    clicks = np.eye(5)[np.arange(40) % 5]
    difference = np.array([np.diff(s.credit(c))[0] for s, c in zip(shown, clicks, strict=True)])
    result = rg.analyse_interleaving(shown, clicks)
    (one,) = result.preferences
    assert one.delta == pytest.approx(difference.sum() / np.abs(difference).sum() / 2)
    assert one.wins == (difference > 0).sum()
    assert -0.5 <= one.low < one.delta < one.high <= 0.5
    assert str(result).splitlines()[1].split()[-2] == "-"
    assert json.loads(result.to_json())["preferences"][0]["holm_sign"] is None
    means = difference.reshape(8, 5).mean(axis=1)
    queries = np.repeat(np.arange(8), 5)
    (one,) = rg.analyse_interleaving(shown, clicks, by="query", queries=queries).preferences
    assert one.delta == pytest.approx(means.sum() / np.abs(means).sum() / 2)


def test_balanced_interleaving_is_biased():
    """The known case: the second ranking is the first with its best document moved to the end."""
    rng = np.random.default_rng(0)
    shown = [rg.interleave("abc", "bca", method="balanced", session=i) for i in range(1000)]
    clicks = [np.eye(3)[rng.integers(3)] for _ in shown]
    assert rg.analyse_interleaving(shown, clicks).preferences[0].p_sign < 1e-6


@pytest.mark.parametrize("method", ["team-draft", "optimised", "balanced"])
def test_the_better_ranking_wins(method):
    shown = [rg.interleave("abcde", "cdeab", method=method, session=i) for i in range(300)]
    clicks = [[document == "c" for document in one.documents] for one in shown]
    preference = rg.analyse_interleaving(shown, clicks, names=["old", "new"]).preferences[0]
    assert (preference.system, preference.against) == ("new", "old")
    assert preference.delta > 0.4
    assert preference.low > 0.3
    assert preference.p_randomisation < 1e-3
    assert preference.p_sign is None if method == "optimised" else preference.p_sign < 1e-3


def test_multileaving_is_fair_and_finds_the_best():
    rankings = ("abcd", "bcda", "cdab")
    rng = np.random.default_rng(1)
    shown = [rg.interleave(*rankings, session=i) for i in range(1500)]
    for place in range(4):  # every ranking chooses every place equally often
        counts = np.bincount([one.teams[place] for one in shown], minlength=3)
        assert stats.chisquare(counts).pvalue > 1e-4
    at_random = [rng.random(4) < 0.4 for _ in shown]
    assert min(p.holm_sign for p in rg.analyse_interleaving(shown, at_random).preferences) > 0.01
    clicks = [[document == "c" for document in one.documents] for one in shown]
    result = rg.analyse_interleaving(shown, clicks)
    assert [(p.system, p.against) for p in result.preferences] == [
        ("B", "A"),
        ("C", "A"),
        ("C", "B"),
    ]
    assert all(p.holm_sign < 0.01 and p.delta > 0 for p in result.preferences[1:])


def test_the_same_session_has_the_same_list():
    lists = [rg.interleave("abcdef", "fedcba", session=f"s{i}").documents for i in range(50)]
    assert lists == [
        rg.interleave("abcdef", "fedcba", session=f"s{i}").documents for i in range(50)
    ]
    assert len(set(lists)) > 5
    assert lists != [
        rg.interleave("abcdef", "fedcba", session=f"s{i}", seed=1).documents for i in range(50)
    ]


def test_many_queries_and_scores():
    a = {"q": {"x": 1.0, "y": 2.0, "z": 2.0}, "r": {"u": 1.0}, "only a": {"u": 1.0}}
    b = {"q": ["x", "z", "y"], "r": ["u"]}
    many = rg.interleave(a, b, k=2)
    assert set(many) == {"q", "r"}
    assert many["r"].documents == ("u",)
    assert many["q"].ranks[0] == tuple("zyx".index(d) + 1 for d in many["q"].documents)


def test_lists_are_as_long_as_the_shortest_ranking():
    for i in range(20):
        shown = rg.interleave("ab", "cdefg", session=i)
        assert len(shown) == 2
        assert sorted(shown.teams) == [0, 1]


def test_lists_survive_json():
    for method in ("team-draft", "optimised", "balanced"):
        shown = rg.interleave("abcd", "bcda", method=method)
        assert rg.Interleaved(**json.loads(json.dumps(asdict(shown)))) == shown


def test_documents_of_arrays_are_plain_values():
    shown = rg.interleave(list(np.array([3, 1, 2])), [1, 2, 3], method="optimised")
    assert json.loads(json.dumps(asdict(shown)))["documents"] == list(shown.documents)


# -- analysis ---------------------------------------------------------------------------------


def sessions_with(outcomes):
    """Return lists and clicks with these winners: 1: B, -1: A, 0: a tie, None: no click."""
    shown = [rg.Interleaved("ab", (0, 1), ((1, 2), (2, 1)), ((1, 0), (0, 1)), "team-draft")]
    masks = {1: [0, 1], -1: [1, 0], 0: [1, 1], None: [0, 0]}
    return shown * len(outcomes), [masks[one] for one in outcomes]


def test_figures_are_those_of_the_definitions():
    outcomes = [1] * 20 + [-1] * 8 + [0] * 12 + [None] * 5
    result = rg.analyse_interleaving(*sessions_with(outcomes))
    (one,) = result.preferences
    assert (one.wins, one.losses, one.ties) == (20, 8, 12)
    assert (result.n_sessions, result.without_click) == (40, 5)
    assert one.delta == pytest.approx((20 + 6) / 40 - 0.5)
    assert one.p_sign == pytest.approx(stats.binomtest(20, 28).pvalue)
    assert one.p_randomisation == pytest.approx(one.p_sign, abs=0.02)
    error = np.std([1] * 20 + [-1] * 8 + [0] * 12) / np.sqrt(40) / 2
    assert (one.high - one.low) / 2 == pytest.approx(1.96 * error, rel=0.1)
    assert "win/loss/tie" in str(result)
    assert "20/8/12" in result._repr_html_()
    assert json.loads(result.to_json())["preferences"][0]["wins"] == 20


def test_by_query_every_query_has_one_vote():
    outcomes = [1] * 30 + [-1] * 2 + [-1, 1, -1]
    queries = ["many"] * 30 + ["few"] * 2 + ["three"] * 3
    result = rg.analyse_interleaving(*sessions_with(outcomes), by="query", queries=queries)
    (one,) = result.preferences
    assert (one.wins, one.losses, one.ties) == (1, 2, 0)
    assert one.delta == pytest.approx((1 - 1 - 1 / 3) / 3 / 2)
    assert result.n_queries == 3


def test_bootstrap_interval_is_that_of_resampling():
    rng = np.random.default_rng(0)
    values = rng.choice([-1.0, 0.0, 0.5, 1.0], 60)
    means = [rng.choice(values, 60).mean() for _ in range(4000)]
    found = bootstrap_interval(values, 0.9, 4000, 1)
    assert found == pytest.approx(np.quantile(means, [0.05, 0.95]), abs=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rg.interleave("ab"), "needs at least two rankings"),
        (lambda: rg.interleave("ab", "ba", "ab", method="optimised"), "needs two rankings"),
        (lambda: rg.interleave("aab", "ab"), "has the document 'a' twice"),
        (lambda: rg.interleave("", "ab"), "at least one document"),
        (lambda: rg.interleave({"a": 1.0}, {"a": 2.0}), "Got 1.0 where the documents of a query"),
        (
            lambda: rg.analyse_interleaving(
                [asdict(one) for one in sessions_with([1])[0]], [[0, 1]]
            ),
            r"Got dict: rg.Interleaved\(\*\*stored\) restores",
        ),
        (lambda: rg.interleave("ab", {"q": "ab"}), "all rankings for one query"),
        (lambda: rg.interleave({"p": "ab"}, {"q": "ab"}), "no query for which all"),
        (lambda: rg.interleave("ab", "ba", method="optimized"), "did you mean 'optimised'"),
        (lambda: rg.interleave(range(30), range(29, -1, -1), method="optimised"), "Give k=10"),
        (lambda: rg.interleave("ab", "ba").credit([1]), "one boolean per shown document"),
        (lambda: rg.interleave("ab", "ba").credit([2, 0]), "one boolean per shown document"),
        (lambda: rg.analyse_interleaving([], []), "at least one session"),
        (lambda: rg.analyse_interleaving(*sessions_with([None])), "No session has a click"),
        (lambda: rg.analyse_interleaving(*sessions_with([1]), by="query"), "needs queries"),
        (lambda: rg.analyse_interleaving(*sessions_with([1]), names=["a"]), "2 different names"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(rg.RankgroveError, match=message):
        call()
