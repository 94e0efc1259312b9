"""RankBoost: thresholds of single features, weighted to leave few pairs in the wrong order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.data.arrays import Rows
from rankgrove.data.binning import Binner
from rankgrove.data.queries import QueryDataset
from rankgrove.growth.stumps import PotentialStumps, placed_bins
from rankgrove.measures.base import Measure
from rankgrove.objectives.label_pairs import ExponentialPairs
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.declaring import declares_parameters
from rankgrove.rankers.trees import parameters as trees
from rankgrove.rankers.trees.boosted import BoostedRanker
from rankgrove.rankers.trees.recipe import BoostingData, TreeRecipe, drawn_rows, label_pairs

if TYPE_CHECKING:
    _Base = BoostedRanker
else:
    _Base = object


class PairStumps(_Base):
    """A boosted ranker of stumps on pairs of documents, such as RankBoost and FRank."""

    n_thresholds: int | None
    spacing: str
    even_queries: bool

    uses_bins: ClassVar[bool] = False
    bins_depend_on: ClassVar[frozenset[str]] = frozenset({"n_thresholds", "spacing", "submodel"})

    def _binner(self, train: QueryDataset, rows: Rows) -> Binner:
        if self.n_thresholds is None:
            return super()._binner(train, rows)
        return placed_bins(train.features, rows, self.n_thresholds, self.spacing)

    def objective_on(self, train: QueryDataset, keys: np.ndarray) -> ExponentialPairs:
        """Return RankBoost's weights of pairs of rows in query order."""
        return ExponentialPairs(label_pairs(train, self.even_queries))


@declares_parameters
class RankBoost(PairStumps, BoostedRanker):
    """Boosting on pairs of documents (Freund, Iyer, Schapire and Singer 2003).

    Every pair of a better and a worse document has the weight exp(score of the worse - score of the
    better). Let r be the weight of the pairs that a threshold of a feature orders correctly, minus
    the weight of those it orders wrongly, over the weight of all pairs. A round takes the threshold
    with the largest absolute r; documents above it get 1/2 ln((1 + r) / (1 - r)). Every round
    multiplies the sum of all weights by sqrt(1 - r^2) or less; it bounds the number of pairs in the
    wrong order.

    Attributes
    ----------
    ensemble_ : the stumps, up to the best round where there was validation data
    best_round_ : the round with the best validation value, or None
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    feature_importances_ : by feature, the decrease of the bound's logarithm by its stumps
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_web(60, n_docs=30, seed=1), rg.make_web(30, n_docs=30, seed=2)
    >>> model = rg.RankBoost(n_trees=100).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.5
    True
    """

    kind: ClassVar[str] = "rankboost"

    measure: str | Measure = shared.MEASURE
    n_trees: int = trees.N_TREES(
        300, "maximum number of rounds; every round adds a tree with two leaves"
    )
    n_thresholds: int | None = trees.N_THRESHOLDS
    spacing: str = trees.SPACING
    even_queries: bool = trees.EVEN_QUERIES
    submodel: Any = trees.SUBMODEL
    early_stopping: int | None = shared.EARLY_STOPPING
    overfitting_tolerance: float = trees.OVERFITTING_TOLERANCE
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = trees.CHECKPOINT_EVERY
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS

    def _recipe(self, data: BoostingData) -> TreeRecipe:
        return TreeRecipe(
            self.objective_on(data.train, data.keys),
            PotentialStumps(data.binned, self.n_threads),
            drawn_rows(data),
            self._start(),
        )
