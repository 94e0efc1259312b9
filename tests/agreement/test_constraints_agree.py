"""Monotone trees against LightGBM's: both in order, ours with no higher loss."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from tests.rankers.test_constraints import falls

lightgbm = pytest.importorskip("lightgbm")

DIRECTIONS = {0: 1, 1: -1, 2: 1, 3: -1}  # the last two are not true of the data


def data(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    noise = 0.5 * rng.normal(size=3000)
    return X, X[:, 0] - 2 * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] * X[:, 4] + noise


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_loss_of_training(seed):
    X, y = data(seed)
    common = {"learning_rate": 0.1, "min_data_in_leaf": 20, "num_leaves": 15, "verbose": -1}
    theirs = lightgbm.train(
        {
            **common,
            "num_threads": 1,
            "monotone_constraints": [DIRECTIONS.get(j, 0) for j in range(6)],
            "monotone_constraints_method": "basic",
        },
        lightgbm.Dataset(X, y),
        60,
    )
    monotone = {j + 1: direction for j, direction in DIRECTIONS.items()}
    for split in ("mse", "newton"):
        ours = rg.MART(
            n_trees=60, n_leaves=15, min_leaf=20, l2=0, split=split, n_threads=1, monotone=monotone
        ).fit(X, y)
        losses = [float(((model.predict(X) - y) ** 2).mean()) for model in (ours, theirs)]
        assert losses[0] < 1.02 * losses[1]
        for column, direction in DIRECTIONS.items():
            assert falls(ours, column, direction) == 0.0
            assert falls(rg.load(theirs), column, direction) == 0.0
