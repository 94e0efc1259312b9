"""Training LambdaMART: time per tree and held-out NDCG@10, against the peers.

    python -m benchmarks.training [--data web|sparse|artificial] [--queries 6000] [--features 136]
        [--leaves 31] [--trees 50] [--rounds 3] [--threads 2] [--only NAME,NAME]

All train on the same rows with the same number of leaves, learning rate 0.1, 255 bins and the same
truncation, in one process, taking turns; the best of several rounds counts. The time per tree is
the difference between training all trees and a fifth of them, divided by the difference in trees:
this leaves out reading, binning and compiling. Of CatBoost it is QueryRMSE, its fastest loss for
ranking that grows leaf by leaf. Below the contenders are the limits of the machine: see `limit.py`.

`--data sparse` are 473,000 rows x 519 features, 58 % of the values 0, the size of Yahoo's set 1.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

import rankgrove as rg
from benchmarks.limit import limit_of

TRUNCATION = 30
SIZES = {"web": (6000, 136), "sparse": (19_944, 519), "artificial": (10_000, 50)}
Contender = Callable[[int], Callable[[], np.ndarray]]


def make(data: str, n_queries: int, n_features: int, seed: int) -> rg.QueryDataset:
    """Return generated data of a kind."""
    if data == "artificial":
        return rg.make_artificial(n_queries, n_features=n_features, seed=seed)
    if data == "web":
        return rg.make_web(n_queries, n_features=n_features, seed=seed)
    dense = rg.make_web(n_queries, n_docs=23, n_features=n_features, seed=seed)
    X = np.array(dense.X)
    shares = np.random.default_rng(0).beta(1.4, 1.0, n_features)  # of zeros, by feature
    for j, share in enumerate(shares):  # the lowest values become 0, the others ranks in (0, 1]
        column = X[:, j]
        below = np.searchsorted(np.sort(column), column, side="right") / column.size
        X[:, j] = np.where(below <= share, 0.0, np.round(below, 5))
    return rg.QueryDataset(X, dense.y, dense.qid)


def contenders(
    train: rg.QueryDataset, test: rg.QueryDataset, threads: int, leaves: int
) -> dict[str, Callable[[], Contender]]:
    """Return, by name, functions that prepare the data and return a function of `n_trees`.

    That function trains, and returns a function that predicts.
    """
    group = np.diff(train.query_ptr)
    common = {
        "objective": "lambdarank",
        "num_leaves": leaves,
        "learning_rate": 0.1,
        "max_bin": 255,
        "lambdarank_truncation_level": TRUNCATION,
        "num_threads": threads,
        "min_data_in_leaf": 20,
        "verbose": -1,
    }
    quantised = {
        "use_quantized_grad": True,
        "num_grad_quant_bins": 30,
        "quant_train_renew_leaf": True,
    }

    def ours(split: str) -> Contender:
        def run(n_trees: int) -> Callable[[], np.ndarray]:
            model = rg.LambdaMART(
                n_trees=n_trees,
                n_leaves=leaves,
                split=split,
                truncation=TRUNCATION,
                n_threads=threads,
            ).fit(train)
            return lambda: model.predict(test)

        return run

    def lightgbm(**more: object) -> Contender:
        import lightgbm as lgb

        parameters = {**common, **more}
        data = lgb.Dataset(np.asarray(train.X), train.y, group=group, params=parameters).construct()

        def run(n_trees: int) -> Callable[[], np.ndarray]:
            booster = lgb.train(parameters, data, n_trees)
            return lambda: np.asarray(booster.predict(np.asarray(test.X)))

        return run

    def xgboost() -> Contender:
        import xgboost as xgb

        data = xgb.QuantileDMatrix(train.X, train.y, group=group, max_bin=256, nthread=threads)
        parameters = {
            "objective": "rank:ndcg",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": leaves,
            "max_depth": 0,
            "eta": 0.1,
            "max_bin": 256,
            "nthread": threads,
            "lambdarank_pair_method": "topk",
            "lambdarank_num_pair_per_sample": TRUNCATION,
        }

        def run(n_trees: int) -> Callable[[], np.ndarray]:
            booster = xgb.train(parameters, data, n_trees)
            return lambda: np.asarray(booster.inplace_predict(test.X))

        return run

    def catboost() -> Contender:
        from catboost import CatBoost, Pool

        data = Pool(np.asarray(train.X), train.y, group_id=np.asarray(train.qid))
        data.quantize(border_count=254)
        parameters = {
            "loss_function": "QueryRMSE",
            "grow_policy": "Lossguide",
            "max_leaves": leaves,
            "depth": 16,
            "learning_rate": 0.1,
            "thread_count": threads,
            "verbose": False,
            "allow_writing_files": False,
        }

        def run(n_trees: int) -> Callable[[], np.ndarray]:
            model = CatBoost({**parameters, "iterations": n_trees}).fit(data)
            return lambda: np.asarray(model.predict(np.asarray(test.X)))

        return run

    return {
        "rankgrove newton": lambda: ours("newton"),
        "rankgrove mse": lambda: ours("mse"),
        "LightGBM row-wise": lambda: lightgbm(force_row_wise=True),
        "LightGBM column-wise": lambda: lightgbm(force_col_wise=True),
        "LightGBM quantised": lambda: lightgbm(**quantised, force_row_wise=True),
        "XGBoost": xgboost,
        "CatBoost": catboost,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=list(SIZES), default="web")
    parser.add_argument("--queries", type=int)
    parser.add_argument("--features", type=int)
    parser.add_argument("--leaves", type=int, default=31)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="parts of the names to run, separated by commas")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    n_queries, n_features = (
        args.queries or SIZES[args.data][0],
        args.features or SIZES[args.data][1],
    )
    train = make(args.data, n_queries, n_features, 1)
    test = make(args.data, 2000, n_features, 2)
    print(f"{args.data}: {train!r}", flush=True)
    start = time.perf_counter()
    few_rows = train.select(np.arange(50))
    rg.LambdaMART(n_trees=2, n_leaves=args.leaves, n_threads=args.threads).fit(few_rows)
    print(f"compiling, or loading compiled kernels: {time.perf_counter() - start:.1f} s")

    few = max(1, args.trees // 5)
    prepared = contenders(train, test, args.threads, args.leaves)
    if args.only:
        wanted = args.only.split(",")
        prepared = {n: c for n, c in prepared.items() if any(part in n for part in wanted)}
    chosen = {name: prepare() for name, prepare in prepared.items()}
    best = dict.fromkeys(chosen, (np.inf, np.inf))
    quality = {}
    for _ in range(args.rounds):
        for name, run in chosen.items():
            times = []
            for n_trees in (few, args.trees):
                start = time.perf_counter()
                predict = run(n_trees)
                times.append(time.perf_counter() - start)
            best[name] = (min(best[name][0], times[0]), min(best[name][1], times[1]))
            if name not in quality:
                quality[name] = rg.evaluate(predict(), test, "ndcg@10").mean["ndcg@10"]
    base = best[next(iter(best))]
    ours = (base[1] - base[0]) / (args.trees - few)
    width = max(map(len, best))
    for name, (short, long) in best.items():
        each = (long - short) / (args.trees - few)
        print(
            f"  {name:<{width}}  {1000 * each:8.1f} ms per tree  {each / ours:5.2f} x ours   "
            f"{long:6.1f} s in total   held-out NDCG@10 {quality[name]:.4f}",
            flush=True,
        )
    model = rg.LambdaMART(
        n_trees=args.trees, n_leaves=args.leaves, truncation=TRUNCATION, n_threads=args.threads
    ).fit(train)
    if limit := limit_of(model, train, args.threads, first=few):
        for name, value in (("histograms alone, in C", limit.adding), ("reading", limit.reading)):
            print(
                f"  limit: {name:<25} {1000 * value:8.1f} ms per tree  {value / ours:5.2f} x ours"
            )


if __name__ == "__main__":
    main()
