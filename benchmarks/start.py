"""How long the first run takes, and the next ones: ``python -m benchmarks.start [--kernels]``.

Every command runs in a process of its own, first with an empty cache of kernels, then twice with a
full one (the better time counts). ``--kernels`` lists what was compiled, and how long it took.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import rankgrove as rg

_TRACED = """
import atexit, runpy, sys, time
from numba.core import event
stack, rows = [], []
class Listener(event.Listener):
    def on_start(self, _): stack.append([time.process_time(), 0.0])
    def on_end(self, what):
        began, inside = stack.pop()
        seconds = time.process_time() - began
        if stack: stack[-1][1] += seconds
        function = what.data["dispatcher"].py_func
        rows.append((seconds - inside, seconds, len(stack), function, what.data["args"]))
event.register("numba:compile", Listener())
def tell():
    for own, total, depth, function, args in sorted(rows, key=lambda row: -row[1]):
        name = f"{function.__module__}.{function.__qualname__}"
        print(f"{own:7.2f} {total:7.2f}  {'  ' * depth}{name} {str(args)[:60]}")
    print(f"{sum(row[0] for row in rows):7.2f} s in {len(rows)} functions")
atexit.register(tell)
sys.argv = ["rankgrove", *sys.argv[1:]]
runpy.run_module("rankgrove", run_name="__main__")
"""
_PREDICT = """
import numpy as np, rankgrove as rg
model = rg.load("model.rg")
model.predict(np.zeros((10, model.n_features_in_), np.float32))
"""
_REQUEST = """
import subprocess, sys, time, urllib.error, urllib.request
process = subprocess.Popen(
    [sys.executable, "-m", "rankgrove", "serve", "model.rg", "--port", "8797", "--quiet"],
    stdout=subprocess.DEVNULL)
try:
    while True:
        try:
            body = b'{"documents": [{"features": {"f1": 0.5}}, {"features": {"f2": 0.5}}]}'
            urllib.request.urlopen("http://127.0.0.1:8797/rank", body).read()
            break
        except urllib.error.URLError:
            time.sleep(0.02)
finally:
    process.terminate()
    process.wait()
"""
_TRAIN = ["-m", "rankgrove", "train", "train.txt", "--out", "model.rg", "--set", "n_trees=5"]
COMMANDS = {
    "train": [*_TRAIN, "--quiet"],
    "train, one process": [*_TRAIN, "--quiet"],
    "train --valid": [*_TRAIN, "--valid", "valid.txt", "--quiet"],
    "evaluate": ["-m", "rankgrove", "evaluate", "valid.txt", "-s", "model.rg"],
    "rank": ["-m", "rankgrove", "rank", "valid.txt", "--model", "model.rg", "--out", "scores.txt"],
    "load, predict": ["-c", _PREDICT],
    "serve, first answer": ["-c", _REQUEST],
}


def seconds_of(words: list[str], folder: Path, cache: Path, ahead: bool) -> tuple[float, float]:
    """Return the wall and processor seconds of a process and its children."""
    variables = os.environ | {
        "NUMBA_CACHE_DIR": str(cache),
        "RANKGROVE_COMPILE_AHEAD": "1" if ahead else "0",
    }
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=variables, capture_output=True, text=True
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(words[:4])}: {done.stderr}")
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for seed, part in ((1, "train"), (2, "valid")):
            data = rg.make_web(20, n_docs=20, n_features=20, seed=seed)
            rg.write_letor(data, folder / f"{part}.txt")
        if wanted.kernels:
            variables = os.environ | {"NUMBA_CACHE_DIR": str(folder / "kernels")}
            variables["RANKGROVE_COMPILE_AHEAD"] = "0"
            words = [sys.executable, "-c", _TRACED, *_TRAIN[2:]]
            subprocess.run(words, cwd=folder, env=variables, check=True)
            return
        print(
            "| command | cold: wall | processor | warm: wall | processor |\n|---|---|---|---|---|"
        )
        for k, (title, words) in enumerate(COMMANDS.items()):
            cache, ahead = folder / f"cache{k}", "one process" not in title
            cold = seconds_of(words, folder, cache, ahead)
            warm = min(seconds_of(words, folder, cache, ahead) for _ in range(2))
            times = " | ".join(f"{seconds:.1f} s" for seconds in (*cold, *warm))
            print(f"| {title} | {times} |", flush=True)


if __name__ == "__main__":
    main()
