"""Weights change the model, or are refused: no ranker ignores them silently."""

from __future__ import annotations

import numpy as np
import pytest

import rankgrove as rg
from rankgrove.rankers.load import trainable

DATA = rg.make_web(12, n_docs=8, n_features=5, seed=1)
ROWS = (np.array(DATA.X), np.array(DATA.y), np.array(DATA.qid))
RANDOM = np.random.default_rng(0)
WEIGHTS = {
    "weight": RANDOM.uniform(0.2, 5.0, DATA.n_rows),
    "query_weight": RANDOM.uniform(0.2, 5.0, DATA.n_queries),
}
# the cheapest values of parameters, for the rankers that have them
CHEAP = {
    "n_trees": 4,
    "min_leaf": 3,
    "n_epochs": 2,
    "hidden": (2,),
    "C": 1.0,
    "n_restarts": 1,
    "n_rounds": 3,
    "n_steps": 2,
}


def cheap(kind):
    ranker = trainable()[kind]()
    known = ranker.get_params(deep=False)
    return ranker.set_params(**{name: value for name, value in CHEAP.items() if name in known})


def refusal(ranker, *data, **weights):
    """Return the message by which a ranker refuses weights; "" if it takes them."""
    try:
        ranker.fit(*data, **weights)
    except rg.RankgroveError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("kind", trainable())
def test_weights_are_used_or_refused(kind):
    plain = cheap(kind).fit(*ROWS).predict(ROWS[0])
    for name, values in WEIGHTS.items():
        ranker = cheap(kind)
        message = refusal(ranker, *ROWS, **{name: values})
        of_data_set = refusal(cheap(kind), rg.QueryDataset(*ROWS, **{name: values}))
        assert bool(message) == bool(of_data_set)
        if name == "weight":
            assert bool(message) != ranker.takes_row_weights
        if message:
            assert "weight" in message
            assert "weight" in of_data_set
            continue
        assert not np.array_equal(ranker.predict(ROWS[0]), plain), (
            f"{kind} ignores {name}: use it, or leave 'weight' out of fit_takes."
        )


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_ranker_that_does_not_take_weights_refuses_those_of_a_data_set(name):
    class Unweighted(rg.MART):
        fit_takes = frozenset({"valid"})

    with pytest.raises(rg.ParameterError, match=r"cannot use weights .* leave weight out"):
        Unweighted(n_trees=1).fit(*ROWS, **{name: WEIGHTS[name]})
    data = rg.QueryDataset(*ROWS, **{name: WEIGHTS[name]})
    with pytest.raises(rg.ParameterError, match=r"cannot use weights .* data without them"):
        Unweighted(n_trees=1).fit(data)
