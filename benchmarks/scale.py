"""Data-parallel training: time and network traffic by number of workers and of features.

    python -m benchmarks.scale [--queries 1000] [--trees 16] [--workers 1,2,3,4] [--features 34,136]

Trains the same model in this process and on workers of one thread each, and checks that all model
files are equal. The time per tree is measured from the second round to the last: starting, reading
and binning are left out. Processor time is that of the driver (including Dask's scheduler, which
runs in the same process) and of the busiest worker; unlike wall time, it is meaningful on a shared
machine, or on one with fewer cores than workers. Bytes are those of the arrays that the driver
receives.
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
from rankgrove.boosting.loop import Callback, Progress

N_FILES = 8


def written(data: rg.QueryDataset, n_features: int, folder: Path) -> list[Path]:
    """Write the first `n_features` features of the data as parquet files."""
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
    train: Callable[[Callback], rg.LambdaMART],
    worker_seconds: Callable[[], list[float]],
    n_rounds: int,
    folder: Path,
) -> bytes:
    """Print time and traffic per tree; return the model file."""
    best = np.full(3, np.inf)
    for _ in range(n_rounds):
        seen: list[list[float]] = []

        def look(progress: Progress, seen: list[list[float]] = seen) -> None:
            if progress.round in (2, progress.rounds):
                clocks = [time.perf_counter(), time.process_time()]
                seen.append([progress.round, *clocks, *worker_seconds()])

        model = train(look)
        n_trees, *taken = np.diff(seen, axis=0)[0].tolist()
        best = np.minimum(best, [taken[0], taken[1], max(taken[2:])])
    wall, driver, worker = 1000 * best / n_trees
    traffic = getattr(model, "traffic_", {"trips": 0, "bytes": 0})
    print(
        f"  {title:26s} {driver:6.1f} ms driver {worker:6.1f} ms worker {wall:6.1f} ms wall"
        f" per tree {traffic['trips'] / model.n_trees:5.1f} trips"
        f" {traffic['bytes'] / model.n_trees / 1e6:6.2f} MB in",
        flush=True,
    )
    model.save(folder / "model.rg")
    return (folder / "model.rg").read_bytes()


def compare(whole: rg.QueryDataset, n_features: int, args: argparse.Namespace) -> None:
    """Train on the first `n_features` features, in this process and on workers."""
    from distributed import Client, LocalCluster

    names = [f"f{j + 1}" for j in range(n_features)]
    data = rg.QueryDataset(whole.X[:, :n_features], whole.y, whole.qid, feature_names=names)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = written(whole, n_features, folder)
        title, n_trees = f"{n_features} features", args.trees
        here = report(
            f"{title}, no cluster",
            lambda look: rg.LambdaMART(n_trees=n_trees, n_threads=1).fit(data, callbacks=look),
            lambda: [0.0],
            args.rounds,
            folder,
        )
        for n_workers in map(int, args.workers.split(",")):
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
                    lambda look, c=client: rg.LambdaMART(n_trees=n_trees).fit_files(
                        files, cluster=c, callbacks=look
                    ),
                    lambda c=client: list(c.run(time.process_time).values()),
                    args.rounds,
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
    args = parser.parse_args()
    whole = rg.make_web(args.queries, seed=1)
    print(f"{whole.n_rows:,} rows, 31 leaves, {args.trees} trees, workers of one thread")
    for n_features in map(int, args.features.split(",")):
        compare(whole, n_features, args)


if __name__ == "__main__":
    main()
