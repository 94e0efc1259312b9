"""What rankers of boosted stumps share: thresholds, pairs, a submodel to go on from."""

from __future__ import annotations

from typing import Any

from rankgrove.data.binning import Binner
from rankgrove.data.queries import QueryDataset
from rankgrove.data.thresholds import SPACINGS
from rankgrove.growth.stumps import placed_bins
from rankgrove.objectives.label_pairs import LabelPairs
from rankgrove.rankers.submodel import SubmodelRanker
from rankgrove.validation import check_choice, check_integer, refuse


class PairRanker(SubmodelRanker):
    """Base of the boosted rankers that learn from pairs of documents with different labels."""

    # what other submodel rankers have as parameters
    submodel_weight: float | str = 1.0
    step_on: str = "train"
    step_bounds: tuple[float, float] = (0.1, 100.0)
    even_queries: bool

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        if not isinstance(self.even_queries, bool):
            refuse("even_queries", type(self).__name__, "True or False", self.even_queries)

    def _pairs(self, train: QueryDataset) -> LabelPairs:
        return LabelPairs(
            train.grouped(train.y),
            train.query_ptr,
            None if train.weight is None else train.grouped(train.weight),
            train.query_weight,
            even_queries=self.even_queries,
        )


class StumpRanker(PairRanker):
    """Base of the rankers whose weak rankers are single thresholds of single features.

    A model is an ensemble of trees with two leaves, of which one is 0.
    """

    # what boosted trees have as parameters, and stumps do not
    n_leaves: int = 2
    learning_rate: float = 1.0
    min_leaf: int | float = 1
    query_fraction: float = 1.0
    feature_fraction: float = 1.0
    split: str = "mse"
    max_bins: int = 255
    max_depth: int | None = None
    min_gain: float = 0.0
    l2: float = 0.0
    random_state: int = 0

    n_thresholds: int | None
    spacing: str

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        if self.n_thresholds is not None:
            check_integer("n_thresholds", owner, self.n_thresholds, low=1, high=254)
        check_choice("spacing", owner, self.spacing, SPACINGS)

    def _fitted_binner(self, train: QueryDataset, rows: Any) -> Binner:
        if self.n_thresholds is None:
            return super()._fitted_binner(train, rows)
        return placed_bins(train.features, rows, self.n_thresholds, self.spacing)
