"""Learning from clicks: NDCG@10 on true labels of rankers that learn from simulated click logs.

    python -m benchmarks.clicks [--data web,mq2008,lightgbm] [--seeds 1,2,3,4,5] [--cache FOLDER]
                                [--protocol 20 [--first 1] [--bounds]]

Four models of users and two logging rankers, a weak and a strong one; every method learns from the
same log. MQ2008 and LightGBM's example are read from the folder RANKGROVE_DATA, and skipped without
it. The cache keeps every figure, so that an interrupted run continues. `--protocol` repeats the
test of LightGBM's own `position` that many times, `--bounds` adds what could be learned
from true propensities, from what was seen, and without bias. The rules are in benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import rankgrove as rg

MODELS = ("position-based", "cascade", "dependent-click", "dbn")
LOGGERS = ("weak", "strong")
METHODS = (
    *("logging", "naive", "rates", "additive", "ratios", "ips", "affine", "LightGBM"),
    *("XGBoost", "judgements", "full"),
)
OURS = ("additive", "ratios", "ips", "affine", "judgements")
TREES, LEAVES, RATE = 100, 15, 0.1
NOISE, SHOWN = 0.5, 10
SESSIONS = {"web": 30_000, "mq2008": 20_000, "lightgbm": 15_000}
WEAK_QUERIES = 5


class World(NamedTuple):
    """Queries to learn from, held-out queries, and the scores of logging rankers by name."""

    train: rg.QueryDataset
    test: rg.QueryDataset
    scores: dict[str, np.ndarray]
    rankers: dict[str, Any]


def ranker(**changed: Any) -> rg.LambdaMART:
    settings = {"n_trees": TREES, "n_leaves": LEAVES, "learning_rate": RATE, "n_threads": 1}
    return rg.LambdaMART("ndcg@10", **settings | changed)


def logging_rankers(judged: rg.QueryDataset, n_weak: int = WEAK_QUERIES) -> dict[str, Any]:
    """Train the logging rankers on judged queries that no log has."""
    few = judged.select(np.arange(n_weak))
    weak = ranker(n_trees=20, n_leaves=7, min_leaf=5).fit(few)
    return {"weak": weak, "strong": ranker(n_trees=50, n_leaves=7, min_leaf=5).fit(judged)}


# -- data ------------------------------------------------------------------------------------------


def web(seed: int) -> World:
    train, test, judged = (
        rg.make_web(n, 20, 30, seed=10 * seed + i) for i, n in enumerate((500, 500, 100), 1)
    )
    return _world(train, test, logging_rankers(judged))


def mq2008(seed: int) -> World | None:
    """LETOR's fold of the seed: three parts train, rankers log from the validation part."""
    folder = os.environ.get("RANKGROVE_DATA")
    if not folder or not (Path(folder) / "mq2008").is_dir():
        return None
    files = [Path(folder) / "mq2008" / f"S{i}.txt.gz" for i in range(1, 6)]
    fold = list(rg.letor_folds([rg.read_letor(file) for file in files]))[(seed - 1) % 5]
    return _world(_plain(fold.train), fold.test, logging_rankers(fold.valid, 10))


def lightgbm(seed: int) -> World | None:
    """LightGBM's example; the strong ranker of a half of the queries learned from the other."""
    parts = _example()
    if parts is None:
        return None
    train, test = parts
    half = np.random.default_rng(seed).permutation(train.n_queries) % 2
    scores = {"weak": _column(train), "strong": np.empty(train.n_rows)}
    for k in (0, 1):
        other = ranker(n_trees=50, n_leaves=7, min_leaf=5).fit(
            train.select(np.flatnonzero(half != k))
        )
        inside = half[train.query_of_row] == k
        scores["strong"][inside] = other.predict(train.X[inside])
    return World(train, test, scores, {})


def _example() -> tuple[rg.QueryDataset, rg.QueryDataset] | None:
    folder = Path(os.environ.get("RANKGROVE_DATA", "")) / "lightgbm-lambdarank"
    if not folder.is_dir():
        return None
    return _svmlight(folder, "train"), _svmlight(folder, "test")


def _svmlight(folder: Path, name: str, n_features: int = 301) -> rg.QueryDataset:
    with gzip.open(folder / f"rank.{name}.query.gz", "rt") as lines:
        sizes = [int(line) for line in lines if line.strip()]
    labels, rows = [], []
    with gzip.open(folder / f"rank.{name}.gz", "rt") as lines:
        for line in lines:
            label, *values = line.split()
            row = np.zeros(n_features, np.float32)
            for item in values:
                column, value = item.split(":")
                row[int(column)] = float(value)
            labels.append(float(label))
            rows.append(row)
    return rg.QueryDataset(np.array(rows), labels, np.repeat(np.arange(len(sizes)) + 1, sizes))


def _column(data: rg.QueryDataset) -> np.ndarray:
    """Return feature 34, by which LightGBM's test ranks."""
    return np.asarray(data.X[:, 34], np.float64)


def _plain(data: rg.QueryDataset) -> rg.QueryDataset:
    return rg.QueryDataset(data.X, data.y, data.qid)


def _world(train: rg.QueryDataset, test: rg.QueryDataset, rankers: dict[str, Any]) -> World:
    return World(train, test, {n: r.predict(train.X) for n, r in rankers.items()}, rankers)


DATA: dict[str, Callable[[int], World | None]] = {
    "web": web,
    "mq2008": mq2008,
    "lightgbm": lightgbm,
}


# -- methods ---------------------------------------------------------------------------------------


def by_rates(log: rg.ClickLog, data: rg.QueryDataset) -> rg.QueryDataset:
    """Make training data whose labels are click-through rates: naive, but per document."""
    model = rg.ClickThroughRate()
    return rg.judgements(log, model, labels="soft", samples=0, min_impressions=1).dataset(data)


def peer_rows(log: rg.ClickLog, data: rg.QueryDataset) -> tuple[np.ndarray, ...]:
    """Return features, clicks, sizes of sessions and positions from 0, in the order shown."""
    sizes = np.diff(log.session_ptr)
    return data.X[log.pair], log.click.astype(np.int32), sizes, log.position.astype(np.int32) - 1


def lightgbm_position(log: rg.ClickLog, world: World) -> np.ndarray:
    import lightgbm as lgb

    X, clicks, sizes, positions = peer_rows(log, world.train)
    settings = {"objective": "lambdarank", "num_leaves": LEAVES, "learning_rate": RATE}
    settings |= {"lambdarank_truncation_level": 10, "verbose": -1, "num_threads": 1}
    rows = lgb.Dataset(X, clicks, group=sizes, position=positions)
    return np.asarray(lgb.train(settings, rows, TREES).predict(world.test.X))


def xgboost_unbiased(log: rg.ClickLog, world: World) -> np.ndarray:
    import xgboost as xgb

    X, clicks, sizes, _ = peer_rows(log, world.train)  # rows are in the order of positions
    rows = xgb.QuantileDMatrix(X, clicks, qid=np.repeat(np.arange(sizes.size), sizes))
    settings = {"objective": "rank:ndcg", "lambdarank_unbiased": True, "eta": RATE, "nthread": 1}
    settings |= {"lambdarank_pair_method": "topk", "lambdarank_num_pair_per_sample": 10}
    settings |= {"grow_policy": "lossguide", "max_leaves": LEAVES, "max_depth": 0}
    trained = xgb.train(settings, rows, TREES)
    return np.asarray(trained.predict(xgb.DMatrix(world.test.X)))


def predictions(method: str, log: rg.ClickLog, world: World, logger: str) -> np.ndarray | None:
    """Return the scores of the held-out queries."""
    train, test = world.train, world.test
    if method == "logging":
        return world.rankers[logger].predict(test.X) if logger in world.rankers else None
    if method == "LightGBM":
        return lightgbm_position(log, world)
    if method == "XGBoost":
        return xgboost_unbiased(log, world)
    if method == "full":
        rows = train
    elif method == "judgements":
        rows = rg.smoothed_judgements(log, train).dataset(train)
    elif method == "rates":
        rows = by_rates(log, train)
    else:
        rows = rg.click_data(log, train)
    bias = method if method in ("additive", "ratios", "ips", "affine") else None
    return ranker(position_bias=bias).fit(rows).predict(test.X)


def ndcg(data: rg.QueryDataset, scores: np.ndarray, cutoff: int = 10) -> float:
    measure = f"ndcg@{cutoff}"
    return rg.evaluate(scores, data, measure).mean[measure]


# -- the study -------------------------------------------------------------------------------------


class Cache:
    """Figures by name, one per line of a file."""

    def __init__(self, folder: str | None) -> None:
        self.path = Path(folder) / "clicks.jsonl" if folder else None
        self.values: dict[str, Any] = {}
        if self.path and self.path.exists():
            for line in self.path.read_text().splitlines():
                name, value = json.loads(line)
                self.values[name] = value

    def get(self, name: str, compute: Callable[[], Any]) -> Any:
        if name not in self.values:
            self.values[name] = compute()
            if self.path:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a") as file:
                    file.write(json.dumps([name, self.values[name]]) + "\n")
        return self.values[name]


def run(name: str, seed: int, methods: tuple[str, ...], cache: Cache) -> bool:
    """Compute the figures of one data set and seed."""
    world = None
    for logger in LOGGERS:
        for model in MODELS:
            log = None
            for method in (*methods, "check"):
                key = f"{name} {seed} {model} {logger} {method}"
                if method == "full":
                    key = f"{name} {seed} full"
                if key in cache.values:
                    continue
                world = DATA[name](seed) if world is None else world
                if world is None:
                    return False
                if log is None:
                    log = rg.simulate_clicks(
                        world.train, world.scores[logger], model=model, sessions=SESSIONS[name],
                        noise=NOISE, n_shown=SHOWN, seed=seed,
                    )  # fmt: skip
                start = time.perf_counter()
                value = cache.get(key, lambda m=method, g=log: _figure(m, g, world, logger))  # type: ignore[misc] # noqa: B023
                shown = f"{value:.4f}" if isinstance(value, float) else value
                print(f"{key}: {shown} ({time.perf_counter() - start:.1f} s)", flush=True)
    return True


def _figure(method: str, log: rg.ClickLog, world: World, logger: str) -> Any:
    if method == "check":
        check = rg.check_clicks(log).as_dict()
        return {key: check[key] for key in ("safe", "bias", "error", "strength", "stability")}
    scores = predictions(method, log, world, logger)
    return None if scores is None else ndcg(world.test, scores)


def table(name: str, seeds: list[int], methods: tuple[str, ...], values: dict[str, Any]) -> None:
    """Print the means over seeds, the shares of the gap and what the check said."""

    def of(model: str, logger: str, method: str) -> np.ndarray:
        keys = [f"{name} {seed} {model} {logger} {method}" for seed in seeds]
        if method == "full":
            keys = [f"{name} {seed} full" for seed in seeds]
        return np.array([values[key] for key in keys], np.float64)

    print(f"\n{name}: mean NDCG@10 of {len(seeds)} seeds\n")
    print(
        "| users | logging ranker | "
        + " | ".join(methods)
        + " | judgements less the best other | gap closed |"
    )
    print("|" + "---|" * (len(methods) + 4))
    for logger in LOGGERS:
        for model in MODELS:
            means = {m: float(of(model, logger, m).mean()) for m in methods}
            others = {m: v for m, v in means.items() if m not in ("full", "logging", "judgements")}
            best = max(others, key=lambda m: others[m])
            gap = means["full"] - means["naive"]
            closed = f"{(means['judgements'] - means['naive']) / gap:.0%} of" if gap > 0.01 else ""
            cells = " | ".join(f"{v:.4f}" for v in means.values())
            behind = of(model, logger, "judgements") - of(model, logger, best)
            print(f"| {model} | {logger} | {cells} | {_paired(behind)} ({best}) "
                  f"| {closed} {gap:+.4f} |")  # fmt: skip
    print(_summary(name, seeds, methods, of))
    print(
        "\nDifferences to naive (mean and standard error over seeds; * the check says safe in all)"
    )
    for logger in LOGGERS:
        for model in MODELS:
            checks = [values[f"{name} {s} {model} {logger} check"] for s in seeds]
            parts = []
            for m in (m for m in OURS if m in methods):
                mark = "*" if all(m in c["safe"] for c in checks) else ""
                parts.append(
                    f"{m}{mark} {_paired(of(model, logger, m) - of(model, logger, 'naive'))}"
                )
            strength = ", ".join(f"{c['strength'] or 0:.2f}" for c in checks)
            print(f"{logger} {model}: {'; '.join(parts)}; strength {strength}")


def _summary(
    name: str, seeds: list[int], methods: tuple[str, ...], of: Callable[..., np.ndarray]
) -> str:
    """Say in how many cells judgements are best, and not behind the best by two errors."""
    others = [m for m in methods if m not in ("full", "logging", "judgements")]
    best = level = 0
    below, against = [], []
    for logger in LOGGERS:
        for model in MODELS:
            ours = of(model, logger, "judgements")
            rival = max((of(model, logger, m) for m in others), key=lambda v: float(v.mean()))
            behind = ours - rival
            best += bool(behind.mean() > 0)
            level += bool(behind.mean() + 2 * _error(behind) >= 0)
            difference = ours - of(model, logger, "naive")
            against.append(difference)
            if difference.mean() + 2 * _error(difference) < 0:
                below.append(f"{model} {logger}")
    return (
        f"\njudgements of {name}: best in {best} of {len(against)} cells, best or level in {level};"
        f" below naive by more than two errors in: {', '.join(below) or 'none'}; all cells less "
        f"naive, means of {len(seeds)} seeds: {_paired(np.mean(against, axis=0))}"
    )


def _error(difference: np.ndarray) -> float:
    if difference.size < 2:
        return float("nan")
    return float(difference.std(ddof=1) / np.sqrt(difference.size))


def _paired(difference: np.ndarray) -> str:
    return f"{difference.mean():+.4f} +- {_error(difference):.4f}"


# -- LightGBM's own test ---------------------------------------------------------------------------

PROTOCOL: dict[str, dict[str, Any]] = {
    "naive": {},
    "additive": {"position_bias": "additive"},
    "additive, l2 1": {"position_bias": "additive", "position_l2": 1.0},
    "ratios": {"position_bias": "ratios"},
}
# measure of the differences: LambdaMART or LightGBM on the clicks as they are
BASE = {"LightGBM position": "LightGBM naive"}
BOUNDS = ("true propensities, ips", "seen rows", "seen rows, MART", "no bias", "true labels")
CLICKED, STOP = np.array([0.4, 0.6, 0.7, 0.8, 0.9]), 0.2


def protocol_users(data: rg.QueryDataset, seed: int) -> tuple[np.ndarray, ...]:
    """Return rows in the order shown, positions, which were seen, and clicks if all were seen.

    There is one session per query, with its documents ordered by feature 34; users stop with
    probability .2.
    """
    random = np.random.default_rng(seed)
    scores, parts = _column(data), []
    for q in range(data.n_queries):
        rows = np.flatnonzero(data.query_of_row == q)
        shown = rows[np.argsort(-scores[rows], kind="stable")]
        stops = random.random(shown.size) < STOP
        seen = np.concatenate([[True], ~np.logical_or.accumulate(stops)[:-1]])
        attracted = random.random(shown.size) < CLICKED[data.y[shown].astype(int)]
        parts.append((shown, np.arange(shown.size) + 1, seen, attracted))
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def protocol_log(data: rg.QueryDataset, seed: int) -> rg.ClickLog:
    """Return the clicks of these users as a log."""
    rows, position, seen, attracted = protocol_users(data, seed)
    session = data.query_of_row[rows]
    document = rows - data.query_ptr[session] + 1
    return rg.ClickLog(session, session + 1, document, position, seen & attracted)


def protocol(draws: list[int], with_bounds: bool) -> None:
    """Print NDCG@3 of naive learning and of corrections, over draws of the users' clicks.

    Two figures: after 50 rounds, and as LightGBM's test takes it, at the best round on the test
    part, which is too high for every method.
    """
    parts = _example()
    if parts is None:
        return
    train, test = parts
    figures: dict[str, list[tuple[float, float]]] = {}
    for seed in draws:
        for name, values in _of_draw(train, test, seed, with_bounds).items():
            figures.setdefault(name, []).append(values)
    found = {name: np.array(values) for name, values in figures.items()}
    print(f"\nLightGBM's test: NDCG@3, draws {draws[0]} to {draws[-1]}; "
          "difference to naive, share of draws with at least .03")  # fmt: skip
    for k, when in enumerate(("after 50 rounds", "best round on the test part")):
        print(f"\n{when}")
        for name, values in found.items():
            difference = values[:, k] - found[BASE.get(name, "naive")][:, k]
            share = (difference >= 0.03).mean()
            mean = values[:, k].mean()
            print(f"{name:<30} {mean:.4f}  {_paired(difference)}  {share:.0%}", flush=True)


def _of_draw(
    train: rg.QueryDataset, test: rg.QueryDataset, seed: int, with_bounds: bool
) -> dict[str, tuple[float, float]]:
    """Return NDCG@3 of all methods and bounds: after the last round, and in the best one."""
    log = protocol_log(train, seed)
    rows = rg.click_data(log, train)
    settings: dict[str, Any] = {"n_trees": 50, "n_leaves": 31, "min_leaf": 50, "n_threads": 1}

    def mart(data: rg.QueryDataset, **changed: Any) -> tuple[float, float]:
        return _by_round(rg.MART("logistic", **settings, **changed), data, test)

    def lambdas(data: rg.QueryDataset, **changed: Any) -> tuple[float, float]:
        return _by_round(rg.LambdaMART("ndcg@3", **settings, **changed), data, test)

    out = {name: lambdas(rows, **changed) for name, changed in PROTOCOL.items()}
    model = rg.choose_click_model(log).model
    weighed = rg.click_data(log, train, examined=model)
    out["MART, naive"] = mart(rows)
    out["MART, additive"] = mart(rows, position_bias="additive")
    out["MART, examined"] = mart(weighed)
    out["LambdaMART, examined"] = lambdas(weighed)
    out["LightGBM naive"] = _lightgbm_protocol(log, train, test, False)
    out["LightGBM position"] = _lightgbm_protocol(log, train, test, True)
    if not with_bounds:
        return out
    shown, position, seen, attracted = protocol_users(train, seed)

    def part(chosen: np.ndarray, labels: np.ndarray) -> rg.QueryDataset:
        return rg.QueryDataset(train.X[shown[chosen]], labels[chosen], train.qid[shown[chosen]])

    known = (1 - STOP) ** np.arange(position.max())
    everything = np.ones(shown.size, np.bool_)
    bounds = (
        lambdas(rows, position_bias="ips", propensities=known),
        lambdas(part(seen, attracted)),
        mart(part(seen, attracted)),
        lambdas(part(everything, attracted)),
        lambdas(part(everything, train.y[shown])),
    )
    return out | dict(zip(BOUNDS, bounds, strict=True))


def _by_round(model: Any, data: rg.QueryDataset, test: rg.QueryDataset) -> tuple[float, float]:
    model.fit(data, valid=test, valid_measures="ndcg@3")
    (measured,) = model.history_.values()
    (values,) = measured.values()
    return float(values[-1]), float(max(values))


def _lightgbm_protocol(
    log: rg.ClickLog, train: rg.QueryDataset, test: rg.QueryDataset, positions: bool
) -> tuple[float, float]:
    import lightgbm as lgb

    X, clicks, sizes, place = peer_rows_of(log, train)
    settings = {"objective": "lambdarank", "verbose": -1, "min_data_in_leaf": 50, "num_threads": 1}
    settings |= {"min_sum_hessian_in_leaf": 5.0, "bagging_fraction": 0.9, "bagging_freq": 1}
    rows = lgb.Dataset(X, clicks, group=sizes, position=place if positions else None)
    trained = lgb.train(settings, rows, 50)
    values = [
        ndcg(test, np.asarray(trained.predict(test.X, num_iteration=n)), 3) for n in range(1, 51)
    ]
    return values[-1], max(values)


def peer_rows_of(log: rg.ClickLog, data: rg.QueryDataset) -> tuple[np.ndarray, ...]:
    """Return what :func:`peer_rows` does, for a log whose pairs are not the rows of the data."""
    rows = rg.click_data(log, data)
    return rows.X, rows.y.astype(np.int32), np.diff(log.session_ptr), log.position.astype(int) - 1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="web,mq2008,lightgbm")
    parser.add_argument("--seeds", default="1,2,3,4,5")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--cache", help="a folder that keeps figures")
    parser.add_argument("--protocol", type=int, default=0, help="draws of LightGBM's test")
    parser.add_argument("--first", type=int, default=1, help="the first of these draws")
    parser.add_argument("--bounds", action="store_true", help="also learn from what was seen")
    args = parser.parse_args()
    warnings.simplefilter("ignore", rg.DataWarning)
    cache = Cache(args.cache)
    seeds, methods = [int(s) for s in args.seeds.split(",")], tuple(args.methods.split(","))
    for name in filter(None, args.data.split(",")):
        there = [run(name, seed, methods, cache) for seed in seeds]
        if all(there):
            table(name, seeds, methods, cache.values)
        else:
            print(f"{name}: skipped, RANKGROVE_DATA does not name a folder that has it")
    if args.protocol:
        protocol(list(range(args.first, args.first + args.protocol)), args.bounds)


if __name__ == "__main__":
    main()
