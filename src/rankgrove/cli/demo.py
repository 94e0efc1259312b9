"""``rankgrove demo``: the main commands, as a user would type them, on generated data.

Rankers are trained two at a time: in the first run, compiling kernels takes most of the time.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import typer

from rankgrove.errors import RankgroveError
from rankgrove.files import write_atomically

MEASURE = "ndcg@10"
N_FEATURES = 50  # of the artificial data
HALVES = ("first-half", "second-half")  # of the features
AT_ONCE = 2


def demo(
    folder: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("demo"),
    queries: Annotated[int, typer.Option(min=20, help="Number of training queries.")] = 1000,
    trees: Annotated[int, typer.Option(min=5, help="Number of LambdaMART's trees.")] = 200,
) -> None:
    """Train four rankers on artificial data, combine two of them, and write a report."""
    import rankgrove as rg

    folder.mkdir(parents=True, exist_ok=True)
    parts = {"train": queries, "vali": queries // 2, "test": queries // 2}
    typer.echo(f"The papers' artificial data: {queries:,} queries to train on ...")
    for seed, (part, n) in enumerate(parts.items(), 1):
        rg.write_letor(rg.make_artificial(n, seed=seed), folder / f"{part}.txt")
    typer.echo(f"{folder / 'train.txt'}: {rg.read_letor(folder / 'train.txt')!r}\n")

    train = f"train {folder}/train.txt --valid {folder}/vali.txt"
    grow = f"--measure {MEASURE} --set n_trees={trees} --set n_leaves=10"
    half = N_FEATURES // 2
    for name, first in zip(HALVES, (1, half + 1), strict=True):
        numbers = "".join(f"{number}\n" for number in range(first, first + half))
        write_atomically(folder / f"{name}.txt", numbers)
    commands = {
        "lambdamart": f"{train} {grow}",
        **{name: f"{train} {grow} --features {folder}/{name}.txt" for name in HALVES},
        "svm-map": f"{train} --ranker svm-map --set C=[0.01,0.1,1.0]",
    }
    typer.echo(
        "Training four rankers, two at a time. The first run compiles kernels, which takes most of "
        "the time below; they are cached for later runs.\n"
    )
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda name: _run(name, folder, commands[name]), commands))
    members = " ".join(f"{folder}/{name}.rg" for name in HALVES)
    _run("combined", folder, f"combine {folder}/vali.txt {members} --measure {MEASURE}")

    typer.echo(f"\nOn {parts['test']:,} test queries:\n")
    page = folder / "report.html"
    test = rg.read_letor(folder / "test.txt")
    models = {name: rg.load(folder / f"{name}.rg") for name in [*commands, "combined"]}
    comparison = rg.compare(models, test, MEASURE)
    typer.echo(str(comparison))
    typer.echo(f"\n{_combination_text(comparison.mean)}")
    vali = rg.read_letor(folder / "vali.txt")
    report = rg.report(models, test, out=page, valid={"vali": vali}, title="rankgrove demo")
    typer.echo(
        f"\n{report.summary}\n"
        f"\nTry next:\n{_activation()}"
        f"  rankgrove evaluate {folder}/test.txt -s {folder}/combined.rg --convention letor\n"
        f"  rankgrove explain {folder}/test.txt {folder}/lambdamart.rg --query 1\n"
        f"  rankgrove auto {folder}/train.txt --valid {folder}/vali.txt --minutes 5 "
        f"--out {folder}/best.rg\n"
        f"  rankgrove {train} --measure map --set n_trees=100 --out {folder}/map.rg\n"
        f"  rankgrove report {folder}/test.txt -s f16=feature:16 -s {folder}/lambdamart.rg "
        f"-s {folder}/map.rg --out {folder}/map.html\n"
        "  rankgrove --help\n"
        f"\nThe report, to be opened in a browser: {page.resolve()}"
    )


def _combination_text(mean: Mapping[str, float]) -> str:
    """Return a text on whether the combination is better than both members on the test queries."""
    alone = " and ".join(f"{mean[name]:.4f}" for name in HALVES)
    text = (
        f"{' and '.join(HALVES)} use {N_FEATURES // 2} of the {N_FEATURES} features each. They "
        f"reach {alone} alone, and {mean['combined']:.4f} combined with the best weights on "
        "validation data: "
    )
    if mean["combined"] > max(mean[name] for name in HALVES):
        return text + "combining helps where rankers use different features."
    return text + "it did not help here, which can happen with few queries."


def _activation() -> str:
    """Return the line that puts `rankgrove` on the shell's path, if it is not there yet."""
    script = Path(sys.prefix) / "bin" / "activate"
    command = shutil.which("rankgrove")
    if not script.exists() or (command and Path(command).parent == script.parent):
        return ""
    return f"  . {shlex.quote(os.path.relpath(script))}\n"


def _run(name: str, folder: Path, command: str) -> None:
    """Run a rankgrove command in another process, and print its time when it is done."""
    start = time.perf_counter()
    words = [*shlex.split(command), "--out", str(folder / f"{name}.rg")]
    run = "from rankgrove.cli.main import run; run()"
    process = subprocess.run([sys.executable, "-c", run, *words], capture_output=True, text=True)
    if process.returncode:
        raise RankgroveError(f"rankgrove {shlex.join(words)} failed: {process.stderr.strip()}")
    typer.echo(f"{time.perf_counter() - start:5.1f} s  rankgrove {shlex.join(words)}")
