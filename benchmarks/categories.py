"""Categorical features: rankgrove's sets of categories against LightGBM's and CatBoost's.

    python -m benchmarks.categories [--draws 5] [--queries 300] [--only NAME|NAME] [--noise]
    python -m benchmarks.categories --real flights|movielens [--train-folds 1] [--only NAME|NAME]
    python -m benchmarks.categories --time [--draws 3]

Generated data: queries of 30 documents with 8 numbers and three categorical features, of 5, 100 and
10,000 categories (frequencies as 1 / rank). Every category has an effect of its own; the slope of
two of the numbers depends on categories. Labels are 5 grades of the sum of effects and noise. With
`--noise` categories have no effect at all: what a learner makes of them is overfitting. A draw is
new data.

With `--real` the data of a Python package: `benchmarks/category_data.py` says which. Codes are in
random order. Five divisions; every query is tested once.

All learners have 200 trees at most, 15 leaves (CatBoost: depth 4), rate 0.1, at least 20 rows per
leaf (CatBoost has no such rule), and early stopping (30 rounds) by NDCG@10 on validation queries;
everything else is each library's default. Held-out NDCG@10 (convention `papers`) on other queries.
Differences are paired over the test queries, of flights over days: the hours of a day are not
independent.

With `--time`: processor time per tree on one thread, 120,000 rows with 40 numbers and 10 features
of 100 categories, against the same codes taken as numbers and against LightGBM.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence

import numpy as np

import rankgrove as rg
from benchmarks.category_data import REAL, Part, generated, real
from rankgrove.evaluation.significance import paired_t

TREES, LEAVES, RATE, LEAST, PATIENCE = 200, 15, 0.1, 20, 30
FEW = 254  # a feature of more categories does not become indicators
MEASURE = "ndcg@10"


# -- the learners ----------------------------------------------------------------------------------

Predict = Callable[[Part], np.ndarray]
Learner = Callable[[Part, Part], Predict]


def rankgrove_codes(train: Part, valid: Part, categorical: Sequence[int] = ()) -> Predict:
    def data(part: Part) -> rg.QueryDataset:
        return rg.QueryDataset(part.X, part.y, qid=part.qid, categorical=categorical or None)

    model = rg.LambdaMART(
        MEASURE,
        n_trees=TREES,
        n_leaves=LEAVES,
        learning_rate=RATE,
        min_leaf=LEAST,
        early_stopping=PATIENCE,
        n_threads=1,
    )
    model.fit(data(train), valid=data(valid))
    return lambda part: np.asarray(model.predict(data(part)))


def rankgrove_sets(train: Part, valid: Part) -> Predict:
    return rankgrove_codes(train, valid, [column + 1 for column in train.categorical])


def on(change: Callable[[Part], Part], learner: Learner) -> Learner:
    """Return a learner on changed features."""

    def learn(train: Part, valid: Part) -> Predict:
        predict = learner(change(train), change(valid))
        return lambda part: predict(change(part))

    return learn


def rankgrove_counts(train: Part, valid: Part) -> Predict:
    """Instead of a category the number of training rows that have it."""
    counts = [
        np.bincount(codes + 1, minlength=n + 1)
        for n, codes in zip(train.n_categories, train.codes.T, strict=True)
    ]

    def change(part: Part) -> Part:
        columns = [count[codes + 1] for count, codes in zip(counts, part.codes.T, strict=True)]
        X = np.column_stack([part.numbers, *columns]).astype(np.float32)
        return part._replace(X=X)

    return on(change, rankgrove_codes)(train, valid)


def numbers_alone(part: Part) -> Part:
    return part._replace(X=np.ascontiguousarray(part.numbers), n_categories=())


def one_hot(part: Part) -> Part:
    """One column per category of features that have few; codes as numbers for the others."""
    columns = [part.numbers]
    for k, (n, codes) in enumerate(zip(part.n_categories, part.codes.T, strict=True)):
        if n <= FEW:
            columns.append((codes[:, None] == np.arange(n)).astype(np.float32))
        else:
            columns.append(part.X[:, [part.n_numbers + k]])
    return part._replace(X=np.concatenate(columns, axis=1), n_categories=())


def lightgbm(train: Part, valid: Part) -> Predict:
    import lightgbm as lgb

    sets = [
        lgb.Dataset(
            part.X.astype(np.float64),
            part.y,
            group=part.sizes,
            categorical_feature=part.categorical,
            params={"verbose": -1},
        )
        for part in (train, valid)
    ]
    params = {
        "objective": "lambdarank",
        "metric": "ndcg",
        "eval_at": [10],
        "num_leaves": LEAVES,
        "learning_rate": RATE,
        "min_data_in_leaf": LEAST,
        "num_threads": 1,
        "verbose": -1,
    }
    stop = lgb.early_stopping(PATIENCE, verbose=False)
    booster = lgb.train(params, sets[0], TREES, valid_sets=[sets[1]], callbacks=[stop])
    return lambda part: np.asarray(booster.predict(part.X.astype(np.float64)))


def catboost(train: Part, valid: Part) -> Predict:
    import pandas
    from catboost import CatBoost, Pool

    def pool(part: Part) -> Pool:
        frame = pandas.DataFrame(part.numbers.astype(np.float64))
        for column, codes in zip(part.categorical, part.codes.T, strict=True):
            frame[column] = codes.astype(str)
        return Pool(frame, part.y, group_id=part.qid, cat_features=part.categorical)

    model = CatBoost(
        {
            "loss_function": "YetiRank",
            "eval_metric": "NDCG:top=10;type=Exp",
            "iterations": TREES,
            "learning_rate": RATE,
            "depth": 4,
            "early_stopping_rounds": PATIENCE,
            "thread_count": 1,
            "allow_writing_files": False,
            "verbose": False,
        }
    )
    model.fit(pool(train), eval_set=pool(valid), use_best_model=True)
    return lambda part: np.asarray(model.predict(pool(part)))


LEARNERS: dict[str, Learner] = {
    "rankgrove, sets": rankgrove_sets,
    "rankgrove, codes as numbers": rankgrove_codes,
    "rankgrove, counts as numbers": rankgrove_counts,
    "rankgrove, one-hot": on(one_hot, rankgrove_codes),
    "rankgrove, without them": on(numbers_alone, rankgrove_codes),
    "LightGBM": lightgbm,
    "LightGBM, without them": on(numbers_alone, lightgbm),
    "CatBoost": catboost,
    "CatBoost, without them": on(numbers_alone, catboost),
}
WITHOUT = {
    "rankgrove, sets": "rankgrove, without them",
    "LightGBM": "LightGBM, without them",
    "CatBoost": "CatBoost, without them",
}
DEFAULT = list(LEARNERS)[:-1]  # the last one takes minutes on real data


# -- the time of a tree ----------------------------------------------------------------------------


def time_per_tree(rounds: int, n_trees: int = 20) -> None:
    import lightgbm as lgb

    rng = np.random.default_rng(0)
    n, n_docs = 120_000, 100
    X = np.column_stack([rng.normal(size=(n, 40)), rng.integers(0, 100, (n, 10))])
    X = X.astype(np.float32)
    effects = rng.normal(size=(10, 100))
    total = X[:, :5].sum(axis=1) + sum(effects[k][X[:, 40 + k].astype(int)] for k in range(10))
    y = np.digitize(total + 3 * rng.normal(size=n), [0.0, 4.0, 6.0, 8.0]).astype(float)
    qid = np.repeat(np.arange(n // n_docs), n_docs)
    columns = list(range(40, 50))
    sets = {
        "rankgrove, sets": rg.QueryDataset(X, y, qid=qid, categorical=[c + 1 for c in columns]),
        "rankgrove, codes as numbers": rg.QueryDataset(X, y, qid=qid),
    }

    def ours(data: rg.QueryDataset, trees: int) -> Callable[[], object]:
        model = rg.LambdaMART("ndcg@10", n_trees=trees, min_leaf=LEAST, n_threads=1)
        return lambda: model.fit(data)

    def theirs(trees: int) -> Callable[[], object]:
        params = {
            "objective": "lambdarank",
            "num_leaves": 31,
            "min_data_in_leaf": LEAST,
            "num_threads": 1,
            "force_row_wise": True,
            "verbose": -1,
        }
        data = lgb.Dataset(
            X,
            y,
            group=np.full(n // n_docs, n_docs),
            categorical_feature=columns,
            params={"verbose": -1},
        ).construct()
        return lambda: lgb.train(params, data, trees)

    def seconds(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    best = dict.fromkeys([*sets, "LightGBM"], np.inf)
    for turn in range(rounds + 1):  # the first one compiles
        for name in best:
            few, many = (
                seconds(theirs(k) if name == "LightGBM" else ours(sets[name], k))
                for k in (2, 2 + n_trees)
            )
            if turn:
                best[name] = min(best[name], (many - few) / n_trees)
    for name, value in best.items():
        ratio = value / best["rankgrove, sets"]
        print(f"{name:<30} {1000 * value:6.1f} ms per tree   {ratio:.2f}", flush=True)


def mean_by_block(values: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the mean of every block of queries, without queries that have no value."""
    counted = ~np.isnan(values)
    _, place = np.unique(blocks[counted], return_inverse=True)
    return np.bincount(place, values[counted]) / np.bincount(place)


def difference(mine: np.ndarray, other: np.ndarray) -> str:
    return f"{np.mean(mine - other):+.4f} (p = {paired_t(mine - other):.3f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--only", default="|".join(DEFAULT))
    parser.add_argument("--noise", action="store_true")
    parser.add_argument("--real", choices=list(REAL), default=None)
    parser.add_argument("--train-folds", type=int, choices=(1, 2, 3), default=1)
    parser.add_argument("--time", action="store_true")
    args = parser.parse_args()
    if args.time:
        time_per_tree(args.draws)
        return
    warnings.simplefilter("ignore")
    names = args.only.split("|")
    values: dict[str, list[np.ndarray]] = {name: [] for name in names}
    seconds = dict.fromkeys(names, 0.0)
    if args.real:
        divisions = real(args.real, args.train_folds)
        title = f"{args.real}, training queries of {args.train_folds} of 5 folds"
    else:
        divisions = generated(args.draws, args.queries, 0.0 if args.noise else 1.0)
        title = f"{args.draws} draws, {args.queries} training queries"
    for number, (train, valid, test, blocks) in enumerate(divisions):
        judged = rg.QueryDataset(test.X, test.y, qid=test.qid)
        for name in names:
            began = time.process_time()
            predict = LEARNERS[name](train, valid)
            seconds[name] += time.process_time() - began
            result = rg.evaluate(predict(test), judged, MEASURE).per_query[MEASURE]
            values[name].append(mean_by_block(np.asarray(result), blocks))
            print(f"{number}  {name:<30} {np.mean(values[name][-1]):.4f}", flush=True)
    joined = {name: np.concatenate(parts) for name, parts in values.items()}
    print(f"\n{MEASURE}, {title}")
    for name, mine in joined.items():
        text = "" if name == names[0] else difference(mine, joined[names[0]])
        print(f"  {name:<30} {mine.mean():.4f} {text:<22} {seconds[name]:4.0f} s", flush=True)
    for name, alone in WITHOUT.items():
        if {name, alone} <= set(names):
            print(f"  {name} over {alone}: {difference(joined[name], joined[alone])}")


if __name__ == "__main__":
    main()
