"""LambdaMART: boosted trees that follow the lambdas of a measure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.boosting.loop import Objective
from rankgrove.boosting.step import Step
from rankgrove.data.queries import QueryDataset
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.measures.parse import target_measure
from rankgrove.objectives.lambdas import (
    TREES_BEYOND_CUTOFF,
    LambdaObjective,
    default_truncation,
)
from rankgrove.rankers.files import FitsFiles
from rankgrove.rankers.preferences import FitsPairs
from rankgrove.rankers.submodel import SubmodelRanker
from rankgrove.training.watch import Watch
from rankgrove.validation import check_choice, check_flag, check_integer, check_real, refuse

if TYPE_CHECKING:
    from typing import Self

STEPS = ("newton", "optimal", "optimal-newton")
# Measures by name whose own lambdas learn less than those of another measure do, and that measure
# (benchmarks/README.md, defaults of the lambdas): ERR hardly looks below the first good document.
SURROGATES = {"err": "ndcg@10"}
# Where the papers' algorithm differs from the defaults: the lambdas of the measure itself, all
# pairs, |dZ| exactly the measure's, lambdas as they are, least-squares trees, leaves that take the
# plain Newton step.
PAPERS: dict[str, Any] = {
    "surrogate": None,
    "truncation": None,
    "beyond_cutoff": False,
    "normalise": False,
    "split": "mse",
    "l2": 0.0,
}


class LambdaMART(FitsFiles, FitsPairs, SubmodelRanker):
    """Boosted regression trees on lambda gradients; with a submodel, LambdaSMART.

    Every tree fits the lambdas of all documents (the least-squares tree of the papers, or a Newton
    one), and every leaf takes the Newton step: sum of lambdas over sum of weights (overview paper,
    section 7). The model is the same to the bit for any number of threads, and for any order of
    the queries in the file.

    Parameters
    ----------
    measure : what to maximise: a measure or its name; ``"pairs"`` counts all pairs alike (RankNet
        on trees)
    n_trees : number of trees at the most
    n_leaves : leaves of a tree at the most
    learning_rate : factor of every leaf's step
    min_leaf : least number of rows of a leaf; below 1, a share of the rows
    query_fraction : share of the queries a round sees, drawn anew every round
    row_fraction : share of those queries' documents that a round's tree is grown on, drawn anew
        every round; the lambdas are those of all of their documents
    feature_fraction : share of the features a split may use, drawn anew at every split
    split : how splits are valued: ``"mse"`` (least squares on the lambdas) or ``"newton"``
        (gradient and hessian)
    truncation : pairs count whose better-ranked document is among so many top ranks; ``"auto"``:
        the measure's cutoff plus 50, all pairs where it has none; None: all pairs
    beyond_cutoff : whether documents that both stand below the measure's cutoff are ordered too, by
        rank weights that continue below it (see ``LambdaObjective``); False: a pair counts by
        exactly the change of the measure, the papers' own
    sigma : slope of the sigmoid; it changes the scale of the scores, not the ranking
    normalise : even out pairs far apart, and queries (see ``LambdaObjective``); False is the
        papers' own
    surrogate : the measure whose lambdas the trees follow; validation and exact weights are by
        `measure` all the same. ``"auto"``: NDCG@10 for ERR, whose own lambdas learn less, and
        `measure` itself for all others; None: `measure` itself, the papers' own
    submodel : what to go on from: a trained ranker, the path of a model file, any object with
        ``predict`` (it is given the float32 feature matrix), or ``"base_score"``: the data set's
        base scores
    submodel_weight : factor of the submodel's scores; ``"optimal"``: found exactly, so that the
        measure of weight * submodel + tree is highest for a tree on the submodel's lambdas
    step : ``"newton"``: every leaf takes its own Newton step; ``"optimal"``: a leaf's value is the
        mean lambda of its rows, and the tree gets one weight, at which the measure is highest;
        ``"optimal-newton"``: Newton's leaves times one such weight
    step_on : data the exact weights are found on: ``"train"`` or ``"valid"``, the first
        validation data
    step_bounds : lowest and highest exact weight; of a submodel, once its scores have a spread of 1
    early_stopping : stop when so many rounds have not bettered the validation measure
    overfitting_tolerance : keep trees after the best round until the validation measure is this
        share below its best (0.02: 2 %), 250 at the most, and no more than early_stopping lets
        grow. In the BL-MART paper bags of such models are better; on MQ2008 they are level
    max_bins : most bins of a feature, missing values apart
    max_depth : most splits between root and leaf; None: no limit
    min_gain : a split must gain more than this
    l2 : added (times sigma squared) to the weights' sum of a leaf, so that a leaf of little weight
        takes no giant step; 0 is the papers' own
    checkpoint : file that keeps the state, and from which an interrupted run goes on
    checkpoint_every : rounds between two checkpoints
    random_state : seed of all random draws
    n_threads : threads to use; None: all cores
    progress : show a progress bar

    Attributes
    ----------
    ensemble_ : the trees, up to the best round where there was validation data; a submodel's own
        are not among them (see ``flat_ensemble``)
    best_round_ : the round with the best validation value, or None; 0: the submodel alone
    submodel_, submodel_weight_ : what was gone on from, loaded and ready, and its weight
    start_values_ : as history_, the submodel's own values
    steps_ : the weight of every tree, learning rate included
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    feature_importances_ : gains by feature, adding up to 1
    interrupted_ : whether Ctrl-C ended training

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, test = rg.make_artificial(100, seed=1), rg.make_artificial(50, seed=2)
    >>> model = rg.LambdaMART(n_trees=20).fit(train)
    >>> rg.evaluate(model, test, "ndcg@10").mean["ndcg@10"] > 0.5
    True
    """

    kind: ClassVar[str] = "lambdamart"

    def __init__(
        self,
        measure: str | Measure = "ndcg@10",
        n_trees: int = 500,
        n_leaves: int = 31,
        learning_rate: float = 0.1,
        min_leaf: int | float = 20,
        query_fraction: float = 1.0,
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        split: str = "newton",
        truncation: int | str | None = "auto",
        beyond_cutoff: bool = True,
        sigma: float = 1.0,
        normalise: bool = True,
        surrogate: str | Measure | None = "auto",
        submodel: Any = None,
        submodel_weight: float | str = 1.0,
        step: str = "newton",
        step_on: str = "train",
        step_bounds: tuple[float, float] = (0.1, 100.0),
        early_stopping: int | None = None,
        overfitting_tolerance: float = 0.0,
        max_bins: int = 255,
        max_depth: int | None = None,
        min_gain: float = 0.0,
        l2: float = 3.0,
        checkpoint: str | Path | None = None,
        checkpoint_every: int = 25,
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.measure = measure
        self.n_trees = n_trees
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.min_leaf = min_leaf
        self.query_fraction = query_fraction
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.split = split
        self.truncation = truncation
        self.beyond_cutoff = beyond_cutoff
        self.sigma = sigma
        self.normalise = normalise
        self.surrogate = surrogate
        self.submodel = submodel
        self.submodel_weight = submodel_weight
        self.step = step
        self.step_on = step_on
        self.step_bounds = step_bounds
        self.early_stopping = early_stopping
        self.overfitting_tolerance = overfitting_tolerance
        self.max_bins = max_bins
        self.max_depth = max_depth
        self.min_gain = min_gain
        self.l2 = l2
        self.checkpoint = checkpoint
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    @classmethod
    def papers(cls, measure: str | Measure = "ndcg", **parameters: Any) -> Self:
        """Return a ranker with the papers' own algorithm, where the defaults differ from it.

        All pairs count, each by exactly the change of the measure; lambdas are not normalised;
        trees are least-squares trees, and leaves take the plain Newton step (no L2).

        Parameters
        ----------
        measure : what to maximise; in the papers NDCG without a cutoff
        parameters : any others, by name; they come before those of the papers

        Examples
        --------
        >>> import rankgrove as rg
        >>> rg.LambdaMART.papers("ndcg", n_trees=1000, n_leaves=10)
        LambdaMART(beyond_cutoff=False, l2=0.0, measure='ndcg', n_leaves=10,
                   n_trees=1000, normalise=False, split='mse', surrogate=None,
                   truncation=None)
        """
        return cls(measure, **(PAPERS | parameters))

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        if self.truncation not in (None, "auto"):
            check_integer("truncation", owner, self.truncation, low=1)
        check_flag("beyond_cutoff", owner, self.beyond_cutoff)
        check_real("sigma", owner, self.sigma, above=0.0)
        check_flag("normalise", owner, self.normalise)
        self._followed()
        check_choice("step", owner, self.step, STEPS)
        if self.submodel is None and self.submodel_weight != 1.0:
            refuse("submodel_weight", owner, "1 where there is no submodel", self.submodel_weight)

    def _objective(self, train: QueryDataset, keys: np.ndarray) -> Objective:
        target = self._followed()
        return LambdaObjective(
            target,
            train.grouped(train.y),
            train.query_ptr,
            row_keys=keys,
            truncation=self._truncation(target),
            beyond_cutoff=self.beyond_cutoff,
            sigma=self.sigma,
            normalise=self.normalise,
            row_weight=None if train.weight is None else train.grouped(train.weight),
            query_weight=train.query_weight,
            may_be_empty=self._in_parts,
            n_threads=self.n_threads,
        )

    def _followed(self) -> Measure:
        """Return the measure whose lambdas the trees follow."""
        target = parse_measure(self.measure)
        if self.surrogate == "auto":
            return target_measure(SURROGATES.get(target.name, target))
        return target_measure(target if self.surrogate is None else self.surrogate)

    @property
    def _is_exact(self) -> bool:
        return self.step != "newton" or super()._is_exact

    def _step(self, train: QueryDataset, watch: Watch) -> Step:
        if self.step == "newton":
            return super()._step(train, watch)
        return self._optimal_step(train, watch, mean_response=self.step == "optimal")

    def _leaf_l2(self) -> float:
        return self.l2 * self.sigma**2  # as the weights scale

    def _truncation(self, target: Measure) -> int | None:
        if self.truncation == "auto":
            return default_truncation(target, TREES_BEYOND_CUTOFF)
        return None if self.truncation is None else int(self.truncation)
