"""Ganjisaffar, Caruana and Lopes 2011 (BL-MART): collections, parameters and the paper's figures.

As in the paper, the parameters of single models and of the models of a bag are the best of a grid
by validation data (Table 3; ``ganjisaffar2011-tuning`` finds those of another collection).
LambdaMART uses the paper's lambdas: NDCG without a cutoff, all pairs, not normalised, and no L2.
Its splits are Newton splits; the paper's least-squares splits are in Figure 4 and in some rows of
Table 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rankgrove import BaggedRanker, LambdaMART, QueryDataset
from rankgrove_papers.grid_edges import Choices
from rankgrove_papers.sources import Collection, Redrawn
from rankgrove_papers.study import Study

MEASURES = ["ndcg@1", "ndcg@3", "ndcg@5", "meanndcg", "map"]
TITLES = ("NDCG@1", "NDCG@3", "NDCG@5", "Mean NDCG", "MAP")
DATA = "LETOR's MQ2008, folds as published"
MEASURED = "letor (mslr for MSLR-WEB10K)"
DECIDES = "ndcg@3"  # the measure that chooses on validation data, as in the paper
TOLERANCE, FRACTION = 0.02, 0.67
PLAIN, RANDOM = "LambdaMART", "LambdaMART with randomisation"
BAG, BAG_OVER = "BL-MART without overfitting", "BL-MART with overfitting"
LEAST_SQUARES = {"split": "mse"}  # the paper's own splits
MSE = ", least squares"  # ends the names of systems with these splits
LAMBDAS = "lambdas of NDCG without a cutoff, all pairs, not normalised, l2 0"
VARIANT = (
    f"LambdaMART: {LAMBDAS}, as in the paper; splits by Newton's gain, where the paper's are "
    "least squares."
)


def _parameters(
    n_leaves: int, min_leaf: float, rate: float, queries: float = 1.0, features: float = 1.0
) -> dict[str, Any]:
    """Return LambdaMART's parameters in the order of the paper's Table 3."""
    return {
        "n_leaves": n_leaves,
        "min_leaf": min_leaf,
        "learning_rate": rate,
        "query_fraction": queries,
        "feature_fraction": features,
    }


def _figures(measures: str, *rows: tuple[float, ...]) -> dict[str, dict[str, float]]:
    """Return a part of the paper's Table 4: system -> measure -> figure."""
    systems = (PLAIN, RANDOM, BAG, BAG_OVER)
    return {
        name: dict(zip(measures.split(), row, strict=True))
        for name, row in zip(systems, rows, strict=True)
    }


@dataclass(frozen=True)
class Setting:
    """The settings of a collection.

    Attributes
    ----------
    plain, randomised : LambdaMART's parameters without and with sampling
    grid : preset of the paper's Table 2
    n_models : number of models of a bag
    pool : number of models in the pool that the paper draws bags from
    convention : convention of the collection's evaluation script
    paper : figures of the paper's Table 4, if it has the collection or a similar one
    paper_of : the collection of these figures
    """

    plain: dict[str, Any]
    randomised: dict[str, Any]
    grid: str = "small"
    n_models: int = 45
    pool: int = 1000
    convention: str = "letor"
    paper: dict[str, dict[str, float]] = field(default_factory=dict)
    paper_of: str = ""


MQ2007 = _figures(
    "ndcg@1 ndcg@3 meanndcg map",
    (0.4147, 0.4119, 0.5011, 0.4660),
    (0.4137, 0.4157, 0.5035, 0.4684),
    (0.4197, 0.4217, 0.5079, 0.4726),
    (0.4200, 0.4224, 0.5093, 0.4731),
)
TD2004 = _figures(
    "ndcg@1 ndcg@3 ndcg@5 map",
    (0.4267, 0.3584, 0.3266, 0.2378),
    (0.4560, 0.4033, 0.3722, 0.2513),
    (0.4947, 0.4217, 0.3886, 0.2649),
    (0.4947, 0.4270, 0.3948, 0.2684),
)
MSLR = _figures(
    "ndcg@1 ndcg@3 meanndcg map",
    (0.4580, 0.4467, 0.5693, 0.3670),
    (0.4628, 0.4487, 0.5706, 0.3684),
    (0.4640, 0.4514, 0.5720, 0.3696),
    (0.4642, 0.4516, 0.5729, 0.3705),
)
# Ends of the paper's grids beyond which no value exists: a tree has at least two leaves, a share is
# at most 1.
LIMITS: dict[str, tuple[float, ...]] = {
    "n_leaves": (2,),
    "query_fraction": (1.0,),
    "feature_fraction": (1.0,),
}
# The first rows of the paper's Table 3 for its collections. It does not have MQ2008: here they are
# the best of 100 configurations of its grid by validation NDCG@3, the mean of five folds and three
# seeds. Plain: the best configuration that uses all queries and features; randomised: the best of
# all. They were found with Newton splits, and are used with least-squares splits too.
SETTINGS = {
    "MQ2008": Setting(
        _parameters(7, 0.0012, 0.1),
        _parameters(10, 0.0012, 0.05, 0.3, 0.5),
        paper=MQ2007,
        paper_of="MQ2007, for the order of the systems, not for the level",
    ),
    "MQ2007": Setting(
        _parameters(7, 0.0025, 0.05),
        _parameters(7, 0.0025, 0.05, 0.3, 0.3),
        paper=MQ2007,
        paper_of="the same collection",
    ),
    "TD2004": Setting(
        _parameters(20, 0.0025, 0.1),
        _parameters(20, 0.0025, 0.1, 0.5, 0.1),
        paper=TD2004,
        paper_of="the same collection",
    ),
    "MSLR-WEB10K": Setting(
        _parameters(40, 0.0025, 0.1),
        _parameters(40, 0.0025, 0.1, 1.0, 0.5),
        grid="large",
        n_models=20,
        pool=50,
        convention="mslr",
        paper=MSLR,
        paper_of="the same collection",
    ),
}


def the_collection(study: Study) -> Collection:
    """Return the collection that the paper's experiments run on: MQ2008, or the user's."""
    return study.data.collections("mq2008")[0]


def setting_of(collection: Collection | Redrawn) -> Setting:
    """Return the setting of a collection; unknown collections get the parameters of MQ2007."""
    other = SETTINGS["MQ2007"]
    return SETTINGS.get(collection.name, Setting(other.plain, other.randomised))


def edges_of(
    chosen: Mapping[str, Sequence[Mapping[str, Any]]], space: Mapping[str, Sequence[Any]]
) -> dict[str, Choices]:
    """Return the choices of every system and parameter: ``"BL-MART, n_leaves"``."""
    return {
        f"{system}, {name}": Choices(
            [parameters[name] for parameters in of_system], values, LIMITS.get(name, ())
        )
        for system, of_system in chosen.items()
        for name, values in space.items()
    }


def n_models(study: Study, setting: Setting) -> int:
    """Return the number of models of a bag at the scale of the study."""
    return study.size(9, setting.n_models)


def base_ranker(study: Study, parameters: Mapping[str, Any], seed: int = 0) -> LambdaMART:
    """Return LambdaMART with the paper's lambdas and given parameters, such as those of Table 3.

    Splits are Newton splits unless `parameters` has ``split="mse"``, the paper's splits.
    """
    target = {"measure": "ndcg", "truncation": None, "normalise": False, "split": "newton"}
    return LambdaMART(
        l2=0.0,
        random_state=seed,
        n_threads=study.n_threads,
        n_trees=study.size(200, 2000),
        early_stopping=study.size(40, 250),
        **{**target, **parameters},
    )


def fitted_bag(
    study: Study,
    parameters: Mapping[str, Any],
    n_models: int,
    train: QueryDataset,
    valid: QueryDataset | None,
    seed: int,
    decides: str = DECIDES,
) -> BaggedRanker:
    """Train a bag that tolerates overfitting."""
    bag = BaggedRanker(
        base_ranker(study, parameters),
        n_models,
        FRACTION,
        overfitting_tolerance=TOLERANCE,
        random_state=seed,
        n_threads=study.n_threads,
    )
    return bag.fit(train, valid=valid, valid_measures=decides)
