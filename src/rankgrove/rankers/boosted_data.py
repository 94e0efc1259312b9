"""What training a boosted ranker needs beside the loop: rows in query order, names, resuming."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from rankgrove.boosting.checkpoint import TreeCheckpoint
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.growth.leaves import add_leaf_values
from rankgrove.growth.partition import leaves_of
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.tree import Tree
from rankgrove.training.watch import Watch
from rankgrove.validation import refuse

_Called = TypeVar("_Called", bound=Callable[..., Any])

BASE_SCORE = "base_score"  # the submodel that is a column of the data


def check_takes_base_score(needed: bool, owner: str) -> None:
    """Refuse base scores that would not be looked at."""
    if not needed:
        raise ParameterError(
            f"{owner} was given base scores, and the ranker does not go on from any: set submodel="
            f"{BASE_SCORE!r}, or leave them out."
        )


def row_weights(data: QueryDataset) -> np.ndarray | None:
    """Return a row's weight times its query's, in query order; None where there are none."""
    if data.weight is None and data.query_weight is None:
        return None
    weight = np.ones(data.n_rows) if data.weight is None else data.grouped(data.weight)
    if data.query_weight is None:
        return weight
    return weight * np.repeat(data.query_weight, np.diff(data.query_ptr))


def named_measures(
    given: str | Measure | Iterable[str | Measure] | None, target: Measure, watched: bool = True
) -> dict[str, Measure]:
    """Return what to measure on validation data (`watched`: there is any), by the given names."""
    if given is None:
        return {str(target): target}
    listed = [given] if isinstance(given, str | Measure) else list(given)
    if not listed:
        raise ParameterError("valid_measures must name at least one measure.")
    found = {str(spec): parse_measure(spec) for spec in listed}
    if not watched:
        raise ParameterError("valid_measures needs validation data: give valid= too.")
    return found


def listed_callbacks(given: _Called | Iterable[_Called] | None, owner: str) -> list[_Called]:
    """Return callbacks as a list: of none, one function, or several."""
    if given is None:
        return []
    listed = [given] if callable(given) else list(given) if isinstance(given, Iterable) else None
    if listed is None or not all(map(callable, listed)):
        refuse("callbacks", owner, "a function of a Progress, or a list of such", given)
    return listed


def resume(
    saver: TreeCheckpoint | None,
    binned: BinnedMatrix,
    scores: np.ndarray,
    watch: Watch,
    most_rounds: int,
    n_threads: int | None,
) -> tuple[list[Tree], list[float]]:
    """Return a checkpoint's trees and weights; bring scores and history to where they end."""
    found = saver.read(watch.history) if saver is not None else None
    if found is None:
        return [], []
    n_columns = len(scores)
    trees, steps, history = found
    trees, steps = trees[: most_rounds * n_columns], steps[: most_rounds * n_columns]
    for t, tree in enumerate(trees):
        leaf_of = leaves_of(tree, binned, n_threads=n_threads)
        add_leaf_values(scores[t % n_columns], tree.value, leaf_of, n_threads=n_threads)
    watch.history = history
    watch.cut(most_rounds)
    watch.catch_up(trees)
    return trees, steps


def fingerprint(data: QueryDataset, binned: BinnedMatrix | None = None) -> str:
    """Return a hash of what training sees of a data set."""
    features = data.features if binned is None else binned.codes
    arrays = [data.grouped(data.y), data.query_ptr, data.query_keys]
    arrays += [a for a in (data.weight, data.query_weight) if a is not None]
    if isinstance(features, np.ndarray):
        arrays.append(features)
    else:
        arrays += [features.data, features.indices, features.indptr]
    if binned is not None:
        arrays += [binned.binner.columns, *binned.binner.thresholds]
    return digest_of(arrays)


def looked_at_of(
    ranker: Any, watched: Mapping[str, QueryDataset], measures: Mapping[str, Measure]
) -> dict[str, Any]:
    """Return what of a run's measures and validation data a checkpoint must agree with."""
    return {
        "measure": str(parse_measure(ranker.measure)),
        "validation data": [[name, fingerprint(data)] for name, data in watched.items()],
        "valid_measures": [str(measure) for measure in measures.values()],
    }


def digest_of(arrays: Iterable[np.ndarray]) -> str:
    """Return a hash of the bytes of arrays."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()
