"""The rankers that a survey trains, by name, each with the settings of one scale.

A name with a comma is a variant of the ranker before the comma: RankBoost with RankLib's 10
thresholds, AdaRank's loop as in its paper, CRR with almost no L2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rankgrove.rankers.base import Ranker
from rankgrove.rankers.ensembles.bagged import BaggedRanker
from rankgrove.rankers.linear.adarank import AdaRank
from rankgrove.rankers.linear.coordinate_ascent import CoordinateAscent
from rankgrove.rankers.linear.crr import CRR
from rankgrove.rankers.linear.parameters import AUTO
from rankgrove.rankers.linear.rank_svm import RankSVM
from rankgrove.rankers.linear.smooth_rank import SmoothRank
from rankgrove.rankers.linear.structural_svm import SVMMap, SVMRoc
from rankgrove.rankers.nets.boltzrank import BoltzRank
from rankgrove.rankers.nets.lambda_nets import LambdaRank, RankNet
from rankgrove.rankers.nets.listnet import ListNet
from rankgrove.rankers.trees.forest import RandomForest
from rankgrove.rankers.trees.frank import FRank
from rankgrove.rankers.trees.gbrank import GBRank
from rankgrove.rankers.trees.lambdamart import LambdaMART
from rankgrove.rankers.trees.mart import MART
from rankgrove.rankers.trees.mcrank import McRank
from rankgrove.rankers.trees.rankboost import RankBoost

# A function of two numbers, one for small scale and one for full scale, that returns the number of
# the scale in use.
Size = Callable[[int, int], int]


def size_at(scale: str) -> Size:
    """Return the size function of a scale: ``"small"`` or ``"full"``."""
    return lambda small, full: full if scale == "full" else small


def _tree_params(size: Size) -> dict[str, Any]:
    """Return the shape of boosted trees: the BL-MART paper's best on MQ2007 (Table 3b)."""
    return {
        "n_trees": size(60, 1000),
        "n_leaves": 7,
        "min_leaf": 0.0025,
        "learning_rate": 0.05,
        "query_fraction": 0.3,
        "feature_fraction": 0.3,
        "early_stopping": size(20, 200),
    }


def _round_params(size: Size) -> dict[str, Any]:
    return {"n_trees": size(60, 300)}


def _net_params(size: Size) -> dict[str, Any]:
    return {"n_epochs": size(12, 100), "early_stopping": size(5, 30)}


# Xu and Li's Algorithm 1 with RankLib's stopping rule
_ADARANK_PAPER: dict[str, Any] = {"update": "latest", "tolerance": 0.002}

# name -> a function that returns the untrained ranker
RANKERS: dict[str, Callable[[Size], Ranker]] = {
    "RankBoost": lambda size: RankBoost(**_round_params(size)),
    "RankBoost, 10 thresholds": lambda size: RankBoost(n_thresholds=10, **_round_params(size)),
    "AdaRank-MAP": lambda size: AdaRank("map"),
    "AdaRank-MAP, paper's loop": lambda size: AdaRank("map", **_ADARANK_PAPER),
    "AdaRank-NDCG": lambda size: AdaRank("ndcg"),
    "AdaRank-NDCG, paper's loop": lambda size: AdaRank("ndcg", **_ADARANK_PAPER),
    "FRank": lambda size: FRank(**_round_params(size), early_stopping=size(20, 50)),
    "GBRank": lambda size: GBRank(**(_tree_params(size) | {"learning_rate": 1.0})),
    "RandomForest": lambda size: RandomForest(**_round_params(size)),
    "BagBoo": lambda size: BaggedRanker(MART(**_tree_params(size)), size(2, 10), combine="mean"),
    "RankSVM": lambda size: RankSVM(C=AUTO),
    "Coordinate ascent": lambda size: CoordinateAscent("map", n_restarts=size(1, 5)),
    "SmoothRank": lambda size: SmoothRank("ndcg"),
    "ListNet": lambda size: ListNet(n_epochs=size(20, 100)),
    "BoltzRank": lambda size: BoltzRank(n_epochs=size(20, 100)),
    "CRR": lambda size: CRR(n_epochs=size(10, 50)),
    "CRR, L2 .0001": lambda size: CRR(n_epochs=size(10, 50), l2=1e-4, learning_rate=0.001),
    "MART": lambda size: MART(**_tree_params(size)),
    "McRank": lambda size: McRank(**_tree_params(size)),
    "RankNet": lambda size: RankNet(**_net_params(size)),
    "LambdaRank": lambda size: LambdaRank(**_net_params(size)),
    "SVM-map": lambda size: SVMMap(C=AUTO),
    "SVM-roc": lambda size: SVMRoc(C=AUTO),
    "LambdaMART": lambda size: LambdaMART(**_tree_params(size)),
    "BL-MART": lambda size: BaggedRanker(
        LambdaMART(**_tree_params(size)), size(2, 10), overfitting_tolerance=0.02
    ),
}
