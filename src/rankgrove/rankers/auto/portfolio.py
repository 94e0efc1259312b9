"""The candidates of an AutoRanker: robust presets, and variations of those that do well."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.ensembles.prepared import PreparedRanker
from rankgrove.rankers.estimator import clone
from rankgrove.rankers.inner_rankers import described
from rankgrove.rankers.linear.coordinate_ascent import CoordinateAscent
from rankgrove.rankers.linear.crr import CRR
from rankgrove.rankers.linear.rank_svm import RankSVM
from rankgrove.rankers.linear.structural_svm import SVMMap
from rankgrove.rankers.nets.lambda_nets import LambdaRank, RankNet
from rankgrove.rankers.nets.net import NetRanker
from rankgrove.rankers.nets.parameters import layer_sizes
from rankgrove.rankers.trees.forest import RandomForest
from rankgrove.rankers.trees.lambdamart import LambdaMART
from rankgrove.rankers.trees.mart import MART
from rankgrove.rankers.trees.mcrank import McRank
from rankgrove.rankers.trees.rankboost import RankBoost

SMALL = 50_000  # rows: below, trees are small and many other rankers are quick enough to try
LARGE = 1_000_000
# What a variation changes: parameters of boosted trees and of nets, and the values that they take.
TREE_CHOICES: dict[str, list[Any]] = {
    "n_leaves": [3, 4, 5, 7, 10, 15, 20, 31, 45, 63, 95, 127],
    "learning_rate": [0.02, 0.03, 0.05, 0.07, 0.1, 0.15],
    "min_leaf": [5, 10, 20, 40, 80, 160, 320],
    "query_fraction": [0.3, 0.5, 0.7, 1.0],
    "feature_fraction": [0.1, 0.2, 0.3, 0.5, 0.7, 1.0],
    "l2": [0.0, 0.1, 0.3, 1.0, 3.0, 10.0],
    "smoothing": [0.0, 0.5, 0.75, 1.0, 1.25, 1.5],
    "growth": ["leafwise", "symmetric"],
}
NET_CHOICES: dict[str, list[Any]] = {
    "hidden": [(8,), (16,), (32,), (64,), (32, 16), (64, 32)],
    "n_epochs": [20, 30, 45, 60, 90],
    "learning_rate": [0.0005, 0.001, 0.002],
    "l2": [0.0, 0.03, 0.1, 0.3, 1.0],
    "smoothing": [0.5, 0.75, 1.0, 1.5, 2.0],
    "activation": ["tanh", "relu"],
}
CHANGED_AT_ONCE = 2
VARIED = 4  # of the best candidates of a group, this many are varied


@dataclass(frozen=True)
class Candidate:
    """A ranker to be cross-fitted.

    Attributes
    ----------
    name : its name in the leaderboard
    ranker : the ranker, untrained
    blind : the fold whose queries had no part in proposing this variation; None: a preset, which
        no query had a part in
    """

    name: str
    ranker: Ranker
    blind: int | None = None

    @property
    def family(self) -> str:
        """The preset that it is, or is a variation of."""
        return self.name.partition(" (")[0]

    @property
    def learner(self) -> Ranker:
        """The ranker, or the one that sees the prepared features."""
        return self.ranker.base if isinstance(self.ranker, PreparedRanker) else self.ranker

    @property
    def group(self) -> str:
        """What kind of model it is: trees, stumps on pairs, a linear function, or a net."""
        learner = self.learner
        if isinstance(learner, NetRanker):
            return "net" if layer_sizes("hidden", "AutoRanker", learner.hidden) else "linear"
        if learner.kind == "rankboost":
            return "stumps"
        return "trees" if hasattr(learner, "truncated") else "linear"

    @property
    def key(self) -> str:
        """A text that is the same for equal rankers."""
        return json.dumps(described(self.ranker), sort_keys=True)

    @property
    def is_boosted(self) -> bool:
        """Whether it is made of boosted trees, whose number is chosen afterwards."""
        learner = self.learner
        return "early_stopping" in learner.get_params(deep=False) and hasattr(learner, "truncated")

    @property
    def choices(self) -> dict[str, list[Any]]:
        """The parameters that variations change, and their values; empty: it is not varied."""
        if self.is_boosted:
            choices = TREE_CHOICES
        else:
            choices = NET_CHOICES if self.group == "net" else {}
        known = self.learner.get_params(deep=False)
        return {name: values for name, values in choices.items() if name in known}


def presets(measure: str, data: QueryDataset, *, trees_only: bool) -> list[Candidate]:
    """Return the candidates that are tried first, the most promising ones first.

    Parameters
    ----------
    measure : what the AutoRanker maximises
    data : the training data: its size decides on the size of trees, and rankers that cannot use its
        weights of rows are left out
    trees_only : leave out everything that is not one sum of trees
    """
    trees = tree_settings(data)

    symmetric = symmetric_settings(trees)

    def lambdas(target: str, smoothing: float) -> Ranker:
        return LambdaMART(target, smoothing=smoothing, **trees)

    listed: list[tuple[str, Callable[[], Ranker]]] = [
        (f"LambdaMART {measure}, smoothed", lambda: lambdas(measure, 1.0)),
        ("XE-NDCG", lambda: MART("softmax", **trees)),
        (f"LambdaMART {measure}", lambda: lambdas(measure, 0.0)),
        ("QueryRMSE", lambda: MART("query_squared", **symmetric)),
    ]
    if not trees_only and data.n_rows <= LARGE:
        small = data.n_rows <= SMALL

        common: dict[str, Any] = {
            "hidden": (32,) if small else (64, 32),
            "n_epochs": 60 if small else 30,
            "learning_rate": 0.001,
            "schedule": "linear",
            "l2": 0.1,
        }

        def net(target: str, **settings: Any) -> Ranker:
            return standardised(LambdaRank(target, **({"smoothing": 1.0} | common | settings)))

        listed += [
            ("LambdaRank net", lambda: net("ndcg")),
            (
                f"LambdaMART {measure}, smoothed, with percentiles",
                lambda: with_percentiles(lambdas(measure, 1.0)),
            ),
            ("XE-NDCG with percentiles", lambda: with_percentiles(MART("softmax", **trees))),
            ("LambdaRank net, ReLU", lambda: net("ndcg", activation="relu")),
            ("RankNet", lambda: standardised(RankNet(**common))),
        ]
        if small:
            listed += _for_small_data(measure, trees, net)
    for other in ("ndcg", "map", "pairs"):
        if other != measure:
            listed.append((f"LambdaMART {other}, smoothed", partial(lambdas, other, 1.0)))
    candidates = [Candidate(name, make()) for name, make in listed]
    if data.weight is not None:
        candidates = [c for c in candidates if c.learner.takes_row_weights]
    return _for_categories(candidates) if data.categories else candidates


def _for_categories(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that can use categorical features.

    Nets and linear functions get numbers for them; what only has thresholds is left out.
    """
    kept = []
    for candidate in candidates:
        ranker = candidate.ranker
        if not ranker.takes_categories and candidate.group in ("net", "linear"):
            if not isinstance(ranker, PreparedRanker):
                ranker = PreparedRanker(ranker)
            ranker = ranker.set_params(encode="auto")
        if ranker.takes_categories:
            kept.append(Candidate(candidate.name, ranker))
    return kept


def _for_small_data(
    measure: str, trees: dict[str, Any], net: Callable[..., Ranker]
) -> list[tuple[str, Callable[[], Ranker]]]:
    """Return the rankers that are quick enough to try on small data only."""
    stopping: dict[str, Any] = {"early_stopping": 60, "overfitting_tolerance": 1.0}
    return [
        ("SVM-map", lambda: SVMMap(scaling="query")),
        ("Linear LambdaRank", lambda: net("ndcg", hidden=())),
        ("RankSVM", lambda: RankSVM(scaling="query")),
        ("RankBoost", lambda: RankBoost(n_trees=300, **stopping)),
        (
            "RankBoost with percentiles",
            lambda: with_percentiles(RankBoost(n_trees=300, **stopping)),
        ),
        ("Coordinate ascent", lambda: CoordinateAscent(measure, n_restarts=1)),
        ("CRR", CRR),
        (
            "QueryRMSE with percentiles",
            lambda: with_percentiles(MART("query_squared", **symmetric_settings(trees))),
        ),
        ("Random forest", lambda: RandomForest(n_trees=200)),
        ("McRank", lambda: McRank(**trees)),
    ]


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


def symmetric_settings(trees: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of symmetric trees with at least the same number of leaves."""
    return trees | {"growth": "symmetric", "n_leaves": 1 << int(trees["n_leaves"] - 1).bit_length()}


def standardised(ranker: Ranker) -> Ranker:
    """Return a ranker whose features are standardised within every query."""
    return PreparedRanker(ranker, normalise="zscore")


def with_percentiles(ranker: Ranker) -> Ranker:
    """Return a ranker that also sees the places of values within the query."""
    return PreparedRanker(ranker, normalise="percentile", append=True)


def variation(
    candidates: Sequence[Candidate], known: set[str], draw: np.random.Generator, blind: int
) -> Candidate | None:
    """Return a variation of a good candidate that is not known yet.

    Parameters
    ----------
    candidates : the best first; better ones are varied more often
    known : keys of all candidates so far
    blind : the fold that had no part in the order of the candidates
    """
    parents: list[Candidate] = []
    places: list[int] = []
    for group in dict.fromkeys(candidate.group for candidate in candidates):
        best = [c for c in candidates if c.group == group and c.choices][:VARIED]
        parents += best
        places += range(len(best))
    if not parents:
        return None
    chances = 1.0 / (1.0 + np.array(places))
    for _ in range(50):
        parent = parents[draw.choice(len(parents), p=chances / chances.sum())]
        choices, params = parent.choices, parent.learner.get_params(deep=False)
        changed = draw.choice(list(choices), size=min(CHANGED_AT_ONCE, len(choices)), replace=False)
        values = {str(name): _neighbour(choices[name], params[name], draw) for name in changed}
        prefix = "" if parent.learner is parent.ranker else "base__"
        ranker = clone(parent.ranker).set_params(**{prefix + k: v for k, v in values.items()})
        child = Candidate(_varied(parent.name, values), ranker, blind)
        if child.key not in known:
            return child
    return None


def _neighbour(values: list[Any], value: Any, draw: np.random.Generator) -> Any:
    """Return a value one or two steps from the present one."""
    if value in values:
        at = values.index(value)
    else:
        at = int(np.argmin([abs(float(other) - float(value)) for other in values]))
    near = [i for i in range(at - 2, at + 3) if 0 <= i < len(values) and values[i] != value]
    return values[near[draw.integers(len(near))]]


def _varied(name: str, values: dict[str, Any]) -> str:
    """Return the name of a variation: the preset's, and the last values changed."""
    family, _, _ = name.partition(" (")
    return f"{family} ({', '.join(f'{key}={_text(value)}' for key, value in values.items())})"


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    return value if isinstance(value, str) else f"{value:g}"
