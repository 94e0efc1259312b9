"""Parameters that several rankers of trees share, each declared once."""

from __future__ import annotations

from typing import Any

from rankgrove.data.thresholds import SPACINGS
from rankgrove.growth.splitting import GROWTHS
from rankgrove.rankers.declaring import (
    Parameter,
    choice,
    count_or_share,
    flag,
    integer,
    optional,
    real,
)
from rankgrove.rankers.trees.category_rules import category_rules
from rankgrove.rankers.trees.constraints import directions, groups

N_TREES: Any = Parameter(500, "maximum number of trees")  # 0 is sometimes valid: see BoostedRanker
N_LEAVES: Any = Parameter(31, "maximum number of leaves of a tree", integer(low=2))
LEARNING_RATE: Any = Parameter(0.1, "factor of every leaf's step", real(above=0.0))
MIN_LEAF: Any = Parameter(
    20, "minimum number of rows of a leaf; below 1, a share of the rows", count_or_share
)
QUERY_FRACTION: Any = Parameter(
    1.0, "share of the queries that a round sees, redrawn every round", real(high=1.0, above=0.0)
)
ROW_FRACTION: Any = Parameter(
    1.0,
    "share of those queries' documents that a round's trees are grown on, redrawn every round",
    real(high=1.0, above=0.0),
)
FEATURE_FRACTION: Any = Parameter(
    1.0, "share of the features that a split may use, redrawn at every split",
    real(high=1.0, above=0.0),
)  # fmt: skip
SPLIT: Any = Parameter(
    "newton",
    'gain of a split: ``"newton"`` (by gradient and second derivative; the right choice for '
    'weighted rows) or ``"mse"`` (least squares on the gradients, as in the papers)',
    choice(["mse", "newton"]),
)
GROWTH: Any = Parameter(
    "leafwise",
    '``"leafwise"``: the leaf whose split gains most is divided next; ``"symmetric"``: one split '
    "divides all leaves of a level, and trees have at most log2(n_leaves) levels",
    choice(GROWTHS),
)
SIGMA: Any = Parameter(
    1.0, "slope of the sigmoid; it changes the scale of the scores, not the ranking",
    real(above=0.0),
)  # fmt: skip
SUBMODEL: Any = Parameter(
    None,
    "model to start from: a trained ranker, the path of a model file, any object with "
    '``predict`` (it gets the float32 feature matrix), or ``"base_score"``: the data set\'s '
    "base scores",
)
EVEN_QUERIES: Any = Parameter(
    False,
    "give all queries the same total weight; otherwise all pairs have the same weight, so queries "
    "with many documents count more. Weights of queries and of rows (of both documents) are "
    "multiplied with it",
    flag,
)
N_THRESHOLDS: Any = Parameter(
    None,
    "maximum number of thresholds of a feature, up to 254 (RankLib: 10); None: one between any "
    "two bins of values, at most 255 bins",
    optional(integer(low=1, high=254)),
)
SPACING: Any = Parameter(
    "even",
    'with `n_thresholds`, ``"even"``: at equal distances from the lowest to the highest value; '
    '``"quantile"``: at equal shares of the rows',
    choice(SPACINGS),
)
OVERFITTING_TOLERANCE: Any = Parameter(
    0.0,
    "keep trees after the best round until the validation measure is this share below its best "
    "(0.02: 2 %), at most 250, and no more than early_stopping lets grow. In the BL-MART paper "
    "bags of such models are better; on MQ2008 they are equally good",
    real(low=0.0, high=1.0),
)
MAX_BINS: Any = Parameter(
    255, "maximum number of bins of a feature, without missing values", integer(low=2, high=255)
)
MAX_DEPTH: Any = Parameter(
    None, "maximum number of splits between root and leaf; None: no limit", optional(integer(low=1))
)
MIN_GAIN: Any = Parameter(0.0, "a split must gain more than this", real(low=0.0))
L2: Any = Parameter(
    0.1,
    "added to the sum of second derivatives of a leaf, so that a leaf of little weight takes no "
    "giant step; 0: as in the papers",
    real(low=0.0),
)
MONOTONE: Any = Parameter(
    None,
    'directions of features, by name or 1-based number, such as ``{"bm25": 1, "price": -1}``: the '
    "score of a document never falls (1) or never rises (-1) with the feature, if all others stay "
    "as they are; 0 or not named: no constraint. Missing values have no order",
    optional(directions),
)
INTERACTIONS: Any = Parameter(
    None,
    "groups of features, by name or 1-based number, that may meet in a branch of a tree, such as "
    '``[["price", "brand"], ["bm25", "title"]]``: all features between root and leaf are of one '
    "group. A feature in no group is alone in its branches; None: all may meet",
    optional(groups),
)
CATEGORY_RULES: Any = Parameter(
    None,
    "rules for splits on sets of categories that differ from the defaults, such as ``{'min_rows': "
    "20}``. smoothing (10): a category's gradient is shrunk as if it had that many more rows of "
    "its leaf; l2 (0): added to the hessians of both children, in rows; penalty (1): times the "
    "gain that categories without effect are expected to have, which is subtracted; min_rows (5): "
    "a category with fewer rows in a leaf goes where missing values go; max_set (128): most "
    "categories that a split separates from all others",
    optional(category_rules),
)
CHECKPOINT_EVERY: Any = Parameter(25, "rounds between two checkpoints", integer(low=1))
