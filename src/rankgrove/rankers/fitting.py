"""The checked arguments of ``fit`` as one value: data, validation data and callbacks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from rankgrove.data.binned_dataset import BinnedDataset
from rankgrove.data.binning import BinnedMatrix, Binner
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.objectives.position_bias import PositionBias
from rankgrove.rankers.given import check_names
from rankgrove.rankers.positions import watch_clicks
from rankgrove.training.watch import History, Watch, Watched
from rankgrove.validation import counted, refuse

if TYPE_CHECKING:
    from rankgrove.objectives.preference_pairs import Preferences

Callback = Callable[..., Any]  # called after every round with a Progress; True ends training
_Called = TypeVar("_Called", bound=Callback)


@dataclass(frozen=True)
class Training:
    """All inputs of training, except the ranker's parameters.

    Attributes
    ----------
    train : the training data
    valid : validation data by name; the first decides
    measures : measures on validation data, by name; the first decides
    callbacks : called after every round; returning True ends training
    owner : the caller's name for messages: ``LambdaMART.fit``
    start : for nets: the net to start from
    preferences : pairs of documents instead of labels, rows in query order
    by_query : whether the caller said which query a document of a pair belongs to
    bins : the training data's bins, where they are already known
    depends_on : values that a checkpoint must agree with, besides data and parameters
    """

    train: QueryDataset
    valid: Mapping[str, QueryDataset]
    measures: Mapping[str, Measure]
    callbacks: Sequence[Callback]
    owner: str
    start: Any = None
    preferences: Preferences | None = None
    by_query: bool = True
    bins: BinnedMatrix | None = None
    depends_on: Mapping[str, str] = field(default_factory=dict)


# -- checks ----------------------------------------------------------------------------------------


def check_alike(
    data: QueryDataset, name: str, n_features: int, names: Sequence[str] | None, owner: str
) -> None:
    """Refuse validation data whose features are not those of the training data."""
    if data.n_features != n_features:
        raise DataError(
            f"{owner}: the {name} data has {counted(data.n_features, 'feature')}, the "
            f"training data {n_features}."
        )
    check_names(names, data.given_names, owner)


def named_measures(
    valid_measures: str | Measure | Iterable[str | Measure] | None,
    target: Measure,
    watched: bool = True,
) -> dict[str, Measure]:
    """Return the measures on validation data by name; `watched`: whether there is such data."""
    if valid_measures is None:
        return {str(target): target}
    listed = [valid_measures] if isinstance(valid_measures, str | Measure) else list(valid_measures)
    if not listed:
        raise ParameterError("valid_measures must name at least one measure.")
    measures = {str(spec): parse_measure(spec) for spec in listed}
    if not watched:
        raise ParameterError("valid_measures needs validation data: give valid= too.")
    return measures


def listed_callbacks(callbacks: _Called | Iterable[_Called] | None, owner: str) -> list[_Called]:
    """Return callbacks as a list; they may be None, one function, or several."""
    if callbacks is None:
        return []
    listed = [callbacks] if callable(callbacks) else None
    if listed is None and isinstance(callbacks, Iterable):
        listed = list(callbacks)
    if listed is None or not all(map(callable, listed)):
        refuse("callbacks", owner, "a function of a Progress, or a list of such", callbacks)
    for callback in listed:
        library = (getattr(type(callback), "__module__", "") or "").partition(".")[0]
        if library in ("lightgbm", "xgboost", "catboost"):
            rule = f"a function of a Progress, not a callback of {library}: use early_stopping="
            refuse("callbacks", owner, f"{rule} and progress= of the ranker", callback)
    return listed


# -- validation while training ---------------------------------------------------------------------


def watch_of(
    training: Training,
    patience: int | None,
    n_threads: int | None,
    *,
    scores: Callable[[QueryDataset], np.ndarray] | None = None,
    binner: Binner | None = None,
    ranked: Callable[[np.ndarray], np.ndarray] | None = None,
    keeps_start: bool = False,
    bias: PositionBias | None = None,
) -> Watch:
    """Return the object that measures the validation data after every round.

    Parameters
    ----------
    training : the validation data and the measures
    patience : rounds without a better value after which to stop; None: never
    n_threads : number of threads that bin and measure; None: all cores
    scores : function that returns a data set's first scores, of shape (columns, rows); None: zeros
    binner : bins of the features that trees see; None: scores come from elsewhere
    ranked : function that combines several columns of scores into the one that ranks
    keeps_start : whether the model before the first round may be the best one
    bias : what is learned about positions, for validation data of clicks
    """
    owner = training.owner.partition(".")[0]
    watched, values_before = {}, {}
    for name, data in training.valid.items():
        watched[name] = Watched(
            None if binner is None else _valid_bins(binner, data, name, owner, n_threads),
            data.grouped(data.y),
            data.query_ptr,
            training.measures,
            np.zeros((1, data.n_rows)) if scores is None else scores(data),
            ranked,
            n_threads,
        )
        if bias is not None:
            watch_clicks(watched[name], data, bias, name)
        values_before[name] = check_defined(watched[name], name, owner)
    return Watch(watched, patience, start=values_before if keeps_start else None)


def _valid_bins(
    binner: Binner, data: QueryDataset, name: str, owner: str, n_threads: int | None
) -> BinnedMatrix:
    """Return the bins of validation data, in query order."""
    if not isinstance(data, BinnedDataset):
        return binner.transform(data.features, query_order_rows(data), n_threads)
    if not data.same_bins(binner):
        raise DataError(
            f"{owner}: the bins of the {name} data in {data.folder} are not those of the training "
            "data: open it with like=, and the training data."
        )
    if data.of_training and binner.has_ordered:
        raise DataError(
            f"{owner}: the {name} data in {data.folder} has the bins of training data, which "
            "depend on labels: open it with like=, and the training data."
        )
    return data.bins


def check_defined(watched: Watched, name: str, owner: str) -> dict[str, float]:
    """Return the measures before training; refuse data where one of them skips every query."""
    values = watched.values()
    for measure_name, value in values.items():
        if np.isnan(value):
            raise DataError(
                f"{owner}: {measure_name} leaves out every query of the {name} data "
                "(nothing relevant, or all labels equal)."
            )
    return values


def history_lines(history: History, best: int | None, unit: str) -> list[str]:
    """Return a summary's lines on validation data: the measures of the best round, or the last."""
    lines = []
    for name, measures in history.items():
        for measure_name, values in measures.items():
            n = best or len(values)
            lines.append(f"{name} {measure_name}: {values[n - 1]:.4f} after {unit} {n}")
    return lines


# -- inputs that a checkpoint must agree with ------------------------------------------------------


def fingerprint(data: QueryDataset, binned: BinnedMatrix | None = None) -> str:
    """Return a hash of the parts of a data set that training sees."""
    if binned is None and isinstance(data, BinnedDataset):
        binned = data.bins
    features = data.features if binned is None else binned.codes
    arrays = [data.grouped(data.y), data.query_ptr, data.query_keys]
    arrays += [a for a in (data.weight, data.query_weight) if a is not None]
    if data.positions is not None:
        arrays += data.positions.arrays()
    if isinstance(features, np.ndarray):
        arrays.append(features)
    else:
        arrays += [features.data, features.indices, features.indptr]
    if binned is not None:
        arrays += binned.binner.content()
    if data.categories:
        arrays.append(np.frombuffer(repr(data.categories).encode(), np.uint8))
    return digest_of(arrays)


def validation_of_run(
    measure: str | Measure, valid: Mapping[str, QueryDataset], measures: Mapping[str, Measure]
) -> dict[str, Any]:
    """Return the measures and validation data that a checkpoint must agree with."""
    return {
        "measure": str(parse_measure(measure)),
        "validation data": [[name, fingerprint(data)] for name, data in valid.items()],
        "valid_measures": [str(measure) for measure in measures.values()],
    }


def digest_of(arrays: Iterable[np.ndarray]) -> str:
    """Return a hash of the bytes of arrays."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def row_weights(data: QueryDataset) -> np.ndarray | None:
    """Return a row's weight times its query's, in query order; None where there are none."""
    if data.weight is None and data.query_weight is None:
        return None
    weight = np.ones(data.n_rows) if data.weight is None else data.grouped(data.weight)
    if data.query_weight is None:
        return weight
    return weight * np.repeat(data.query_weight, np.diff(data.query_ptr))
