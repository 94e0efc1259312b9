"""Scaling by query and by the data set: as the paper's examples say, dense and sparse alike."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rankgrove.data.scaling import mean_and_deviation, scale_by_query

VALUES = st.sampled_from([-2.0, -0.5, 0.0, 0.0, 0.0, 0.25, 1.0, 7.0, np.nan])
MATRICES = arrays(np.float32, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=VALUES)


def naive(column, how):
    """Scale one query's values of one feature."""
    known = [v for v in column if not np.isnan(v)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    out = []
    for v in column:
        if np.isnan(v):
            out.append(0.0)
        elif how == "query":
            out.append((v - low) / (high - low) if high > low else 0.0)
        else:
            lower = sum(np.isnan(other) or other < v for other in column)
            out.append(lower / len(column))
    return out


@given(MATRICES, st.integers(0, 9), st.sampled_from(["query", "percentile"]))
def test_against_a_loop(X, cut, how):
    cut = min(cut, X.shape[0])
    ptr = np.unique([0, cut, X.shape[0]])
    expected = np.empty(X.shape)
    for first, last in itertools.pairwise(ptr):
        for j in range(X.shape[1]):
            expected[first:last, j] = naive(X[first:last, j].tolist(), how)
    for n_threads in (1, 2):
        np.testing.assert_allclose(scale_by_query(X, ptr, how, n_threads), expected, rtol=1e-6)
    sparse = scale_by_query(scipy.sparse.csr_matrix(X), ptr, how)
    assert sparse.format == "csr"
    assert np.all(sparse.data != 0)  # nothing is written out that is 0
    np.testing.assert_array_equal(sparse.toarray(), scale_by_query(X, ptr, how))


def test_the_papers_example():
    # scores from 0.2 to 0.7: 0.6 becomes 0.8
    scaled = scale_by_query(np.float32([[0.2], [0.6], [0.7]]), np.array([0, 3]), "query")
    np.testing.assert_allclose(scaled[:, 0], [0.0, 0.8, 1.0], rtol=1e-6)


def test_infinite_values_are_the_ends():
    X = np.float32([[np.inf], [1.0], [3.0], [-np.inf]])
    np.testing.assert_array_equal(scale_by_query(X, np.array([0, 4]), "query")[:, 0], [1, 0, 1, 0])


@given(MATRICES)
def test_mean_and_deviation(X):
    n, there = X.shape[1], ~np.isnan(X)
    mean = [X[there[:, j], j].mean() if there[:, j].any() else 0.0 for j in range(n)]
    deviation = [X[there[:, j], j].std() if there[:, j].any() else 0.0 for j in range(n)]
    for matrix in (X, scipy.sparse.csr_matrix(X)):
        found = mean_and_deviation(matrix)
        np.testing.assert_allclose(found[0], mean, atol=1e-6)
        np.testing.assert_allclose(found[1], deviation, atol=1e-5)
        some = mean_and_deviation(matrix, np.array([0, 0]))
        np.testing.assert_allclose(some[1], 0.0, atol=1e-12)


def test_mean_and_deviation_of_many_rows():
    X = np.random.default_rng(0).normal(5.0, 3.0, size=(20_000, 2)).astype(np.float32)
    mean, deviation = mean_and_deviation(X)
    np.testing.assert_allclose(mean, X.astype(float).mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(deviation, X.astype(float).std(axis=0), rtol=1e-12)
    assert not np.isfinite(mean_and_deviation(np.float32([[np.inf], [1.0]]))[1]).all()


@pytest.mark.parametrize("how", ["query", "percentile"])
def test_a_sparse_matrix_stays_small(how):
    X = scipy.sparse.random(300, 5000, 0.002, "csr", np.float32, np.random.default_rng(1))
    scaled = scale_by_query(X, np.arange(0, 301, 30), how)
    assert scaled.nnz <= X.nnz
