"""Runs what `rankgrove compile` is for, and prints which kernels each step had to compile.

``python -m tests.cli.after_compiling FOLDER [EXTRA]...``; the cache is that of NUMBA_CACHE_DIR.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import rankgrove as rg
from rankgrove.growth import regions
from rankgrove.kernel_cache import kernel_files
from tests.command import run_here

TREES = ("--set", "n_trees=3", "--out")
LOW = "--low-memory"


class Free:
    """Prices of parallel regions on a machine where they always pay."""

    price = 0.0

    def trial(self) -> bool:
        return True

    def note(self, took: float, work: float) -> None: ...


def train(*words: str) -> None:
    run_here("train", *words[:-1], *TREES, words[-1], "--quiet")


def large(*words: str) -> None:
    before, regions.prices = regions.prices, Free()
    try:
        train(*words)
    finally:
        regions.prices = before


def in_python() -> None:
    for name, width in (("m.rg", 136), ("cat.rg", 3)):
        model = rg.load(name)
        for kind in (np.float32, np.float64):
            for n_rows in (1, 300, 30_000):
                model.predict(np.zeros((n_rows, width), kind))


def served() -> None:
    from rankgrove.serving.app import Service
    from tests.serving.asgi import Client

    files = {"m": Path("m.rg"), "cat": Path("cat.rg")}
    with Client(Service(files, watch=0).app()) as client:
        for name, width, n_rows in (("m", 136, 9), ("m", 136, 900), ("cat", 3, 9), ("cat", 3, 900)):
            rows = [{"id": str(i), "features": [0.0] * width} for i in range(n_rows)]
            answer = client.post(f"/models/{name}/rank", json.dumps({"documents": rows}).encode())
            assert answer.status_code == 200, answer.text


STEPS = {
    "train": lambda: train("tr.txt", "m.rg"),
    "with validation data": lambda: train(
        "tr.txt", "--valid", "va.txt", "--set", "early_stopping=2", "v.rg"
    ),
    "low memory": lambda: train("tr.txt", "--valid", "va.txt", LOW, "l.rg"),
    "held out": lambda: train("tr.txt", "--valid-share", "0.3", "h.rg"),
    "missing values": lambda: train("tr.txt", "--absent", "missing", "--valid", "va.txt", "n.rg"),
    "sparse": lambda: train("sp.txt", "--valid", "sp.txt", "s.rg"),
    "sparse, low memory": lambda: train("sp.txt", "--valid", "sp.txt", LOW, "s.rg"),
    "table": lambda: train("tr.parquet", "--weight", "w", "--valid", "va.parquet", "cat.rg"),
    "table, low memory": lambda: train(
        "tr.parquet", "--weight", "w", "--valid", "va.parquet", LOW, "cat.rg"
    ),
    "csv, low memory": lambda: train("tr.csv", LOW, "c.rg"),
    "bag": lambda: train("tr.txt", "--models", "2", "b.rg"),
    "bag, low memory": lambda: train("tr.txt", "--models", "2", LOW, "b.rg"),
    "large": lambda: large("big.txt", "g.rg"),
    "large, low memory": lambda: large("big.txt", LOW, "g.rg"),
    "large, with validation data": lambda: large("big.txt", "--valid", "big.txt", "g.rg"),
    "large table": lambda: large("big.parquet", "--weight", "w", "--valid", "va.parquet", "gc.rg"),
    "evaluate": lambda: run_here("evaluate", "va.txt", "-s", "m.rg"),
    "evaluate a feature": lambda: run_here("evaluate", "va.txt", "-s", "feature:3"),
    "evaluate a table": lambda: run_here("evaluate", "va.parquet", "-s", "cat.rg"),
    "evaluate a bag": lambda: run_here("evaluate", "va.txt", "-s", "b.rg"),
    "compare": lambda: run_here("compare", "va.txt", "-s", "m.rg", "-s", "feature:3"),
    "rank": lambda: run_here("rank", "va.txt", "--model", "m.rg", "--out", "scores.txt"),
    "rank a table": lambda: run_here("rank", "va.parquet", "--model", "cat.rg"),
    "predict": in_python,
    "serve": served,
}
EXTRAS = {
    "map": lambda: train("tr.txt", "--valid", "va.txt", "--measure", "map", "map.rg"),
    "explain": lambda: run_here("explain", "va.txt", "m.rg", "--query", "1"),
    "combine": lambda: rg.optimal_combination(
        rg.load("m.rg"), rg.load("v.rg"), rg.read_letor("va.txt"), "ndcg@10"
    ),
}


def write_data() -> None:
    for name, seed in (("tr", 1), ("va", 2)):
        rg.write_letor(rg.make_web(20, n_docs=20, seed=seed), f"{name}.txt")
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 200)) * (rng.random((400, 200)) < 0.03)
    rg.write_letor(rg.QueryDataset(X, (X[:, 0] > 0) * 1.0, np.arange(400) // 20), "sp.txt")
    n = 20_000
    few = rng.integers(0, [2, 3, 2, 4, 2, 2, 3, 2, 2, 2, 2, 2], (n, 12))
    X = np.column_stack([rng.normal(size=(n, 8)), few])
    rg.write_letor(rg.QueryDataset(X, few[:, 1] * 1.0, np.arange(n) // 40), "big.txt")
    import pandas

    for name, n in (("tr", 800), ("va", 400), ("big", 20_000)):
        table = pandas.DataFrame({"qid": np.arange(n) // 20, "label": rng.integers(0, 3, n)})
        table["x"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
        table["brand"] = rng.choice(["a", "b", "c", "d", "e"], n)
        table["z"] = rng.normal(size=n) + table["label"] * (table["brand"] < "c")
        table["w"] = rng.random(n) + 0.5
        table.to_parquet(f"{name}.parquet")
        table.to_csv(f"{name}.csv", index=False)


def names() -> set[str]:
    return {path.name for path, _ in kernel_files()}


def main(folder: str, *extras: str) -> None:
    import os

    os.chdir(folder)
    if not Path("tr.txt").exists():
        write_data()
    known = names()
    for name, step in (STEPS | {name: EXTRAS[name] for name in extras}).items():
        step()
        now = names()
        print(f"{name}: {', '.join(sorted(now - known))}", flush=True)
        known = now


if __name__ == "__main__":
    main(*sys.argv[1:])
