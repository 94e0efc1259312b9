"""Scores of many models made one, against their definitions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankgrove.bagging.aggregate import COMBINE, aggregate
from rankgrove.bagging.sample import sampled_queries
from rankgrove.random import string_keys


def naive(columns, query_ptr, combine, weights):
    total = np.zeros(query_ptr[-1])
    for scores, weight in zip(columns, weights, strict=True):
        for a, b in itertools.pairwise(query_ptr):
            part = scores[a:b]
            if combine == "minmax":
                reach = part.max() - part.min()
                own = (part - part.min()) / reach if reach > 0 else 0 * part
            elif combine == "borda":
                own = [np.sum(part < s) + 0.5 * (np.sum(part == s) - 1) for s in part]
            else:
                own = part
            total[a:b] += weight * np.asarray(own)
    return total / np.sum(weights)


@pytest.mark.parametrize("combine", COMBINE)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    n_models=st.integers(1, 4),
    seed=st.integers(0, 1000),
)
def test_against_the_definition(combine, sizes, n_models, seed):
    rng = np.random.default_rng(seed)
    query_ptr = np.cumsum([0, *sizes])
    columns = rng.integers(-2, 3, (n_models, query_ptr[-1])).astype(float)
    weights = rng.integers(1, 4, n_models).astype(float)
    for n_threads in (1, 2):
        found = aggregate(columns, query_ptr, combine, weights, n_threads)
        np.testing.assert_allclose(found, naive(columns, query_ptr, combine, weights))


def test_the_best_document_of_all_models_has_1_and_the_worst_0():
    columns = [np.array([3.0, 1.0, 2.0]), np.array([90.0, -10.0, 40.0])]
    found = aggregate(columns, np.array([0, 3]), "minmax", np.ones(2))
    np.testing.assert_array_equal(found, [1.0, 0.0, 0.5])


def test_samples_hang_on_keys_not_on_order():
    keys = string_keys(range(100))
    chosen = sampled_queries(keys, 0.67, 3, 5)
    assert chosen.sum() == 67
    np.testing.assert_array_equal(sampled_queries(keys[::-1], 0.67, 3, 5), chosen[::-1])
    assert (sampled_queries(keys, 0.67, 3, 6) != chosen).any()
    assert sampled_queries(keys, 0.001, 3, 6).sum() == 1
    assert sampled_queries(keys, 1.0, 3, 6).all()
