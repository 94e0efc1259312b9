"""Ranking quality on MQ2008, five folds, LETOR's measures, compared with LightGBM and XGBoost.

    python -m benchmarks.quality --data FOLDER [--seeds 3]

FOLDER contains S1.txt.gz ... S5.txt.gz. Every learner has the same six trials per fold (leaves,
learning rate, sampling of queries or rows and of features), each with early stopping by NDCG@10 on
validation data; the trial with the best validation NDCG@10 (LETOR's convention) is evaluated on
test data.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rankgrove as rg

MEASURES = ["ndcg@1", "ndcg@3", "ndcg@10", "meanndcg", "map"]
TREES, PATIENCE = 500, 50
TRIALS = [
    {"leaves": leaves, "rate": rate, "queries": queries, "features": features}
    for leaves in (7, 15)
    for rate, queries, features in ((0.1, 1.0, 1.0), (0.05, 0.5, 0.3), (0.05, 1.0, 0.3))
]
Predict = Callable[[rg.QueryDataset], np.ndarray]


def rankgrove(fold, trial: dict, seed: int) -> Predict:
    model = rg.LambdaMART(
        "ndcg@10",  # LETOR's form is 0 for queries with under 10 documents: useless for stopping
        n_trees=TREES,
        n_leaves=trial["leaves"],
        learning_rate=trial["rate"],
        query_fraction=trial["queries"],
        feature_fraction=trial["features"],
        early_stopping=PATIENCE,
        random_state=seed,
    ).fit(fold.train, valid=fold.valid)
    return model.predict


def lightgbm(fold, trial: dict, seed: int) -> Predict:
    import lightgbm as lgb

    train, valid = (
        lgb.Dataset(np.asarray(d.X), d.y, group=np.diff(d.query_ptr), params={"verbose": -1})
        for d in (fold.train, fold.valid)
    )
    parameters = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "num_leaves": trial["leaves"],
        "learning_rate": trial["rate"],
        "lambdarank_truncation_level": 15,
        "feature_fraction_bynode": trial["features"],
        "bagging_fraction": trial["queries"],
        "bagging_freq": 1,
        "bagging_by_query": True,
        "seed": seed,
        "verbose": -1,
        "deterministic": True,
    }
    stop = lgb.early_stopping(PATIENCE, verbose=False)
    booster = lgb.train(parameters, train, TREES, valid_sets=[valid], callbacks=[stop])
    return lambda data: np.asarray(booster.predict(np.asarray(data.X)))


def xgboost(fold, trial: dict, seed: int) -> Predict:
    import xgboost as xgb

    train, valid = (
        xgb.DMatrix(d.X, d.y, group=np.diff(d.query_ptr)) for d in (fold.train, fold.valid)
    )
    parameters = {
        "objective": "rank:ndcg",
        "eval_metric": "ndcg@10",
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": trial["leaves"],
        "max_depth": 0,
        "eta": trial["rate"],
        "colsample_bynode": trial["features"],
        "subsample": trial["queries"],
        "seed": seed,
        "lambdarank_pair_method": "topk",
        "lambdarank_num_pair_per_sample": 15,
    }
    booster = xgb.train(
        parameters,
        train,
        TREES,
        evals=[(valid, "valid")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    best = (0, booster.best_iteration + 1)
    return lambda data: np.asarray(booster.predict(xgb.DMatrix(data.X), iteration_range=best))


LEARNERS = {"rankgrove": rankgrove, "LightGBM": lightgbm, "XGBoost": xgboost}


def best_predictor(learner, fold, seed: int) -> Predict:
    """Return the predictor of the best trial on validation data."""
    trials = []
    for number, trial in enumerate(TRIALS):
        predict = learner(fold, trial, seed)
        value = rg.evaluate(predict(fold.valid), fold.valid, "ndcg@10[letor]").mean
        trials.append((*value.values(), -number, predict))
    return max(trials, key=lambda entry: entry[:2])[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = [rg.read_letor(args.data / f"S{i}.txt.gz") for i in range(1, 6)]
    values = {name: {m: [] for m in MEASURES} for name in LEARNERS}
    for seed in range(args.seeds):
        for fold in rg.letor_folds(parts):
            for name, learner in LEARNERS.items():
                scores = best_predictor(learner, fold, seed)(fold.test)
                result = rg.evaluate(scores, fold.test, MEASURES, convention="letor")
                for m in MEASURES:
                    values[name][m].append(result.per_query[m])
    print(f"{args.data.name}: 5 folds x {args.seeds} seeds, {len(TRIALS)} trials each, LETOR")
    print(f"  {'':<10}" + "".join(f"{m:>10}" for m in MEASURES))
    for name, by_measure in values.items():
        # folds have about equal numbers of queries; LETOR reports the mean of the folds' means
        means = [np.mean([fold.mean() for fold in by_measure[m]]) for m in MEASURES]
        print(f"  {name:<10}" + "".join(f"{mean:10.4f}" for mean in means))
    from scipy.stats import ttest_rel

    ours = {m: _by_query(folds, args.seeds) for m, folds in values["rankgrove"].items()}
    for name in list(LEARNERS)[1:]:
        theirs = {m: _by_query(folds, args.seeds) for m, folds in values[name].items()}
        p = [ttest_rel(ours[m], theirs[m]).pvalue for m in MEASURES]
        print(f"  p, {name:<7}" + "".join(f"{value:10.3f}" for value in p))


def _by_query(values: list[np.ndarray], n_seeds: int) -> np.ndarray:
    """Return every query's mean over the seeds, so that every query counts once."""
    return np.mean(
        np.reshape(
            [np.concatenate(values[5 * s : 5 * s + 5]) for s in range(n_seeds)], (n_seeds, -1)
        ),
        axis=0,
    )


if __name__ == "__main__":
    main()
