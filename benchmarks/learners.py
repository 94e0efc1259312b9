"""The study of learners: stochastic lambdas and list losses, against LightGBM, XGBoost, CatBoost.

    python -m benchmarks.learners --out FOLDER [--data FOLDER] [--draws 3] [--only NAME,NAME]

Data sets: MQ2008 and OHSUMED (where `--data` has them), web-like data, artificial data. A draw is
a new division of a collection's queries into five folds (three train, one validates, one tests),
or new data of a generator. Every learner has the same trials (leaves and learning rate, sampling
of queries and features), each with early stopping by validation NDCG@10; the trial with the best
validation NDCG@10 is measured on the test queries. Differences to LambdaMART without smoothing are
paired: of every query the mean over draws where draws share queries, else all queries.

The rule for the default of `smoothing`, written before any figure of this script was seen (but
after a first look at smaller runs on the same collections, in which 1 was best): it becomes 1 if
NDCG@10 and MAP, averaged over data sets with equal weights, are both higher than without, and
neither is significantly lower (p < .05) on any data set; else it stays 0.

Symmetric trees (``growth="symmetric"``) have as many leaves as the nearest power of two above, as
CatBoost's have, and each learner is compared with its twin, which has leafwise trees. The rule for
keeping them, written before any figure of this script was seen: they stay if, for LambdaMART or for
MART with query_squared, NDCG@10 or MAP is significantly higher (p < .05) than with leafwise trees
on at least one data set, and the means over the data sets of NDCG@10 and of MAP are not lower by
more than .001.

Every result is kept in FOLDER/learners.jsonl as soon as it is there; a second start continues.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankgrove as rg
from rankgrove.data.concatenate import concatenate
from rankgrove.evaluation.significance import paired_t
from rankgrove.tuning.result_store import ResultStore

MEASURES = ["ndcg@10", "map", "meanndcg"]
PATIENCE = 50
SMALL = {"trees": 500, "trials": list(product((7, 15), (0.05,), (0.5,), (0.3,)))}
LARGE = {"trees": 300, "trials": list(product((31,), (0.1,), (1.0,), (0.5,)))}


class Split(NamedTuple):
    """Queries for training, validation and testing."""

    train: rg.QueryDataset
    valid: rg.QueryDataset
    test: rg.QueryDataset


class Trial(NamedTuple):
    """Settings that all learners share."""

    trees: int
    leaves: int
    rate: float
    queries: float
    features: float


Predict = Callable[[rg.QueryDataset], np.ndarray]
Learner = Callable[[Split, Trial, int], Predict]


# -- data ------------------------------------------------------------------------------------------


def collection(folder: Path) -> Callable[[int], Iterator[Split]]:
    def folds(draw: int) -> Iterator[Split]:
        data = concatenate([rg.read_letor(folder / f"S{i}.txt.gz") for i in range(1, 6)])
        for fold in rg.k_fold(data, 5, seed=draw, valid=True):
            yield Split(*fold)

    return folds


def generated(make: Callable[..., rg.QueryDataset], n_queries: int) -> Callable[[int], Any]:
    def split(draw: int) -> Iterator[Split]:
        yield Split(
            make(n_queries, seed=500 + 10 * draw),
            make(max(200, n_queries // 5), seed=501 + 10 * draw),
            make(2000, seed=502 + 10 * draw),
        )

    return split


def data_sets(folder: Path | None) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return the splits of every data set by draw, and the trials."""
    sets: dict[str, tuple[Any, dict[str, Any]]] = {}
    for name in ("mq2008", "ohsumed"):
        if folder is not None and (folder / name).is_dir():
            sets[name] = (collection(folder / name), SMALL)
    sets["web"] = (generated(rg.make_web, 1000), LARGE)
    sets["artificial"] = (generated(rg.make_artificial, 2000), LARGE)
    sets["large web"] = (generated(rg.make_web, 10_000), LARGE)
    return sets


# -- learners --------------------------------------------------------------------------------------


def full_depth(leaves: int) -> int:
    """Return the depth of a full tree with at least this many leaves."""
    return int(np.ceil(np.log2(leaves)))


def ours(ranker: Callable[..., Any], **options: Any) -> Learner:
    symmetric = options.get("growth") == "symmetric"

    def fit(split: Split, trial: Trial, threads: int) -> Predict:
        model = ranker(
            n_trees=trial.trees,
            n_leaves=2 ** full_depth(trial.leaves) if symmetric else trial.leaves,
            learning_rate=trial.rate,
            query_fraction=trial.queries,
            feature_fraction=trial.features,
            early_stopping=PATIENCE,
            n_threads=threads,
            **options,
        ).fit(split.train, valid=split.valid, valid_measures="ndcg@10")
        return lambda data: np.asarray(model.predict(data))

    return fit


def lightgbm(objective: str) -> Learner:
    def fit(split: Split, trial: Trial, threads: int) -> Predict:
        import lightgbm as lgb

        sets = [
            lgb.Dataset(np.asarray(d.X), d.y, group=np.diff(d.query_ptr), params={"verbose": -1})
            for d in (split.train, split.valid)
        ]
        options = {
            "objective": objective,
            "metric": "ndcg",
            "eval_at": [10],
            "num_leaves": trial.leaves,
            "learning_rate": trial.rate,
            "feature_fraction_bynode": trial.features,
            "bagging_fraction": trial.queries,
            "bagging_freq": 1,
            "bagging_by_query": True,
            "num_threads": threads,
            "deterministic": True,
            "verbose": -1,
        }
        stop = lgb.early_stopping(PATIENCE, verbose=False)
        booster = lgb.train(options, sets[0], trial.trees, valid_sets=sets[1:], callbacks=[stop])
        return lambda data: np.asarray(booster.predict(np.asarray(data.X)))

    return fit


def xgboost(split: Split, trial: Trial, threads: int) -> Predict:
    import xgboost as xgb

    train, valid = (
        xgb.DMatrix(d.X, d.y, group=np.diff(d.query_ptr)) for d in (split.train, split.valid)
    )
    options = {
        "objective": "rank:ndcg",
        "eval_metric": "ndcg@10",
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": trial.leaves,
        "max_depth": 0,
        "eta": trial.rate,
        "colsample_bynode": trial.features,
        "subsample": trial.queries,
        "nthread": threads,
    }
    booster = xgb.train(
        options,
        train,
        trial.trees,
        evals=[(valid, "valid")],
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    best = (0, booster.best_iteration + 1)
    return lambda data: np.asarray(booster.predict(xgb.DMatrix(data.X), iteration_range=best))


def catboost(loss: str) -> Learner:
    def fit(split: Split, trial: Trial, threads: int) -> Predict:
        from catboost import CatBoost, Pool

        train, valid = (
            Pool(np.asarray(d.X), d.y, group_id=np.repeat(np.arange(d.n_queries), sizes))
            for d in (split.train, split.valid)
            for sizes in [np.diff(d.query_ptr)]
        )
        model = CatBoost(
            {
                "loss_function": loss,
                "eval_metric": "NDCG:top=10;type=Exp",
                "iterations": trial.trees,
                # symmetric trees: as many leaves as the nearest power of two above
                "depth": full_depth(trial.leaves),
                "learning_rate": trial.rate,
                "rsm": trial.features,
                "early_stopping_rounds": PATIENCE,
                "thread_count": threads,
                "allow_writing_files": False,
                "verbose": False,
            }
        )
        model.fit(train, eval_set=valid, use_best_model=True)
        return lambda data: np.asarray(model.predict(np.asarray(data.X)))

    return fit


BASE = "LambdaMART"
LEARNERS: dict[str, Learner] = {
    BASE: ours(rg.LambdaMART),
    **{
        f"LambdaMART smoothing {s:g} draws {d}": ours(rg.LambdaMART, smoothing=s, draws=d)
        for s, d in ((0.5, 2), (1.0, 2), (1.0, 4), (2.0, 2))
    },
    "MART softmax": ours(rg.MART, loss="softmax"),
    "MART query_squared": ours(rg.MART, loss="query_squared"),
    "LambdaMART symmetric": ours(rg.LambdaMART, growth="symmetric"),
    "LambdaMART symmetric smoothing 1 draws 2": ours(
        rg.LambdaMART, smoothing=1.0, draws=2, growth="symmetric"
    ),
    "MART query_squared symmetric": ours(rg.MART, loss="query_squared", growth="symmetric"),
    "LightGBM lambdarank": lightgbm("lambdarank"),
    "LightGBM rank_xendcg": lightgbm("rank_xendcg"),
    "XGBoost rank:ndcg": xgboost,
    "CatBoost YetiRank": catboost("YetiRank"),
    "CatBoost QueryRMSE": catboost("QueryRMSE"),
}


# -- the study -------------------------------------------------------------------------------------


def measured(learner: Learner, split: Split, setting: dict[str, Any], threads: int) -> Any:
    """Return the test values of the trial with the best validation NDCG@10."""
    best: tuple[float, Predict] | None = None
    for trial in setting["trials"]:
        predict = learner(split, Trial(setting["trees"], *trial), threads)
        value = rg.evaluate(predict(split.valid), split.valid, "ndcg@10").mean["ndcg@10"]
        if best is None or value > best[0]:
            best = (value, predict)
    assert best is not None
    scores = best[1](split.test)
    values = rg.evaluate(scores, split.test, MEASURES).per_query
    ids = [str(query) for query in split.test.query_ids]
    return {"queries": ids, **{m: [_plain(v) for v in values[m]] for m in MEASURES}}


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def differences(
    store: ResultStore, name: str, learner: str, draws: int, m: str, other: str = BASE
) -> np.ndarray:
    """Return one difference to another learner per query: the mean over draws with the query."""
    sums: dict[str, list[float]] = {}
    for draw in range(draws):
        ours_, base = (store[_key(name, draw, who)]["parts"] for who in (learner, other))
        for a, b in zip(ours_, base, strict=True):
            shared = name in ("mq2008", "ohsumed")
            for query, x, y in zip(a["queries"], a[m], b[m], strict=True):
                if x is not None and y is not None:
                    sums.setdefault(query if shared else f"{draw} {query}", []).append(x - y)
    return np.array([np.mean(values) for values in sums.values()])


def _key(name: str, draw: int, learner: str) -> str:
    return f"{name}, {draw}, {learner}"


def table(store: ResultStore, names: list[str], learners: list[str], draws: int) -> None:
    for name in names:
        print(f"\n{name}, {draws} draws: mean (difference to {BASE}, p), seconds of a fit")
        for learner in learners:
            if any(_key(name, draw, learner) not in store for draw in range(draws)):
                continue
            records = [store[_key(name, draw, learner)] for draw in range(draws)]
            cells = []
            for m in MEASURES:
                values = [v for r in records for part in r["parts"] for v in part[m]]
                mean = np.mean([v for v in values if v is not None])
                change = differences(store, name, learner, draws, m)
                test = "" if learner == BASE else f" ({change.mean():+.4f}, {paired_t(change):.3f})"
                cells.append(f"{m} {mean:.4f}{test}")
            seconds = np.mean([r["seconds"] for r in records])
            print(f"  {learner:<40} {'  '.join(cells)}  {seconds:.1f} s", flush=True)


def twins(store: ResultStore, names: list[str], learners: list[str], draws: int) -> None:
    """Print the differences of symmetric to leafwise trees, and their means over data sets."""
    for learner in learners:
        twin = learner.replace(" symmetric", "")
        keys = [_key(n, d, w) for n in names for d in range(draws) for w in (learner, twin)]
        if twin == learner or any(key not in store for key in keys):
            continue
        print(f"\n{learner}: difference to {twin} (p)")
        for m in MEASURES:
            changes = [differences(store, name, learner, draws, m, twin) for name in names]
            cells = [
                f"{name} {change.mean():+.4f} ({paired_t(change):.3f})"
                for name, change in zip(names, changes, strict=True)
            ]
            mean = np.mean([change.mean() for change in changes])
            print(f"  {m:<9} mean {mean:+.4f}  {'  '.join(cells)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--only", help="names of data sets, comma-separated")
    parser.add_argument("--learners", help="names of learners, comma-separated")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    store = ResultStore(args.out / "learners.jsonl", {"study": "learners"})

    def chosen(names: Any, wanted: str | None) -> list[str]:
        return list(names) if wanted is None else [n for n in names if n in wanted.split(",")]

    sets = data_sets(args.data)
    names = chosen(sets, args.only)
    learners = chosen(LEARNERS, args.learners)
    for name in names:
        splits, setting = sets[name]
        for draw in range(args.draws):
            open_ = [who for who in learners if _key(name, draw, who) not in store]
            parts = list(splits(draw)) if open_ else []
            for who in open_:
                began = time.perf_counter()
                try:
                    values = [
                        measured(LEARNERS[who], part, setting, args.threads) for part in parts
                    ]
                except ImportError as error:
                    print(f"  {who}: left out, {error}")
                    continue
                n_fits = len(parts) * len(setting["trials"])
                seconds = (time.perf_counter() - began) / n_fits
                store.put(_key(name, draw, who), {"parts": values, "seconds": seconds})
    table(store, names, learners, args.draws)
    twins(store, names, learners, args.draws)


if __name__ == "__main__":
    main()
