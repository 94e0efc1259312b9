"""LambdaMART: boosted trees that follow the lambdas of a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.boosting.loop import Objective
from rankgrove.boosting.step import Grown, OptimalStep, Step
from rankgrove.data.binning import BinnedMatrix
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.measures.parse import target_measure
from rankgrove.objectives.clicks import AdditiveObjective, ClickLambdaObjective
from rankgrove.objectives.lambdas import (
    TREES_BEYOND_CUTOFF,
    LambdaObjective,
    default_truncation,
)
from rankgrove.objectives.position_bias import (
    AdditiveBias,
    AffineBias,
    PositionBias,
    Propensities,
    RatioBias,
)
from rankgrove.objectives.preference_pairs import PairObjective
from rankgrove.rankers import parameters as shared
from rankgrove.rankers import positions
from rankgrove.rankers.declaring import (
    choice,
    declares_parameters,
    flag,
    integer,
    optional,
    parameter,
    real,
    two_numbers,
    word_or,
)
from rankgrove.rankers.fitting import Training
from rankgrove.rankers.preferences import FitsPairs
from rankgrove.rankers.trees import parameters as trees
from rankgrove.rankers.trees.boosted import BoostedRanker
from rankgrove.rankers.trees.fit_files import FitsFiles
from rankgrove.rankers.trees.recipe import (
    BoostingData,
    Recipe,
    TreeRecipe,
    drawn_rows,
    histogram_trees,
)
from rankgrove.rankers.trees.starts import Start, SubmodelStart, spread_of
from rankgrove.training.watch import Watch
from rankgrove.validation import check_real, refuse

if TYPE_CHECKING:
    from typing import Self

STEPS = ("newton", "optimal", "optimal-newton")
OPTIMAL = "optimal"
# Measures by name -> the measure whose lambdas learn them better than their own
# (benchmarks/README.md, defaults of the lambdas): ERR hardly looks below the first good document.
SURROGATES = {"err": "ndcg@10"}
# Where the papers' algorithm differs from the defaults: the lambdas of the measure itself, all
# pairs, |dZ| exactly the measure's, no normalisation, least-squares trees, plain Newton steps.
PAPERS: dict[str, Any] = {
    "surrogate": None,
    "truncation": None,
    "beyond_cutoff": False,
    "normalise": False,
    "split": "mse",
    "l2": 0.0,
}


def _weight(name: str, owner: str, value: object) -> None:
    if isinstance(value, str):
        if value != OPTIMAL:
            refuse(name, owner, f"a number or {OPTIMAL!r}", value)
    else:
        check_real(name, owner, value, above=0.0)


@declares_parameters
class LambdaMART(FitsFiles, FitsPairs, BoostedRanker):
    """Boosted regression trees on lambda gradients; with a submodel, LambdaSMART.

    Every tree fits the lambdas of all documents (with the papers' least-squares splits, or Newton
    splits), and every leaf takes the Newton step: sum of lambdas over sum of weights (overview
    paper, section 7). The model is the same to the bit for any number of threads, and for any order
    of the queries in the file.

    Attributes
    ----------
    ensemble_ : the trees, up to the best round where there was validation data, without those of a
        submodel (see ``flat_ensemble``)
    best_round_ : the round with the best validation value, or None; 0: the submodel alone
    submodel_, submodel_weight_ : the loaded submodel that training started from, and its weight
    start_values_ : validation data set -> measure -> the submodel's own value
    steps_ : the weight of every tree, learning rate included
    history_ : validation data set -> measure -> its value after every round
    n_features_in_, feature_names_ : of the training data
    feature_importances_ : gains by feature, adding up to 1
    position_bias_ : a table of what was learned about positions; None without `position_bias`
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
    takes_categories: ClassVar[bool] = True

    measure: str | Measure = parameter(
        "ndcg@10",
        'measure to maximise, or its name; ``"pairs"`` gives all pairs the same weight (RankNet '
        "with trees)",
    )
    n_trees: int = trees.N_TREES
    n_leaves: int = trees.N_LEAVES
    learning_rate: float = trees.LEARNING_RATE
    min_leaf: int | float = trees.MIN_LEAF
    query_fraction: float = trees.QUERY_FRACTION
    row_fraction: float = trees.ROW_FRACTION
    feature_fraction: float = trees.FEATURE_FRACTION
    split: str = trees.SPLIT
    truncation: int | str | None = parameter(
        "auto",
        "only pairs count whose better-ranked document is among this many top ranks; "
        '``"auto"``: the measure\'s cutoff plus 50, or all pairs if it has none; None: all pairs',
        optional(word_or(["auto"], integer(low=1))),
    )
    beyond_cutoff: bool = parameter(
        True,
        "whether documents that are both below the measure's cutoff are ordered too, by rank "
        "weights that continue below it (see ``LambdaObjective``); False: the weight of a pair is "
        "exactly the change of the measure, as in the papers",
        flag,
    )
    sigma: float = trees.SIGMA
    normalise: bool | str = parameter(
        "auto",
        "normalise pairs far apart, and queries (see ``LambdaObjective``); False: as in the "
        'papers; ``"auto"``: True, but False where position_bias weighs clicks (``"ratios"``, '
        '``"ips"``, ``"affine"``), whose weights it would partly undo',
        word_or(["auto"], flag),
    )
    surrogate: str | Measure | None = parameter(
        "auto",
        "the measure whose lambdas the trees follow; validation and exact weights always use "
        '`measure`. ``"auto"``: NDCG@10 for ERR, whose own lambdas learn less, and `measure` '
        "itself for all others; None: `measure` itself, as in the papers",
    )
    submodel: Any = trees.SUBMODEL
    submodel_weight: float | str = parameter(
        1.0,
        'factor of the submodel\'s scores; ``"optimal"``: the weight at which the measure of '
        "weight * submodel + tree is highest, for a tree on the submodel's lambdas",
        _weight,
    )
    step: str = parameter(
        "newton",
        '``"newton"``: every leaf takes its own Newton step; ``"optimal"``: a leaf\'s value is the '
        "mean lambda of its rows, and the tree gets one weight, at which the measure is highest; "
        '``"optimal-newton"``: Newton\'s leaves times one such weight',
        choice(STEPS),
    )
    step_on: str = parameter(
        "train",
        'data that exact weights are found on: ``"train"`` or ``"valid"``, the first validation '
        "data",
        choice(["train", "valid"]),
    )
    step_bounds: tuple[float, float] = parameter(
        (0.1, 100.0),
        "lowest and highest exact weight; a submodel's scores are first scaled to a spread of 1",
        two_numbers("two numbers, the lowest and the highest weight", real(above=0.0)),
    )
    early_stopping: int | None = shared.EARLY_STOPPING
    overfitting_tolerance: float = trees.OVERFITTING_TOLERANCE
    max_bins: int = trees.MAX_BINS
    max_depth: int | None = trees.MAX_DEPTH
    min_gain: float = trees.MIN_GAIN
    l2: float = trees.L2(
        3.0,
        "added (times sigma squared) to the sum of weights of a leaf, so that a leaf of little "
        "weight takes no giant step; 0: as in the papers",
    )
    checkpoint: str | Path | None = shared.CHECKPOINT
    checkpoint_every: int = trees.CHECKPOINT_EVERY
    random_state: int = shared.RANDOM_STATE
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS
    smoothing: float = shared.SMOOTHING
    draws: int = shared.DRAWS
    growth: str = trees.GROWTH
    monotone: Mapping[str | int, int] | None = trees.MONOTONE
    interactions: Sequence[Sequence[str | int]] | None = trees.INTERACTIONS
    category_rules: Mapping[str, float] | None = trees.CATEGORY_RULES
    position_bias: str | None = positions.POSITION_BIAS
    propensities: Any = positions.PROPENSITIES
    n_positions: int | None = positions.N_POSITIONS
    position_clip: float = positions.POSITION_CLIP
    position_l2: float = positions.POSITION_L2
    position_norm: float = positions.POSITION_NORM

    @classmethod
    def papers(cls, measure: str | Measure = "ndcg", **parameters: Any) -> Self:
        """Return a ranker with the papers' algorithm where the defaults differ from it.

        All pairs count, each by exactly the change of the measure; lambdas are not normalised;
        trees are least-squares trees, and leaves take the plain Newton step (no L2).

        Parameters
        ----------
        measure : measure to maximise; in the papers NDCG without a cutoff
        parameters : further parameters by name; they override those of the papers

        Examples
        --------
        >>> import rankgrove as rg
        >>> rg.LambdaMART.papers("ndcg", n_trees=1000, n_leaves=10)
        LambdaMART(beyond_cutoff=False, l2=0.0, measure='ndcg', n_leaves=10,
                   n_trees=1000, normalise=False, split='mse', surrogate=None,
                   truncation=None)
        """
        return cls(measure, **(PAPERS | parameters))

    def _check_together(self) -> None:
        super()._check_together()
        self._followed()
        if self.submodel is None and self.submodel_weight != 1.0:
            refuse(
                "submodel_weight",
                type(self).__name__,
                "1 where there is no submodel",
                self.submodel_weight,
            )
        if self.step == OPTIMAL and any((self.monotone or {}).values()):
            refuse(
                "step",
                type(self).__name__,
                "'newton' or 'optimal-newton' with monotone: the order of leaves is that of their "
                "Newton steps, not of their mean lambdas",
                self.step,
            )
        positions.check_unused(self)
        if self.position_bias is not None and self._is_exact:
            raise ParameterError(
                f"{type(self).__name__}: exact weights are found on labels as they are, so they "
                "would follow the bias of positions: set step='newton' and a number as "
                "submodel_weight where position_bias is set."
            )

    def _check_fits_pairs(self, owner: str) -> None:
        if self.position_bias is not None:
            raise ParameterError(
                f"{owner} learns from pairs, which have no positions: leave position_bias out."
            )
        if parse_measure(self.measure).name != "pairs":
            raise ParameterError(
                f"{owner} minimises RankNet's cost of pairs and needs measure='pairs'. Got "
                f"{str(self.measure)!r}; measures of rankings need labels."
            )
        if self._is_exact and self.step_on == "train":
            raise ParameterError(
                f"{owner}: exact weights are found on labels, and pairs have none: set "
                "step='newton' and a number as submodel_weight, or step_on='valid' with validation "
                "data that has labels."
            )

    def _recipe(self, data: BoostingData) -> TreeRecipe:
        bias = positions.bias_of(self, data.train, data.training.owner, self._additive())
        return TreeRecipe(
            self.objective_on(data.train, data.keys, data.training, bias=bias),
            histogram_trees(self, data, split=self.split, min_gain=self.min_gain, l2=self._leaf_l2),
            drawn_rows(data, self.query_fraction, self.row_fraction, self.random_state),
            self._start(),
        )

    def _additive(self) -> positions.Additive:
        return positions.additive_bias(self, by_difference=True, slope=self.sigma)

    def objective_on(
        self,
        train: QueryDataset,
        keys: np.ndarray,
        training: Training | None = None,
        *,
        target: Measure | None = None,
        in_parts: bool = False,
        bias: PositionBias | None = None,
    ) -> Objective:
        """Return the lambdas on rows; `in_parts`: other processes hold other rows.

        With a `bias` labels are clicks, whose positions count.
        """
        if training is not None and training.preferences is not None:
            return PairObjective(training.preferences, train.query_ptr, sigma=self.sigma)
        target = self._followed() if target is None else target
        data = target, train.grouped(train.y), train.query_ptr
        others: dict[str, Any] = {
            "row_keys": keys,
            "truncation": self._truncation(target),
            "beyond_cutoff": self.beyond_cutoff,
            "sigma": self.sigma,
            "normalise": self._normalises,
            "row_weight": None if train.weight is None else train.grouped(train.weight),
            "query_weight": train.query_weight,
            "may_be_empty": in_parts,
            "n_threads": self.n_threads,
            "smoothing": self.smoothing,
            "draws": self.draws,
            "seed": self.random_state,
        }
        if bias is None:
            return LambdaObjective(*data, **others)
        cell = positions.cells_of_rows(bias, train)
        if isinstance(bias, AdditiveBias):
            return AdditiveObjective(LambdaObjective(*data, **others), bias, cell)
        assert isinstance(bias, RatioBias | Propensities | AffineBias)
        return ClickLambdaObjective(*data, bias=bias, cell=cell, **others)

    def _followed(self) -> Measure:
        """Return the measure whose lambdas the trees follow."""
        target = parse_measure(self.measure)
        if self.surrogate == "auto":
            return target_measure(SURROGATES.get(target.name, target))
        return target_measure(target if self.surrogate is None else self.surrogate)

    @property
    def _leaf_l2(self) -> float:
        return self.l2 * self.sigma**2  # the weights scale with sigma squared

    @property
    def _normalises(self) -> bool:
        """Whether lambdas are normalised."""
        if self.normalise == "auto":
            return self.position_bias in (None, "additive")
        return bool(self.normalise)

    def _truncation(self, target: Measure) -> int | None:
        if self.truncation == "auto":
            return default_truncation(target, TREES_BEYOND_CUTOFF)
        return None if self.truncation is None else int(self.truncation)

    # -- exact weights ----------------------------------------------------------------------------

    @property
    def _is_exact(self) -> bool:
        """Whether any weight is found exactly."""
        weighs_submodel = self.submodel is not None and self.submodel_weight == OPTIMAL
        return self.step != "newton" or weighs_submodel

    @property
    def _needs_valid(self) -> str | None:
        if self._is_exact and self.step_on == "valid":
            return "step_on='valid'"
        return super()._needs_valid

    def _step(self, train: QueryDataset | None, watch: Watch) -> Step:
        if self.step == "newton":
            return super()._step(train, watch)
        return self._optimal_step(train, watch, mean_response=self.step == "optimal")

    def _optimal_step(
        self, train: QueryDataset | None, watch: Watch, mean_response: bool
    ) -> OptimalStep:
        """Return the step that finds the weight at which the measure is highest."""
        if self.step_on == "valid":
            watched = next(iter(watch.watched.values()))
            labels, query_ptr = watched.labels, watched.query_ptr
        else:
            assert train is not None
            watched, labels, query_ptr = None, train.grouped(train.y), train.query_ptr
        target = target_measure(self.measure).with_(ties="expected")
        low, high = self.step_bounds
        return OptimalStep(
            target.prepare(labels, query_ptr, self.n_threads),
            (float(low), float(high)),
            self.learning_rate,
            watched=watched,
            mean_response=mean_response,
            l2=self._leaf_l2,
            n_threads=self.n_threads,
        )

    def _start(self, constant: float = 0.0) -> Start:
        start = super()._start(constant)
        if isinstance(start, SubmodelStart) and self.submodel_weight != OPTIMAL:
            return replace(start, weight=float(self.submodel_weight))
        return start

    def _weighted_start(
        self,
        recipe: Recipe,
        training: Training,
        binned: BinnedMatrix,
        scores: np.ndarray,
        watch: Watch,
    ) -> Recipe:
        """Find the submodel's weight with a tree grown for this; scale all scores by it.

        Lambdas depend on the scale of scores, rankings do not: the tree is grown on the lambdas of
        the submodel's scores scaled to a spread of about 1, and the weight corrects for the scale.
        """
        start = recipe.start
        is_wanted = self.submodel_weight == OPTIMAL and self.n_trees > 0
        if not (is_wanted and isinstance(start, SubmodelStart)):
            return recipe
        assert isinstance(recipe, TreeRecipe)
        train = training.train
        spread = spread_of(scores[0], train.query_ptr)
        queries, rows = recipe.sampler.draw(start.rounds)
        gradient, hessian = np.zeros(train.n_rows), np.zeros(train.n_rows)
        recipe.objective.gradients(
            scores[0] / spread, gradient, hessian, queries, self.n_threads, start.rounds
        )
        tree, leaf_of = recipe.grower.grow(gradient, hessian, start.rounds, rows)
        step = self._optimal_step(train, watch, mean_response=False)
        weight = step.weight_of_scores(Grown(tree, leaf_of, scores[0]), spread) / spread
        for array in (scores, *(valid.scores for valid in watch.watched.values())):
            array *= weight
        return replace(recipe, start=replace(start, weight=weight))
