"""Lambdas in a parallel region, for much data, are the same bits as query by query."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.measures.parse import target_measure
from rankgrove.objectives import _lambda_kernels as kernels
from rankgrove.objectives import lambdas
from rankgrove.objectives.lambdas import LambdaObjective


@pytest.mark.parametrize("spec", ["ndcg@3", "pairs"])
@pytest.mark.parametrize("some", [False, True])
def test_same_bits_as_query_by_query(monkeypatch, spec, some):
    data = rg.make_web(30, n_docs=12, n_features=3, seed=1)
    ptr, n = data.query_ptr, data.n_rows
    objective = LambdaObjective(
        target_measure(spec),
        data.grouped(data.y),
        ptr,
        row_keys=np.arange(n, dtype=np.uint64),
        normalise=True,
        smoothing=0.5,
        draws=2,
        seed=3,
    )
    scores = np.round(np.random.default_rng(0).normal(size=n), 1)
    queries = np.arange(1, data.n_queries, 3) if some else None

    def gradients(n_threads):
        both = np.full((2, n), 7.0)
        objective.gradients(scores, *both, queries, n_threads, 5)
        return both

    calls = []
    region = kernels.lambda_pieces_linear

    def noted(*arguments):
        calls.append(arguments[-1])
        region(*arguments)

    monkeypatch.setattr(kernels, "lambda_pieces_linear", noted)
    expected = gradients(2)
    assert not calls
    monkeypatch.setattr(lambdas, "REGION_ROWS", 1)
    assert gradients(2).tobytes() == expected.tobytes()
    assert calls == [2]
    assert gradients(1).tobytes() == expected.tobytes()
