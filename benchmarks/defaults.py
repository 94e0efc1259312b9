"""The study behind the defaults of LambdaMART's lambdas.

    python -m benchmarks.defaults --out FOLDER [--data FOLDER] --draws 3
    python -m benchmarks.defaults --out FOLDER [--data FOLDER] --draws 3 --second
    python -m benchmarks.defaults --out FOLDER [--data FOLDER] --draws 3 --confirm NAME NAME
    python -m benchmarks.defaults --out FOLDER [--data FOLDER] --draws 3 --surrogates [--fresh]

Data sets: web-like data of two shapes, artificial data, and (where `--data` has them) MQ2008 and
OHSUMED. A draw is new training and test data of a generator, or a new split of a collection's
queries into five folds. Every candidate is trained for NDCG@5, NDCG@10, MAP and ERR and measured
on held-out queries by the same measure (convention `papers`); one LightGBM model (its own
defaults of `lambdarank`, the same trees) is measured by all four. After the first draw the better
half of the candidates continues, always with the old default.

The rule was written before any result was seen. For measures with a cutoff (NDCG@5, NDCG@10), the
candidate with the largest difference to the old default is chosen, averaged over draws, then over
measures and data sets with equal weights; a smaller truncation is chosen if it costs less than
.0002 of that mean. Normalisation and L2 are chosen by the same mean over all four measures. The
chosen candidates are then measured on new draws (`--confirm`), against the old default and
LightGBM, by paired t-tests over queries.

A second question came up after these results (models trained for ERR were behind LightGBM): which
measure's lambdas give the highest ERR (`--surrogates`)? The rule, fixed before its results: the
largest ERR relative to ERR's own lambdas, averaged over three draws, then over data sets with
equal weights; measured on three fresh draws (`--fresh`).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import rankgrove as rg
from benchmarks.weblike import weblike
from rankgrove.data.concatenate import concatenate
from rankgrove.evaluation.significance import paired_t
from rankgrove.tuning.result_store import ResultStore

MEASURES = ["ndcg@5", "ndcg@10", "map", "err"]
# The old default is the first of each.
CUT = {
    "cutoff + 5": {"truncation": 5},
    "cutoff + 10": {"truncation": 10},
    "cutoff + 20": {"truncation": 20},
    "all pairs": {"truncation": None},
    "exact": {"truncation": None, "beyond_cutoff": False},
    "cutoff + 20, not normalised": {"truncation": 20, "normalise": False},
    "cutoff + 20, l2 0": {"truncation": 20, "l2": 0.0},
    "cutoff + 20, l2 1": {"truncation": 20, "l2": 1.0},
}
WHOLE = {
    "normalised, l2 0.1": {},
    "not normalised": {"normalise": False},
    "l2 0": {"l2": 0.0},
    "l2 1": {"l2": 1.0},
}
# The first three draws left open whether l2 and more pairs help together. These candidates were
# added after the results of those draws, and before all others.
CUT_2 = {
    "cutoff + 5": {"truncation": 5},
    "cutoff + 20, l2 1": {"truncation": 20, "l2": 1.0},
    "cutoff + 20, l2 3": {"truncation": 20, "l2": 3.0},
    "cutoff + 20, l2 10": {"truncation": 20, "l2": 10.0},
    "cutoff + 50, l2 1": {"truncation": 50, "l2": 1.0},
    "cutoff + 50, l2 3": {"truncation": 50, "l2": 3.0},
    "all pairs, l2 1": {"truncation": None, "l2": 1.0},
    "all pairs, l2 3": {"truncation": None, "l2": 3.0},
}
WHOLE_2 = {
    "normalised, l2 0.1": {},
    "l2 1": {"l2": 1.0},
    "l2 3": {"l2": 3.0},
    "l2 10": {"l2": 10.0},
}
SURROGATES = {
    "own lambdas": {"l2": 3.0, "surrogate": None},
    "ndcg": {"l2": 3.0, "surrogate": "ndcg"},
    "ndcg@10": {"l2": 3.0, "surrogate": "ndcg@10", "truncation": 60},
    "ndcg@5": {"l2": 3.0, "surrogate": "ndcg@5", "truncation": 55},
}
FRESH = 100  # number of the first draw that confirms

Split = tuple[rg.QueryDataset, rg.QueryDataset | None, rg.QueryDataset]  # train, valid, test


def web_like(draw: int) -> Iterator[Split]:
    yield _benchmark_data(1000, 2 * draw), None, _benchmark_data(1000, 2 * draw + 1)


def _benchmark_data(n_queries: int, seed: int) -> rg.QueryDataset:
    features, labels, sizes = weblike(n_queries, 120, seed=1000 + seed)
    return rg.QueryDataset(features, labels, qid=np.repeat(np.arange(sizes.size), sizes))


def web_short(draw: int) -> Iterator[Split]:
    """Queries of 26 documents on average, noisy labels."""
    train, test = (rg.make_web(2000, n_docs=26, seed=1000 + 2 * draw + part) for part in range(2))
    yield train, None, test


def artificial(draw: int) -> Iterator[Split]:
    train, test = (rg.make_artificial(1000, seed=1000 + 2 * draw + part) for part in range(2))
    yield train, None, test


def collection(folder: Path):
    """Return the folds of a collection; every draw divides its queries differently."""

    def folds(draw: int) -> Iterator[Split]:
        parts = [rg.read_letor(folder / f"S{i}.txt.gz") for i in range(1, 6)]
        data = concatenate(parts)
        turn = np.random.default_rng(1000 + draw).permutation(data.n_queries)
        shares = [data.select(np.sort(share)) for share in np.array_split(turn, 5)]
        for k in range(5):
            train = concatenate([shares[(k + i) % 5] for i in range(3)])
            yield train, shares[(k + 3) % 5], shares[(k + 4) % 5]

    return folds


def parameters(measure: str, change: dict[str, Any], valid: Any) -> dict[str, Any]:
    """Return LambdaMART's parameters; a truncation counts from the measure's cutoff, if any."""
    cutoff = rg.measure(measure).cutoff
    options = {"normalise": True, "l2": 0.1, "surrogate": None} | change
    if options.get("truncation") is not None and cutoff is not None:
        options["truncation"] += cutoff
    options |= {"n_threads": 1}
    return options | ({"n_trees": 100} if valid is None else {"n_trees": 300, "early_stopping": 50})


def ours(split: Split, measure: str, change: dict[str, Any]) -> list[float]:
    train, valid, test = split
    model = rg.LambdaMART(measure, **parameters(measure, change, valid)).fit(train, valid=valid)
    return _values(model.predict(test), test, [measure])[measure]


def theirs(split: Split) -> dict[str, list[float]]:
    import lightgbm as lgb

    train, valid, test = split
    sets = [
        lgb.Dataset(np.asarray(d.X), d.y, group=np.diff(d.query_ptr), params={"verbose": -1})
        for d in (train, valid)
        if d is not None
    ]
    options = {"objective": "lambdarank", "learning_rate": 0.1, "num_leaves": 31, "verbose": -1}
    options |= {"metric": "ndcg", "eval_at": [10], "deterministic": True, "num_threads": 1}
    if valid is None:
        booster = lgb.train(options, sets[0], 100)
    else:
        stop = lgb.early_stopping(50, verbose=False)
        booster = lgb.train(options, sets[0], 300, valid_sets=sets[1:], callbacks=[stop])
    return _values(np.asarray(booster.predict(np.asarray(test.X))), test, MEASURES)


def _values(scores: np.ndarray, test: rg.QueryDataset, measures: list[str]) -> dict[str, Any]:
    values = rg.evaluate(scores, test, measures).per_query
    return {name: each[~np.isnan(each)].tolist() for name, each in values.items()}


def run(
    store: ResultStore, name: str, splits: Any, draw: int, candidates: dict[str, Any], say: Any
) -> None:
    """Compute the missing results of one draw of one data set."""
    wanted = [(m, c) for m in candidates for c in candidates[m]] + [(None, "LightGBM")]
    wanted = [(m, c) for m, c in wanted if _key(name, draw, m, c) not in store]
    if not wanted:
        return
    parts = list(splits(draw))
    for measure, candidate in wanted:
        if measure is None:
            folds = [theirs(part) for part in parts]
            value = {m: [v for fold in folds for v in fold[m]] for m in MEASURES}
        else:
            change = candidates[measure][candidate]
            value = [v for part in parts for v in ours(part, measure, change)]
        store.put(_key(name, draw, measure, candidate), value)
        say(_key(name, draw, measure, candidate))


def _key(name: str, draw: int, measure: str | None, candidate: str) -> str:
    return f"{name}, {draw}, {measure}, {candidate}"


def table(store: ResultStore, data: list[str], draws: range, candidates: dict[str, Any]) -> None:
    """Print the differences of every candidate and of LightGBM to the first candidate."""
    for measures in (MEASURES[:2], MEASURES[2:]) if len(candidates) > 1 else (list(candidates),):
        names = list(candidates[measures[0]])
        columns = [(name, m) for name in data for m in measures]
        rows: dict[str, list[str]] = {}
        for candidate in [*names, "LightGBM"]:
            cells, gains = [], []
            for name, m in columns:
                old = _pooled(store, name, draws, m, names[0])
                new = _pooled(store, name, draws, m, candidate)
                gains.append(new.mean() - old.mean())
                p = paired_t(new - old) if candidate != names[0] else 1.0
                mark = "*" if p < 0.05 else ""
                cells.append(f"{gains[-1]:+.4f}{mark}")
            rows[candidate] = [*cells, f"{np.mean(gains):+.5f}"]
        print("| difference | " + " | ".join(f"{n}, {m}" for n, m in columns) + " | mean |")
        print("|" + "---|" * (len(columns) + 2))
        for candidate, cells in rows.items():
            print(f"| {candidate} | " + " | ".join(cells) + " |")
        levels = [f"{_pooled(store, n, draws, m, names[0]).mean():.4f}" for n, m in columns]
        print(f"| level of {names[0]} | " + " | ".join(levels) + " | |\n", flush=True)


def better_half(
    store: ResultStore, data: list[str], candidates: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the better half of the candidates of the first draw, with the old default."""
    chosen = {}
    for measures in (MEASURES[:2], MEASURES[2:]):
        first, *others = candidates[measures[0]]

        def gain(name: str, measures: list[str] = measures, first: str = first) -> float:
            pairs = [(d, m) for d in data for m in measures]
            new = [_pooled(store, d, range(1), m, name).mean() for d, m in pairs]
            old = [_pooled(store, d, range(1), m, first).mean() for d, m in pairs]
            return float(np.mean(new) - np.mean(old))

        best = sorted(others, key=gain, reverse=True)[: (len(others) + 1) // 2]
        kept = {n: c for n, c in candidates[measures[0]].items() if n == first or n in best}
        chosen |= dict.fromkeys(measures, kept)
    return chosen


def _pooled(store: ResultStore, name: str, draws: range, measure: str, candidate: str) -> Any:
    """Return the values of all queries in all draws as one array."""
    values: list[float] = []
    for draw in draws:
        if candidate == "LightGBM":
            values += store[_key(name, draw, None, candidate)][measure]
        else:
            values += store[_key(name, draw, measure, candidate)]
    return np.asarray(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=os.environ.get("RANKGROVE_DATA"))
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--second", action="store_true", help="the second set of candidates")
    parser.add_argument("--confirm", nargs=2, metavar="NAME", help="the candidates to confirm")
    parser.add_argument(
        "--surrogates", action="store_true", help="which measure's lambdas are best for ERR"
    )
    parser.add_argument("--fresh", action="store_true", help="use draws that chose nothing")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    store = ResultStore(options.out / "defaults.jsonl", {"study": "defaults", "version": 1})
    data = {"web-like": web_like, "web, short": web_short, "artificial": artificial}
    if options.data is not None:
        data |= {n: collection(options.data / n) for n in ("mq2008", "ohsumed")}
    cut, whole = (CUT_2, WHOLE_2) if options.second or options.confirm else (CUT, WHOLE)
    if options.confirm:
        cut, whole = (
            {name: c for k, (name, c) in enumerate(every.items()) if k == 0 or name == chosen}
            for every, chosen in zip((cut, whole), options.confirm, strict=True)
        )
    candidates = {m: cut if rg.measure(m).cutoff else whole for m in MEASURES}
    if options.surrogates:
        candidates = {"err": SURROGATES}
    first = FRESH if options.confirm or options.fresh else 0
    draws = range(first, first + options.draws)
    for draw in draws:
        for name, splits in data.items():
            run(store, name, splits, draw, candidates, lambda key: print(key, flush=True))
        table(store, list(data), range(first, draw + 1), candidates)
        if draw == 0 and not options.second and not options.surrogates:
            candidates = better_half(store, list(data), candidates)


if __name__ == "__main__":
    main()
