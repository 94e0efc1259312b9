"""A model on prepared features as a model on the features themselves, where that is exact.

Chosen features are the columns that a model reads. A function that rises, as log1p does, moves
thresholds: what is at most t after it is at most some number before it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rankgrove.data.normalising import transformed
from rankgrove.errors import ParameterError
from rankgrove.formats.write import Model
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network
from rankgrove.rankers.ensembles.prepared import PreparedRanker

_INFINITE = 0x7F800000  # the bits of an infinite float32: those below it ascend with the number


def unprepared(ranker: PreparedRanker, model: Model) -> Model:
    """Return the model in a prepared ranker on the columns of its data; refuse what is not exact.

    `model` : the inner ranker's model, on the prepared features
    """
    inside = "do so in the search engine and convert `ranker_`, the model on the prepared features."
    if ranker.normalise is not None:
        raise ParameterError(
            f"The model normalises features within every query (normalise={ranker.normalise!r}), "
            f"which no format can express. Train it without; or {inside}"
        )
    if ranker.encodings_:
        raise ParameterError(
            f"The model makes numbers of categories (encode={ranker.encode!r}), which no format "
            "can express. Train rg.LambdaMART without encode, which splits on sets of categories; "
            f"or {inside}"
        )
    columns, n = ranker.columns_, ranker.n_features_in_
    if isinstance(model, Ensemble):
        threshold = model.threshold
        if ranker.transform is not None:
            plain = (model.set_of < 0) & ~np.isin(columns[model.feature], list(ranker.categories_))
            threshold = np.where(plain, _before(threshold, ranker.transform), threshold)
        return replace(model, feature=columns[model.feature], n_features=n, threshold=threshold)
    if ranker.transform is not None:
        raise ParameterError(
            f"The model transforms features (transform={ranker.transform!r}), which only trees can "
            f"hold, as other thresholds. Train it without; or {inside}"
        )
    return _spread(model, columns, n)


def _before(threshold: np.ndarray, transform: str) -> np.ndarray:
    """Return the highest float32 numbers that are at most the thresholds after the function."""
    low = np.full(threshold.size, -_INFINITE, np.int64)  # at most every threshold
    high = np.full(threshold.size, _INFINITE + 1, np.int64)
    while np.any(high - low > 1):
        middle = (low + high) // 2
        below = transformed(_number(middle), transform) <= threshold
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return _number(low)


def _number(place: np.ndarray) -> np.ndarray:
    """Return the float32 number at a place among all of them; 0 is at 0."""
    return np.copysign(np.abs(place).astype(np.uint32).view(np.float32), place.astype(np.float32))


def _spread(model: Linear | Network, columns: np.ndarray, n: int) -> Linear | Network:
    """Return a model that reads some columns of n."""

    def wide(values: np.ndarray) -> np.ndarray:
        spread = np.zeros((n, *values.shape[1:]))
        spread[columns] = values
        return spread

    if isinstance(model, Linear):
        return replace(
            model,
            n_features=n,
            weights=wide(model.weights),
            shift=wide(model.shift),
            scale=wide(model.scale),
        )
    units = model.hidden[0] if model.hidden else 1
    first = model.sizes[0] * units
    rows = wide(model.flat[:first].reshape(-1, units)).reshape(-1)
    return replace(
        model,
        sizes=(n, *model.hidden),
        flat=np.concatenate([rows, model.flat[first:]]),
        mean=wide(model.mean),
        scale=wide(model.scale),
    )
