"""The model as a search engine computes it: written in the engine's format, read by its emulator.

An engine named ``rankgrove`` stands for our own scores, for logs of services that call `predict`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ModelFileError, ParameterError, RankgroveError
from rankgrove.formats.targets import TARGETS
from rankgrove.formats.write import Labels, encode
from rankgrove.model.ensemble import Ensemble
from rankgrove.operations.flat_models import flat_model
from rankgrove.parity.engine import Engine, EngineModel
from rankgrove.parity.log import FeatureLog
from rankgrove.rankers.base import Ranker
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.validation import nearest

OURS = "rankgrove"
_NUMBERED = re.compile(r"(?:f|feature_|feature)?([1-9]\d{0,7})")
_OF_VESPA = re.compile(r"rankingExpression\((.*)\)")

Scores = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Production:
    """A model in an engine.

    Attributes
    ----------
    title : the engine in words
    names : the columns that `scores` takes
    read : names of the features that the model reads
    scores : the engine's scores of rows (documents, names), NaN where a value is missing
    ensemble : the model's trees; None for other models, or where only the uploaded file is known
    with_trees : the engine's scores with other trees
    fast : scores that equal `scores` except for a constant, for searches; None: not known
    content : the uploaded file; None: it is not known
    whole : whether `scores` takes all documents of the log and no part of them
    """

    title: str
    names: tuple[str, ...]
    read: tuple[str, ...]
    scores: Scores
    ensemble: Ensemble | None = None
    with_trees: Callable[[Ensemble], Scores] | None = None
    fast: Scores | None = None
    content: bytes | None = None
    whole: bool = False


def ours(ranker: Ranker, names: Sequence[str], queries: np.ndarray) -> Production:
    """Return our own scores; `queries` are the queries of the log's documents."""
    trees = _trees(ranker)

    def of_trees(ensemble: Ensemble) -> Scores:
        double = ensemble.threshold.dtype == np.float64
        return lambda values: score_ensemble(ensemble, values if double else single(values))

    def predicted(values: np.ndarray) -> np.ndarray:
        categorical = {column + 1: known for column, known in ranker.categories_.items()}
        data = QueryDataset(
            values,
            np.zeros(len(values)),
            queries.astype(str),
            feature_names=list(names),
            categorical=categorical or None,
        )
        return np.asarray(ranker.predict(data), np.float64)

    if trees is not None:
        scores = of_trees(trees)
        return Production(OURS, tuple(names), _used(trees, names), scores, trees, of_trees, scores)
    return Production(OURS, tuple(names), tuple(names), predicted, whole=True)


def written(ranker: Ranker, engine: Engine, names: Sequence[str], given: bool) -> Production:
    """Return a ranker as an engine scores it, by way of the file that is uploaded."""
    flat = flat_model(ranker)
    labels = Labels("model", list(names), given, ranker.absent_, dict(ranker.categories_))
    content = file_for(flat, engine, labels)
    production = of_file(content, engine, names)
    trees = flat if isinstance(flat, Ensemble) and flat.n_columns == 1 else None
    if trees is None:
        return production
    return replace(
        production,
        ensemble=trees,
        with_trees=lambda other: of_file(file_for(other, engine, labels), engine, names).scores,
        fast=lambda values: score_ensemble(trees, single(values)),
    )


def of_file(content: bytes, engine: Engine, names: Sequence[str] | None = None) -> Production:
    """Return an uploaded file as an engine scores it; `names` None: its features are columns."""
    parsed = engine.read(content)
    columns = tuple(parsed.features) if names is None else tuple(names)
    scores = _by_name(parsed, columns, engine)
    return Production(engine.title, columns, tuple(parsed.features), scores, content=content)


def file_for(model: Any, engine: Engine, labels: Labels) -> bytes:
    """Return the file of a model for an engine.

    Missing values are as in the model where the engine can do that, by more splits if need be;
    else they are 0.
    """
    target = TARGETS.get(engine.name)
    for how in ({}, {"keep": True}):
        try:
            return encode(model, engine.format, labels, engine=target, **how)[0]
        except ParameterError:
            continue
    return encode(model, engine.format, labels, engine=target, zero=True)[0]


def columns_in(
    log: FeatureLog, names: Sequence[str], read: Sequence[str], named: bool
) -> np.ndarray:
    """Return the log's values in the model's columns; a column that is not read may be lacking.

    `named`: the model's features have names; otherwise features are found by number, ``f3`` or
    ``3``, and failing that by their order in the log.
    """
    place: dict[str, int] = {name: j for j, name in enumerate(log.features)}
    for j, name in enumerate(log.features):
        match = _OF_VESPA.fullmatch(name)
        if match is not None:
            place.setdefault(match[1], j)
    if not named and not any(name in place for name in names):
        place |= _by_number(log, names)
    lacking = [name for name in read if name not in place]
    if lacking:
        raise DataError(_lacking(log, lacking, named))
    values = np.full((len(log), len(names)), np.nan)
    for column, name in enumerate(names):
        if name in place:
            values[:, column] = log.values[:, place[name]]
    return values


def _by_number(log: FeatureLog, names: Sequence[str]) -> dict[str, int]:
    matches = [_NUMBERED.fullmatch(name) for name in log.features]
    numbers = [int(match[1]) for match in matches if match is not None]
    if len(numbers) == len(matches) and max(numbers, default=0) <= len(names):
        return {names[number - 1]: j for j, number in enumerate(numbers)}
    if len(log.features) == len(names):
        return {name: j for j, name in enumerate(names)}
    raise DataError(
        f"The model has {len(names)} features without names, and the log {len(log.features)} with "
        f"names ({', '.join(log.features[:5])}, ...): it is not known which is which. Name the "
        "model's features in their order: features= (--features names.txt)."
    )


def _lacking(log: FeatureLog, lacking: Sequence[str], named: bool) -> str:
    shown = ", ".join(repr(name) for name in lacking[:5]) + (", ..." if len(lacking) > 5 else "")
    hint = nearest(lacking[0], log.features)
    remedy = (
        "Log all features of the model, or name the model's features as the log does: features= "
        "(--features names.txt)."
    )
    return (
        f"The log lacks {len(lacking)} of the features that the model reads: {shown}{hint}. "
        f"It has {', '.join(log.features[:8])}{', ...' if len(log.features) > 8 else ''}. {remedy}"
    )


def _by_name(parsed: EngineModel, names: Sequence[str], engine: Engine) -> Scores:
    """Return the scores of a parsed model on the columns `names`."""
    place = {name: j for j, name in enumerate(names)}
    for j in range(len(names)):  # RankLib finds features by number
        place.setdefault(str(j + 1), j)
    unknown = [name for name in parsed.features if name not in place]
    if unknown:
        raise ModelFileError(
            f"The file for {engine.title} reads the feature {unknown[0]!r}, which the model has "
            "not."
        )
    columns = [place[name] for name in parsed.features]

    def scores(values: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(
                parsed.scores(np.ascontiguousarray(values[:, columns], np.float64)), np.float64
            )

    return scores


def single(values: np.ndarray) -> np.ndarray:
    """Return values as float32, in which the trees of most models compare."""
    with np.errstate(over="ignore"):  # beyond float32 is infinity
        return np.ascontiguousarray(values, np.float32)


def _trees(ranker: Ranker) -> Ensemble | None:
    try:
        flat = flat_model(ranker)
    except ParameterError:
        return None
    return flat if isinstance(flat, Ensemble) and flat.n_columns == 1 else None


def _used(trees: Ensemble | None, names: Sequence[str]) -> tuple[str, ...]:
    if trees is None:
        return tuple(names)
    return tuple(names[j] for j in np.unique(trees.feature).tolist())


def in_engines(
    ranker: Ranker, engines: Mapping[str, Engine], names: Sequence[str], given: bool
) -> dict[str, Production]:
    """Return a ranker in all engines that can hold it."""
    able = {}
    for name, engine in engines.items():
        try:
            able[name] = written(ranker, engine, names, given)
        except RankgroveError:
            continue
    return able


def readers(production: Production, engines: Mapping[str, Engine]) -> dict[str, Production]:
    """Return the same file in all engines that read it."""
    able = {}
    for name, engine in engines.items():
        if production.content is None:
            break
        try:
            able[name] = of_file(production.content, engine, production.names)
        except RankgroveError:
            continue
    return able
