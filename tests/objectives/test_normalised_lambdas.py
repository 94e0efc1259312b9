"""The default objective (normalise=True) against its documented formula."""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankgrove as rg
from rankgrove.objectives.lambdas import LambdaObjective
from tests.reference import lambdas as naive_lambdas
from tests.reference import measures as naive


class Case(NamedTuple):
    """A measure of the oracles, and its cutoff; None: all pairs of unequal labels count 1."""

    measure: object
    k: int | None = None

    def pairs(self, labels, scores, keys, truncation, beyond_cutoff=True):
        if self.measure is None:
            value, change = None, lambda labels, a, b: 1.0
        else:
            value = naive_lambdas.changing_value(self.measure, self.k, beyond_cutoff)
            change = None
        return naive_lambdas.pairs(value, labels, scores, keys, truncation, change=change)


CASES = {
    "ndcg": Case(naive.ndcg),
    "ndcg@3": Case(naive.ndcg, 3),
    "ndcg@10": Case(naive.ndcg, 10),
    "dcg@2": Case(naive.dcg, 2),
    "map": Case(naive.average_precision),
    "map@4": Case(naive.average_precision, 4),
    "err[max_grade=4]": Case(partial(naive.err, max_grade=4)),
    "err@3[max_grade=4]": Case(partial(naive.err, max_grade=4), 3),
    "mrr": Case(naive.reciprocal_rank),
    "mrr@2": Case(naive.reciprocal_rank, 2),
    "meanndcg": Case(naive.mean_ndcg),
    "pairs": Case(None),
}


def run(spec, labels, scores, ptr, keys, **parameters):
    """Return gradient and hessian."""
    objective = LambdaObjective(
        rg.measure(spec), labels, ptr, row_keys=keys, normalise=True, **parameters
    )
    gradient, hessian = np.full((2, labels.size), np.nan)
    objective.gradients(scores, gradient, hessian, n_threads=1)
    return gradient, hessian


def oracle(
    spec, labels, scores, keys, truncation=None, sigma=1.0, row_weight=None, query_weight=1.0,
    beyond_cutoff=True,
):  # fmt: skip
    """Return what `run` should, for one query."""
    labels, scores, keys = labels.tolist(), scores.tolist(), keys.tolist()
    pairs = CASES[spec].pairs(labels, scores, keys, truncation, beyond_cutoff)
    if row_weight is not None:
        pairs = naive_lambdas.weighed(pairs, row_weight.tolist())
    return naive_lambdas.normalised_lambdas(pairs, scores, sigma, query_weight)


def assert_close(got, expected):
    for a, b in zip(got, expected, strict=True):
        # Near 0 to what evaluating a measure twice leaves of its digits, divided by 0.01.
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13 * max(1.0, np.abs(b).max()))


class Queries(NamedTuple):
    labels: np.ndarray
    scores: np.ndarray
    ptr: np.ndarray
    keys: np.ndarray
    row_weight: np.ndarray
    query_weight: np.ndarray


# Long before short, so that what a long query leaves in the scratch arrays would show.
SIZES = [14, 1, 2, 9, 3, 12, 1, 8, 17, 5]


def make_queries(spread=2.0, seed=0, tied=False):
    """Return queries of which one has equal labels, one equal scores, and two one document."""
    rng = np.random.default_rng(seed)
    ptr = np.concatenate([[0], np.cumsum(SIZES)])
    n = int(ptr[-1])
    labels, scores = rng.integers(0, 5, n).astype(float), rng.normal(size=n) * spread
    scores = np.round(scores) if tied else scores
    longer = np.array(SIZES) > 1
    labels[ptr[:-1][longer]], labels[ptr[1:][longer] - 1] = 0.0, 4.0
    labels[ptr[3] : ptr[4]] = 2.0
    scores[ptr[5] : ptr[6]] = 0.75
    weights = rng.uniform(0, 3, n), rng.uniform(0, 3, len(SIZES))
    return Queries(labels, scores, ptr, rng.permutation(n).astype(np.uint64), *weights)


def compare(spec, data, truncation=None, sigma=1.0, weights=(), beyond_cutoff=True):
    given = {name: getattr(data, name) for name in weights}
    got = run(
        spec, *data[:4], truncation=truncation, sigma=sigma, beyond_cutoff=beyond_cutoff, **given
    )
    moved = 0
    for q in range(len(SIZES)):
        part = slice(data.ptr[q], data.ptr[q + 1])
        expected = oracle(
            spec, data.labels[part], data.scores[part], data.keys[part], truncation, sigma,
            data.row_weight[part] if "row_weight" in weights else None,
            data.query_weight[q] if "query_weight" in weights else 1.0, beyond_cutoff,
        )  # fmt: skip
        assert_close([x[part] for x in got], expected)
        moved += np.any(expected)
    assert moved  # or else there was nothing to compare


@pytest.mark.parametrize("truncation", [None, 1, 3, 8])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("spec", CASES)
def test_the_documented_formula(spec, tied, truncation):
    compare(spec, make_queries(tied=tied), truncation)


@pytest.mark.parametrize("truncation", [None, 3])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("spec", [spec for spec, case in CASES.items() if case.k is not None])
def test_the_measures_own_change_at_its_cutoff(spec, tied, truncation):
    compare(spec, make_queries(seed=3, tied=tied), truncation, beyond_cutoff=False)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 4.0])
@pytest.mark.parametrize(
    "weights", [(), ("row_weight",), ("query_weight",), ("row_weight", "query_weight")]
)
@pytest.mark.parametrize("spec", CASES)
def test_sigma_and_weights(spec, weights, sigma):
    compare(spec, make_queries(seed=1), 6, sigma, weights)


@pytest.mark.parametrize("spread", [1e-6, 1e-2, 30.0, 250.0, 1e4, 1e12])
@pytest.mark.parametrize("weights", [(), ("row_weight", "query_weight")])
@pytest.mark.parametrize("spec", CASES)
def test_close_and_far_scores(spec, weights, spread):
    # Both ways of computing rho: exp(sigma s) is kept as one number up to a range of 600.
    compare(spec, make_queries(spread, seed=2), None, 1.0, weights)


@given(
    st.sampled_from(list(CASES)),
    st.lists(
        st.tuples(st.integers(0, 4), st.integers(-2, 2).map(float) | st.floats(-900, 900)),
        min_size=2,
        max_size=9,
    ).filter(lambda rows: len({label for label, _ in rows}) > 1),
    st.none() | st.integers(1, 9),
    st.sampled_from([0.5, 1.0, 3.0]),
)
def test_any_query(spec, rows, truncation, sigma):
    labels, scores = np.array(rows, np.float64).T.copy()
    keys, ptr = np.arange(labels.size, dtype=np.uint64), np.array([0, labels.size])
    parameters = {"truncation": truncation, "sigma": sigma}
    got = run(spec, labels, scores, ptr, keys, may_be_empty=True, **parameters)
    assert_close(got, oracle(spec, labels, scores, keys, **parameters))


def test_two_documents_by_hand():
    # The better document stands second, two points behind: rho = 1 / (1 + e^-2).
    labels, ptr, keys = np.array([0.0, 1.0]), np.array([0, 2]), np.arange(2)
    gradient, hessian = run("ndcg", labels, np.array([2.0, 0.0]), ptr, keys)
    rho, size = 1 / (1 + math.exp(-2.0)), (1 - 1 / math.log2(3)) / (0.01 + 2.0)
    scale = math.log2(1 + 2 * size * rho) / (2 * size * rho)
    np.testing.assert_allclose(gradient, np.array([-1, 1]) * scale * size * rho, rtol=1e-14)
    np.testing.assert_allclose(hessian, [scale * size * rho * (1 - rho)] * 2, rtol=1e-14)
    # Equal scores: nothing is divided, rho = 1/2.
    gradient, hessian = run("ndcg", labels, np.zeros(2), ptr, keys)
    size = 1 - 1 / math.log2(3)
    np.testing.assert_allclose(gradient[1], math.log2(1 + size) / 2, rtol=1e-14)
    np.testing.assert_allclose(hessian, [math.log2(1 + size) / 4] * 2, rtol=1e-14)


@pytest.mark.parametrize("spec", [spec for spec, case in CASES.items() if case.k is not None])
def test_the_oracle_ends_at_the_cutoff_where_it_is_told_to(spec):
    labels, scores = np.array([1.0, 0, 2, 0, 1, 3] * 3), -np.arange(18.0)
    case = CASES[spec]
    within = case.pairs(labels.tolist(), scores.tolist(), range(18), None, beyond_cutoff=False)
    assert not any(size for i, j, size in within if min(i, j) >= case.k)
    beyond = case.pairs(labels.tolist(), scores.tolist(), range(18), None, beyond_cutoff=True)
    assert spec.startswith("mrr") or any(size for i, j, size in beyond if min(i, j) >= case.k)
