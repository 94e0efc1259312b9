"""Fuzzing with damaged and hostile files: ``python -m tools.damage --cases 100000``.

One small file of every kind is made (`make_subjects`), and changed again and again in one place or
a few: bytes, entries of zips, headers of arrays, arrays, JSON values, tokens of text. If a kind of
file has checksums, they are wrong after a blind change, and right after a crafted one. Then the
file is used as a user would use it. It may be refused with a RankgroveError, or give the same
result as before; crafted changes, and text, may also give another result. Everything else is a
fault:

- leaked: an error that is not a RankgroveError;
- unnoticed: a blind change of a file with checksums that gives another result;
- unnamed: a RankgroveError that does not name the file;
- absurd: scores that are not finite, or not one per row;
- endless: more than `SECONDS`;
- killed: the process died. Cases run in forked processes, so that this one continues.

A case is identified by kind, seed and number: ``--kind model:bag --only 17`` repeats one, with its
traceback. Nothing else is random.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

from tools.damaging import Change, blind_changes, crafted_changes, text_changes
from tools.damaging_subjects import Absurd, Subject, make_subjects

SECONDS = 20
MEMORY = 6 << 30  # bytes of address space beyond this process's: exposes trust in a false shape
FAULTS = ("leaked", "unnoticed", "unnamed", "absurd", "endless", "killed")


class Endless(BaseException):
    """A case took too long; not an Exception, so that nothing catches it."""


def run_case(subject: Subject, seed: int, case: int, folder: Path) -> tuple[str, str]:
    """Return the outcome of one case, and a description."""
    from rankgrove.errors import RankgroveError

    rng = random.Random(f"{seed} {subject.name} {case}")
    change = rng.choice(changes_of(subject))
    blob = change.apply(subject.blob, rng)
    if blob == subject.blob:
        return "unchanged", change.name
    path = folder / f"case{subject.suffix}"
    path.write_bytes(blob)
    try:
        result = subject.use(path)
    except RankgroveError as error:
        # a model may also be refused later, when it is used on data
        named = path.name in str(error) or not (subject.is_text or subject.is_table)
        return ("refused", change.name) if named else ("unnamed", str(error)[:200])
    except Absurd as error:
        return "absurd", f"{change.name}: {error}"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(where.filename).name}:{where.lineno}"
        return "leaked", f"{change.name}: {type(error).__name__}: {str(error)[:120]} ({place})"
    if result == subject.result:
        return "same", change.name
    return ("unnoticed" if subject.has_checksums and change.is_blind else "changed"), change.name


def changes_of(subject: Subject) -> list[Change]:
    """Return the kinds of changes for a kind of file."""
    if subject.is_text:
        return [*blind_changes(zipped=False), *text_changes()]
    return [*blind_changes(subject.is_model), *(crafted_changes() if subject.is_model else [])]


def run_cases(subject: Subject, seed: int, cases: range, folder: Path) -> list[tuple[str, str]]:
    """Return the outcomes of the given cases, which run in forked processes."""
    outcomes: list[tuple[str, str]] = []
    while len(outcomes) < len(cases):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _work(subject, seed, cases[len(outcomes) :], folder, write)
        os.close(write)
        with os.fdopen(read) as lines:
            outcomes += [tuple(json.loads(line)) for line in lines if line.endswith("\n")]
        _, status = os.waitpid(child, 0)
        if status:
            outcomes.append(("killed", f"case {cases[len(outcomes)]}, status {status}"))
    return outcomes


def _work(subject: Subject, seed: int, cases: range, folder: Path, write: int) -> None:
    """Run cases in a forked process, and exit."""
    signal.signal(signal.SIGALRM, _end_case)
    addresses = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (addresses + MEMORY, addresses + MEMORY))
    warnings.simplefilter("ignore")
    # output of a crash or a kernel would clutter the table
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    for case in cases:
        signal.alarm(SECONDS)
        try:
            outcome = run_case(subject, seed, case, folder)
        except Endless:
            outcome = "endless", ""
        signal.alarm(0)
        os.write(write, (json.dumps(outcome) + "\n").encode())
    os._exit(0)


def _end_case(*_: object) -> None:
    raise Endless


def main() -> int:
    """Run cases of all or of some kinds, and print their outcomes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", type=int, default=10_000, help="number of cases in total")
    parser.add_argument("--kind", action="append", help="only kinds with this prefix")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="run this case of one kind, with its traceback")
    options = parser.parse_args()
    os.environ.setdefault("NUMBA_THREADING_LAYER", "workqueue")  # others do not survive a fork
    wanted = tuple(options.kind or [""])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subjects = make_subjects(folder, wanted)
        if options.only is not None:
            return _repeat(subjects[0], options.seed, options.only, folder)
        return _table(subjects, options.seed, options.cases // len(subjects), folder)


def _repeat(subject: Subject, seed: int, case: int, folder: Path) -> int:
    rng = random.Random(f"{seed} {subject.name} {case}")
    change = rng.choice(changes_of(subject))
    path = folder / f"case{subject.suffix}"
    path.write_bytes(change.apply(subject.blob, rng))
    print(f"{subject.name}, case {case}: {change.name}, {path.stat().st_size} bytes")
    subject.use(path)
    return 0


def _table(subjects: list[Subject], seed: int, n_each: int, folder: Path) -> int:
    total: Counter[str] = Counter()
    for subject in subjects:
        begin = time.monotonic()
        outcomes = run_cases(subject, seed, range(n_each), folder)
        counts = Counter(outcome for outcome, _ in outcomes)
        total += counts
        summary = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(counts.items()))
        print(f"{subject.name:<28} {summary} ({time.monotonic() - begin:.0f} s)", flush=True)
        seen: Counter[str] = Counter()
        for case, (outcome, description) in enumerate(outcomes):
            if outcome in FAULTS:
                seen[f"{outcome}: {description}"] += 1
                if seen[f"{outcome}: {description}"] == 1 and len(seen) <= 12:
                    print(f"    case {case}: {outcome}: {description}", flush=True)
    summary = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(total.items()))
    print(f"{total.total():,} cases: {summary}")
    return int(any(total[fault] for fault in FAULTS))


if __name__ == "__main__":
    sys.exit(main())
