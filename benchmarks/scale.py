"""Data-parallel training: time and traffic by the number of workers and of features.

    python -m benchmarks.scale [--queries 1000] [--trees 16] [--workers 1,2,3,4] [--features 34,136]

Trains the same model in this process and on workers of one thread each, and checks that all model
files are equal. What a tree takes is what all trees take less what a quarter of them takes, over
the difference in trees: starting, reading and binning are left out. Processor time is that of the
driver (Dask's scheduler, which runs beside it, included) and of the busiest worker; unlike the wall
clock it says something also on a machine that others use, or that has fewer cores than workers.
Bytes are those of the arrays that come to the driver.
"""

from __future__ import annotations

import argparse
import logging
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rankgrove as rg

N_FILES = 8


def written(data: rg.QueryDataset, n_features: int, folder: Path) -> list[Path]:
    """Write the data as parquet files, the first so many features of it."""
    import pyarrow
    import pyarrow.parquet

    files = []
    for i, queries in enumerate(np.array_split(np.arange(data.n_queries), N_FILES)):
        part = data.select(queries)
        columns = {f"f{j + 1}": part.X[:, j] for j in range(n_features)}
        table = pyarrow.table({"label": part.y, "qid": part.qid, **columns})
        files.append(folder / f"part{i}.parquet")
        pyarrow.parquet.write_table(table, files[-1])
    return files


def report(
    title: str,
    train: Callable[[int], rg.LambdaMART],
    worker_seconds: Callable[[], list[float]],
    given: argparse.Namespace,
    folder: Path,
) -> bytes:
    """Print what a tree takes; return the model file."""
    few = max(1, given.trees // 4)
    train(few)  # loads the compiled kernels
    best = {few: np.full(3, np.inf), given.trees: np.full(3, np.inf)}
    for _ in range(given.rounds):
        for n in best:
            before = [time.perf_counter(), time.process_time()], worker_seconds()
            model = train(n)
            after = [time.perf_counter(), time.process_time()], worker_seconds()
            busiest = max(b - a for a, b in zip(before[1], after[1], strict=True))
            own = [b - a for a, b in zip(before[0], after[0], strict=True)]
            best[n] = np.minimum(best[n], [*own, busiest])
    wall, driver, worker = 1000 * (best[given.trees] - best[few]) / (given.trees - few)
    traffic = getattr(model, "traffic_", {"trips": 0, "bytes": 0})
    print(
        f"  {title:26s} {driver:6.1f} ms driver {worker:6.1f} ms worker {wall:6.1f} ms wall a tree"
        f" {traffic['trips'] / given.trees:5.1f} trips"
        f" {traffic['bytes'] / given.trees / 1e6:6.2f} MB in",
        flush=True,
    )
    model.save(folder / "model.rg")
    return (folder / "model.rg").read_bytes()


def compare(whole: rg.QueryDataset, n_features: int, given: argparse.Namespace) -> None:
    """Train on the first so many features, here and on workers."""
    from distributed import Client, LocalCluster

    names = [f"f{j + 1}" for j in range(n_features)]
    data = rg.QueryDataset(whole.X[:, :n_features], whole.y, whole.qid, feature_names=names)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = written(whole, n_features, folder)
        title = f"{n_features} features"
        here = report(
            f"{title}, no cluster",
            lambda n: rg.LambdaMART(n_trees=n, n_threads=1).fit(data),
            lambda: [0.0],
            given,
            folder,
        )
        for n_workers in map(int, given.workers.split(",")):
            with (
                LocalCluster(
                    n_workers=n_workers,
                    threads_per_worker=1,
                    dashboard_address="127.0.0.1:0",
                    silence_logs=logging.CRITICAL,
                ) as host,
                Client(host, direct_to_workers=True) as client,
            ):
                there = report(
                    f"{title}, {n_workers} worker{'s' * (n_workers > 1)}",
                    lambda n, c=client: rg.LambdaMART(n_trees=n).fit_files(files, cluster=c),
                    lambda c=client: list(c.run(time.process_time).values()),
                    given,
                    folder,
                )
            assert there == here, "the models differ"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--trees", type=int, default=16)
    parser.add_argument("--workers", default="1,2,3,4")
    parser.add_argument("--features", default="34,136")
    parser.add_argument("--rounds", type=int, default=2)
    given = parser.parse_args()
    whole = rg.make_web(given.queries, seed=1)
    print(f"{whole.n_rows:,} rows, 31 leaves, {given.trees} trees, workers of one thread")
    for n_features in map(int, given.features.split(",")):
        compare(whole, n_features, given)


if __name__ == "__main__":
    main()
