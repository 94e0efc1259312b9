"""Parameters that several rankers of trees share, each declared once."""

from __future__ import annotations

from typing import Any

from rankgrove.data.thresholds import SPACINGS
from rankgrove.rankers.declaring import (
    Parameter,
    choice,
    count_or_share,
    flag,
    integer,
    optional,
    real,
)

N_TREES: Any = Parameter(500, "number of trees at most")  # 0 may do: see BoostedRanker
N_LEAVES: Any = Parameter(31, "maximum number of leaves of a tree", integer(low=2))
LEARNING_RATE: Any = Parameter(0.1, "factor of every leaf's step", real(above=0.0))
MIN_LEAF: Any = Parameter(
    20, "least number of rows of a leaf; below 1, a share of the rows", count_or_share
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
    'how splits are valued: ``"newton"`` (gradient and second derivative; also what weights of '
    'rows call for) or ``"mse"`` (least squares on the gradients, as the papers do)',
    choice(["mse", "newton"]),
)
SIGMA: Any = Parameter(
    1.0, "slope of the sigmoid; it changes the scale of the scores, not the ranking",
    real(above=0.0),
)  # fmt: skip
SUBMODEL: Any = Parameter(
    None,
    "what to start from: a trained ranker, the path of a model file, any object with "
    '``predict`` (it is given the float32 feature matrix), or ``"base_score"``: the data set\'s '
    "base scores",
)
EVEN_QUERIES: Any = Parameter(
    False,
    "give all queries the same total weight; otherwise all pairs of the data weigh the same, so "
    "that queries with many documents count more. Weights of queries and rows (both documents') "
    "are multiplied with it",
    flag,
)
N_THRESHOLDS: Any = Parameter(
    None,
    "maximum number of thresholds of a feature, up to 254 (RankLib has 10); None: one between any "
    "two bins of values, 255 at most",
    optional(integer(low=1, high=254)),
)
SPACING: Any = Parameter(
    "even",
    'where a number of thresholds is set, ``"even"``: at equal distances from the least value to '
    'the largest; ``"quantile"``: at equal shares of the rows',
    choice(SPACINGS),
)
OVERFITTING_TOLERANCE: Any = Parameter(
    0.0,
    "keep trees after the best round until the validation measure is this share below its best "
    "(0.02: 2 %), 250 at most, and no more than early_stopping lets grow. In the BL-MART paper "
    "bags of such models are better; on MQ2008 they are level",
    real(low=0.0, high=1.0),
)
MAX_BINS: Any = Parameter(
    255, "maximum number of bins of a feature, missing values apart", integer(low=2, high=255)
)
MAX_DEPTH: Any = Parameter(
    None, "maximum number of splits between root and leaf; None: no limit", optional(integer(low=1))
)
MIN_GAIN: Any = Parameter(0.0, "a split must gain more than this", real(low=0.0))
L2: Any = Parameter(
    0.1,
    "added to the sum of second derivatives of a leaf, so that a leaf of little weight takes no "
    "giant step; 0 is the papers' own",
    real(low=0.0),
)
CHECKPOINT_EVERY: Any = Parameter(25, "rounds between two checkpoints", integer(low=1))
