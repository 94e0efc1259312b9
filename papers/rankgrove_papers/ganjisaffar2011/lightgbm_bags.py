"""LightGBM bagged in the same way as BL-MART: same samples, same parameters, same validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from rankgrove import QueryDataset
from rankgrove.bagging.out_of_bag import out_of_bag_scores
from rankgrove.bagging.sample import sampled_queries
from rankgrove.random import derive_seed
from rankgrove.training.watch import tolerated_rounds
from rankgrove_papers.ganjisaffar2011.settings import FRACTION, TOLERANCE, base_ranker
from rankgrove_papers.study import Study

FULL_DEPTH = 10_000  # a cutoff that is larger than every query


def has_lightgbm() -> bool:
    """Return whether LightGBM is installed and can be loaded."""
    try:
        import lightgbm  # noqa: F401
    except (ImportError, OSError):
        return False
    return True


@dataclass(frozen=True)
class LightGBMModel:
    """A model of LightGBM.

    Attributes
    ----------
    booster : the model
    best : its best round on the validation data
    over : the last round that the tolerance of overfitting keeps
    n_threads : threads of scoring
    """

    booster: Any
    best: int
    over: int
    n_threads: int

    def scores(self, data: QueryDataset, rounds: int) -> np.ndarray:
        """Return the scores after `rounds` rounds, in the caller's order."""
        scores = self.booster.predict(data.X, num_iteration=rounds, num_threads=self.n_threads)
        return np.asarray(scores)


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
    parameters : LambdaMART's parameters of the paper's Table 3, and those of the target:
        `truncation` (None: all pairs) and `normalise`; without these two the paper's target
    decides : the measure on validation data that stops training: ``"ndcg@3"``, ``"map"``
    """
    import lightgbm as lgb

    shape = dict(parameters)
    truncation, normalise = shape.pop("truncation", None), shape.pop("normalise", False)
    base = base_ranker(study, shape, seed)
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
            "num_threads": study.n_threads or 1,  # more threads are slower on small data
            "verbose": -1,
        },
        _data(lgb, train),
        base.n_trees,
        valid_sets=[_data(lgb, valid)],
        keep_training_booster=True,  # keeps the rounds after the best one
        callbacks=[
            lgb.early_stopping(base.early_stopping or 1, verbose=False),
            lgb.record_evaluation(history),
        ],
    )
    ((values,),) = (list(of_set.values()) for of_set in history.values())
    # A query without relevant documents has the value 1 in LightGBM; here it has 0 or is left out.
    # Without this correction a tolerance relative to the value would not be the same.
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
    """Train a bag on the same samples as BL-MART with this seed."""
    models = []
    for m in range(n_models):
        seen = sampled_queries(train.query_keys, FRACTION, seed, m)
        model_seed = derive_seed(seed, "bagged model", m) % (1 << 31)
        sample = train.select(seen)
        models.append(fit_lightgbm(study, parameters, decides, sample, valid, model_seed))
    return models


def lightgbm_out_of_bag(models: list[LightGBMModel], train: QueryDataset, seed: int) -> np.ndarray:
    """Return out-of-bag scores: every document is scored by the models that did not see its query.

    The models keep the rounds that the tolerance of overfitting allows.
    """
    scorers = [partial(model.scores, rounds=model.over) for model in models]
    return out_of_bag_scores(scorers, train, FRACTION, seed, "minmax")
