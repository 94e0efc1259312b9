"""Trada: the trees of a trained ranker, adapted to few judgements of another domain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from rankgrove.adapt.adaptation_report import AdaptationReport
from rankgrove.adapt.adapted_trees import Adapted, adapt_ensemble, trimmed
from rankgrove.adapt.statistics import source_statistics
from rankgrove.adapt.target import TargetRows
from rankgrove.adapt.walking import Rules, SourceStatistics
from rankgrove.boosting.local_rows import RowSampler, TreeGrower
from rankgrove.boosting.loop import Objective, Progress, TrainingRows
from rankgrove.data.binning import BinnedMatrix, Binner
from rankgrove.data.categories import Names
from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure, exact_mean, rank
from rankgrove.measures.parse import target_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers import parameters as shared
from rankgrove.rankers.base import Arrays, Content, Learned, Ranker
from rankgrove.rankers.declaring import (
    choice,
    declares_parameters,
    flag,
    integer,
    learned,
    optional,
    parameter,
    real,
)
from rankgrove.rankers.inner_rankers import pack, unpack
from rankgrove.rankers.trees import parameters as trees
from rankgrove.rankers.trees.base_trees import (
    base_categories,
    base_trees,
    check_kinds,
    fitted_base,
    objective_for,
)
from rankgrove.rankers.trees.boosted import BoostedRanker
from rankgrove.rankers.trees.recipe import (
    BoostingData,
    Recipe,
    TreeRecipe,
    drawn_rows,
    histogram_trees,
    rows_of_leaf,
)
from rankgrove.rankers.trees.starts import Start, TreesStart, check_takes_base_score, describe
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.validation import check_real, refuse

if TYPE_CHECKING:
    from typing import Self

CROSS_VALIDATED = "cv"
OBJECTIVES = ("auto", "squared", "lambdas")


def _beta(name: str, owner: str, value: object) -> None:
    if value != CROSS_VALIDATED:
        rule = f"a number of at least 0, infinity included, or {CROSS_VALIDATED!r}"
        _check_beta(name, owner, value, rule)


def _betas(name: str, owner: str, value: object) -> None:
    if not isinstance(value, tuple | list | np.ndarray) or not len(value):
        refuse(name, owner, "some numbers of at least 0", value)
    for beta in value:
        _check_beta(name, owner, beta, "numbers of at least 0, infinity included")


class AdaptedBase(NamedTuple):
    """A base model, its adapted trees, and the details of the adaptation.

    ``cross_validated`` is the mean of the measure by beta, ``rates`` the learning rate of every
    tree, ``scores`` are those of the training rows in query order.
    """

    base: Ranker
    beta: float
    cross_validated: dict[float, float]
    report: AdaptationReport
    trees: Ensemble
    rates: list[float]
    scores: np.ndarray


@dataclass(frozen=True)
class AdaptedRecipe(TreeRecipe):
    """The recipe for extra trees after the adapted ones."""

    objective: Objective
    grower: TreeGrower | None  # type: ignore[assignment]  # None: no extra trees
    sampler: RowSampler
    start: TreesStart
    adapted: AdaptedBase


@declares_parameters
class Trada(BoostedRanker):
    """Tree adaptation (Chen, Lu, Wong, Sun, Heck and Tseng 2008).

    The trees of a base model, trained on much data of a source domain, are tuned to a target
    domain's few judgements. At every node the source's n0 rows and the target's n1 vote with
    p0 = n0 / (n0 + beta n1): on the response, and with ``tune="splits"`` on the threshold too. A
    split on a set of categories is kept as it is; the responses of its two sides are adapted.
    Trees are adapted in order, each to the residuals of the adapted trees before it; then
    `extra_trees` more trees are boosted on the target's data. The model is the same to the bit for
    any number of threads.

    Attributes
    ----------
    ensemble_ : the adapted trees and then the extra ones
    n_adapted_ : number of adapted trees
    base_ : the base model
    beta_ : the beta that was used
    cv_ : beta -> mean of the measure in cross-validation; empty without it
    report_ : the changes made by adaptation, an ``AdaptationReport``
    best_round_ : number of extra trees with the best validation value, or None
    start_values_ : validation data set -> measure -> its value without extra trees
    history_ : validation data set -> measure -> its value after every extra tree
    steps_, n_features_in_, feature_names_, feature_importances_, interrupted_ : as in
        ``LambdaMART``

    Examples
    --------
    >>> import rankgrove as rg
    >>> big, small = rg.make_domains(200, 30, seed=1)
    >>> _, test = rg.make_domains(1, 100, seed=2)
    >>> base = rg.MART(n_trees=50, n_leaves=12).fit(big)
    >>> model = rg.Trada(base, beta=10).fit(small)
    >>> a, b = (rg.evaluate(m, test, "ndcg@10").mean["ndcg@10"] for m in (base, model))
    >>> bool(b > a), bool(model.report_.unreached_share < 0.2)
    (True, True)
    """

    kind: ClassVar[str] = "trada"
    uses_bins: ClassVar[bool] = False
    takes_categories: ClassVar[bool] = True
    trainable: ClassVar[bool] = False
    held: ClassVar[frozenset[str]] = frozenset({"base"})
    trained: ClassVar[frozenset[str]] = frozenset({"base"})
    _rounds_name: ClassVar[str] = "extra_trees"
    checkpoint: ClassVar[None] = None  # type: ignore[misc]  # adapting is quick to repeat
    n_adapted_: int = learned()
    base_: Ranker = learned()
    beta_: float = learned()
    cv_: dict[float, float] = learned()
    report_: AdaptationReport = learned()

    base: Any = parameter(None, "a trained ranker of boosted trees, or the path of its model file")
    beta: float | str = parameter(
        10.0,
        "weight of a row of the target relative to a row of the source; 0 leaves the base model "
        'unchanged, infinity ignores the source wherever the target has a row; ``"cv"``: the best '
        "of `betas` by cross-validation over queries",
        _beta,
    )
    tune: str = parameter(
        "responses",
        '``"responses"`` (Algorithm 1), or ``"splits"``: thresholds too (Algorithm 2)',
        choice(["responses", "splits"]),
    )
    level: str = parameter(
        "layer",
        '``"layer"``: mix the step of every node beyond its parent (equation 4); ``"leaf"``: mix '
        "the responses of the leaves (equation 2)",
        choice(["layer", "leaf"]),
    )
    trim: bool = parameter(False, "cut off the branches that no row of the target reaches", flag)
    extra_trees: int = parameter(
        0,
        "maximum number of trees boosted afterwards (Algorithm 3); they may use features that the "
        "base model never saw",
    )
    objective: str = parameter(
        "auto",
        'objective of responses: ``"auto"``: the base model\'s own; ``"squared"``: the squared '
        'error of labels (as in the paper); ``"lambdas"``: the lambdas of `measure`',
        choice(OBJECTIVES),
    )
    measure: str | Measure = shared.MEASURE(
        "ndcg@10", "measure that decides on validation data and on beta, also for lambdas"
    )
    betas: tuple[float, ...] = parameter(
        (1.0, 2.0, 5.0, 10.0, 20.0, 50.0), 'values of beta that ``"cv"`` compares', _betas
    )
    folds: int = parameter(5, "number of folds of that cross-validation", integer(low=2))
    base_rate: float | None = parameter(
        None,
        "learning rate of the base model's trees, where it cannot be derived from the model",
        optional(real(above=0.0)),
    )
    n_leaves: int = trees.N_LEAVES(12, "maximum number of leaves of an extra tree")
    learning_rate: float = trees.LEARNING_RATE(0.05, "factor of every step of the extra trees")
    min_leaf: int | float = trees.MIN_LEAF(
        20,
        "minimum number of rows of a new leaf, and on both sides of the target's own split; below "
        "1, a share of the rows",
    )
    query_fraction: float = trees.QUERY_FRACTION
    row_fraction: float = trees.ROW_FRACTION
    feature_fraction: float = trees.FEATURE_FRACTION
    split: str = trees.SPLIT
    early_stopping: int | None = shared.EARLY_STOPPING(
        None, "stop when this many extra trees have not improved the validation measure"
    )
    max_bins: int = trees.MAX_BINS
    max_depth: int | None = trees.MAX_DEPTH
    min_gain: float = trees.MIN_GAIN
    l2: float = trees.L2(
        0.1,
        "added to the sum of second derivatives of a node of the target; 0: as in the paper",
    )
    random_state: int = shared.RANDOM_STATE
    n_threads: int | None = shared.N_THREADS
    progress: bool = shared.PROGRESS(False, "show a progress bar of the extra trees")

    # -- training ---------------------------------------------------------------------------------

    @property
    def _starts_from_model(self) -> bool:
        return True

    def _check_takes_base_score(self, owner: str) -> None:
        check_takes_base_score(None, owner)

    def objective_on(
        self, train: QueryDataset, keys: np.ndarray, base: Ranker | None = None
    ) -> Objective:
        """Return the objective of responses on rows; by default that of the base model."""
        base = self.base_ if base is None else base
        return objective_for(base, self.objective, self.measure, train, keys, self.n_threads)

    def _categories_before(self, train: QueryDataset) -> Mapping[int, Names]:
        """Return the categories of the base model."""
        return base_categories(fitted_base(self.base, type(self).__name__), train.given_names)

    def bins(self, train: QueryDataset) -> BinnedMatrix:
        """Return the bins of a data set's rows, or no bins where they are not needed."""
        if self.extra_trees > 0 or self.tune == "splits":
            return super().bins(train)
        no_bins = Binner(train.n_features, np.empty(0, np.int32), ())
        return BinnedMatrix(no_bins, np.empty((train.n_rows, 0), np.uint8))

    def _recipe(self, data: BoostingData) -> AdaptedRecipe:
        train, base = data.train, fitted_base(self.base, type(self).__name__)
        objective = self.objective_on(train, data.keys, base)
        adapted = self._adapted(base, objective, data)
        start = TreesStart(adapted.trees, train, adapted.scores, self.n_threads)
        sampler = drawn_rows(data, self.query_fraction, self.row_fraction, self.random_state)
        grower = None
        if self.extra_trees > 0:  # otherwise there are no bins to grow on
            grower = histogram_trees(
                self, data, split=self.split, min_gain=self.min_gain, l2=self.l2
            )
        return AdaptedRecipe(objective, grower, sampler, start, adapted)

    def _adapted(self, base: Ranker, objective: Objective, data: BoostingData) -> AdaptedBase:
        """Adapt the base model's trees to the target's rows."""
        train = data.train
        trees = base_trees(base, train.n_features, train.given_names, type(self).__name__)
        check_kinds(trees, train, type(self).__name__)
        source = source_statistics(trees, self.base_rate, needed=self.beta != 0)
        values: dict[float, float] = {}
        beta = self.beta
        if beta == CROSS_VALIDATED:
            values = self._cross_validated(base, trees, source, train)
            beta = min(values, key=lambda tried: (-values[tried], tried))
        target = _target_rows(trees, train, data.binned, self.n_threads)
        rules = self._rules(float(beta), train.n_rows)
        adapted = adapt_ensemble(trees, source, target, objective, rules, n_threads=self.n_threads)
        return AdaptedBase(
            base,
            float(beta),
            values,
            AdaptationReport.of(trees, source, adapted, target, train.feature_names),
            trimmed(adapted.ensemble, adapted.reached) if self.trim else adapted.ensemble,
            np.nan_to_num(source.rate, nan=1.0).tolist(),
            adapted.scores,
        )

    def _rules(self, beta: float, n_rows: int) -> Rules:
        return Rules(beta, self.tune, self.level, rows_of_leaf(self.min_leaf, n_rows), self.l2)

    def _cross_validated(
        self, base: Ranker, trees: Ensemble, source: SourceStatistics, train: QueryDataset
    ) -> dict[float, float]:
        """Return every beta's mean of the measure on queries that it was not adapted to."""
        measure = target_measure(self.measure)
        part = assign_parts(train.query_keys, self.folds, self.random_state, type(self).__name__)
        values: dict[float, list[np.ndarray]] = {float(beta): [] for beta in self.betas}
        for k in range(self.folds):
            seen, unseen = train.select(part != k), train.select(part == k)
            objective = self.objective_on(seen, seen.row_keys, base)
            target = _target_rows(trees, seen, self.bins(seen), self.n_threads)
            prepared = measure.prepare(unseen.grouped(unseen.y), unseen.query_ptr, self.n_threads)
            rows = query_order_rows(unseen)
            for beta, values_of_folds in values.items():
                rules = self._rules(beta, seen.n_rows)
                adapted: Adapted = adapt_ensemble(
                    trees, source, target, objective, rules, n_threads=self.n_threads
                )
                kept = trimmed(adapted.ensemble, adapted.reached) if self.trim else adapted.ensemble
                scores = score_ensemble(kept, unseen.features, rows, self.n_threads)
                ranking = rank(scores, unseen.query_ptr, self.n_threads)
                values_of_folds.append(prepared.values(ranking, self.n_threads))
        means = {beta: exact_mean(np.concatenate(lists)) for beta, lists in values.items()}
        if any(math.isnan(mean) for mean in means.values()):
            raise DataError(
                f"{type(self).__name__}: {measure} leaves out every query of the data (nothing "
                "relevant, or all labels equal): it cannot be used to choose beta."
            )
        return means

    def _learned(self, done: Progress, start: Start, n_columns: int, n_features: int) -> Learned:
        learned = super()._learned(done, start, n_columns, n_features)
        assert isinstance(start, TreesStart)
        adapted, extra = start.trees, learned["ensemble_"]
        joined = adapted
        if extra.n_trees:
            listed = [part.tree(t) for part in (adapted, extra) for t in range(part.n_trees)]
            joined = Ensemble.from_trees(listed, n_features, adapted.base)
        return learned | {"ensemble_": joined}

    def _also_learned(self, recipe: Recipe, rows: TrainingRows | None, done: Progress) -> Learned:
        assert isinstance(recipe, AdaptedRecipe)
        adapted = recipe.adapted
        kept = done.watch.rounds_to_keep(self.overfitting_tolerance)
        steps = done.steps[: done.round if kept is None else kept]
        return {
            "n_adapted_": adapted.trees.n_trees,
            "steps_": [*adapted.rates, *steps],
            "base_": adapted.base,
            "beta_": adapted.beta,
            "cv_": adapted.cross_validated,
            "report_": adapted.report,
        }

    def members(self) -> list[Any]:
        """Return an empty list: the base model is kept for reference, not for scoring."""
        return []

    def adapted_from(self) -> Ranker:
        """Return the base model."""
        return self.base_

    # -- the trained ranker -----------------------------------------------------------------------

    @property
    def _n_before(self) -> int:
        return self.n_adapted_

    def truncated(self, n_trees: int) -> Self:
        """Return the ranker of the first `n_trees` trees: adapted trees first, then extra trees."""
        shorter = super().truncated(n_trees)
        shorter.n_adapted_ = min(self.n_adapted_, n_trees)
        return shorter

    def _about(self) -> list[str]:
        extra = self.ensemble_.n_trees - self.n_adapted_
        how = f"beta {self.beta_:g}, {self.tune} tuned, level {self.level}"
        lines = [
            f"adapted from {describe(self.base_)}: {how}{', trimmed' if self.trim else ''}; "
            f"{extra:,} extra trees",
            f"{self.report_.unreached_share:.1%} of the base model's branches have no target row",
        ]
        if self.cv_:
            values = ", ".join(f"{beta:g}: {value:.4f}" for beta, value in self.cv_.items())
            lines.append(f"{self.measure} of beta in cross-validation: {values}")
        return lines

    def _feature_lines(self, n_features: int) -> list[str]:
        # gains are those of the base model: the changes by adaptation tell more
        table = self.report_.table("feature", n_features) if n_features > 0 else ""
        return ["what changed most, by feature:", table] if table else []

    def _state(self) -> tuple[Content, Arrays]:
        content, arrays = super()._state()
        content["beta"] = self.beta_
        content["cv"] = [[beta, value] for beta, value in self.cv_.items()]
        content["n_adapted"] = self.n_adapted_
        content["base"], inside = pack(self.base_, "base")
        names = getattr(self, "feature_names_", None) or self.report_.feature_names
        content["report_names"] = list(names)
        report = {f"report/{key}": a for key, a in self.report_.to_arrays().items()}
        return content, {**arrays, **inside, **report}

    def _restore(self, content: Content, arrays: Arrays) -> None:
        super()._restore(content, arrays)
        self.beta_ = float(content["beta"])
        self.cv_ = {float(beta): float(value) for beta, value in content["cv"]}
        self.n_adapted_ = int(content["n_adapted"])
        self.base_ = self.base = unpack(content["base"], arrays, "base")
        report = {
            k.removeprefix("report/"): a for k, a in arrays.items() if k.startswith("report/")
        }
        self.report_ = AdaptationReport.from_arrays(report, content["report_names"])


def _target_rows(
    trees: Ensemble, data: QueryDataset, binned: BinnedMatrix, n_threads: int | None
) -> TargetRows:
    used = np.unique(trees.feature)
    rows = query_order_rows(data)
    bins = binned if binned.n_kept else None
    return TargetRows.of(data.features, rows, used, bins, n_threads)


def _check_beta(name: str, owner: str, value: object, rule: str) -> None:
    if isinstance(value, float) and value == math.inf:
        return
    try:
        check_real(name, owner, value, low=0.0)
    except ParameterError:  # its message would ask for a finite number
        refuse(name, owner, rule, value)
