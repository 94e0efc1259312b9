"""How fast LETOR text is read, against scikit-learn and LightGBM, and how much memory it takes.

    python -m benchmarks.reading [--megabytes 300] [--rounds 5] [--threads 2]

The file resembles the large public collections: 136 features in every row, with counts, decimals
and zeros. LightGBM reads the same rows without ``qid`` (its format; query sizes are in a separate
file) in one pass over the text; its time includes finding bins and binning, which cannot be left
out. Runs are interleaved, and the best of each counts.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import rankgrove as rg

N_FEATURES = 136
ROWS_PER_QUERY = 120


def collection(n_rows: int, seed: int = 0) -> rg.QueryDataset:
    """Rows with counts, ratios, scores and zeros, in the proportions of web search data."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n_rows, N_FEATURES), np.float32)
    for j in range(N_FEATURES):
        kind = j % 5
        if kind == 0:
            X[:, j] = rng.geometric(0.05, n_rows) - 1
        elif kind == 1:
            X[:, j] = np.round(rng.random(n_rows), 6)
        elif kind == 2:
            X[:, j] = np.round(rng.gamma(2, 8, n_rows), 6) * (rng.random(n_rows) < 0.5)
        elif kind == 3:
            X[:, j] = -np.round(rng.gamma(3, 6, n_rows), 6)
        elif j % 10 == 9:
            X[:, j] = rng.integers(0, 100_000, n_rows)
    y = rng.integers(0, 5, n_rows)
    return rg.QueryDataset(X, y, 1 + np.arange(n_rows) // ROWS_PER_QUERY)


def write_files(folder: Path, megabytes: float) -> tuple[Path, Path]:
    """Write the collection with ``qid``, and in LightGBM's form."""
    path, plain = folder / "web.txt", folder / "plain.txt"
    rg.write_letor(collection(1000), path, zeros=True)
    n_rows = int(megabytes * 1e6 / path.stat().st_size * 1000)
    data = collection(n_rows)
    rg.write_letor(data, path, zeros=True)
    with open(path, "rb") as source, open(plain, "wb") as target:
        while lines := source.readlines(1 << 24):
            target.writelines(re.sub(rb" qid:[0-9]+", b"", line, count=1) for line in lines)
    sizes = np.diff(data.query_ptr)
    Path(f"{plain}.query").write_text("".join(f"{size}\n" for size in sizes))
    return path, plain


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def peak_bytes() -> int:
    """Return the peak memory of this process, mapped pages included.

    On Linux a child inherits ``ru_maxrss`` from its parent, so VmHWM is preferred.
    """
    status = Path("/proc/self/status")
    match = re.search(r"VmHWM:\s+(\d+)", status.read_text()) if status.exists() else None
    if match:
        return int(match[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measure_memory(path: str, small: str, n_threads: int) -> None:
    """Print the bytes of the arrays, and the peak above that of the imports, in a new process."""
    rg.read_letor(small, n_threads=n_threads)
    before = peak_bytes()
    data = rg.read_letor(path, n_threads=n_threads)
    arrays = data.X.nbytes + data.y.nbytes + data.query_of_row.nbytes + data.query_ptr.nbytes
    print(arrays, peak_bytes() - before)


def compare(path: Path, plain: Path, rounds: int, n_threads: int) -> dict[str, float]:
    """Return the best seconds of each reader."""
    import lightgbm
    from sklearn.datasets import load_svmlight_file

    parameters = {"num_threads": n_threads, "two_round": False, "verbose": -1}
    readers: dict[str, Callable[[], object]] = {
        "rankgrove": lambda: rg.read_letor(path, n_threads=n_threads),
        "rankgrove, 1 thread": lambda: rg.read_letor(path, n_threads=1),
        "LightGBM (and binning)": lambda: lightgbm.Dataset(plain, params=parameters).construct(),
        "rankgrove, from its cache": lambda: rg.read_letor(path, cache=True),
        "scikit-learn": lambda: load_svmlight_file(str(path), query_id=True),
    }
    rg.read_letor(path, cache=True)
    times: dict[str, list[float]] = {name: [] for name in readers}
    for turn in range(rounds):
        for name, reader in readers.items():
            if name != "scikit-learn" or turn < 2:  # it takes minutes
                times[name].append(seconds(reader))
    return {name: min(taken) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--megabytes", type=float, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", nargs=2, metavar=("FILE", "SMALL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        measure_memory(*options.memory, options.threads)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small = folder / "small.txt"
        rg.write_letor(collection(2000), small, zeros=True)
        ready = seconds(lambda: rg.read_letor(small, n_threads=options.threads))
        path, plain = write_files(folder, options.megabytes)
        size = path.stat().st_size
        best = compare(path, plain, options.rounds, options.threads)
        command = [sys.executable, "-m", "benchmarks.reading", "--threads", str(options.threads)]
        command += ["--memory", str(path), str(small)]
        measured = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    arrays, peak = map(int, measured.split())
    print(
        f"{size / 1e6:.0f} MB, {N_FEATURES} features, {options.threads} threads, best of ", end=""
    )
    print(f"{options.rounds}; compiling or loading the kernels took {ready:.1f} s before\n")
    print(f"{'reader':<28}{'seconds':>9}{'MB/s':>8}{'x rankgrove':>13}")
    for reader, taken in best.items():
        ratio = taken / best["rankgrove"]
        print(f"{reader:<28}{taken:>9.3f}{size / 1e6 / taken:>8.0f}{ratio:>13.2f}")
    print(f"\nmemory: arrays {arrays / 1e6:.0f} MB, file {size / 1e6:.0f} MB, ", end="")
    print(f"peak {peak / 1e6:.0f} MB above the imports")
    print(f"peak / (arrays + file) = {peak / (arrays + size):.2f} (mapped pages of the file count)")


if __name__ == "__main__":
    main()
