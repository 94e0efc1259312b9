"""A small run of every command of an installed rankgrove: ``python -m tools.smoke PYTHON``.

PYTHON is the interpreter of the environment that it is installed in; ``python -m tools.wheel``
makes such an environment. The commands are listed by the program itself, so that a new command
without a step below is an error. They run in an empty folder, with no compiler on the path, and
connections to other machines are refused.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

# Printed by the environment's Python: the full names of all commands, as in "clicks fit".
LISTED = """
import json, typer
from rankgrove.cli.main import app
def names(command, words):
    inner = getattr(command, "commands", None)
    if inner is None:
        return [" ".join(words)]
    return [name for key, one in inner.items() for name in names(one, [*words, key])]
print(json.dumps(names(typer.main.get_command(app), [])))
"""
# Imported by every Python of the smoke test when it starts: there is no other machine.
OFFLINE = """
import socket
_connect = socket.socket.connect
def connect(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"the smoke test is offline, and something connects to {address}")
    return _connect(self, address)
socket.socket.connect = connect
"""


# A search engine's log of two documents, and their judgements.
LOG = {
    "query_id": "q1",
    "response": {"hits": {"hits": [
        {"_id": name, "_score": 0.5, "fields": {"_ltrlog": [{"main": [
            {"name": f"f{k}", "value": value} for k in range(1, 9)
        ]}]}}
        for name, value in (("a", 0.25), ("b", 0.75))
    ]}},
}  # fmt: skip
FILES = {"log.json": json.dumps(LOG) + "\n", "qrels.txt": "q1 0 a 1\nq1 0 b 0\n"}


@dataclass
class Step:
    """A command line, without ``rankgrove``, and what it must do.

    Attributes
    ----------
    words : the command line
    told : a part of what it prints, also as an error
    writes : files that it writes
    status : its exit status
    """

    words: str
    told: str = ""
    writes: Sequence[str] = ()
    status: int = 0


@dataclass
class Place:
    """Where commands run.

    Attributes
    ----------
    python : the environment's interpreter
    folder : the working folder
    kernels : where kernels are kept; None: where they are kept by default
    """

    python: Path
    folder: Path
    kernels: Path | None = None
    variables: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        offline, home = self.folder / "offline", self.folder / "home"
        offline.mkdir(parents=True, exist_ok=True)
        home.mkdir(exist_ok=True)
        (offline / "sitecustomize.py").write_text(OFFLINE)
        for name, text in FILES.items():
            (self.folder / name).write_text(text)
        # nothing of this machine but the environment: no compiler, no checkout, no home folder
        self.variables = {
            "PATH": str(self.python.parent),
            "HOME": str(home),
            "PYTHONPATH": str(offline),
            "CC": "false",
            "CXX": "false",
            "COLUMNS": "100",
            "OMP_WAIT_POLICY": "passive",  # other work may hold the cores
        } | ({"NUMBA_CACHE_DIR": str(self.kernels)} if self.kernels else {})

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment in the working folder."""
        return subprocess.run(
            [*map(str, words)], capture_output=True, text=True, cwd=self.folder,
            env=self.variables, timeout=900,
        )  # fmt: skip

    @property
    def program(self) -> Path:
        """The command ``rankgrove``."""
        return self.python.with_name("rankgrove")


GROW = "--set n_trees=5 --set n_leaves=4 --set min_leaf=2"
DATA = (
    Step("generate artificial --queries 60 --docs 12 --features 8 --seed 1 --out train.txt"),
    Step("generate artificial --queries 40 --docs 12 --features 8 --seed 2 --out vali.txt"),
    Step("generate artificial --queries 40 --docs 12 --features 8 --seed 3 --out test.txt"),
)
# Without any extra.
PLAIN = (
    *DATA,
    Step("params mart", "n_trees = "),
    Step(f"train train.txt --valid vali.txt {GROW} --out web.rg", writes=["web.rg"]),
    Step(f"train train.txt --ranker mart {GROW} --out mart.rg", writes=["mart.rg"]),
    Step("train train.txt --ranker ranksvm --set C=1.0 --out svm.rg", writes=["svm.rg"]),
    Step("rank test.txt --model web.rg --out scores.txt", writes=["scores.txt"]),
    Step("evaluate test.txt -s web.rg -m ndcg@10 -m map", "ndcg@10"),
    Step("compare test.txt -s one=feature:1 -s web.rg -m ndcg@10", "web"),
    Step("explain test.txt web.rg --query 1", "base"),
    Step("combine vali.txt web.rg svm.rg --measure ndcg@10 --out best.rg", writes=["best.rg"]),
    Step("adapt vali.txt --base mart.rg --beta 10 --out new.rg", writes=["new.rg"]),
    Step("prune vali.txt web.rg -m ndcg@10 --tolerance 0.05 --out small.rg", writes=["small.rg"]),
    Step("calibrate vali.txt web.rg --out calibrated.rg", writes=["calibrated.rg"]),
    Step("early-exit vali.txt web.rg --max-loss 0.01 --out fast.rg", writes=["fast.rg"]),
    Step("parity web.rg log.json --engine opensearch-3.1", "not explained", status=1),
    Step("join log.json qrels.txt --out logged.txt", writes=["logged.txt"]),
    Step(f"cv train.txt --folds 3 {GROW}", "ndcg@10"),
    Step("tune train.txt --valid vali.txt --trials 2 --set n_trees=5 --best best.toml", "ndcg@10"),
    Step("survey train.txt --test test.txt --ranker mart --ranker ranksvm", "RankSVM"),
    Step("auto train.txt --fits 10 --out auto.rg", writes=["auto.rg"]),
    Step("convert web.rg web.xml", writes=["web.xml"]),
    Step("convert web.rg web.txt --to lightgbm", writes=["web.txt"]),
    Step("info web.rg auto.rg", "lambdamart"),
    Step("report test.txt -s web.rg -s best.rg --out report.html", writes=["report.html"]),
    Step("compile evaluate", "1/1 evaluate: "),
    Step("reproduce", "pip install ./papers", status=2),
    Step("doctor", "none found"),
    Step("demo --queries 60 --trees 10", "The report, to be opened", ["demo/report.html"]),
    Step("serve web.rg", "pip install 'rankgrove[serve]'", status=2),
    Step(
        "clicks simulate train.txt --system feature:1 --out log.csv",
        "pip install 'rankgrove[tables]'",
        status=2,
    ),
    Step("combine vali.txt web.rg svm.rg --out best.rg --plot a.png", "rankgrove[plot]", status=2),
    Step("convert web.rg web.onnx", "pip install 'rankgrove[formats]'", status=2),
)
EXTRAS = ("tables", "plot", "serve", "formats")
# With these extras; `serve` is tried by `try_service`.
WITH_EXTRAS = (
    *DATA,
    Step(f"train train.txt --valid vali.txt {GROW} --out web.rg", writes=["web.rg"]),
    Step("train train.txt --ranker ranksvm --set C=1.0 --out svm.rg", writes=["svm.rg"]),
    Step("combine vali.txt web.rg svm.rg --out best.rg --plot a.png", writes=["a.png"]),
    Step("convert web.rg web.onnx", writes=["web.onnx"]),
    Step(
        "clicks simulate train.txt --system feature:1 --noise 1 --sessions 2000 --out log.parquet"
    ),
    Step("clicks summary log.parquet", "2,000"),
    Step("clicks convert log.parquet --no-bots --out users.csv", writes=["users.csv"]),
    Step("clicks check log.parquet", "position"),
    Step("clicks fit log.parquet --model position-based", "perplexity"),
    Step("clicks judge log.parquet --out qrels.txt", writes=["qrels.txt"]),
    Step("clicks data log.parquet train.txt --out rows.txt", writes=["rows.txt"]),
    Step("doctor", "none found"),
    Step("demo --queries 60 --trees 10", "The report, to be opened", ["demo/report.html"]),
)


def missing_steps(commands: Sequence[str]) -> list[str]:
    """Return the commands of the program that no step runs."""
    lines = [step.words for step in (*PLAIN, *WITH_EXTRAS)]
    return [
        name for name in commands if not any(f"{line} ".startswith(f"{name} ") for line in lines)
    ]


def commands_of(place: Place) -> list[str]:
    """Return the full names of the commands that the installed program has."""
    done = place.run(place.python, "-c", LISTED)
    if done.returncode:
        raise SystemExit(f"The program does not start:\n{done.stderr}")
    names: list[str] = json.loads(done.stdout)
    return names


def fault_of(place: Place, step: Step) -> str | None:
    """Run a step; return what is wrong, or None."""
    for name in step.writes:
        (place.folder / name).unlink(missing_ok=True)
    done = place.run(place.program, *shlex.split(step.words))
    text = done.stdout + done.stderr
    plain = " ".join(text.split())
    if done.returncode != step.status:
        return f"status {done.returncode} instead of {step.status}: {text.strip()[-2000:]}"
    if "Traceback" in text:
        return text
    if step.told not in plain:
        return f"{step.told!r} is not in its output: {text.strip()[-2000:]}"
    absent = [name for name in step.writes if not (place.folder / name).is_file()]
    return f"it did not write {', '.join(absent)}" if absent else None


def try_service(place: Place, model: str = "web.rg") -> None:
    """Start ``rankgrove serve``, and rank two documents over HTTP."""
    process = subprocess.Popen(
        [place.program, "serve", model, "--port", "0", "--quiet"],
        stdout=subprocess.PIPE, text=True, cwd=place.folder, env=place.variables,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        documents = [
            {"id": name, "features": {"f1": value}} for name, value in (("a", 1), ("b", 9))
        ]
        request = urllib.request.Request(
            f"{address}/rank", json.dumps({"documents": documents}).encode()
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            text = answer.read().decode()
    finally:
        process.terminate()
        process.wait(60)
    if '"a"' not in text or '"b"' not in text:
        raise SystemExit(f"rankgrove serve: it answered {text}")


def run_steps(place: Place, steps: Sequence[Step]) -> None:
    """Run steps in order, with a line and the time for each; end with an error at a fault."""
    for step in steps:
        start = time.perf_counter()
        fault = fault_of(place, step)
        if fault:
            raise SystemExit(f"rankgrove {step.words}\n{fault}")
        print(f"{time.perf_counter() - start:6.1f} s  rankgrove {step.words}", flush=True)


def smoke(place: Place, steps: Sequence[Step]) -> None:
    """Check that no compiler is there and that every command has a step; run the steps."""
    path = place.variables["PATH"].split(os.pathsep)
    compilers = [Path(p, c) for p in path for c in ("cc", "gcc", "clang") if Path(p, c).exists()]
    if compilers:
        raise SystemExit(f"{compilers[0]} is a compiler; the smoke test is to run without one")
    missing = missing_steps(commands_of(place))
    if missing:
        raise SystemExit(f"tools/smoke.py has no step for: {', '.join(missing)}")
    run_steps(place, steps)


def main() -> None:
    """Run the steps for the environment of an interpreter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", type=Path, help="the interpreter of the environment")
    parser.add_argument("--extras", action="store_true", help=f"with {', '.join(EXTRAS)}")
    parser.add_argument("--kernels", type=Path, help="folder of kernels (default: its own)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Place(given.python.absolute(), Path(name), given.kernels)
        smoke(place, WITH_EXTRAS if given.extras else PLAIN)
        if given.extras:
            try_service(place)


if __name__ == "__main__":
    main()
