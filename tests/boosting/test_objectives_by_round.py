"""Objectives that differ from round to round: a round without a split is not the end."""

from __future__ import annotations

import numpy as np

import rankgrove as rg
from rankgrove.boosting.local_rows import LocalRows
from rankgrove.boosting.loop import boost
from rankgrove.boosting.sampling import Sampler
from rankgrove.boosting.step import ConstantStep
from rankgrove.data.binning import Binner
from rankgrove.growth.grower import Grower
from rankgrove.training.watch import Watch


class EveryOther:
    """Gradients of labels in odd rounds, and none in even ones."""

    n_columns = 1

    def __init__(self, labels, varies):
        self.labels = labels
        self.varies_by_round = varies

    def gradients(self, scores, gradient, hessian, queries=None, n_threads=None, round=0):
        gradient[:] = self.labels * (round % 2)
        hessian[:] = 1.0


def trees_with_splits(varies):
    data = rg.make_web(10, n_docs=8, n_features=4, seed=1)
    binned = Binner.fit(data.X).transform(data.X)
    keys, ptr = data.row_keys, data.query_ptr
    grower = Grower(binned, n_leaves=3, min_leaf=2)
    sampler = Sampler(data.query_keys, keys, ptr)
    scores = np.zeros((1, data.n_rows))
    rows = LocalRows(EveryOther(data.grouped(data.y), varies), grower, scores, sampler)
    done = boost(rows, rounds=6, step=ConstantStep(0.1), watch=Watch({}))
    return [tree.n_nodes > 0 for tree in done.trees]


def test_only_an_objective_that_says_so_goes_on_after_an_empty_round():
    assert trees_with_splits(True) == [False, True, False, True, False, True]
    assert trees_with_splits(False) == [False]
