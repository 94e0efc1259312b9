"""The study of nets: what log1p, smoothing and ensembles bring, alone and together with trees.

    python -m benchmarks.net_study --out FOLDER [--data FOLDER] [--draws 2] [--only NAME,NAME]

Data sets, draws and paired differences are those of `benchmarks.learners`. The rules, written
before any figure was seen:

- Nets have 32 hidden units, 30 epochs, a learning rate that falls to 0, and one seed. Trees are the
  first of the trials of `benchmarks.learners`, with smoothing 1. Nothing is tuned. Validation
  queries choose the epoch or the number of trees by NDCG@10, and nothing else.
- An ensemble is a bag of 5 LambdaRank nets that see all queries and differ by their seeds.
- A combination is the equal mean of the scores, each scaled to a deviation of 1 within every query.
- Of the test queries NDCG@10 and MAP are reported, and paired differences to the trees alone.

Added after the table had been seen: paired differences between nets, `COMPARED`.

Every result is kept in FOLDER/net_study.jsonl as soon as it is there; a second start continues.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import rankgrove as rg
from benchmarks.learners import PATIENCE, Split, Trial, _plain, data_sets
from rankgrove.evaluation.significance import paired_t
from rankgrove.tuning.result_store import ResultStore

MEASURES = ["ndcg@10", "map"]
TREES = "LambdaMART smoothing 1"
NET: dict[str, Any] = {"hidden": (32,), "n_epochs": 30, "schedule": "linear", "n_threads": 1}


def prepared(ranker: Any, transform: str | None) -> rg.PreparedRanker:
    return rg.PreparedRanker(ranker, normalise="zscore", transform=transform)


def rankers(trial: Trial) -> dict[str, Any]:
    """Return the rankers that are trained, by their names in the table."""
    rows: dict[str, Any] = {
        TREES: rg.LambdaMART(
            n_trees=trial.trees,
            n_leaves=trial.leaves,
            learning_rate=trial.rate,
            query_fraction=trial.queries,
            feature_fraction=trial.features,
            early_stopping=PATIENCE,
            smoothing=1.0,
            draws=2,
            n_threads=1,
        )
    }
    for name, transform in (("zscore", None), ("log1p zscore", "log1p")):
        rows[f"RankNet {name}"] = prepared(rg.RankNet(**NET), transform)
        rows[f"LambdaRank {name}"] = prepared(rg.LambdaRank(**NET), transform)
        smoothed = rg.LambdaRank(**NET, smoothing=1.0, draws=2)
        rows[f"LambdaRank {name}, smoothing 1"] = prepared(smoothed, transform)
    one = rows["LambdaRank log1p zscore"]
    rows["5 LambdaRank log1p zscore"] = rg.BaggedRanker(
        one, n_models=5, query_fraction=1.0, n_threads=1
    )
    return rows


MEANS = {
    "mean of trees, LambdaRank": (TREES, "LambdaRank log1p zscore"),
    "mean of trees, RankNet": (TREES, "RankNet log1p zscore"),
    "mean of trees, 5 LambdaRank": (TREES, "5 LambdaRank log1p zscore"),
}

COMPARED = [
    ("RankNet log1p zscore", "RankNet zscore"),
    ("LambdaRank log1p zscore", "LambdaRank zscore"),
    ("LambdaRank log1p zscore, smoothing 1", "LambdaRank zscore, smoothing 1"),
    ("LambdaRank zscore, smoothing 1", "LambdaRank zscore"),
    ("5 LambdaRank log1p zscore", "LambdaRank log1p zscore"),
]
SHARED = ("mq2008", "ohsumed")  # their draws divide the same queries


def scaled(scores: np.ndarray, data: rg.QueryDataset) -> np.ndarray:
    """Return scores with a mean of 0 and a deviation of 1 in every query; equal scores: 0."""
    grouped, starts, sizes = data.grouped(scores), data.query_ptr[:-1], np.diff(data.query_ptr)
    away = grouped - np.repeat(np.add.reduceat(grouped, starts) / sizes, sizes)
    deviation = np.repeat(np.sqrt(np.add.reduceat(away * away, starts) / sizes), sizes)
    return data.ungrouped(np.divide(away, deviation, out=np.zeros_like(away), where=deviation > 0))


def measured(scores: np.ndarray, data: rg.QueryDataset) -> dict[str, Any]:
    values = rg.evaluate(scores, data, MEASURES).per_query
    return {
        "queries": [str(query) for query in data.query_ids],
        **{m: [_plain(v) for v in values[m]] for m in MEASURES},
    }


def part_of(split: Split, setting: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the test values of every row of the table on one division of the queries."""
    trial = Trial(setting["trees"], *setting["trials"][0])
    scores, values = {}, {}
    for name, ranker in rankers(trial).items():
        began = time.perf_counter()
        ranker.fit(split.train, valid=split.valid, valid_measures="ndcg@10")
        seconds = time.perf_counter() - began
        scores[name] = ranker.predict(split.test)
        values[name] = {"seconds": seconds, **measured(scores[name], split.test)}
    for name, members in MEANS.items():
        total = sum(scaled(scores[member], split.test) for member in members)
        seconds = sum(values[member]["seconds"] for member in members)
        values[name] = {"seconds": seconds, **measured(np.asarray(total), split.test)}
    return values


def differences(draws: list[Any], name: str, base: str, m: str, shared: bool) -> np.ndarray:
    """Return one difference of two rows per query: the mean over draws that share the query."""
    found: dict[str, list[float]] = {}
    for draw, parts in enumerate(draws):
        for part in parts:
            a, b = part[name], part[base]
            for query, x, y in zip(a["queries"], a[m], b[m], strict=True):
                if x is not None and y is not None:
                    found.setdefault(query if shared else f"{draw} {query}", []).append(x - y)
    return np.array([np.mean(values) for values in found.values()])


def table(name: str, draws: list[Any]) -> None:
    print(f"\n{name}: mean (difference to {TREES}, p), seconds of a fit")
    for row in draws[0][0]:
        cells = []
        for m in MEASURES:
            values = [v for parts in draws for part in parts for v in part[row][m]]
            mean = np.mean([v for v in values if v is not None])
            change = differences(draws, row, TREES, m, name in SHARED)
            test = "" if row == TREES else f" ({change.mean():+.4f}, {paired_t(change):.3f})"
            cells.append(f"{m} {mean:.4f}{test}")
        seconds = np.mean([part[row]["seconds"] for parts in draws for part in parts])
        print(f"  {row:<36} {'  '.join(cells)}  {seconds:.1f} s", flush=True)
    for row, base in COMPARED:
        changes = {m: differences(draws, row, base, m, name in SHARED) for m in MEASURES}
        cells = [f"{m} {d.mean():+.4f} ({paired_t(d):.3f})" for m, d in changes.items()]
        print(f"  {row} - {base}: {'  '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument(
        "--only", help="names of data sets", default="mq2008,ohsumed,web,artificial"
    )
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    args.out.mkdir(parents=True, exist_ok=True)
    store = ResultStore(args.out / "net_study.jsonl", {"study": "nets"})
    for name, (splits, setting) in data_sets(args.data).items():
        if name not in args.only.split(","):
            continue
        for draw in range(args.draws):
            if f"{name}, {draw}" not in store:
                parts = [part_of(split, setting) for split in splits(draw)]
                store.put(f"{name}, {draw}", {"parts": parts})
        table(name, [store[f"{name}, {draw}"]["parts"] for draw in range(args.draws)])


if __name__ == "__main__":
    main()
