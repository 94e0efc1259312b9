"""AutoRanker against tuned peers on LETOR's folds, the same wall-clock time for each.

    python -m benchmarks.auto --data FOLDER --out FOLDER --set mq2008 [--minutes 10] [--systems "NAME|NAME"] [--folds 1,2]

FOLDER has mq2008/S1.txt.gz ... S5.txt.gz, or ohsumed. Fold k trains on S_k to S_(k+2), validates on
S_(k+3) and tests on S_(k+4), cyclic. Every system has one thread, the training and the validation
part and the given number of minutes per fold, maximises MAP where it can, and is measured once on
the test part: MAP, Mean NDCG, NDCG@3 and NDCG@10 by LETOR's convention. Everything else is chosen
inside the fold:

- AutoRanker takes validation queries as more queries for its folds;
- FLAML's `rank` task, with the validation part as holdout data and NDCG, the measure it offers;
- LightGBM and CatBoost, tuned by Optuna's TPE: every trial stops early on the validation part, and
  the trial with the highest validation MAP is taken; the objective is among the parameters;
- 20 LightGBM `rank_xendcg` models on samples of the training queries, early stopping, their mean.

Every result is stored in FOLDER/auto.jsonl as soon as it is there; a second start continues. Two
processes with different `--folds` need different `--out`; `--table` reads several, comma-separated.
"""  # noqa: E501

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankgrove as rg
from rankgrove.data.concatenate import concatenate
from rankgrove.evaluation.significance import paired_t
from rankgrove.tuning.result_store import ResultStore

MEASURES = ["map", "meanndcg", "ndcg@3", "ndcg@10"]
PATIENCE, TREES = 50, 1000
BASE = "AutoRanker"


class Fold(NamedTuple):
    """The parts of a fold."""

    train: rg.QueryDataset
    valid: rg.QueryDataset
    test: rg.QueryDataset


Predict = Callable[[rg.QueryDataset], np.ndarray]
System = Callable[[Fold, float], Predict]


def folds(folder: Path) -> list[Fold]:
    """Return LETOR's five folds."""
    parts = [rg.read_letor(folder / f"S{i}.txt.gz") for i in range(1, 6)]

    def part(k: int) -> rg.QueryDataset:
        return parts[k % 5]

    return [
        Fold(concatenate([part(k), part(k + 1), part(k + 2)]), part(k + 3), part(k + 4))
        for k in range(5)
    ]


def validation_map(predict: Predict, fold: Fold) -> float:
    """Return MAP on the validation part."""
    mean = rg.evaluate(predict(fold.valid), fold.valid, "map", convention="letor").mean
    return float(mean["map"])


# -- the systems -----------------------------------------------------------------------------------


def auto_ranker(fold: Fold, minutes: float) -> Predict:
    best = rg.AutoRanker("map", minutes=minutes, n_threads=1).fit(fold.train, valid=fold.valid)
    print(best.explain_choice(), flush=True)
    return lambda data: np.asarray(best.predict(data))


def flaml(fold: Fold, minutes: float) -> Predict:
    from flaml import AutoML

    search = AutoML()
    search.fit(
        X_train=np.asarray(fold.train.X),
        y_train=fold.train.y.astype(int),
        groups=np.diff(fold.train.query_ptr),
        X_val=np.asarray(fold.valid.X),
        y_val=fold.valid.y.astype(int),
        groups_val=np.diff(fold.valid.query_ptr),
        task="rank",
        metric="ndcg",
        time_budget=60.0 * minutes,
        n_jobs=1,
        seed=0,
        verbose=0,
    )
    return lambda data: np.asarray(search.predict(np.asarray(data.X)))


def tuned(
    fold: Fold, minutes: float, propose: Callable[[Any], Any], train: Callable[[Fold, Any], Predict]
) -> Predict:
    """Return the best trial of Optuna's within the time."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    best: list[tuple[float, Predict]] = []

    def value(trial: Any) -> float:
        predict = train(fold, propose(trial))
        reached = validation_map(predict, fold)
        if not best or reached > best[0][0]:
            best[:] = [(reached, predict)]
        return reached

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(value, timeout=60.0 * minutes)
    print(f"{len(study.trials)} trials, validation MAP {study.best_value:.4f}", flush=True)
    return best[0][1]


def propose_lightgbm(trial: Any) -> dict[str, Any]:
    return {
        "objective": trial.suggest_categorical("objective", ["lambdarank", "rank_xendcg"]),
        "num_leaves": trial.suggest_int("num_leaves", 3, 63, log=True),
        "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.2, log=True),
        "min_data_in_leaf": trial.suggest_int("min_data_in_leaf", 5, 200, log=True),
        "feature_fraction_bynode": trial.suggest_float("feature_fraction_bynode", 0.1, 1.0),
        "bagging_fraction": trial.suggest_float("bagging_fraction", 0.3, 1.0),
        "lambda_l2": trial.suggest_float("lambda_l2", 1e-3, 10.0, log=True),
    }


def train_lightgbm(fold: Fold, params: dict[str, Any]) -> Predict:
    import lightgbm as lgb

    train, valid = (
        lgb.Dataset(np.asarray(d.X), d.y, group=np.diff(d.query_ptr), params={"verbose": -1})
        for d in (fold.train, fold.valid)
    )
    options = {
        "metric": "map",
        "eval_at": [100],
        "bagging_freq": 1,
        "bagging_by_query": True,
        "num_threads": 1,
        "verbose": -1,
        **params,
    }
    stop = lgb.early_stopping(PATIENCE, verbose=False)
    booster = lgb.train(options, train, TREES, valid_sets=[valid], callbacks=[stop])
    return lambda data: np.asarray(booster.predict(np.asarray(data.X)))


def propose_catboost(trial: Any) -> dict[str, Any]:
    return {
        "loss_function": trial.suggest_categorical(
            "loss_function", ["YetiRank", "YetiRank:mode=MAP", "QueryRMSE"]
        ),
        "depth": trial.suggest_int("depth", 2, 7),
        "learning_rate": trial.suggest_float("learning_rate", 0.02, 0.2, log=True),
        "l2_leaf_reg": trial.suggest_float("l2_leaf_reg", 0.3, 30.0, log=True),
        "rsm": trial.suggest_float("rsm", 0.1, 1.0),
    }


def train_catboost(fold: Fold, params: dict[str, Any]) -> Predict:
    from catboost import CatBoost, Pool

    def pool(data: rg.QueryDataset) -> Any:
        sizes = np.diff(data.query_ptr)
        target = data.y if "MAP" not in params["loss_function"] else (data.y > 0).astype(float)
        return Pool(np.asarray(data.X), target, group_id=np.repeat(np.arange(sizes.size), sizes))

    model = CatBoost(
        {
            "eval_metric": "NDCG:type=Exp",
            "iterations": TREES,
            "early_stopping_rounds": PATIENCE,
            "thread_count": 1,
            "allow_writing_files": False,
            "verbose": False,
            **params,
        }
    )
    model.fit(pool(fold.train), eval_set=pool(fold.valid), use_best_model=True)
    return lambda data: np.asarray(model.predict(np.asarray(data.X)))


def bag_of_xendcg(fold: Fold, minutes: float) -> Predict:
    del minutes  # it takes seconds
    members = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        drawn = rng.random(fold.train.n_queries) < 0.67
        sample = fold._replace(train=fold.train.select(drawn))
        params = {
            "objective": "rank_xendcg",
            "num_leaves": 7,
            "learning_rate": 0.05,
            "feature_fraction_bynode": 0.3,
            "bagging_fraction": 0.5,
            "seed": seed,
        }
        members.append(train_lightgbm(sample, params))
    return lambda data: np.mean([predict(data) for predict in members], axis=0)


SYSTEMS: dict[str, System] = {
    BASE: auto_ranker,
    "FLAML": flaml,
    "LightGBM, Optuna": lambda fold, m: tuned(fold, m, propose_lightgbm, train_lightgbm),
    "CatBoost, Optuna": lambda fold, m: tuned(fold, m, propose_catboost, train_catboost),
    "20 x LightGBM rank_xendcg": bag_of_xendcg,
}


# -- the table -------------------------------------------------------------------------------------


def table(stores: list[ResultStore], name: str, minutes: float) -> None:
    def values(system: str, m: str) -> np.ndarray | None:
        parts = []
        for k in range(1, 6):
            key = f"{name}, {minutes:g} minutes, {k}, {system}"
            store = next((store for store in stores if key in store), None)
            if store is None:
                return None
            parts.append(np.array(store[key][m]))
        return np.concatenate(parts)

    print(f"\n{name}, {minutes:g} minutes per fold: mean of the folds' queries (p against {BASE})")
    for system in SYSTEMS:
        cells = []
        for m in MEASURES:
            ours, theirs = values(BASE, m), values(system, m)
            if theirs is None:
                break
            test = ""
            if ours is not None and system != BASE:
                test = f" ({paired_t(theirs - ours):.3f})"
            cells.append(f"{m} {theirs.mean():.4f}{test}")
        print(f"  {system:<28} {'  '.join(cells) if cells else 'not complete'}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--set", default="mq2008", choices=["mq2008", "ohsumed"])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--systems", help="comma-separated with a bar: NAME|NAME", default=None)
    parser.add_argument("--folds", default="1,2,3,4,5")
    parser.add_argument("--table", help="more folders with results, comma-separated")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    about = {"study": "auto"}
    store = ResultStore(args.out / "auto.jsonl", about)
    systems = list(SYSTEMS) if args.systems is None else args.systems.split("|")
    wanted = [int(k) for k in args.folds.split(",") if k]
    parts = folds(args.data / args.set) if wanted else []
    for system in systems:
        for k in wanted:
            key = f"{args.set}, {args.minutes:g} minutes, {k}, {system}"
            if key in store:
                continue
            began = time.perf_counter()
            predict = SYSTEMS[system](parts[k - 1], args.minutes)
            seconds = time.perf_counter() - began
            test = parts[k - 1].test
            result = rg.evaluate(predict(test), test, MEASURES, convention="letor").per_query
            record = {m: [float(v) for v in result[m]] for m in MEASURES}
            store.put(key, {**record, "seconds": seconds})
            print(f"{key}: {np.mean(record['map']):.4f} MAP, {seconds:.0f} s", flush=True)
    others = [Path(folder) for folder in args.table.split(",")] if args.table else []
    stores = [store, *(ResultStore(folder / "auto.jsonl", about) for folder in others)]
    table(stores, args.set, args.minutes)


if __name__ == "__main__":
    main()
