"""How good are the tests? ``python -m tools.mutation``: change the code, see whether a test fails.

A mutant is the sources with one operator, comparison, constant or bound changed. Every mutant of a
sample is tried in a copy of the sources: the test files of its package (`TESTS`) run until one
test fails. Mutants that no test notices are listed; each is either no change of behaviour or a
missing test. Results are appended to a file, so that an interrupted run continues where it stopped.

Where `PLAIN` names tests, they run first, with kernels as plain Python: nothing is compiled, and
most mutants are killed there. (An index past an array's end is an error in plain Python, and
counts.) Survivors, and all other mutants, run compiled, as users run them: a mutant reuses the
compiled kernels of all files that do not depend on the changed one, and compiles the rest.

A mutant's limit is processor time, not wall time, so that a busy machine changes no result; one
that exceeds it (it may loop forever) counts as killed. Every mutant is a fork of this process,
which has imported the large packages. Existing mutation tools are not used: they do not know that
compiled kernels contain code of other files.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "mutation"
SECONDS = 240  # of processor time; the slowest tests need about 60 with all kernels to compile

# The tests of a file (package/stem) or of a whole package, the quickest first.
_LAMBDAS = ["objectives/test_normalised_lambdas.py", "objectives/test_lambdas.py"]
_CLASSICAL = ["rankers/test_classical.py"]
TESTS = {
    "objectives": _LAMBDAS,
    "objectives/pair_index": ["objectives/test_crr.py"],
    "objectives/_crr_kernels": ["objectives/test_crr.py"],
    "objectives/smooth": ["objectives/test_smooth.py"],
    "objectives/_smooth_kernels": ["objectives/test_smooth.py"],
    "objectives/pointwise": ["objectives/test_pointwise.py", "rankers/test_mart.py"],
    "objectives/_pointwise_kernels": ["objectives/test_pointwise.py", "rankers/test_mart.py"],
    "objectives/classes": ["objectives/test_pointwise.py", "rankers/test_mcrank.py"],
    "objectives/preference_pairs": [
        "objectives/test_preference_pairs.py", "rankers/test_preferences.py",
    ],
    "objectives/_preference_kernels": ["objectives/test_preference_pairs.py"],
    "objectives/gradient_check": ["objectives/test_gradient_check.py"],
    "objectives/label_pairs": _CLASSICAL,
    "objectives/_label_pair_kernels": _CLASSICAL,
    "measures": ["measures/test_all_small_lists.py", "measures/test_measures.py"],
    "sweep": ["sweep/test_points.py", "sweep/test_sweep.py", "combine/test_combining.py"],
    "svm": [
        "svm/test_simplex_qp.py", "svm/test_discriminant.py", "svm/test_oracles.py",
        "svm/test_pair_oracle.py", "svm/test_cutting_plane.py",
    ],
    "adapt": ["adapt/test_adapted_trees.py", "rankers/test_trada.py"],
    "bagging": ["bagging/test_aggregate.py", "rankers/test_bagged.py"],
}  # fmt: skip
# Tests on small data that also run in plain Python, and their limit in seconds.
PLAIN = {
    "measures": [
        "tests/measures/test_all_small_lists.py", "-k",
        "(test_values and 4) or (test_expectation and 3) or (test_swap and 4) or (worst and 4)",
    ],
    "sweep": ["tests/sweep/test_sweep.py", "-k", "brute_force and stable"],
    "svm": ["tests/svm/test_oracles.py", "tests/svm/test_simplex_qp.py", "-k",
            "brute_force or positions or loss_is or known or groups"],
}  # fmt: skip
PLAIN_SECONDS = 60
PACKAGES = [name for name in TESTS if "/" not in name]

OPERATORS = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"),
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
OTHER_CALL = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum",
              "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: `before` at an offset of a file becomes `after`."""

    package: str
    file: str  # below src/rankgrove
    line: int
    offset: int
    before: str
    after: str
    digest: str  # of the whole file, so that results of other versions are not used

    def applied(self, text: str) -> str:
        """Return the source text with the change applied."""
        end = self.offset + len(self.before)
        assert text[self.offset : end] == self.before
        return text[: self.offset] + self.after + text[end:]

    def shown(self, text: str) -> str:
        """Return ``file:line  before -> after`` with the whole lines."""
        old = text.splitlines()[self.line - 1].strip()
        new = self.applied(text).splitlines()[self.line - 1].strip()
        return f"{self.file}:{self.line}  {old}  ->  {new}"


# -- the mutants of a text ------------------------------------------------------------------------


def changes(text: str) -> list[tuple[int, str, str]]:
    """Return (offset, before, after) of all mutants of a source text."""
    lines = [0]
    for line in text.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    if not text.isascii():  # columns count bytes
        text = re.sub(r"[^\x00-\x7f]", "?", text)
        assert len(text) == lines[-1]
    out: list[tuple[int, str, str]] = []
    for node in _code(ast.parse(text)):
        out += _changes_of(node, text, lines)
    return sorted(set(out))


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all nodes that run: no decorators, annotations, messages, docstrings, __all__."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("decorator_list", "annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(
                child, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom
            ):
                yield from _code(child)


def _changes_of(node: ast.AST, text: str, lines: list[int]) -> list[tuple[int, str, str]]:
    def begin(x: ast.AST) -> int:
        return lines[x.lineno - 1] + x.col_offset  # type: ignore[attr-defined]

    def end(x: ast.AST) -> int:
        return lines[x.end_lineno - 1] + x.end_col_offset  # type: ignore[attr-defined]

    def swapped(left: ast.AST, op: ast.AST, right: ast.AST) -> list[tuple[int, str, str]]:
        before, after = OPERATORS[type(op)]
        return [(text.index(before, end(left), begin(right)), before, after)]

    def less_one(x: ast.expr) -> list[tuple[int, str, str]]:
        before = text[begin(x) : end(x)]
        return [(begin(x), before, f"({before} - 1)")]

    match node:
        case ast.BinOp() if type(node.op) in OPERATORS:
            return swapped(node.left, node.op, node.right)
        case ast.AugAssign() if type(node.op) in OPERATORS:
            return swapped(node.target, node.op, node.value)
        case ast.BoolOp():
            both = zip(node.values, node.values[1:], strict=False)
            return [change for a, b in both for change in swapped(a, node.op, b)]
        case ast.Compare():
            parts = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
            return [change for a, op, b in parts for change in swapped(a, op, b)]
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            before = text[begin(node) : begin(node.operand)]
            return [(begin(node), before, "")] if "(" not in before else []
        case ast.Constant(value=bool() | int() | float() as value):
            after = repr(not value if isinstance(value, bool) else value + 1)
            return [(begin(node), text[begin(node) : end(node)], after)]
        case ast.Call(func=ast.Name(id="range"), args=args) if args:
            last = args[min(len(args), 2) - 1]
            return [] if isinstance(last, ast.Constant | ast.Starred) else less_one(last)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in OTHER_CALL:
            return [(end(node.func) - len(name), name, OTHER_CALL[name])]
        case ast.Slice(upper=ast.expr() as upper) if not isinstance(upper, ast.Constant):
            return less_one(upper)
    return []


def mutants_of(package: str, root: Path = ROOT) -> list[Mutant]:
    """Return all mutants of a package, by file and place."""
    source = root / "src" / "rankgrove"
    out = []
    for path in sorted((source / package).rglob("*.py")):
        text = path.read_text()
        digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        name = path.relative_to(source).as_posix()
        for offset, before, after in changes(text):
            line = text.count("\n", 0, offset) + 1
            out.append(Mutant(package, name, line, offset, before, after, digest))
    return out


def sample(package: str, size: int | None, seed: int) -> list[Mutant]:
    """Return a sample; a larger sample begins with the smaller one."""
    mutants = mutants_of(package)
    random.Random(f"{seed} {package}").shuffle(mutants)
    return mutants[:size]


# -- running tests --------------------------------------------------------------------------------


@cache
def dependent_kernels(file: str) -> tuple[str, ...]:
    """Return the kernel files that import a file, directly or not, and itself."""
    source = WORK / "src" / "rankgrove"
    uses = {}
    for path in source.rglob("_*.py"):
        names = re.findall(r"^from rankgrove\.([\w.]+) import", path.read_text(), re.MULTILINE)
        uses[path.relative_to(source).as_posix()] = {f"{n.replace('.', '/')}.py" for n in names}
    reached = {file}
    while more := {name for name, used in uses.items() if used & reached} - reached:
        reached |= more
    return tuple(sorted(reached))


def prepare() -> Path:
    """Copy sources and tests; return the folder of compiled kernels, of exactly these sources."""
    WORK.mkdir(parents=True, exist_ok=True)
    for name in ("src", "tests", "tools"):
        shutil.rmtree(WORK / name, ignore_errors=True)
        shutil.copytree(ROOT / name, WORK / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", WORK)
    # Hypothesis must not spend time on shrinking a failing example.
    (WORK / "mutation_profile.py").write_text(
        "from hypothesis import Phase, settings\n"
        "settings.register_profile('mutation', deadline=None, database=None,\n"
        "    phases=[Phase.explicit, Phase.generate])\n"
    )
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted((WORK / "src").rglob("_*.py")):
        digest.update(path.read_bytes())
    kernels = WORK / f"kernels-{digest.hexdigest()}"
    kernels.mkdir(exist_ok=True)
    return kernels


def tests_of(file: str) -> list[str]:
    """Return the test files for a source file."""
    return [
        f"tests/{name}" for name in TESTS.get(file.removesuffix(".py"), TESTS[Path(file).parts[0]])
    ]


def run_tests(tests: list[str], kernels: Path | None, seconds: int) -> tuple[str, float, str]:
    """Run tests in a fork; return "passed", "failed" or "time", seconds and the first failure.

    kernels : the folder of compiled kernels; None: plain Python
    """
    log = WORK / "log.txt"
    child = os.fork()
    if child == 0:
        _be_pytest(tests, kernels, seconds, log)
    began = time.monotonic()
    done = 0
    try:
        while not done:
            time.sleep(0.05)
            if time.monotonic() - began > 100 * seconds:  # it sleeps
                os.kill(child, signal.SIGKILL)
            done, status, used = os.wait4(child, os.WNOHANG)
    finally:
        if not done:  # this process is being ended
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    spent = used.ru_utime + used.ru_stime
    text = log.read_text(errors="replace")
    first = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.MULTILINE)
    if os.WIFSIGNALED(status):
        return (
            ("time" if spent >= seconds - 1 else "failed"),
            spent,
            f"signal {os.WTERMSIG(status)}",
        )
    code = os.WEXITSTATUS(status)
    return ("passed" if code == 0 else "failed"), spent, first[1] if first else f"exit code {code}"


def _be_pytest(tests: list[str], kernels: Path | None, seconds: int, log: Path) -> None:
    """Become the process of one mutant; never return."""
    import numba

    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(out, stream)
    os.chdir(WORK)
    if kernels is None:
        numba.config.DISABLE_JIT, os.environ["NUMBA_DISABLE_JIT"] = 1, "1"
        tests = [*tests, "-W", "ignore::RuntimeWarning"]  # hashes overflow, as they should
    else:
        numba.config.CACHE_DIR = os.environ["NUMBA_CACHE_DIR"] = str(kernels)
    os.environ["PYTHONPATH"] = f"{WORK / 'src'}"
    sys.path[:] = [str(WORK), str(WORK / "src")] + [p for p in sys.path if p not in ("", str(ROOT))]
    sys.dont_write_bytecode = True
    import pytest

    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "mutation_profile"]
    options += ["--hypothesis-profile=mutation", "--hypothesis-seed=0"]
    code = pytest.main([*options, *tests])
    sys.stdout.flush()
    os._exit(int(code))


def try_mutant(mutant: Mutant, kernels: Path | None, seconds: int) -> tuple[str, float, str]:
    """Return the outcome ("killed", "time" or "survived"), processor time and first failure.

    kernels : the compiled kernels of the unchanged sources; None: the tests in plain Python
    """
    path = WORK / "src" / "rankgrove" / mutant.file
    original, stamp = path.read_text(), path.stat()
    tests, mutant_kernels = PLAIN.get(mutant.package, []), None
    if kernels is not None:
        tests, mutant_kernels = tests_of(mutant.file), WORK / "kernels-of-mutant"
        shutil.rmtree(mutant_kernels, ignore_errors=True)
        shutil.copytree(kernels, mutant_kernels)
        for file in dependent_kernels(mutant.file):
            folder, stem = Path(file).parent.name or "rankgrove", Path(file).stem
            for entry in mutant_kernels.glob(f"{folder}_*/{stem}.*"):
                entry.unlink()
    try:
        path.write_text(mutant.applied(original))
        outcome, spent, first = run_tests(tests, mutant_kernels, seconds)
    finally:
        path.write_text(original)
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    return {"passed": "survived", "failed": "killed"}.get(outcome, outcome), spent, first


# -- the run --------------------------------------------------------------------------------------


def known(results: Path) -> dict[Mutant, str]:
    """Return the last outcome of every mutant tried so far."""
    out = {}
    for line in results.read_text().splitlines() if results.exists() else []:
        record = json.loads(line)
        fields = {name: record[name] for name in Mutant.__dataclass_fields__}
        out[Mutant(**fields)] = record["outcome"]
    return out


def table(chosen: dict[str, list[Mutant]], outcomes: dict[Mutant, str]) -> str:
    """Return the table of scores, and the survivors."""
    rows = ["| package | mutants | killed | survived | score |", "|---|---|---|---|---|"]
    survivors = []
    total = [0, 0]
    for package, mutants in chosen.items():
        tried = [mutant for mutant in mutants if mutant in outcomes]
        alive = [mutant for mutant in tried if outcomes[mutant] == "survived"]
        survivors += alive
        total[0] += len(tried)
        total[1] += len(alive)
        rows.append(_row(package, len(tried), len(alive)))
    rows.append(_row("all", *total))
    for mutant in sorted(survivors, key=lambda m: (m.file, m.offset)):
        text = (ROOT / "src" / "rankgrove" / mutant.file).read_text()
        rows.append(mutant.shown(text))
    return "\n".join(rows)


def _row(name: str, tried: int, alive: int) -> str:
    score = f"{(tried - alive) / tried:.0%}" if tried else "-"
    return f"| {name} | {tried} | {tried - alive} | {alive} | {score} |"


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=__doc__)
    parser.add_argument("--package", action="append", choices=PACKAGES, help="default: all")
    parser.add_argument("--sample", type=int, default=25, help="mutants per package; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="processor time per mutant")
    parser.add_argument("--results", type=Path, default=WORK / "results.jsonl")
    parser.add_argument(
        "--again", action="store_true", help="try survivors again (with newer tests)"
    )
    parser.add_argument("--show", action="store_true", help="only print the table of known results")
    return parser.parse_args()


def check_unchanged(tests: list[str], kernels: Path | None, seconds: int) -> None:
    """Run tests on the sources as they are: they must pass, and they fill the folder of kernels."""
    outcome, spent, first = run_tests(tests, kernels, seconds)
    print(f"unchanged: {outcome}, {spent:.0f} s, {' '.join(tests)}", flush=True)
    if outcome != "passed":
        raise SystemExit(f"The tests fail on the unchanged sources: {first}")


def run(mutants: list[Mutant], outcomes: dict[Mutant, str], options: argparse.Namespace) -> None:
    """Try mutants of one package, in plain Python first, and record the outcomes."""
    if not mutants:
        return
    kernels = prepare()
    plain = PLAIN.get(mutants[0].package)
    if plain is not None:
        check_unchanged(plain, None, PLAIN_SECONDS)
        for mutant in mutants:
            outcome, spent, first = try_mutant(mutant, None, PLAIN_SECONDS)
            if outcome == "killed":
                write_down(mutant, outcome, spent, f"plain: {first}", outcomes, options.results)
        mutants = [mutant for mutant in mutants if outcomes.get(mutant) != "killed"]
    for tests in sorted({tuple(tests_of(mutant.file)) for mutant in mutants}):
        check_unchanged(list(tests), kernels, 10 * options.seconds)
    for mutant in mutants:
        write_down(mutant, *try_mutant(mutant, kernels, options.seconds), outcomes, options.results)


def write_down(
    mutant: Mutant,
    outcome: str,
    spent: float,
    first: str,
    outcomes: dict[Mutant, str],
    results: Path,
) -> None:
    """Append a mutant's outcome to the results, and print it."""
    outcomes[mutant] = outcome
    record = asdict(mutant) | {"outcome": outcome, "seconds": round(spent, 1), "first": first}
    with results.open("a") as file:
        file.write(json.dumps(record) + "\n")
    shown = mutant.shown((ROOT / "src" / "rankgrove" / mutant.file).read_text())
    print(f"{outcome:8} {spent:4.0f} s  {shown}  {first}", flush=True)


def main() -> None:
    """Try the mutants of the command line's sample, and print the table."""
    options = parsed()
    chosen = {
        name: sample(name, options.sample or None, options.seed)
        for name in options.package or PACKAGES
    }
    outcomes = known(options.results)
    if not options.show:
        import numba  # noqa: F401
        import scipy.optimize  # noqa: F401
        import sklearn.model_selection  # noqa: F401

        signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
        options.results.parent.mkdir(parents=True, exist_ok=True)
        wanted = {None, "survived"} if options.again else {None}
        for mutants in chosen.values():
            run([mutant for mutant in mutants if outcomes.get(mutant) in wanted], outcomes, options)
    print(table(chosen, outcomes))


if __name__ == "__main__":
    main()
