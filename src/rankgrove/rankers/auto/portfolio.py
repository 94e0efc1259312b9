"""The candidates of an AutoRanker: robust presets, and variations of those that do well."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from rankgrove.data.queries import QueryDataset
from rankgrove.rankers.base import Ranker, plain_parameters
from rankgrove.rankers.ensembles.prepared import PreparedRanker
from rankgrove.rankers.linear.coordinate_ascent import CoordinateAscent
from rankgrove.rankers.linear.rank_svm import RankSVM
from rankgrove.rankers.linear.structural_svm import SVMMap
from rankgrove.rankers.nets.lambda_nets import LambdaRank, RankNet
from rankgrove.rankers.trees.forest import RandomForest
from rankgrove.rankers.trees.lambdamart import LambdaMART
from rankgrove.rankers.trees.mart import MART
from rankgrove.rankers.trees.mcrank import McRank
from rankgrove.rankers.trees.rankboost import RankBoost

SMALL = 50_000  # rows: below, trees are small and many other rankers are quick enough to try
LARGE = 1_000_000
# What a variation changes: parameters of boosted trees, and the values that they take.
CHOICES: dict[str, list[Any]] = {
    "n_leaves": [3, 4, 5, 7, 10, 15, 20, 31, 45, 63, 95, 127],
    "learning_rate": [0.02, 0.03, 0.05, 0.07, 0.1, 0.15],
    "min_leaf": [5, 10, 20, 40, 80, 160, 320],
    "query_fraction": [0.3, 0.5, 0.7, 1.0],
    "feature_fraction": [0.1, 0.2, 0.3, 0.5, 0.7, 1.0],
    "l2": [0.0, 0.1, 0.3, 1.0, 3.0, 10.0],
    "smoothing": [0.0, 0.5, 0.75, 1.0, 1.25, 1.5],
}
CHANGED_AT_ONCE = 2


@dataclass(frozen=True)
class Candidate:
    """A ranker to be cross-fitted.

    Attributes
    ----------
    name : its name in the leaderboard
    ranker : the ranker, untrained
    """

    name: str
    ranker: Ranker

    @property
    def family(self) -> str:
        """The preset that it is, or is a variation of."""
        return self.name.partition(" (")[0]

    @property
    def group(self) -> str:
        """What kind of model it is: trees, a linear function, stumps on pairs, or a net."""
        kind = self.ranker.kind
        if kind in ("rankboost", "prepared"):
            return kind
        return "trees" if hasattr(self.ranker, "truncated") else "linear"

    @property
    def key(self) -> str:
        """A text that is the same for equal rankers."""
        return f"{self.ranker.kind} {json.dumps(settings(self.ranker), sort_keys=True)}"

    @property
    def is_boosted(self) -> bool:
        """Whether it is made of boosted trees, whose number is chosen afterwards."""
        return "early_stopping" in self.ranker.get_params(deep=False) and hasattr(
            self.ranker, "truncated"
        )


def settings(ranker: Ranker) -> dict[str, Any]:
    """Return the parameters of a ranker, those of a base ranker included, as plain values."""
    values = plain_parameters(ranker)
    base = getattr(ranker, "base", None)
    if isinstance(base, Ranker):
        values |= {"base": base.kind, **settings(base)}
    return values


def presets(measure: str, data: QueryDataset, *, trees_only: bool) -> list[Candidate]:
    """Return the candidates that are tried first, the most promising ones first.

    Parameters
    ----------
    measure : what the AutoRanker maximises
    data : the training data, whose size decides on the size of trees
    trees_only : leave out everything that is not one sum of trees
    """
    trees = tree_settings(data)

    def lambdas(target: str, smoothing: float) -> Ranker:
        return LambdaMART(target, smoothing=smoothing, **trees)

    listed: list[tuple[str, Callable[[], Ranker]]] = [
        (f"LambdaMART {measure}, smoothed", lambda: lambdas(measure, 1.0)),
        ("XE-NDCG", lambda: MART("softmax", **trees)),
        (f"LambdaMART {measure}", lambda: lambdas(measure, 0.0)),
        ("QueryRMSE", lambda: MART("query_squared", **trees)),
    ]
    for other in ("ndcg", "map", "pairs"):
        if other != measure:
            listed.append((f"LambdaMART {other}, smoothed", partial(lambdas, other, 1.0)))
    small = data.n_rows <= SMALL
    if not trees_only and data.n_rows <= LARGE:
        nets: dict[str, Any] = {
            "hidden": (32,) if small else (64, 32),
            "n_epochs": 30,
            "schedule": "linear",
        }
        listed += [
            ("LambdaRank net", lambda: standardised(LambdaRank("ndcg", smoothing=1.0, **nets))),
            ("RankNet", lambda: standardised(RankNet(**nets))),
        ]
    if not trees_only and small:
        stopping: dict[str, Any] = {"early_stopping": 60, "overfitting_tolerance": 1.0}
        listed += [
            ("RankSVM", lambda: RankSVM(scaling="query")),
            ("RankSVM, percentiles", lambda: RankSVM(scaling="percentile")),
            ("SVM-map", lambda: SVMMap(scaling="query")),
            ("RankBoost", lambda: RankBoost(n_trees=300, **stopping)),
            ("Coordinate ascent", lambda: CoordinateAscent(measure, n_restarts=1)),
            ("Random forest", lambda: RandomForest(n_trees=200)),
            ("McRank", lambda: McRank(**trees)),
        ]
    return [Candidate(name, make()) for name, make in listed]


def tree_settings(data: QueryDataset) -> dict[str, Any]:
    """Return parameters of boosted trees that suit data of this size."""
    common = {"early_stopping": 60, "overfitting_tolerance": 1.0, "feature_fraction": 0.3}
    if data.n_rows <= SMALL:
        return common | {
            "n_trees": 400,
            "n_leaves": 7,
            "learning_rate": 0.05,
            "query_fraction": 0.5,
            "min_leaf": max(1, min(20, data.n_rows // 50)),
        }
    if data.n_rows <= LARGE:
        return common | {"n_trees": 500, "n_leaves": 20, "learning_rate": 0.07, "min_leaf": 40}
    return common | {"n_trees": 500, "n_leaves": 63, "learning_rate": 0.1, "min_leaf": 100}


def standardised(ranker: Ranker) -> Ranker:
    """Return a ranker whose features are standardised within every query."""
    return PreparedRanker(ranker, normalise="zscore")


def variation(
    candidates: Sequence[Candidate], known: set[str], draw: np.random.Generator
) -> Candidate | None:
    """Return a variation of a good candidate that is not known yet.

    Parameters
    ----------
    candidates : boosted trees, the best first; better ones are varied more often
    known : keys of all candidates so far
    """
    chances = 1.0 / (1.0 + np.arange(len(candidates)))
    for _ in range(50):
        parent = candidates[draw.choice(len(candidates), p=chances / chances.sum())]
        params = parent.ranker.get_params(deep=False)
        names = [name for name in CHOICES if name in params]
        changed = draw.choice(names, size=min(CHANGED_AT_ONCE, len(names)), replace=False)
        values = {name: _neighbour(CHOICES[name], params[name], draw) for name in changed}
        ranker = clone(parent.ranker).set_params(**values)
        child = Candidate(_varied(parent.name, values), ranker)
        if child.key not in known:
            return child
    return None


def _neighbour(values: list[Any], value: Any, draw: np.random.Generator) -> Any:
    """Return a value one or two steps from the present one."""
    at = int(np.argmin([abs(float(other) - float(value)) for other in values]))
    near = [i for i in range(at - 2, at + 3) if 0 <= i < len(values) and values[i] != value]
    return values[near[draw.integers(len(near))]]


def _varied(name: str, values: dict[str, Any]) -> str:
    """Return the name of a variation: the preset's, and the last values changed."""
    family, _, _ = name.partition(" (")
    return f"{family} ({', '.join(f'{key}={value:g}' for key, value in values.items())})"
