"""Trada: the trees of a trained ranker adapted to another domain's few judgements."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.adapt.report import AdaptationReport
from rankgrove.adapt.statistics import source_statistics
from rankgrove.adapt.target import TargetRows
from rankgrove.adapt.trada import Adapted, adapt_ensemble, trimmed
from rankgrove.adapt.walking import Rules, SourceStatistics
from rankgrove.boosting.loop import Objective, Progress
from rankgrove.data.binning import BinnedMatrix, Binner
from rankgrove.data.folds import assign_parts
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError, ParameterError
from rankgrove.measures.base import Measure, exact_mean, rank
from rankgrove.measures.parse import target_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.rankers.base_trees import base_trees, fitted_base, objective_for
from rankgrove.rankers.boosted import BoostedRanker
from rankgrove.rankers.kept import HasFeatures
from rankgrove.rankers.nested import pack, unpack
from rankgrove.rankers.submodel import describe
from rankgrove.scoring.score import score as score_ensemble
from rankgrove.validation import check_choice, check_integer, check_real, refuse

if TYPE_CHECKING:
    from typing import Self

CROSS_VALIDATED = "cv"
OBJECTIVES = ("auto", "squared", "lambdas")


class Trada(BoostedRanker):
    """Tree adaptation (Chen, Lu, Wong, Sun, Heck and Tseng 2008).

    The trees of a base model, trained on much data of a source domain, are tuned to a target
    domain's few judgements. At every node the source's n0 rows and the target's n1 vote with
    p0 = n0 / (n0 + beta n1): on the response, and with ``tune="splits"`` on the threshold too.
    Trees are adapted in order, each to what the adapted ones before it left over; then
    `extra_trees` more are boosted on the target's data. The model is the same to the bit for any
    number of threads.

    Parameters
    ----------
    base : a trained ranker of boosted trees, or the path of its model file
    beta : how much more a row of the target counts than one of the source; 0 leaves the base model
        as it is, infinity forgets the source wherever the target has a row; ``"cv"``: the best of
        `betas` by cross-validation over queries
    tune : ``"responses"`` (Algorithm 1), or ``"splits"``: thresholds too (Algorithm 2)
    level : ``"layer"``: every node's step beyond its parent is mixed (equation 4); ``"leaf"``: the
        leaves' responses are (equation 2)
    trim : cut off the branches that no row of the target reaches
    extra_trees : number of trees boosted afterwards, at the most (Algorithm 3); they may use
        features that the base model never saw
    objective : what responses are of: ``"auto"``: the base model's own objective; ``"squared"``:
        the squared error of labels (the paper's); ``"lambdas"``: of `measure`
    measure : what decides on validation data and on beta, and what lambdas are of
    betas, folds : values of beta that ``"cv"`` compares, and its number of folds
    base_rate : learning rate of the base model's trees, where it does not show
    min_leaf : least number of rows of a new leaf, and on both sides of the target's own split;
        below 1, a share of the rows
    n_leaves, learning_rate, query_fraction, row_fraction, feature_fraction, split, max_depth,
    min_gain : of the extra trees, as in ``LambdaMART``
    early_stopping : stop when so many extra trees have not bettered the validation measure
    max_bins : most bins of a feature, missing values apart
    l2 : added to the sum of second derivatives of a node of the target; 0 is the paper's own
    random_state : seed of all random draws
    n_threads : threads to use; None: all cores
    progress : show a progress bar of the extra trees

    Attributes
    ----------
    ensemble_ : the adapted trees and then the extra ones
    n_adapted_ : number of adapted trees
    base_ : the base model
    beta_ : the beta that was used
    cv_ : beta -> mean of the measure in cross-validation; empty without it
    report_ : what adaptation changed, an ``AdaptationReport``
    best_round_ : number of extra trees with the best validation value, or None
    start_values_ : as history_, the values without extra trees
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
    trainable: ClassVar[bool] = False
    held: ClassVar[frozenset[str]] = frozenset({"base"})
    trained: ClassVar[frozenset[str]] = frozenset({"base"})
    _rounds_name: ClassVar[str] = "extra_trees"
    checkpoint = None
    checkpoint_every = 25

    def __init__(
        self,
        base: Any = None,
        beta: float | str = 10.0,
        tune: str = "responses",
        level: str = "layer",
        trim: bool = False,
        extra_trees: int = 0,
        objective: str = "auto",
        measure: str | Measure = "ndcg@10",
        betas: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
        folds: int = 5,
        base_rate: float | None = None,
        n_leaves: int = 12,
        learning_rate: float = 0.05,
        min_leaf: int | float = 20,
        query_fraction: float = 1.0,
        row_fraction: float = 1.0,
        feature_fraction: float = 1.0,
        split: str = "newton",
        early_stopping: int | None = None,
        max_bins: int = 255,
        max_depth: int | None = None,
        min_gain: float = 0.0,
        l2: float = 0.1,
        random_state: int = 0,
        n_threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.base = base
        self.beta = beta
        self.tune = tune
        self.level = level
        self.trim = trim
        self.extra_trees = extra_trees
        self.objective = objective
        self.measure = measure
        self.betas = betas
        self.folds = folds
        self.base_rate = base_rate
        self.n_leaves = n_leaves
        self.learning_rate = learning_rate
        self.min_leaf = min_leaf
        self.query_fraction = query_fraction
        self.row_fraction = row_fraction
        self.feature_fraction = feature_fraction
        self.split = split
        self.early_stopping = early_stopping
        self.max_bins = max_bins
        self.max_depth = max_depth
        self.min_gain = min_gain
        self.l2 = l2
        self.random_state = random_state
        self.n_threads = n_threads
        self.progress = progress

    def check_parameters(self) -> None:
        """Refuse values that a parameter cannot have."""
        super().check_parameters()
        owner = type(self).__name__
        if self.beta != CROSS_VALIDATED:
            rule = f"a number of at least 0, infinity included, or {CROSS_VALIDATED!r}"
            _check_beta("beta", owner, self.beta, rule)
        check_integer("folds", owner, self.folds, low=2)
        if not isinstance(self.betas, tuple | list | np.ndarray) or not len(self.betas):
            refuse("betas", owner, "some numbers of at least 0", self.betas)
        for beta in self.betas:
            _check_beta("betas", owner, beta, "numbers of at least 0, infinity included")
        check_choice("tune", owner, self.tune, ["responses", "splits"])
        check_choice("level", owner, self.level, ["layer", "leaf"])
        check_choice("objective", owner, self.objective, OBJECTIVES)
        if not isinstance(self.trim, bool):
            refuse("trim", owner, "True or False", self.trim)
        if self.base_rate is not None:
            check_real("base_rate", owner, self.base_rate, above=0.0)

    # -- training -------------------------------------------------------------------------------

    @property
    def _goes_on(self) -> bool:
        return True

    def _begin(self) -> None:
        # kept apart until training has ended well: a ranker trained before stays as it was
        self._found = fitted_base(self.base, type(self).__name__)

    def _objective(self, train: QueryDataset, keys: np.ndarray) -> Objective:
        base = getattr(self, "_found", None) or self.base_
        return objective_for(base, self.objective, self.measure, train, keys, self.n_threads)

    @property
    def _needs_bins(self) -> bool:
        return self.extra_trees > 0 or self.tune == "splits"

    def _bin(self, train: QueryDataset) -> BinnedMatrix:
        if self._needs_bins:
            return super()._bin(train)
        nothing = Binner(train.n_features, np.empty(0, np.int32), ())
        return BinnedMatrix(nothing, np.empty((train.n_rows, 0), np.uint8))

    def _before_trees(
        self, train: QueryDataset, binned: BinnedMatrix, objective: Objective
    ) -> None:
        names = train.given_names
        trees = base_trees(self._found, train.n_features, names, type(self).__name__)
        source = source_statistics(trees, self.base_rate, needed=self.beta != 0)
        self._cv: dict[float, float] = {}
        beta = self.beta
        if beta == CROSS_VALIDATED:
            self._cv = self._cross_validated(trees, source, train)
            beta = min(self._cv, key=lambda one: (-self._cv[one], one))
        self._beta = float(beta)
        target = _target_rows(trees, train, binned, self.n_threads)
        rules = self._rules(self._beta, train.n_rows)
        found = adapt_ensemble(trees, source, target, objective, rules, n_threads=self.n_threads)
        self._report = AdaptationReport.of(trees, source, found, target, train.feature_names)
        self._trees = trimmed(found.ensemble, found.reached) if self.trim else found.ensemble
        self._rates = np.nan_to_num(source.rate, nan=1.0).tolist()
        self._scored = train, found.scores

    def _rules(self, beta: float, n_rows: int) -> Rules:
        return Rules(beta, self.tune, self.level, self._min_leaf(n_rows), self._leaf_l2())

    def _cross_validated(
        self, trees: Ensemble, source: SourceStatistics, train: QueryDataset
    ) -> dict[float, float]:
        """Return every beta's mean of the measure on queries that it was not adapted to."""
        measure = target_measure(self.measure)
        part = assign_parts(train.query_keys, self.folds, self.random_state, type(self).__name__)
        values: dict[float, list[np.ndarray]] = {float(beta): [] for beta in self.betas}
        for k in range(self.folds):
            seen, unseen = train.select(part != k), train.select(part == k)
            objective = self._objective(seen, seen.row_keys)
            target = _target_rows(trees, seen, self._bin(seen), self.n_threads)
            prepared = measure.prepare(unseen.grouped(unseen.y), unseen.query_ptr, self.n_threads)
            rows = query_order_rows(unseen)
            for beta, found in values.items():
                rules = self._rules(beta, seen.n_rows)
                made: Adapted = adapt_ensemble(
                    trees, source, target, objective, rules, n_threads=self.n_threads
                )
                kept = trimmed(made.ensemble, made.reached) if self.trim else made.ensemble
                scores = score_ensemble(kept, unseen.features, rows, self.n_threads)
                ranking = rank(scores, unseen.query_ptr, self.n_threads)
                found.append(prepared.values(ranking, self.n_threads))
        means = {beta: exact_mean(np.concatenate(found)) for beta, found in values.items()}
        if any(math.isnan(mean) for mean in means.values()):
            raise DataError(
                f"{type(self).__name__}: {measure} leaves out every query of the data (nothing "
                "relevant, or all labels equal): beta cannot be chosen by it."
            )
        return means

    def _starting_scores(self, data: QueryDataset, n_columns: int) -> np.ndarray:
        train, scores = self._scored
        if data is not train:
            scores = score_ensemble(
                self._trees, data.features, query_order_rows(data), self.n_threads
            )
        return np.array(scores, ndmin=2)

    def _rounds_before(self) -> int:
        return self._trees.n_trees

    def _boost(
        self,
        train: QueryDataset,
        binned: BinnedMatrix,
        objective: Objective,
        keys: np.ndarray,
        scores: np.ndarray,
        watch: Any,
        *others: Any,
    ) -> Progress:
        if self._rounds == 0:
            return Progress(round=0, rounds=0, watch=watch, trees=[])
        return super()._boost(train, binned, objective, keys, scores, watch, *others)

    def _keep(self, train: HasFeatures, done: Progress, n_columns: int) -> None:
        super()._keep(train, done, n_columns)
        self.n_adapted_ = self._trees.n_trees
        self.steps_ = [*self._rates, *self.steps_]
        grown, self.ensemble_ = self.ensemble_, self._trees
        if grown.n_trees:
            trees = [part.tree(t) for part in (self._trees, grown) for t in range(part.n_trees)]
            self.ensemble_ = Ensemble.from_trees(trees, train.n_features, self._trees.base)
        self.base_, self.beta_, self.cv_ = self._found, self._beta, self._cv
        self.report_ = self._report
        for name in ("found", "beta", "cv", "report", "trees", "rates", "scored"):
            delattr(self, f"_{name}")

    # -- the trained ranker -----------------------------------------------------------------------

    @property
    def _n_before(self) -> int:
        return self.n_adapted_

    def truncated(self, n_trees: int) -> Self:
        """Return the ranker of the first `n_trees` trees, adapted ones and then extra ones."""
        made = super().truncated(n_trees)
        made.n_adapted_ = min(self.n_adapted_, n_trees)
        return made

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
        # gains are the base model's own: what adaptation changed says more
        table = self.report_.table("feature", n_features) if n_features > 0 else ""
        return ["what changed most, by feature:", table] if table else []

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        content, arrays = super()._state()
        content["beta"] = self.beta_
        content["cv"] = [[beta, value] for beta, value in self.cv_.items()]
        content["n_adapted"] = self.n_adapted_
        content["base"], inside = pack(self.base_, "base")
        names = getattr(self, "feature_names_", None) or self.report_.feature_names
        content["report_names"] = list(names)
        report = {f"report/{key}": a for key, a in self.report_.to_arrays().items()}
        return content, {**arrays, **inside, **report}

    def _restore(self, content: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(content, arrays)
        self.beta_ = float(content["beta"])
        self.cv_ = {float(beta): float(value) for beta, value in content["cv"]}
        self.n_adapted_ = int(content["n_adapted"])
        self.base_ = self.base = unpack(content["base"], arrays, "base")
        own = {k.removeprefix("report/"): a for k, a in arrays.items() if k.startswith("report/")}
        self.report_ = AdaptationReport.from_arrays(own, content["report_names"])


def _target_rows(
    trees: Ensemble, data: QueryDataset, binned: BinnedMatrix, n_threads: int | None
) -> TargetRows:
    used = np.unique(trees.feature)
    rows = query_order_rows(data)
    bins = binned if binned.n_kept else None
    return TargetRows.of(data.features, rows, used, bins, n_threads)


def _check_beta(name: str, owner: str, value: Any, rule: str) -> None:
    if isinstance(value, float) and value == math.inf:
        return
    try:
        check_real(name, owner, value, low=0.0)
    except ParameterError:  # its rule would be a finite number
        refuse(name, owner, rule, value)
