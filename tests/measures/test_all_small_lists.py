"""Every measure on all label lists up to length 6 over 4 grades: values, ties, swaps.

V, an array with one axis a rank and one index a grade, holds the oracle's value of every list of
one length. Swapping two ranks is swapping two axes; the expectation over a tied group is the mean
over all permutations of its axes.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.measures.base import rank
from tests.reference import measures as naive

GRADES = 4
LENGTHS = range(1, 7)

CASES = {
    "ndcg": naive.ndcg,
    "ndcg@3": lambda l: naive.ndcg(l, 3),
    "ndcg@10": lambda l: naive.ndcg(l, 10),
    "ndcg[gain=identity]": lambda l: naive.ndcg(l, gain=lambda g: g),
    "ndcg@4[gain=0/1/3/10,discount=ln]": lambda l: naive.ndcg(
        l, 4, gain=lambda g: (0, 1, 3, 10)[g], discount=lambda r: 1 / np.log(1 + r)
    ),
    "ndcg[discount=letor]": lambda l: naive.ndcg(l, discount=naive.letor_discount),
    "dcg@2": lambda l: naive.dcg(l, 2) if max(l) else None,
    "meanndcg": naive.mean_ndcg,
    "meanndcg[discount=letor]": lambda l: naive.mean_ndcg(l, discount=naive.letor_discount),
    "err": naive.err,
    "err@3": lambda l: naive.err(l, 3),
    "err[max_grade=5]": lambda l: naive.err(l, max_grade=5),
    "map": naive.average_precision,
    "map[relevant=2]": lambda l: naive.average_precision(l, relevant=2),
    "map@3": lambda l: naive.average_precision(l, 3),
    "mrr": naive.reciprocal_rank,
    "mrr@2": lambda l: naive.reciprocal_rank(l, 2),
    "p@3": lambda l: naive.precision(l, 3),
    "recall@2": lambda l: naive.recall(l, 2),
    "auc": naive.roc_area,
    "auc[relevant=3]": lambda l: naive.roc_area(l, relevant=3),
    "pairs": naive.pairwise_accuracy,
    "accuracy": naive.best_accuracy,
    "rprec": naive.r_precision,
    "rprec[relevant=2]": lambda l: naive.r_precision(l, relevant=2),
    "success@2": lambda l: naive.success(l, 2),
    "f1@3": lambda l: naive.f1(l, 3),
    "rbp[p=.6]": lambda l: naive.rank_biased_precision(l, 0.6),
    "rbp@2": lambda l: naive.rank_biased_precision(l, 0.8, 2),
    "pfound[gain=0/.1/.5/1]": lambda l: naive.pfound(l, lambda g: (0, 0.1, 0.5, 1)[g], 0.85),
    "pfound@3[gain=exp2,max_grade=3,decay=.7]": lambda l: naive.pfound(
        l, lambda g: (2**g - 1) / 8, 0.7, 3
    ),
    "bpref": naive.bpref,
    "bpref[relevant=2]": lambda l: naive.bpref(l, relevant=2),
    "infap": naive.inferred_ap,
}


def lists(n):
    """Return all label lists of length n, in the order of a (4, ..., 4) array's entries."""
    return np.array(list(itertools.product(range(GRADES), repeat=n)), np.float64)


def oracle_table(function, n):
    values = [function(labels) for labels in itertools.product(range(GRADES), repeat=n)]
    return np.array([np.nan if v is None else v for v in values]).reshape((GRADES,) * n)


@pytest.fixture(scope="module", params=CASES)
def case(request):
    """Return a measure under convention "drop" (only what is undefined is NaN) and its tables."""
    spec = request.param
    measure = rg.measure(spec).with_(empty="drop")
    if spec.startswith("err") and "max_grade" not in spec:
        measure = measure.with_(max_grade=3)
    return measure, {n: oracle_table(CASES[spec], n) for n in LENGTHS}


def values(measure, n, scores):
    labels = lists(n)
    ptr = np.arange(0, labels.size + 1, n)
    ranking = rank(np.tile(scores, labels.shape[0]), ptr)
    return measure.prepare(labels.ravel(), ptr).values(ranking)


@pytest.mark.parametrize("n", LENGTHS)
def test_values(case, n):
    measure, tables = case
    got = values(measure, n, -np.arange(n, dtype=float))
    np.testing.assert_allclose(got, tables[n].ravel(), rtol=1e-13, atol=1e-15)


def compositions(n):
    """Return all ways to cut ranks 0..n-1 into groups of neighbours."""
    for cuts in itertools.product([False, True], repeat=n - 1):
        borders = [0, *(i + 1 for i, cut in enumerate(cuts) if cut), n]
        yield [range(a, b) for a, b in itertools.pairwise(borders)]


@pytest.mark.slow
@pytest.mark.parametrize("n", LENGTHS)
def test_expectation_over_tied_orders(case, n):
    measure, tables = case
    for groups in compositions(n):
        orders = [
            [axis for part in parts for axis in part]
            for parts in itertools.product(*(itertools.permutations(g) for g in groups))
        ]
        expected = np.mean([tables[n].transpose(order) for order in orders], axis=0)
        scores = np.concatenate([np.full(len(g), -float(i)) for i, g in enumerate(groups)])
        got = values(measure.with_(ties="expected"), n, scores)
        np.testing.assert_allclose(got, expected.ravel(), rtol=1e-12, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("n", [4, 6])
def test_worst_order_of_ties(case, n):
    measure, tables = case
    for groups in compositions(n):
        orders = [
            [axis for part in parts for axis in part]
            for parts in itertools.product(*(itertools.permutations(g) for g in groups))
        ]
        worst = np.min([tables[n].transpose(order) for order in orders], axis=0)
        scores = np.concatenate([np.full(len(g), -float(i)) for i, g in enumerate(groups)])
        got = values(measure.with_(ties="worst"), n, scores)
        np.testing.assert_allclose(got, worst.ravel(), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", LENGTHS)
def test_swap_deltas(case, n):
    measure, tables = case
    labels = lists(n)
    ptr = np.arange(0, labels.size + 1, n)
    if measure.not_a_target:
        pytest.skip("nothing can be trained for it")
    prepared = measure.prepare(labels.ravel(), ptr)
    got = np.zeros((labels.shape[0], n, n))
    for q in range(labels.shape[0]):
        part = slice(ptr[q], ptr[q + 1])
        gain, weight = prepared.gain[part], prepared.weight[part]
        measure.kernels.swap_matrix(measure.swap_rule, gain, weight, got[q])
    table = tables[n]
    defined = ~np.isnan(table.ravel())
    for i, j in itertools.combinations(range(n), 2):
        expected = (table.swapaxes(i, j) - table).ravel()
        np.testing.assert_allclose(got[defined, i, j], expected[defined], atol=1e-13)
        np.testing.assert_array_equal(got[:, i, j], got[:, j, i])


def test_public_swap_deltas_equal_their_definition(case):
    measure, _ = case
    if measure.not_a_target:
        with pytest.raises(rg.ParameterError, match="Nothing can be trained for the measure"):
            measure.swap_deltas([1, 0])
        return
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 12):
        labels = rng.integers(0, GRADES, n)
        np.testing.assert_allclose(
            measure.swap_deltas(labels), measure.swap_deltas_by_definition(labels), atol=1e-13
        )
