"""Lambda gradients of every measure against the paper's definition, and what must hold of them."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.measures.base import REGISTRY
from rankgrove.objectives.lambdas import LambdaObjective, default_truncation
from rankgrove.random import row_keys, string_keys
from tests.reference import lambdas as naive_lambdas
from tests.reference import measures as naive


class Case(NamedTuple):
    """What the oracle needs of a measure: its value or its swap deltas, and a label's gain."""

    value: object = None
    change: object = None
    gain: object = lambda label: label


def table_gain(label):
    return (0, 3, 1, 7, 10)[int(label)]  # label 1 is worth more than label 2


def no_spam(label):
    return 2 ** max(label, 0) - 1


def ndcg_beyond(labels, k, **kwargs):
    """Return the DCG of the whole ranking over the ideal DCG at k."""
    best = naive.dcg(sorted(labels, reverse=True), k, **kwargs)
    return naive.dcg(labels, **kwargs) / best if best else None


# The cutoff of graded measures does not end the weights of ranks: |dZ| is that of the whole
# ranking, normalised as the measure is, and the truncation alone says which pairs count.
CASES = {
    "ndcg": Case(naive.ndcg),
    "ndcg@3": Case(lambda l: ndcg_beyond(l, 3)),
    "ndcg@3[letor]": Case(lambda l: ndcg_beyond(l, 3, discount=naive.letor_discount)),
    "ndcg[gain=0/3/1/7/10,discount=ln]": Case(
        lambda l: naive.ndcg(
            [table_gain(label) for label in l],
            gain=lambda g: g,
            discount=lambda r: 1 / math.log(1 + r),
        ),
        gain=table_gain,
    ),
    "dcg": Case(naive.dcg),
    "dcg@2[gain=identity]": Case(lambda l: naive.dcg(l, gain=lambda g: g)),
    "map": Case(naive.average_precision),
    "map@2[relevant=2]": Case(lambda l: naive.average_precision(l, relevant=2)),
    "mrr": Case(naive.reciprocal_rank),
    "mrr@2[relevant=3]": Case(lambda l: naive.reciprocal_rank(l, relevant=3)),
    "err[max_grade=4]": Case(lambda l: naive.err(l, max_grade=4)),
    "err@2[max_grade=5]": Case(lambda l: naive.err(l, max_grade=5)),
    "meanndcg": Case(naive.mean_ndcg),
    "meanndcg[letor]": Case(lambda l: naive.mean_ndcg(l, discount=naive.letor_discount)),
    "p@3": Case(lambda l: naive.precision(l, 3)),
    "recall@2": Case(lambda l: naive.recall(l, 2)),
    "recall@4[relevant=2]": Case(lambda l: naive.recall(l, 4, relevant=2)),
    "auc": Case(naive.roc_area),
    "auc[relevant=4]": Case(lambda l: naive.roc_area(l, relevant=4)),
    "accuracy": Case(naive.best_accuracy),
    "accuracy[relevant=2]": Case(lambda l: naive.best_accuracy(l, relevant=2)),
    "pairs": Case(change=lambda labels, a, b: 1.0),
}


def run(measure, labels, scores, ptr=None, keys=None, queries=None, n_threads=1, **parameters):
    """Return gradient and hessian, NaN where the kernel wrote nothing."""
    labels, scores = np.asarray(labels, np.float64), np.asarray(scores, np.float64)
    ptr = np.array([0, labels.size]) if ptr is None else ptr
    keys = np.arange(labels.size) if keys is None else keys
    measure = rg.measure(measure)
    objective = LambdaObjective(measure, labels, ptr, row_keys=np.asarray(keys), **parameters)
    gradient, hessian = np.full((2, labels.size), np.nan)
    objective.gradients(scores, gradient, hessian, queries, n_threads)
    return gradient, hessian


def oracle(case, labels, scores, keys=None, truncation=None, sigma=1.0, weights=None, scale=1.0):
    """Return what `run` should, for one query."""
    labels, scores = np.asarray(labels).tolist(), np.asarray(scores, np.float64).tolist()
    keys = range(len(labels)) if keys is None else keys.tolist()
    weights = [1.0] * len(labels) if weights is None else weights.tolist()
    pairs = naive_lambdas.pairs(
        case.value, labels, scores, keys, truncation, case.gain, case.change
    )
    return naive_lambdas.lambdas(naive_lambdas.weighed(pairs, weights, scale), scores, sigma)


def assert_close(got, expected, rtol=1e-11):
    """Compare to rtol, and near 0 to what evaluating a measure twice leaves of its digits."""
    for a, b in zip(got, expected, strict=True):
        assert np.isfinite(a).all()
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-13 * max(1.0, np.abs(b).max()))


class Queries(NamedTuple):
    labels: np.ndarray
    scores: np.ndarray
    ptr: np.ndarray
    keys: np.ndarray

    def part(self, q):
        return slice(self.ptr[q], self.ptr[q + 1])


def make_queries(sizes, grades=5, seed=0, tied=False):
    rng = np.random.default_rng(seed)
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.normal(size=ptr[-1]) * 2
    scores = np.round(scores) if tied else scores
    keys = row_keys(string_keys(range(len(sizes))), ptr)
    return Queries(rng.integers(0, grades, ptr[-1]).astype(float), scores, ptr, keys)


# Long before short, so that what a long query leaves in the scratch arrays would show.
SIZES = [14, 1, 2, 9, 3, 12, 1, 8, 4, 17, 5, 2]


# -- against the definition ---------------------------------------------------------------------


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("truncation", [None, 1, 2, 5])
@pytest.mark.parametrize("spec", CASES)
def test_every_measure_equals_its_definition(spec, truncation, tied):
    data = make_queries(SIZES, tied=tied)
    gradient, hessian = run(spec, *data, truncation=truncation)
    for q in range(len(SIZES)):
        part = data.part(q)
        expected = oracle(
            CASES[spec], data.labels[part], data.scores[part], data.keys[part], truncation
        )
        assert_close((gradient[part], hessian[part]), expected)


# With beyond_cutoff=False |dZ| is the measure's own change, cutoff and all (equation 6).
EXACT = {
    "ndcg@3": Case(lambda l: naive.ndcg(l, 3)),
    "ndcg@3[letor]": Case(lambda l: naive.ndcg(l, 3, discount=naive.letor_discount)),
    "dcg@2[gain=identity]": Case(lambda l: naive.dcg(l, 2, gain=lambda g: g)),
    "map@2": Case(lambda l: naive.average_precision(l, 2)),
    "mrr@2[relevant=3]": Case(lambda l: naive.reciprocal_rank(l, 2, relevant=3)),
    "err@2[max_grade=5]": Case(lambda l: naive.err(l, 2, max_grade=5)),
    "p@3": CASES["p@3"],
    "ndcg": CASES["ndcg"],
    "map": CASES["map"],
}


@pytest.mark.parametrize("truncation", [None, 1, 4])
@pytest.mark.parametrize("spec", EXACT)
def test_without_beyond_cutoff_a_pair_counts_by_the_change_of_the_measure(spec, truncation):
    data = make_queries(SIZES)
    gradient, hessian = run(spec, *data, truncation=truncation, beyond_cutoff=False)
    for q in range(len(SIZES)):
        at = data.part(q)
        expected = oracle(EXACT[spec], data.labels[at], data.scores[at], data.keys[at], truncation)
        assert_close((gradient[at], hessian[at]), expected)


@pytest.mark.parametrize("spec", ["ndcg@3", "map@2", "mrr@2", "err@2", "dcg@2"])
def test_beyond_cutoff_orders_documents_below_the_cutoff(spec):
    data = make_queries([12])
    below = np.argsort(-data.scores)[3:]
    labels = np.zeros(12)
    labels[below[2]] = 1.0  # the one relevant document, below the cutoff
    others = np.delete(below, 2)
    beyond, _ = run(spec, labels, data.scores, beyond_cutoff=True)
    exact, _ = run(spec, labels, data.scores, beyond_cutoff=False)
    assert (beyond[others] < 0.0).all()
    assert (exact[others] == 0.0).all()


SCORES = st.integers(-3, 3).map(float) | st.floats(-40, 40)
WEIGHTS = st.sampled_from([0.0, 0.25, 1.0, 1.7, 3.0])
ROWS = st.lists(st.tuples(st.integers(0, 4), SCORES, WEIGHTS), min_size=2, max_size=8)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from(list(CASES)),
    ROWS.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(range(len(rows))))),
    st.none() | st.integers(1, 9),
    st.sampled_from([0.5, 1.0, 1.3, 4.0]),
    WEIGHTS,
)
def test_any_query_equals_the_definition(spec, rows_and_keys, truncation, sigma, scale):
    rows, keys = rows_and_keys
    labels, scores, weights = np.array(rows, np.float64).T.copy()
    keys = np.array(keys)
    expected = oracle(CASES[spec], labels, scores, keys, truncation, sigma, weights, scale)
    try:
        got = run(
            spec,
            labels,
            scores,
            keys=keys,
            truncation=truncation,
            sigma=sigma,
            row_weight=weights,
            query_weight=np.array([scale]),
        )
    except rg.DataError:
        assert not np.any(expected)  # the labels are all equal to the measure
        return
    assert_close(got, expected)
    assert (got[1] >= 0.0).all()


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 1000])
@pytest.mark.parametrize("tied", [False, True])
def test_long_queries_are_sorted(n, tied):
    data = make_queries([n], tied=tied)
    everything = (data.labels, data.scores, data.keys)
    assert_close(run("pairs", *data), oracle(CASES["pairs"], *everything), rtol=1e-10)
    assert_close(run("ndcg", *data, truncation=2), oracle(CASES["ndcg"], *everything, 2))
    one = np.zeros(n)
    one[n // 3] = 1.0
    for spec in ("ndcg", "mrr"):
        expected = oracle(CASES[spec], one, data.scores, data.keys)
        assert_close(run(spec, one, *data[1:]), expected)


@pytest.mark.parametrize("n", [255, 256, 257])
def test_around_the_length_from_which_queries_are_sorted(n):
    data = make_queries([n, 3, n], tied=True)
    got = run("pairs", *data, truncation=20)  # so that the order matters
    for q in (0, 2):
        part = data.part(q)
        query = (data.labels[part], data.scores[part], data.keys[part])
        expected = oracle(CASES["pairs"], *query, truncation=20)
        assert_close([x[part] for x in got], expected)


def test_labels_up_to_31():
    rng = np.random.default_rng(1)
    labels, scores = rng.permutation(32).astype(float), rng.normal(size=32)
    cases = {
        "ndcg": CASES["ndcg"],
        "dcg": CASES["dcg"],
        "err": Case(lambda l: naive.err(l, max_grade=31)),
        "pairs": CASES["pairs"],
        "map[relevant=16]": Case(lambda l: naive.average_precision(l, relevant=16)),
    }
    for spec, case in cases.items():
        assert_close(run(spec, labels, scores), oracle(case, labels, scores))


def test_labels_below_0_gain_nothing():
    labels, scores = np.array([-2.0, 0.0, 1.0, -1.0, 2.0]), np.arange(5.0)
    spam = Case(lambda l: naive.ndcg(l, gain=no_spam), gain=no_spam)
    assert_close(run("ndcg", labels, scores), oracle(spam, labels, scores))
    # but for pairs they are grades like any other
    assert_close(run("pairs", labels, scores), oracle(CASES["pairs"], labels, scores))


def test_weights_of_rows_and_queries():
    data = make_queries(SIZES)
    rng = np.random.default_rng(2)
    rows, queries = rng.uniform(0, 3, data.labels.size), rng.uniform(0, 3, len(SIZES))
    for spec in ("ndcg@3", "err[max_grade=4]", "pairs"):
        both = run(spec, *data, row_weight=rows, query_weight=queries)
        only_rows = run(spec, *data, row_weight=rows)
        only_queries = run(spec, *data, query_weight=queries)
        for q in range(len(SIZES)):
            part = data.part(q)
            query = (CASES[spec], data.labels[part], data.scores[part], data.keys[part])
            for got, weights, scale in [
                (both, rows[part], queries[q]),
                (only_rows, rows[part], 1.0),
                (only_queries, None, queries[q]),
            ]:
                expected = oracle(*query, weights=weights, scale=scale)
                assert_close([x[part] for x in got], expected)


def test_weights_of_1_change_no_bit():
    data = make_queries(SIZES)
    plain = run("ndcg", *data)
    ones = run(
        "ndcg", *data, row_weight=np.ones(data.labels.size), query_weight=np.ones(len(SIZES))
    )
    np.testing.assert_array_equal(plain, ones)


def test_two_documents_by_hand():
    # The better document stands second, one point behind: rho = 1 / (1 + e^-1).
    gradient, hessian = run("ndcg", [0, 1], [1.0, 0.0])
    rho, size = 1 / (1 + math.exp(-1.0)), 1 - 1 / math.log2(3)
    np.testing.assert_allclose(gradient, [-size * rho, size * rho], rtol=1e-14)
    np.testing.assert_allclose(hessian, [size * rho * (1 - rho)] * 2, rtol=1e-14)


# -- truncation -----------------------------------------------------------------------------


def test_truncation_counts_pairs_by_their_upper_document():
    labels, scores = [0, 1, 0, 1, 0], [5.0, 4.0, 3.0, 2.0, 1.0]
    # Each pair has |dZ| = 1; above rank 1 there is none, above rank 2 those of rank 1, ...
    for truncation, moved in [(1, [0, 1, 3]), (2, [0, 1, 2, 3, 4]), (4, [0, 1, 2, 3, 4])]:
        gradient, hessian = run("pairs", labels, scores, truncation=truncation)
        assert np.flatnonzero(gradient).tolist() == moved
        assert np.flatnonzero(hessian).tolist() == moved


@pytest.mark.parametrize("spec", CASES)
def test_a_truncation_at_or_past_the_end_is_none(spec):
    data = make_queries(SIZES, tied=True)
    whole = run(spec, *data)
    for truncation in (max(SIZES) - 1, max(SIZES), 10**6):
        np.testing.assert_array_equal(run(spec, *data, truncation=truncation), whole)


@pytest.mark.parametrize("name", ["ndcg", "dcg", "map", "mrr", "err"])
def test_documents_below_the_cutoff_are_pulled_up(name):
    # The only relevant document stands far below the cutoff.
    labels, scores = np.eye(1, 30, 25)[0], -np.arange(30.0) / 30
    for truncation in (5, 30):
        gradient, _ = run(f"{name}@3", labels, scores, truncation=truncation)
        np.testing.assert_array_equal(gradient, run(name, labels, scores, truncation=truncation)[0])
        assert gradient[25] > 0
        assert (gradient[3:truncation] < 0)[: 25 - 3].all()


def test_default_truncation():
    assert default_truncation(rg.measure("ndcg@10"), 50) == 60
    assert default_truncation(rg.measure("p@3"), 5) == 8
    for spec in ("ndcg", "map", "pairs", "auc"):
        assert default_truncation(rg.measure(spec), 50) is None


# -- the sigmoid's slope --------------------------------------------------------------------


@pytest.mark.parametrize("distance", [0.0, 2000.0])  # both ways of computing rho
@pytest.mark.parametrize("spec", CASES)
def test_sigma_and_the_unit_of_scores_are_one_thing(spec, distance):
    data = make_queries(SIZES)
    # Near documents and far ones, none so far that exp(-sigma s) loses bits and is not yet 0.
    scores = data.scores + distance * (np.arange(data.scores.size) % 3)
    gradient, hessian = run(spec, data.labels, scores, *data[2:], sigma=0.7)
    for factor in (2.0, 0.25):
        scaled = run(spec, data.labels, scores / factor, *data[2:], sigma=0.7 * factor)
        np.testing.assert_array_equal(scaled[0], factor * gradient)
        np.testing.assert_array_equal(scaled[1], factor**2 * hessian)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 3.0])
def test_sigma_equals_the_definition(sigma):
    data = make_queries([11])
    for spec in ("ndcg", "map", "pairs"):
        expected = oracle(CASES[spec], data.labels, data.scores, data.keys, sigma=sigma)
        assert_close(run(spec, *data, sigma=sigma), expected)


# -- the gradient of a cost -----------------------------------------------------------------


@pytest.mark.parametrize("sigma", [1.0, 2.5])
@pytest.mark.parametrize("spec", CASES)
def test_finite_differences_of_the_cost(spec, sigma):
    data = make_queries([9], seed=3)
    labels, scores, keys = data.labels.tolist(), data.scores.tolist(), data.keys.tolist()
    case = CASES[spec]
    pairs = naive_lambdas.pairs(case.value, labels, scores, keys, 6, case.gain, case.change)
    gradient, hessian = run(spec, *data, truncation=6, sigma=sigma)
    scale = max(size for _, _, size in pairs)

    def cost_at(row, step):
        moved = list(scores)
        moved[row] += step
        return naive_lambdas.cost(pairs, moved, sigma)

    h = 2.0**-10
    for row in range(len(labels)):
        # central differences of fourth order
        near, far = (
            [cost_at(row, steps * h) for steps in (-1, 1)],
            [cost_at(row, steps * h) for steps in (-2, 2)],
        )
        here = cost_at(row, 0.0)
        slope = (8 * (near[1] - near[0]) - (far[1] - far[0])) / (12 * h)
        bend = (16 * sum(near) - sum(far) - 30 * here) / (12 * h * h)
        assert gradient[row] == pytest.approx(-slope, rel=1e-7, abs=1e-9 * scale)
        assert hessian[row] == pytest.approx(bend, rel=1e-5, abs=1e-7 * scale)


@pytest.mark.parametrize("spec", CASES)
def test_lambdas_of_a_query_sum_to_0(spec):
    data = make_queries([*SIZES, 300])
    rows = np.random.default_rng(4).uniform(0.5, 2, data.labels.size)
    for sizes in ({}, {"truncation": 3}, {"row_weight": rows}):
        gradient, _ = run(spec, *data, **sizes)
        assert gradient.any()
        total = np.add.reduceat(gradient, data.ptr[:-1])
        length = np.add.reduceat(np.abs(gradient), data.ptr[:-1])
        assert (np.abs(total) <= 1e-12 * length).all()


@pytest.mark.parametrize("spread", [1.0, 2000.0])
@pytest.mark.parametrize("spec", CASES)
def test_a_pair_is_equal_and_opposite(spec, spread):
    for labels in ([4, 0], [0, 4]):
        for scores in ([0.3, -0.4], [0.0, 0.0]):
            gradient, hessian = run(spec, labels, np.array(scores) * spread)
            assert gradient[0] == -gradient[1]
            assert hessian[0] == hessian[1]
            assert gradient[np.argmax(labels)] >= 0.0
            assert (hessian >= 0.0).all()


# -- scores far apart, equal scores ---------------------------------------------------------


@pytest.mark.parametrize("spread", [1e2, 1e3, 1e6, 1e15])
@pytest.mark.parametrize("spec", CASES)
def test_scores_far_apart(spec, spread):
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 5, 20).astype(float)
    # some pairs far apart, some close
    scores = np.concatenate([rng.uniform(-spread, spread, 10), rng.normal(size=10)])
    labels[[np.argmax(scores), np.argmin(scores)]] = 0.0, 4.0  # in the wrong order
    got = run(spec, labels, scores)
    assert_close(got, oracle(CASES[spec], labels, scores))
    assert got[0].any()


def test_both_ways_of_computing_rho_meet():
    labels, close = [1, 0, 2, 0, 1], np.array([0.0, 0.3, -0.2, 1.0])
    narrow = run("ndcg", labels, [*close, 599.7])  # the scores span 599.9
    wide = run("ndcg", labels, [*close, 600.9])  # 601.1
    for a, b in zip(narrow, wide, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-200)


def test_only_differences_of_scores_count():
    rng = np.random.default_rng(6)
    labels, scores = rng.integers(0, 5, 40).astype(float), rng.integers(-99, 99, 40) / 32
    here = run("ndcg", labels, scores)
    for shift in (1024.0, -(2.0**30)):
        np.testing.assert_array_equal(run("ndcg", labels, scores + shift), here)


@pytest.mark.parametrize("n", [7, 40, 300])
@pytest.mark.parametrize("spec", CASES)
def test_order_of_rows_does_not_matter(spec, n):
    rng = np.random.default_rng(n)
    labels = np.concatenate([[0.0, 4.0], rng.integers(0, 5, n - 2)])
    keys = rng.permutation(n).astype(np.uint64)
    weights = rng.uniform(1, 2, n)
    for scores in (np.zeros(n), np.round(rng.normal(size=n)), rng.normal(size=n) * 1e3):
        here = run(spec, labels, scores, keys=keys, row_weight=weights)
        for _ in range(2):
            p = rng.permutation(n)
            moved = run(spec, labels[p], scores[p], keys=keys[p], row_weight=weights[p])
            np.testing.assert_array_equal(moved, [x[p] for x in here])


def test_ties_stand_in_the_order_of_their_keys():
    labels, equal = [0, 0, 1, 0], np.zeros(4)
    for keys in ([3, 2, 1, 0], [5, 9, 2**63, 7], [1, 2, 0, 3]):
        keys = np.array(keys, np.uint64)
        gradient, _ = run("mrr", labels, equal, keys=keys)
        rank = np.argsort(np.argsort(keys))
        if rank[2] == 0:  # swapped with rank r it loses 1 - 1/r
            expected = -(1 - 1 / (1 + rank)) / 2
        else:  # swapped with a rank above it gains 1/r - 1/own; below it loses
            expected = -np.abs(1 / (1 + rank) - 1 / (1 + rank[2])) / 2
        expected[2] = -np.delete(expected, 2).sum()
        np.testing.assert_allclose(gradient, expected, rtol=1e-14)


def test_ties_do_not_follow_labels_or_rows_under_the_keys_of_a_data_set():
    n = 1000
    keys = row_keys(string_keys(["some query"]), np.array([0, n]))
    order = np.argsort(keys)
    assert abs(np.corrcoef(order, np.arange(n))[0, 1]) < 0.1


# -- queries without pairs, some of the queries, threads ------------------------------------


@pytest.mark.parametrize("spec", CASES)
def test_queries_without_pairs_get_0(spec):
    labels = [3, 4, 4, 4, 0, 4, 0, 0, 2]
    ptr = np.array([0, 1, 4, 6, 8, 9])
    gradient, hessian = run(spec, labels, np.arange(9.0), ptr)
    without = [0, 1, 2, 3, 6, 7, 8]
    assert not gradient[without].any()
    assert not hessian[without].any()
    whole = run(spec, [0, 4], [4.0, 5.0])
    np.testing.assert_array_equal((gradient[4:6], hessian[4:6]), whole)


@pytest.mark.parametrize(
    ("spec", "labels"),
    [
        ("ndcg@10", [0, 0, 0, 0]),
        ("ndcg@10", [2, 2, 1, 1]),  # two queries, the labels of each equal
        ("map[relevant=3]", [2, 1, 0, 1]),
        ("mrr", [1, 2, 3, 1]),
        ("ndcg", [-1, 0, 0, -2]),
        ("pairs", [1, 1, 1, 1]),
        ("accuracy", [0, 0, 1, 1]),
        ("err", [0, 0, 0, 0]),
    ],
)
def test_nothing_to_learn_from(spec, labels):
    with pytest.raises(rg.DataError, match="No query has documents of different relevance") as e:
        run(spec, labels, np.zeros(4), np.array([0, 2, 4]))
    assert f"for {rg.measure(spec)}." in str(e.value)


def test_queries_of_one_document_only():
    with pytest.raises(rg.DataError, match="No query has documents of different relevance"):
        run("ndcg", [0, 1, 2], np.zeros(3), np.arange(4))


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("spec", ["ndcg@3", "err[max_grade=4]", "pairs", "auc"])
def test_some_queries_leave_the_others_untouched(spec, n_threads):
    data = make_queries(SIZES * 4)
    whole = run(spec, *data)
    rng = np.random.default_rng(7)
    n = len(SIZES) * 4
    for size in (0, 1, 20, n):
        for chosen in (rng.permutation(n)[:size], np.sort(rng.permutation(n)[:size])):
            rows = np.isin(np.repeat(np.arange(n), SIZES * 4), chosen)
            got = run(spec, *data, queries=chosen, n_threads=n_threads)
            for some, all_ in zip(got, whole, strict=True):
                np.testing.assert_array_equal(some[rows], all_[rows])
                assert np.isnan(some[~rows]).all()


@pytest.mark.parametrize("spec", CASES)
def test_threads_do_not_matter(spec):
    data = make_queries([*SIZES * 10, 300, 1, 40], tied=True)
    rows = np.random.default_rng(8).uniform(1, 2, data.labels.size)
    one = run(spec, *data, row_weight=rows, n_threads=1)
    for _ in range(3):
        np.testing.assert_array_equal(run(spec, *data, row_weight=rows, n_threads=2), one)


# -- users' own measures --------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_measures():
    """Register one measure without a delta and one with."""

    @rg.register_measure("own_dcg")
    def own_dcg(labels, k):
        total = 0.0
        for r in range(k):
            total += labels[r] / (r + 2.0)
        return total

    # Not zero for documents of equal label, which a kernel must not take for a pair.
    rg.register_measure(
        "own_distance", lambda labels: 1.0 * labels[0], delta=lambda labels, i, j: 0.5 + i - j
    )
    yield
    del REGISTRY["own_dcg"], REGISTRY["own_distance"]


def own_dcg_value(labels):
    return sum(label / (r + 2) for r, label in enumerate(labels[:3]))


OWN = {
    "own_dcg@3": Case(own_dcg_value),
    "own_distance": Case(change=lambda labels, a, b: 0.5 + a - b),
}


@pytest.mark.slow
@pytest.mark.usefixtures("own_measures")
@pytest.mark.parametrize("spec", OWN)
def test_own_measures_equal_their_definition(spec):
    data = make_queries([*SIZES, 60], tied=True)
    rng = np.random.default_rng(9)
    rows = rng.uniform(0, 2, data.labels.size)
    for parameters in ({}, {"truncation": 3}, {"sigma": 2.0, "row_weight": rows}):
        got = run(spec, *data, **parameters)
        for q in range(len(SIZES) + 1):
            part = data.part(q)
            expected = oracle(
                OWN[spec],
                data.labels[part],
                data.scores[part],
                data.keys[part],
                parameters.get("truncation"),
                parameters.get("sigma", 1.0),
                rows[part] if "row_weight" in parameters else None,
            )
            assert_close([x[part] for x in got], expected)
    np.testing.assert_array_equal(run(spec, *data, n_threads=2), run(spec, *data))
    with pytest.raises(rg.DataError, match=f"for {spec}"):
        run(spec, [1, 1], [0.0, 1.0])
