"""Inputs of the boosting loop: an objective, a grower of trees, a sampler, a start."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rankgrove.boosting.local_rows import LocalRows, RowSampler, TreeGrower
from rankgrove.boosting.loop import Objective, TrainingRows
from rankgrove.boosting.sampling import Sampler
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.growth.grower import Grower
from rankgrove.objectives.label_pairs import LabelPairs
from rankgrove.objectives.position_bias import PositionBias
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.trees.category_rules import rules_of
from rankgrove.rankers.trees.constraints import HasConstraints, constraints_of
from rankgrove.rankers.trees.starts import Start


@dataclass(frozen=True)
class BoostingData:
    """The training data as boosting sees it: binned rows in query order, with their keys."""

    training: Training
    binned: BinnedMatrix
    keys: np.ndarray
    n_threads: int | None

    @property
    def train(self) -> QueryDataset:
        """The training data."""
        return self.training.train


class Recipe(ABC):
    """The parts of training in which boosted rankers differ.

    Attributes
    ----------
    start : the start of boosting: a constant, a submodel's scores, adapted trees
    n_columns : number of scores per row
    bias : what is learned about positions, or None
    """

    start: Start
    n_columns: int
    bias: PositionBias | None = None

    @abstractmethod
    def rows(self, scores: np.ndarray, n_threads: int | None) -> TrainingRows:
        """Return the rows that the loop trains on, with their scores so far."""


@dataclass(frozen=True)
class TreeRecipe(Recipe):
    """Trees that follow the gradients of an objective.

    Attributes
    ----------
    objective : computes gradients: lambdas of a measure, squared error, classes, pairs
    grower : grows trees on the gradients: histogram trees, stumps
    sampler : draws the queries and rows that a round sees
    """

    objective: Objective
    grower: TreeGrower
    sampler: RowSampler
    start: Start

    @property
    def n_columns(self) -> int:  # type: ignore[override]
        """Number of scores per row."""
        return self.objective.n_columns

    @property
    def bias(self) -> PositionBias | None:  # type: ignore[override]
        """What is learned about positions, or None."""
        return getattr(self.objective, "bias", None)

    def rows(self, scores: np.ndarray, n_threads: int | None) -> TrainingRows:
        """Return the rows that the loop trains on, with their scores so far."""
        return LocalRows(self.objective, self.grower, scores, self.sampler, n_threads)


class GrowsTrees(HasConstraints, Protocol):
    """The parameters of rankers that grow histogram trees."""

    n_leaves: int
    min_leaf: int | float
    feature_fraction: float
    max_depth: int | None
    random_state: int
    growth: str
    category_rules: Mapping[str, float] | None


def histogram_trees(
    ranker: GrowsTrees, data: BoostingData, *, split: str, min_gain: float, l2: float
) -> Grower:
    """Return the grower of a ranker's trees."""
    return Grower(
        data.binned,
        n_leaves=ranker.n_leaves,
        row_keys=data.keys,
        seed=ranker.random_state,
        n_threads=data.n_threads,
        min_leaf=rows_of_leaf(ranker.min_leaf, data.binned.n_rows),
        max_depth=ranker.max_depth,
        feature_fraction=ranker.feature_fraction,
        growth=ranker.growth,
        constraints=constraints_of(ranker, data.train.feature_names, data.train.categories),
        categories=rules_of(ranker.category_rules),
        split=split,
        min_gain=min_gain,
        l2=l2,
    )


def drawn_rows(
    data: BoostingData, query_fraction: float = 1.0, row_fraction: float = 1.0, seed: int = 0
) -> Sampler:
    """Return the sampler of every round's queries and rows."""
    train = data.train
    return Sampler(
        train.query_keys,
        data.keys,
        train.query_ptr,
        query_fraction=query_fraction,
        row_fraction=row_fraction,
        seed=seed,
    )


def label_pairs(train: QueryDataset, even_queries: bool) -> LabelPairs:
    """Return the pairs of documents with different labels, rows in query order."""
    return LabelPairs(
        train.grouped(train.y),
        train.query_ptr,
        None if train.weight is None else train.grouped(train.weight),
        train.query_weight,
        even_queries=even_queries,
    )


def rows_of_leaf(min_leaf: int | float, n_rows: int) -> int:
    """Return the minimum number of rows of a leaf, given as a count or a share."""
    if isinstance(min_leaf, float):
        return max(1, round(min_leaf * n_rows))
    return int(min_leaf)
