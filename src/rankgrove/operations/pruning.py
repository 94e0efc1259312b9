"""``rg.prune``: removes trees from a trained ranker or a bag."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from rankgrove.bagging.aggregate import aggregate
from rankgrove.data.queries import QueryDataset, query_order_rows
from rankgrove.errors import DataError, ParameterError
from rankgrove.evaluation.evaluate import prepared_on
from rankgrove.files import write_atomically
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.ensemble import Ensemble
from rankgrove.pruning.prune import Part, Pass, Pruner
from rankgrove.pruning.tree_matrix import TreeMatrix
from rankgrove.rankers.auto.auto import AutoRanker
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.given import features_of
from rankgrove.rankers.inner_rankers import loaded
from rankgrove.showing import html_table
from rankgrove.validation import check_real, refuse


@dataclass(frozen=True, eq=False)
class PrunedRanker:
    """The result of :func:`prune`.

    Attributes
    ----------
    ranker : the ranker with fewer trees
    measures : the measures that had to hold
    passes : the number of trees and the mean of every measure, before and after every pass
    """

    ranker: Ranker
    measures: tuple[str, ...]
    passes: list[Pass]

    @property
    def n_trees(self) -> tuple[int, int]:
        """Number of trees before and after."""
        return self.passes[0].n_trees, self.passes[-1].n_trees

    @property
    def values(self) -> tuple[dict[str, float], dict[str, float]]:
        """The mean of every measure before and after."""
        return self.passes[0].values, self.passes[-1].values

    def __repr__(self) -> str:
        (many, few), (before, after) = self.n_trees, self.values
        means = ", ".join(f"{name} {before[name]:.4f} -> {after[name]:.4f}" for name in before)
        return f"PrunedRanker({many:,} -> {few:,} trees ({1 - few / many:.0%} removed), {means})"

    def _repr_html_(self) -> str:
        rows = [[f"{step.n_trees:,}", *_means(step)] for step in self.passes]
        return html_table(repr(self), ["trees", *self.measures], rows)

    def to_csv(self, path: str | Path) -> None:
        """Write measures by number of trees, one line per pass."""
        lines = [",".join(["trees", *self.measures])]
        for step in self.passes:
            lines.append(",".join([str(step.n_trees), *(repr(v) for v in step.values.values())]))
        write_atomically(path, "\n".join(lines) + "\n")


def prune(
    model: Any,
    data: QueryDataset,
    measures: str | Measure | Iterable[str | Measure] | None = None,
    tolerance: float = 0.0,
    *,
    margin: float = 0.0,
    keep: float = 0.1,
    convention: str = "papers",
    n_threads: int | None = None,
    callback: Callable[[Pass], Any] | None = None,
) -> PrunedRanker:
    """Remove trees from a ranker and re-weight the rest, as long as measures on judged data hold.

    Parameters
    ----------
    model : a trained ranker whose score is a sum of trees, such as LambdaMART, or a bag of them; or
        the path of its model file
    data : judged data that the model was not trained on. It chooses the trees to remove, so the
        measure on it is not a fair estimate afterwards
    measures : one or several that must all hold; None: the ranker's own
    tolerance : how much a mean may fall below its present value, in the measure's units
    margin : number of standard errors of a fall that are added to it; a rise then counts as 0. On
        few queries a mean may hold by chance while most trees are removed; with 1 and a tolerance
        above 0, pruning ends once the uncertainty exceeds the tolerance
    keep : minimum share of the trees to keep: on a few hundred queries, the mean of a handful of
        trees may hold by chance
    convention : how measures are defined where their names do not say it
    n_threads : threads to use, None for all cores; the result does not depend on it
    callback : called with the number of trees and the mean after every pass; True ends the search

    Returns
    -------
    PrunedRanker
        the new ranker, and measures by number of trees; `model` does not change

    Examples
    --------
    >>> import rankgrove as rg
    >>> train, vali = rg.make_artificial(60, seed=1), rg.make_artificial(40, seed=2)
    >>> model = rg.LambdaMART(n_trees=30).fit(train)
    >>> pruned = rg.prune(model, vali, "ndcg@10")
    >>> before, after = pruned.values
    >>> pruned.n_trees[1] < 30 and after["ndcg@10"] >= before["ndcg@10"]
    True
    """
    owner = "prune"
    if not isinstance(data, QueryDataset):
        raise DataError(f"{owner} needs a QueryDataset. Got {type(data).__name__} instead.")
    if callback is not None and not callable(callback):
        refuse("callback", owner, "a function", callback)
    model = loaded(model, "model", owner, "a trained ranker or the path of a model file")
    if isinstance(model, Ranker) and not hasattr(model, "n_features_in_"):
        raise ParameterError(f"{owner}: this {type(model).__name__} is not trained yet.")
    check_real("tolerance", owner, tolerance, low=0.0)
    check_real("margin", owner, margin, low=0.0)
    check_real("keep", owner, keep, low=0.0, high=1.0)
    wanted = getattr(model, "measure", "ndcg@10") if measures is None else measures
    listed = [wanted] if isinstance(wanted, str | Measure) else list(wanted)
    prepared = {}
    for measure in (parse_measure(spec, convention) for spec in listed):
        prepared[str(measure)] = prepared_on(measure, data, owner, n_threads)
    if not prepared:
        refuse("measures", owner, "one measure or several", measures)
    if not isinstance(model, Ranker):
        _refuse_kind(model)
    if model.inside() is not model:
        options: dict[str, Any] = {"tolerance": tolerance, "margin": margin, "keep": keep}
        options["convention"] = convention
        options |= {"n_threads": n_threads, "callback": callback}
        inner = prune(model.inside(), model.prepared(data), listed, **options)
        return replace(inner, ranker=model.with_inside(inner.ranker))
    if isinstance(model, AutoRanker):
        if model.flat() is None:
            raise ParameterError(
                "prune needs a ranker made of trees, and not all members of this AutoRanker are "
                "sums of trees: use AutoRanker(exportable=True) (rankgrove auto --exportable)."
            )
        model = model.model_
    model = model.widened(data)
    data = model.recoded(data, owner)
    models, shares = model.averaged()
    scale = None
    if model.is_bag and model.combine != "mean":
        scale = partial(_scaled, data.query_ptr, model.combine)
    parts = [
        _part(member, float(share), data, scale is not None, n_threads)
        for member, share in zip(models, shares, strict=True)
    ]
    pruner = Pruner(prepared, parts, scale, n_threads)
    pruner.run(tolerance, margin, keep, callback)
    pruned = [_pruned(member, part) for member, part in zip(models, parts, strict=True)]
    ranker = _pruned_bag(model, pruned, parts) if model.is_bag else pruned[0]
    ranker.pruning_ = {
        "trees": [step.n_trees for step in pruner.passes],
        "values": {name: [step.values[name] for step in pruner.passes] for name in prepared},
    }
    return PrunedRanker(ranker, tuple(prepared), pruner.passes)


def _scaled(query_ptr: np.ndarray, combine: str, scores: np.ndarray) -> np.ndarray:
    return aggregate([scores], query_ptr, combine, np.ones(1), 1)


def _part(
    model: Ranker, share: float, data: QueryDataset, scaled: bool, n_threads: int | None
) -> Part:
    """Return a model's trees on the data; refuse one whose score is not their sum."""
    ensemble = model.own_trees()
    if ensemble is None:
        _refuse_kind(model)
    if ensemble.n_columns != 1:
        raise ParameterError(
            f"prune: the score of {type(model).__name__} is not the sum of its trees, so they "
            "have no weights."
        )
    base = data.grouped(model.truncated(0).predict(data, n_threads=n_threads))
    rows = query_order_rows(data)
    features, ptr = features_of(data, "prune")[0], data.query_ptr
    trees = TreeMatrix(ensemble, features, rows, ptr, n_threads)
    every = np.arange(ensemble.n_trees)
    scale = np.ones(data.n_queries)
    if scaled:  # the bag scales the scores of every query to the same range
        scores = base + trees.sum(every, np.ones(every.size))
        reach = np.maximum.reduceat(scores, ptr[:-1]) - np.minimum.reduceat(scores, ptr[:-1])
        scale = np.divide(1.0, reach, out=np.zeros(reach.size), where=reach > 0.0)
    return Part(trees, base, share, every, np.ones(every.size), trees.spread(scale))


def _refuse_kind(model: object) -> NoReturn:
    raise ParameterError(
        f"prune needs a trained ranker made of trees, or a bag of them. Got {type(model).__name__}."
    )


def _pruned(model: Ranker, part: Part) -> Ranker:
    """Return the ranker with the trees and the weights that are left."""
    pruned = copy.copy(model)
    old: Ensemble = model.ensemble_
    trees = [
        replace(old.tree(t), value=w * old.tree(t).value)
        for t, w in zip(part.kept.tolist(), part.weights.tolist(), strict=True)
    ]
    pruned.ensemble_ = Ensemble.from_trees(trees, old.n_features, old.base, single=old.single)
    pruned.steps_ = (part.weights * np.array(model.steps_)[part.kept]).tolist()
    pruned.history_, pruned.best_round_ = {}, None  # they were those of all trees
    return pruned


def _pruned_bag(bag: Ranker, models: list[Ranker], parts: list[Part]) -> Ranker:
    """Return the bag without the models that have no tree left."""
    left = [m for m, part in enumerate(parts) if part.kept.size]
    pruned: Ranker = bag.with_models([models[m] for m in left], bag.weights_[left])
    pruned.out_of_bag_ = pruned.out_of_bag_scores_ = None  # the trees were chosen by other data
    return pruned


def _means(step: Pass) -> list[str]:
    return [f"{value:.4f}" for value in step.values.values()]
