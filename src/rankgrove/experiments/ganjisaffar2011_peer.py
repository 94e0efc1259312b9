"""LightGBM, bagged in the same way as BL-MART: same samples, same parameters, same validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankgrove.bagging.sample import sampled_queries
from rankgrove.data.folds import Fold
from rankgrove.data.queries import QueryDataset
from rankgrove.experiments.ganjisaffar2011_setting import FRACTION, Setting, base_ranker, n_models
from rankgrove.experiments.study import Study
from rankgrove.random import derive_seed

NAMES = ("LightGBM with randomisation", "LightGBM bagged")


def has_lightgbm() -> bool:
    """Whether there is one."""
    try:
        import lightgbm  # noqa: F401
    except (ImportError, OSError):
        return False
    return True


def lightgbm_scores(
    study: Study, setting: Setting, fold: Fold, seed: int
) -> tuple[tuple[np.ndarray, int], tuple[np.ndarray, int]]:
    """Train once on all queries, and a bag; return test scores and trees: one's, all models'."""
    train, valid, test = fold.train, fold.valid, fold.test
    assert valid is not None
    single = _one(study, setting, train, valid, test, seed)
    columns, total = [], 0
    for model in range(n_models(study, setting)):
        seen = sampled_queries(train.query_keys, FRACTION, seed, model)
        own = derive_seed(seed, "bagged model", model) % (1 << 31)
        scores, n = _one(study, setting, train.select(seen), valid, test, own)
        columns.append(scores)
        total += n
    return single, (np.array(columns), total)


def _one(
    study: Study,
    setting: Setting,
    train: QueryDataset,
    valid: QueryDataset,
    test: QueryDataset,
    seed: int,
) -> tuple[np.ndarray, int]:
    import lightgbm as lgb

    base = base_ranker(study, setting.randomised, seed)
    parameters = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [3],
        "num_leaves": base.n_leaves,
        "min_data_in_leaf": max(1, round(base.min_leaf * train.n_rows)),
        "min_sum_hessian_in_leaf": 0.0,
        "learning_rate": base.learning_rate,
        "bagging_fraction": base.query_fraction,
        "bagging_freq": 1,
        "bagging_by_query": True,
        "feature_fraction_bynode": base.feature_fraction,
        "lambdarank_truncation_level": int(np.diff(train.query_ptr).max()),  # no cutoff
        "lambdarank_norm": False,
        "seed": seed,
        "deterministic": True,
        "num_threads": study.n_threads or 1,  # more would only wait for each other on small data
        "verbose": -1,
    }
    sets = [_data(lgb, data) for data in (train, valid)]
    model = lgb.train(
        parameters,
        sets[0],
        base.n_trees,
        valid_sets=[sets[1]],
        callbacks=[lgb.early_stopping(base.early_stopping or 1, verbose=False)],
    )
    scores = np.asarray(model.predict(test.X, num_threads=study.n_threads or 1))
    return scores, model.best_iteration


def _data(lgb: Any, data: QueryDataset) -> Any:
    order = np.arange(data.n_rows) if data.order is None else data.order
    return lgb.Dataset(data.X[order], data.y[order], group=np.diff(data.query_ptr))
