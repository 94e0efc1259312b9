"""Training LambdaMART: time per tree and held-out NDCG@10, against LightGBM and XGBoost.

    python -m benchmarks.training [--data web|artificial] [--trees 50] [--rounds 3] [--threads 2]

All train on the same rows with 31 leaves, learning rate 0.1, 255 bins and the same truncation, in
one process, taking turns; the best of several rounds counts. The time per tree is the difference
between training all trees and a fifth of them, divided by the difference in trees: this leaves out
reading, binning and compiling. LightGBM builds its histograms row-wise, which is faster here.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

import rankgrove as rg

TRUNCATION = 30
Contender = Callable[[int], Callable[[], np.ndarray]]


def contenders(train: rg.QueryDataset, test: rg.QueryDataset, threads: int) -> dict[str, Contender]:
    """Return, by name, functions that train `n_trees` trees and return a prediction function."""
    import lightgbm as lgb
    import xgboost as xgb

    group = np.diff(train.query_ptr)
    common = {
        "objective": "lambdarank",
        "num_leaves": 31,
        "learning_rate": 0.1,
        "max_bin": 255,
        "lambdarank_truncation_level": TRUNCATION,
        "num_threads": threads,
        "force_row_wise": True,
        "min_data_in_leaf": 20,
        "verbose": -1,
    }
    quantised = {
        "use_quantized_grad": True,
        "num_grad_quant_bins": 30,
        "quant_train_renew_leaf": True,
    }
    lgb_data = lgb.Dataset(np.asarray(train.X), train.y, group=group, params=common).construct()
    xgb_data = xgb.QuantileDMatrix(train.X, train.y, group=group, max_bin=256, nthread=threads)

    def ours(split: str) -> Contender:
        def run(n_trees: int) -> Callable[[], np.ndarray]:
            model = rg.LambdaMART(
                n_trees=n_trees, split=split, truncation=TRUNCATION, n_threads=threads
            ).fit(train)
            return lambda: model.predict(test)

        return run

    def lightgbm(**more: object) -> Contender:
        def run(n_trees: int) -> Callable[[], np.ndarray]:
            booster = lgb.train({**common, **more}, lgb_data, n_trees)
            return lambda: np.asarray(booster.predict(np.asarray(test.X)))

        return run

    def xgboost(n_trees: int) -> Callable[[], np.ndarray]:
        parameters = {
            "objective": "rank:ndcg",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": 31,
            "max_depth": 0,
            "eta": 0.1,
            "max_bin": 256,
            "nthread": threads,
            "lambdarank_pair_method": "topk",
            "lambdarank_num_pair_per_sample": TRUNCATION,
        }
        booster = xgb.train(parameters, xgb_data, n_trees)
        return lambda: np.asarray(booster.inplace_predict(test.X))

    return {
        "rankgrove newton": ours("newton"),
        "rankgrove mse": ours("mse"),
        "LightGBM": lightgbm(),
        "LightGBM quantised": lightgbm(**quantised),
        "XGBoost": xgboost,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["web", "artificial"], default="web")
    parser.add_argument("--queries", type=int)
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="parts of the names to run, separated by commas")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    make = rg.make_web if args.data == "web" else rg.make_artificial
    train = make(args.queries or (6000 if args.data == "web" else 10_000), seed=1)
    test = make(2000, seed=2)
    print(f"{args.data}: {train!r}")
    start = time.perf_counter()
    rg.LambdaMART(n_trees=2, n_threads=args.threads).fit(train.select(np.arange(50)))
    print(f"compiling, or loading compiled kernels: {time.perf_counter() - start:.1f} s")

    few = max(1, args.trees // 5)
    chosen = contenders(train, test, args.threads)
    if args.only:
        wanted = args.only.split(",")
        chosen = {n: c for n, c in chosen.items() if any(part in n for part in wanted)}
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
            f"{long:6.1f} s in total   held-out NDCG@10 {quality[name]:.4f}"
        )


if __name__ == "__main__":
    main()
