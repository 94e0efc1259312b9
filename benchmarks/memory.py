"""Peak memory and seconds of training from a file, each contender in a process of its own.

``python -m benchmarks.memory --queries 18700 --trees 20`` writes web-like data of 2.25 million rows
of 136 features as LETOR text; ``--rows 10000000 --features 220 --queries 30000`` a parquet file of
random values, block by block. Run it twice: kernels are compiled in the first run. The peak is that
of ``/usr/bin/time -v`` (Maximum resident set size), which counts pages of mapped files.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

CONTENDERS = (
    "in memory",
    "low memory",
    "low memory, bins there",
    "LightGBM two_round",
    "LightGBM",
    "XGBoost",
)
_BLOCK_QUERIES = 500
_BLOCK_ROWS = 50_000


def main() -> None:
    """Run the contenders one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--rows", type=int, help="random values instead of web-like data")
    parser.add_argument("--features", type=int, default=220)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path("memory-benchmark"))
    parser.add_argument("--only", help="some of the contenders, separated by semicolons")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.run:
        run(chosen.run, chosen)
        return
    chosen.folder.mkdir(exist_ok=True)
    if not file_of(chosen).exists():
        command = [sys.executable, "-m", "benchmarks.memory", *sys.argv[1:], "--run", "generate"]
        subprocess.run(command, check=True)
    print("| | peak, MB | seconds in all | to read and bin | to train |")
    print("|---|---|---|---|---|")
    for name in chosen.only.split(";") if chosen.only else CONTENDERS:
        if name == "low memory":
            subprocess.run(["rm", "-rf", f"{file_of(chosen)}.bins"], check=True)
        print(measured(name), flush=True)


def measured(name: str) -> str:
    """Return a row of the table: a contender in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.memory", *sys.argv[1:], "--run", name]
    begin = time.perf_counter()
    done = subprocess.run(
        ["/usr/bin/time", "-v", *command], capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - begin
    if done.returncode:
        return f"| {name} | failed: {done.stderr.strip().splitlines()[0]} |"
    peak = re.search(r"Maximum resident set size \(kbytes\): (\d+)", done.stderr)
    assert peak
    inside = done.stdout.strip().splitlines()[-1]
    return f"| {name} | {int(peak[1]) / 1024:,.0f} | {seconds:.1f} | {inside} |"


def file_of(chosen: argparse.Namespace) -> Path:
    """Return the file of rows."""
    if chosen.rows:
        return Path(chosen.folder, f"random-{chosen.rows}x{chosen.features}.parquet")
    return Path(chosen.folder, f"web-{chosen.queries}.txt")


def run(name: str, chosen: argparse.Namespace) -> None:
    """Train one contender; print the seconds of reading and of training."""
    if name == "generate":
        (random_values if chosen.rows else web_text)(chosen)
        return
    begin = time.perf_counter()
    train = {"LightGBM": lightgbm, "XGBoost": xgboost}.get(name.partition(" ")[0], ours)
    middle = train(name, chosen)
    end = time.perf_counter()
    print(f"{middle - begin:.1f} | {end - middle:.1f}")


def ours(name: str, chosen: argparse.Namespace) -> float:
    """Train LambdaMART in memory, or on bins on disk."""
    import rankgrove as rg

    path = file_of(chosen)
    if name != "in memory":
        data = rg.open_binned(path, n_threads=chosen.threads)
    else:
        data = rg.read_table(path) if chosen.rows else rg.read_letor(path)
    middle = time.perf_counter()
    model = rg.LambdaMART(n_trees=chosen.trees, n_threads=chosen.threads).fit(data)
    model.save(path.with_name(f"{name}.rg"))
    return middle


def lightgbm(name: str, chosen: argparse.Namespace) -> float:
    """Train LightGBM on the text, with the sizes of queries in a file beside it."""
    import lightgbm as lgb

    parameters = {
        "two_round": "two_round" in name,
        "header": False,
        "num_threads": chosen.threads,
        "objective": "lambdarank",
        "num_leaves": 31,
        "verbose": -1,
    }
    path = Path(f"{file_of(chosen)}.lightgbm")
    data = lgb.Dataset(str(path), params=parameters).construct()
    middle = time.perf_counter()
    lgb.train(parameters, data, chosen.trees)
    return middle


def xgboost(name: str, chosen: argparse.Namespace) -> float:
    """Train XGBoost on the same text."""
    import xgboost as xgb

    data = xgb.DMatrix(f"{file_of(chosen)}.lightgbm?format=libsvm", nthread=chosen.threads)
    sizes = [int(line) for line in Path(f"{file_of(chosen)}.lightgbm.query").read_text().split()]
    data.set_group(sizes)
    middle = time.perf_counter()
    parameters = {"objective": "rank:ndcg", "tree_method": "hist", "nthread": chosen.threads}
    xgb.train(parameters, data, chosen.trees)
    return middle


# -- data ------------------------------------------------------------------------------------------


def web_text(chosen: argparse.Namespace) -> None:
    """Write web-like data as LETOR text, and as LightGBM reads it."""
    import numpy as np

    import rankgrove as rg

    data = rg.make_web(chosen.queries, seed=1)
    path = file_of(chosen)
    part = path.with_suffix(".part")
    without_qid = Path(f"{path}.lightgbm")
    with part.open("wb") as out, without_qid.open("wb") as other:
        for first in range(0, data.n_queries, _BLOCK_QUERIES):
            piece = path.with_suffix(".piece")
            last = min(first + _BLOCK_QUERIES, data.n_queries)
            rg.write_letor(data.select(np.arange(first, last)), piece)
            text = piece.read_bytes()
            out.write(text)
            other.write(re.sub(rb" qid:\d+", b"", re.sub(rb" #.*", b"", text)))
            piece.unlink()
    sizes = np.diff(data.query_ptr).tolist()
    Path(f"{without_qid}.query").write_text("".join(f"{size}\n" for size in sizes))
    part.rename(path)


def random_values(chosen: argparse.Namespace) -> None:
    """Write a parquet file of random values, of which some say something about the label."""
    import numpy as np
    import pyarrow
    import pyarrow.parquet

    path = file_of(chosen)
    part = path.with_suffix(".part")
    writer = None
    names = [f"f{j + 1}" for j in range(chosen.features)]
    for first in range(0, chosen.rows, _BLOCK_ROWS):
        rng = np.random.default_rng([1, first])
        n = min(_BLOCK_ROWS, chosen.rows - first)
        values = rng.standard_normal((chosen.features, n), np.float32)
        signal = values[:10].sum(axis=0) + 3 * rng.standard_normal(n, np.float32)
        columns = {
            "label": np.clip(np.floor(signal / 2), 0, 4),
            "qid": (np.arange(first, first + n) * chosen.queries) // chosen.rows,
            **dict(zip(names, values, strict=True)),
        }
        table = pyarrow.table(columns)
        if writer is None:
            writer = pyarrow.parquet.ParquetWriter(
                part, table.schema, use_dictionary=False, compression="none"
            )
        writer.write_table(table)
    assert writer is not None
    writer.close()
    part.rename(path)


if __name__ == "__main__":
    main()
