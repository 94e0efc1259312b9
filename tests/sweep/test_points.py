"""Single weights at which documents are tied: found where they are better than all stretches."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.measures.base import rank
from rankgrove.sweep.sweep import floats_at, sweep
from tests.reference.sweep import crossings, exact_candidates, mean_at

rg.register_measure("points_custom", lambda labels, k: 1.0 * (labels[:k] > 0).any())
MEASURES = "ndcg ndcg@2 dcg map map@3 err err@2 mrr p@1 p@2 recall@2 auc pairs".split()
SLOW = ("accuracy", "points_custom@1")  # evaluated order by order


def whole_case(rng, form, exact):
    """Return labels, two scores as whole numbers, what to divide them by, query_ptr and bounds.

    Many lines go through one point, relevant documents mostly between the others, so that the point
    is often the best. Slopes differ by powers of two where `exact`, so that all crossings and all
    scores at them are floats.
    """
    sizes = rng.integers(2, 7, rng.integers(1, 4))
    n = int(sizes.sum())
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    unit = 4 if exact else 3
    slope = unit * rng.choice([1, 2]) * rng.integers(-1, 2, n)
    if not exact:
        slope = 3 * rng.integers(-3, 4, n)
    labels = rng.integers(0, 3, n) * (rng.random(n) < np.where(slope == 0, 0.8, 0.2)) * 1.0
    labels[:2] = 2.0, 0.0  # the largest label, which the gains of ERR depend on, in every case
    meet = np.repeat(rng.integers(-2, 3, sizes.size), sizes) - rng.integers(1, unit) * slope // unit
    start = np.where(rng.random(n) < 0.8, meet, rng.integers(-4, 5, n))
    other = start + slope if form == "convex" else slope
    return labels, start, other, unit, ptr, {"convex": (0, 1), "additive": (0, 2)}[form]


def best_of_each(name, ties, cases, form):
    """Return the best value of every case over all alphas, in whole numbers: nothing is rounded."""
    labels, scores, sizes, n_queries, n_alphas = [], [], [], [], []
    for case_labels, start, other, _, ptr, (low, high) in cases:
        alphas = exact_candidates(start, other, ptr, form, (low, 1), (high, 1))
        n, d = alphas.T[:, :, None]
        scores.append((d - n) * start + n * other if form == "convex" else d * start + n * other)
        labels.append(np.tile(case_labels, n.size))
        sizes.append(np.tile(np.diff(ptr), n.size))
        n_queries.append(ptr.size - 1)
        n_alphas.append(n.size)
    query_ptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    prepared = rg.measure(name, ties=ties).prepare(np.concatenate(labels), query_ptr, 1)
    flat = np.concatenate([one.ravel() for one in scores]).astype(np.float64)
    values = prepared.values(rank(flat, query_ptr, 1), 1)
    cuts = np.cumsum(np.multiply(n_queries, n_alphas))[:-1]
    return [
        np.nanmean(own.reshape(n, -1), axis=1).max()
        for own, n in zip(np.split(values, cuts), n_alphas, strict=True)
    ]


def combined(case, name, form, **options):
    labels, start, other, unit, ptr, bounds = case
    data = rg.QueryDataset(None, labels, qid=np.repeat(np.arange(ptr.size - 1), np.diff(ptr)))
    scores = start / unit, other / unit
    return scores, rg.optimal_combination(*scores, data, name, form, bounds, n_threads=1, **options)


def reproduced(case, scores, best, form):
    return mean_at(best.measure.prepare(case[0], case[4], 1), *scores, best.alpha, form)


# -- ten thousand small cases --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", ["convex", "additive"])
@pytest.mark.parametrize("name", [*MEASURES, *SLOW])
def test_is_the_best_of_all_weights_where_ties_are_floats(name, form):
    rng = np.random.default_rng([*name.encode(), len(form)])
    n = 20 if name in SLOW else 400  # of 26 combinations: 10,400
    cases = [whole_case(rng, form, exact=True) for _ in range(n)]
    at_points = 0
    for k, (case, exact) in enumerate(
        zip(cases, best_of_each(name, "expected", cases, form), strict=True)
    ):
        scores, best = combined(case, name, form)
        assert best.value == pytest.approx(exact, abs=1e-11), k
        assert best.value == reproduced(case, scores, best, form)
        at_points += best.stretch[0] == best.stretch[1] and best.alpha not in case[5]
    # of auc and pairs a tie is the mean of both sides; of the slow ones there are few cases
    if name not in ("auc", "pairs", *SLOW):
        assert at_points > 0.04 * n


@pytest.mark.slow
@pytest.mark.parametrize("ties", ["stable", "worst"])
@pytest.mark.parametrize("name", ["ndcg@2", "map", "err", "mrr", "pairs", "points_custom@1"])
def test_other_rules_for_ties(name, ties):
    rng = np.random.default_rng([*name.encode(), len(ties)])
    cases = [whole_case(rng, "convex", exact=True) for _ in range(100)]
    for k, (case, exact) in enumerate(
        zip(cases, best_of_each(name, ties, cases, "convex"), strict=True)
    ):
        scores, best = combined(case, rg.measure(name, ties=ties), "convex")
        assert best.value == pytest.approx(exact, abs=1e-11), k
        assert best.value == reproduced(case, scores, best, "convex")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["convex", "additive"])
@pytest.mark.parametrize("name", ["ndcg", "map", "err", "mrr@2", "p@2", "pairs"])
def test_where_ties_are_not_floats_the_value_is_what_evaluating_gives(name, form):
    # Rounding may tear a tie at 1/3 apart, at the ends too. Then the value can be below that of the
    # tie, or above it; it is what evaluating gives. Hardly ever (in 1 of 2,400 cases) do the floats
    # of crossings that change nothing give more.
    rng = np.random.default_rng([*name.encode(), len(form)])
    n = 60
    cases = [whole_case(rng, form, exact=False) for _ in range(n)]
    below = missed = 0
    for case, exact in zip(cases, best_of_each(name, "expected", cases, form), strict=True):
        scores, best = combined(case, name, form)
        _, only = combined(case, name, form, points="exclude")
        assert best.value == reproduced(case, scores, best, form)
        assert best.value >= only.value
        prepared = best.measure.prepare(case[0], case[4], 1)
        cuts = crossings(*scores, case[4], form, *case[5]).tolist()
        values = [mean_at(prepared, *scores, alpha, form) for alpha in cuts]
        missed += max(values, default=0.0) > best.value + 1e-11
        below += best.value < exact - 1e-11
    assert missed <= 1
    assert below < 0.2 * n


# -- one point at a time ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "beside"),
    [("ndcg", 0.7103099178571526, 0.6309297535714575), ("map", 11 / 18, 0.5), ("p@1", 1 / 3, 0.0)],
)
def test_three_lines_through_one_point(name, value, beside):
    data = rg.QueryDataset(None, [0, 1, 0], qid=[1, 1, 1])
    scores = [1.0, 0.5, 0.0], [0.0, 0.5, 1.0]
    best = rg.optimal_combination(*scores, data, name)
    assert (best.alpha, best.stretch) == (0.5, (0.5, 0.5))
    assert best.value == pytest.approx(value, abs=1e-15)
    assert best.value == rg.evaluate(best.predict(scores), data, name).mean[name]
    assert best.curve.alpha.tolist() == [0.0, 1.0]
    assert best.curve.value == pytest.approx([beside])
    assert best.curve.point_alpha.tolist() == [0.5]
    assert "a single one, at which documents are tied" in str(best)
    assert best.curve.point_value == pytest.approx([value])
    without = rg.optimal_combination(*scores, data, name, points="exclude")
    assert without.value == pytest.approx(beside)
    assert without.curve.point_alpha.size == 0
    assert without.stretch == (0.0, 1.0)
    with pytest.raises(rg.ParameterError, match="'include', 'exclude'"):
        rg.optimal_combination(*scores, data, name, points="some")


def test_a_point_that_rounding_takes_away_is_not_reported():
    # The lines meet at 1/3, give or take a rounding of the scores; no float ties all three.
    labels, ptr = np.array([0.0, 1.0, 0.0]), np.array([0, 3])
    start, other = np.array([2.0, 1.0, 0.1]) / 0.7, np.array([0.0, 2.0, 3.8]) / 0.7
    prepared = rg.measure("mrr").prepare(labels, ptr)
    found = sweep(prepared, start, other)
    assert found.curve.point_value == pytest.approx([11 / 18])
    assert found.value == mean_at(prepared, start, other, found.alpha, "convex")
    computed, beside = floats_at(*found.curve.point_alpha[[0, 0]].tolist())
    values = [mean_at(prepared, start, other, x, "convex") for x in computed + beside]
    assert found.value == max(0.5, *values)


def test_points_of_several_queries_add_up():
    # Three queries meet at 1/4: one gains by its tie, one is lifted from there on, one is let down.
    labels = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    ptr = np.array([0, 3, 5, 7])
    start = np.array([1.0, 0.0, -1.0, 0.0, 1.0, 0.0, 1.0])
    slope = np.array([-4.0, 0.0, 4.0, 4.0, 0.0, 4.0, 0.0])
    prepared = rg.measure("mrr").prepare(labels, ptr)
    found = sweep(prepared, start, slope, form="additive", low=0.0, high=1.0)
    assert found.curve.value == pytest.approx([(0.5 + 0.5 + 1.0) / 3])
    assert found.curve.point_alpha.tolist() == [0.25]
    assert found.curve.point_value == pytest.approx([(11 / 18 + 0.75 + 0.75) / 3])
    assert (found.alpha, found.stretch) == (0.25, (0.25, 0.25))
    assert found.value == pytest.approx(found.curve.point_value[0], abs=1e-15)


def test_a_group_that_meets_one_document():
    # Two documents tied all the way meet a third: the mean of three orders, not of two.
    labels, ptr = np.array([0.0, 2.0, 1.0]), np.array([0, 3])
    prepared = rg.measure("ndcg").prepare(labels, ptr)
    start, other = np.array([0.0, 0.0, 1.0]), np.array([1.0, 1.0, 0.0])
    found = sweep(prepared, start, other)
    orders = [rg.measure("ndcg").value(order) for order in itertools.permutations([0, 2, 1])]
    assert mean_at(prepared, start, other, 0.5, "convex") == pytest.approx(np.mean(orders))
    assert found.value == max(
        mean_at(prepared, start, other, x, "convex") for x in (0, 0.2, 0.5, 0.8, 1)
    )


def test_no_point_is_looked_at_where_scores_are_generic():
    rng = np.random.default_rng(4)
    labels, ptr = rng.integers(0, 3, 500).astype(float), np.arange(0, 501, 25)
    found = sweep(rg.measure("ndcg").prepare(labels, ptr), *rng.normal(size=(2, 500)))
    assert found.curve.point_alpha.size == 0
    assert found.stretch[0] < found.alpha < found.stretch[1]


def test_floats_at_a_point():
    third = 1 / 3
    above = np.nextafter(third, 1)
    further = np.nextafter(above, 1)
    assert floats_at(third, third)[0] == [third]
    assert floats_at(above, further)[0] == [third, above, further]  # the fraction beside them
    computed, beside = floats_at(-2.5, -2.5)
    assert computed == [-2.5]
    assert sorted(beside) == [-2.5 + k * 2.0**-51 for k in (-2, -1, 1, 2)]
    computed, beside = floats_at(0.1, 0.1 + 1e-13)
    assert {0.1, 0.1 + 1e-13} <= set(computed)
    assert len(computed) <= 12
    assert not set(computed) & set(beside)
