"""LightGBM, bagged in the same way as BL-MART: same samples, same parameters, same validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankgrove.bagging.out_of_bag import out_of_bag_scores
from rankgrove.bagging.sample import sampled_queries
from rankgrove.data.queries import QueryDataset
from rankgrove.experiments.ganjisaffar2011_setting import FRACTION, TOLERANCE, base_ranker
from rankgrove.experiments.study import Study
from rankgrove.random import derive_seed
from rankgrove.training.watch import tolerated_rounds

FULL_DEPTH = 10_000  # a cutoff below which no query has documents


def has_lightgbm() -> bool:
    """Whether there is one."""
    try:
        import lightgbm  # noqa: F401
    except (ImportError, OSError):
        return False
    return True


@dataclass(frozen=True)
class LightGBMModel:
    """A model of LightGBM's.

    Attributes
    ----------
    booster : the model
    best : its best round on the validation data
    over : the last round of those that the tolerance of overfitting keeps
    n_threads : of scoring
    """

    booster: Any
    best: int
    over: int
    n_threads: int

    def scores(self, data: QueryDataset, rounds: int) -> np.ndarray:
        """Return the scores by so many rounds, in the caller's order."""
        made = self.booster.predict(data.X, num_iteration=rounds, num_threads=self.n_threads)
        return np.asarray(made)


def fit_lightgbm(
    study: Study,
    parameters: Mapping[str, Any],
    decides: str,
    train: QueryDataset,
    valid: QueryDataset,
    seed: int,
) -> LightGBMModel:
    """Train one model.

    Parameters
    ----------
    parameters : LambdaMART's of the paper's Table 3, and of the target: `truncation` (None: all
        pairs) and `normalise`, both as the paper has it where they are not given
    decides : the measure of the validation data that stops training: ``"ndcg@3"``, ``"map"``
    """
    import lightgbm as lgb

    own = dict(parameters)
    truncation, normalise = own.pop("truncation", None), own.pop("normalise", False)
    base = base_ranker(study, own, seed)
    metric, _, cutoff = decides.partition("@")
    history: dict[str, dict[str, list[float]]] = {}
    booster = lgb.train(
        {
            "objective": "lambdarank",
            "metric": metric,
            "eval_at": [int(cutoff or FULL_DEPTH)],
            "num_leaves": base.n_leaves,
            "min_data_in_leaf": max(1, round(base.min_leaf * train.n_rows)),
            "min_sum_hessian_in_leaf": 0.0,
            "learning_rate": base.learning_rate,
            "bagging_fraction": base.query_fraction,
            "bagging_freq": 1,
            "bagging_by_query": True,
            "feature_fraction_bynode": base.feature_fraction,
            "lambdarank_truncation_level": truncation or FULL_DEPTH,
            "lambdarank_norm": normalise,
            "seed": seed,
            "deterministic": True,
            "num_threads": study.n_threads or 1,  # more would wait for each other on small data
            "verbose": -1,
        },
        _data(lgb, train),
        base.n_trees,
        valid_sets=[_data(lgb, valid)],
        keep_training_booster=True,  # with the rounds after the best
        callbacks=[
            lgb.early_stopping(base.early_stopping or 1, verbose=False),
            lgb.record_evaluation(history),
        ],
    )
    ((values,),) = (list(of_set.values()) for of_set in history.values())
    # LightGBM counts a query without relevant documents 1, we count it 0 or leave it out: a share
    # of the value would not be the same share.
    empty = np.maximum.reduceat(valid.grouped(valid.y), valid.query_ptr[:-1]) <= 0
    values = [value - empty.mean() for value in values]
    best = booster.best_iteration
    over = tolerated_rounds(values, best, values[best - 1], TOLERANCE)
    return LightGBMModel(booster, best, over, study.n_threads or 1)


def _data(lgb: Any, data: QueryDataset) -> Any:
    order = np.arange(data.n_rows) if data.order is None else data.order
    return lgb.Dataset(data.X[order], data.y[order], group=np.diff(data.query_ptr))


def lightgbm_bag(
    study: Study,
    parameters: Mapping[str, Any],
    decides: str,
    train: QueryDataset,
    valid: QueryDataset,
    seed: int,
    n_models: int,
) -> list[LightGBMModel]:
    """Train a bag on the samples that BL-MART has with this seed."""
    models = []
    for m in range(n_models):
        seen = sampled_queries(train.query_keys, FRACTION, seed, m)
        own = derive_seed(seed, "bagged model", m) % (1 << 31)
        models.append(fit_lightgbm(study, parameters, decides, train.select(seen), valid, own))
    return models


def lightgbm_out_of_bag(models: list[LightGBMModel], train: QueryDataset, seed: int) -> np.ndarray:
    """Return a score for every document, by the models that did not see its query.

    Overfitting is tolerated.
    """
    scorers = [partial(model.scores, rounds=model.over) for model in models]
    return out_of_bag_scores(scorers, train, FRACTION, seed, "minmax")
