"""Figure 1 of the overview paper: two rankings of one query, and whom gradients push."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.objectives.lambdas import LambdaObjective

N = 16


def relevant_at(*ranks):
    """Return binary labels by rank, from 1."""
    return np.isin(np.arange(1, N + 1), ranks).astype(float)


LEFT, RIGHT = relevant_at(1, 15), relevant_at(4, 10)  # the top goes down by 3, the bottom up by 5


def test_fewer_wrong_pairs_and_a_worse_top():
    wrong = [
        sum(labels[i] < labels[j] for i in range(N) for j in range(i + 1, N))
        for labels in (LEFT, RIGHT)
    ]
    assert wrong == [13, 11]
    scores = -np.arange(N)
    pairs, ndcg, err = rg.measure("pairs"), rg.measure("ndcg@10"), rg.measure("err", max_grade=1)
    assert pairs.query_value(RIGHT, scores) > pairs.query_value(LEFT, scores)
    assert pairs.query_value(LEFT, scores) == pytest.approx(1 - 13 / 28)
    for top in (ndcg, err):
        assert top.query_value(RIGHT, scores) < top.query_value(LEFT, scores)


def test_whom_the_arrows_push():
    pushes = {}
    for measure in ("pairs", "ndcg"):
        objective = LambdaObjective(
            rg.measure(measure), RIGHT, np.array([0, N]), row_keys=np.arange(N)
        )
        gradient, hessian = np.zeros((2, N))
        objective.gradients(-0.01 * np.arange(N), gradient, hessian)
        pushes[measure] = gradient[[3, 9]]
        assert (gradient[[3, 9]] > 0).all()
    # RankNet pushes the lower one more, which has more wrong pairs; LambdaRank the upper one
    assert pushes["pairs"][1] > pushes["pairs"][0]
    assert pushes["ndcg"][0] > pushes["ndcg"][1]
