"""The test of local optimality for trained rankers (overview paper, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import target_measure
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network, chosen_rows
from rankgrove.nets.local_optimum import (
    REACH,
    STEPS,
    LocalOptimum,
    Scores,
    directions_needed,
    local_optimum,
)
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.linear.data import scaled_rows
from rankgrove.rankers.linear.linear_predictor import LinearPredictor
from rankgrove.rankers.nets.net import NetRanker
from rankgrove.scoring.linear_scores import score_linear
from rankgrove.validation import check_integer, check_real, refuse

OWNER = "check_local_optimum"
MOST_DIRECTIONS = 1_000_000


def check_local_optimum(
    model: Any,
    data: QueryDataset,
    measure: str | Measure | None = None,
    p0: float = 0.01,
    confidence: float = 0.99,
    *,
    steps: Sequence[float] = STEPS,
    coordinates: int | None = None,
    reach: float = REACH,
    random_state: int = 0,
    n_threads: int | None = None,
) -> LocalOptimum:
    """Test whether the weights of a net or a linear model are a local optimum of a measure.

    The weights are moved along random directions, drawn from a spherical Gaussian, and the mean of
    the measure must fall along every one. The result holds for the given data, so use the training
    data.

    Parameters
    ----------
    model : a trained net (RankNet, LambdaRank, ListNet, BoltzRank, StackedRanker) or linear
        ranker (the SVMs)
    data : the data the weights were learned on
    measure : a measure or its name; None: the model's own
    p0, confidence : the required confidence that at most a share p0 of all directions goes up; the
        number of directions follows (equation 9: 459)
    steps : lengths of the moves, relative to the length of the weight vector. Too short: the
        measure is a step function, and only its noise is seen. Too long: another valley is
        reached, and anything trained looks optimal
    coordinates : follow the measure along this many weights, drawn at random; None: all
    reach : how far to both sides, relative to the weights' root mean square
    random_state : seed of the directions
    n_threads : threads to use, None for all cores; the result does not depend on it

    Examples
    --------
    >>> import rankgrove as rg
    >>> train = rg.make_artificial(50, seed=1)
    >>> model = rg.LambdaRank(hidden=(), n_epochs=1).fit(train)
    >>> optimum = rg.check_local_optimum(model, train, p0=0.1, coordinates=5)
    >>> optimum.n_directions, optimum.passed
    (44, False)
    """
    if not isinstance(data, QueryDataset):
        raise DataError(f"{OWNER} needs a QueryDataset. Got {type(data).__name__} instead.")
    check_real("p0", OWNER, p0, above=0.0)
    check_real("confidence", OWNER, confidence, above=0.0)
    for name, share in (("p0", p0), ("confidence", confidence)):
        if share >= 1.0:
            refuse(name, OWNER, "below 1", share)
    if directions_needed(p0, confidence) > MOST_DIRECTIONS:
        refuse(
            "p0",
            OWNER,
            f"so large that {MOST_DIRECTIONS:,} directions are enough at confidence {confidence:g} "
            f"(this needs {directions_needed(p0, confidence):,})",
            p0,
        )
    moves = _checked_steps(steps)
    check_real("reach", OWNER, reach, above=0.0)
    if coordinates is not None:
        check_integer("coordinates", OWNER, coordinates, low=0)
    check_integer("random_state", OWNER, random_state, low=0)
    chosen = getattr(model, "measure", None) if measure is None else measure
    if isinstance(model, Ranker):
        data = model.prepared(data)
    scores, weights = _as_function(model, data, n_threads)
    if chosen is None:
        refuse("measure", OWNER, "given: the model has none of its own", measure)
    prepared = target_measure(chosen).prepare(data.grouped(data.y), data.query_ptr, n_threads)
    return local_optimum(
        scores,
        weights,
        prepared,
        p0=float(p0),
        confidence=float(confidence),
        steps=moves,
        n_coordinates=coordinates,
        reach=float(reach),
        seed=random_state,
        n_threads=n_threads,
    )


def _checked_steps(steps: Any) -> list[float]:
    listed = list(steps) if isinstance(steps, Sequence | np.ndarray) else [steps]
    if not listed or isinstance(steps, str):
        refuse("steps", OWNER, "one length or several, such as (0.1, 0.2)", steps)
    return [check_real("steps", OWNER, step, above=0.0) for step in listed]


def _as_function(
    model: Any, data: QueryDataset, n_threads: int | None
) -> tuple[Scores, np.ndarray]:
    """Return the scores, in query order, as a function of the weights; and the weights."""
    network, linear = getattr(model, "network_", None), getattr(model, "linear_", None)
    if isinstance(network, Network):
        net, features = network, data.features
        rows = chosen_rows(features, query_order_rows(data))
        net.scores(features, rows, n_threads)  # raises an error for unsuitable data
        return lambda flat: net.with_flat(flat).scores(features, rows, 1), net.flat
    if isinstance(linear, Linear):
        if data.n_features != linear.n_features:
            raise DataError(
                f"{OWNER}: the model takes {linear.n_features} features; the data has "
                f"{data.n_features}."
            )
        kept, (scaled, places) = linear, scaled_rows(data, linear.scaling, n_threads)
        return (
            lambda weights: score_linear(replace(kept, weights=weights), scaled, places, 1),
            kept.weights,
        )
    # the class is asked for only to word the message: an untrained ranker has no weights to look at
    could_be_trained = isinstance(model, NetRanker | LinearPredictor)
    raise DataError(
        f"{OWNER} needs a trained net (RankNet, LambdaRank, ListNet, BoltzRank, StackedRanker) "
        f"or linear ranker, whose weights can be moved. Got {type(model).__name__}"
        + (", which is not trained." if could_be_trained else ".")
    )
