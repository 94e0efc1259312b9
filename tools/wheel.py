"""Build the wheel and the source distribution, and try the wheel: ``python -m tools.wheel``.

`make wheel` runs this with an interpreter that has hatchling, and nothing else. Everything is built
twice: from this folder, and from the unpacked source distribution, in another folder, with other
times and permissions of files. Both must be the same to the byte. Then the wheel is installed in an
empty environment, and ``tools/smoke.py`` runs every command there.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

from tools import smoke

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "dist"
# Times of files in archives where git has no commit: 2020-02-02, hatchling's own default.
EPOCH = "1580601600"


def epoch(root: Path) -> str:
    """Return SOURCE_DATE_EPOCH: as it is set, else the time of the last commit."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return os.environ["SOURCE_DATE_EPOCH"]
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=root, capture_output=True, text=True
    )
    return done.stdout.strip() or EPOCH


def uncommitted(root: Path) -> bool:
    """Return whether git knows of changes or new files that no commit has."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True)
    return bool(done.stdout)


def build(root: Path, out: Path, when: str) -> list[Path]:
    """Build the wheel and the source distribution of a folder; return the files, sorted."""
    words = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    done = subprocess.run(
        words, cwd=root, env={**os.environ, "SOURCE_DATE_EPOCH": when}, capture_output=True,
        text=True,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"the build in {root} failed:\n{done.stdout}{done.stderr}")
    return sorted(out.glob("rankgrove-*"))


def build_twice(out: Path, when: str) -> list[Path]:
    """Build from this folder into `out`, and again from the unpacked source; compare the bytes."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("rankgrove-*"):
        old.unlink()
    first = build(ROOT, out, when)
    (source,) = [path for path in first if path.name.endswith(".tar.gz")]
    with tempfile.TemporaryDirectory() as name, mask(0o077):
        with tarfile.open(source) as archive:
            archive.extractall(name, filter="data")
        (again,) = Path(name).iterdir()
        for place in again.rglob("*"):
            os.utime(place, (1e9, 1e9))
        second = build(again, Path(name, "dist"), when)
        differing = differences(first, second)
    if differing:
        raise SystemExit(f"two builds differ: {', '.join(differing)}")
    return first


@contextlib.contextmanager
def mask(bits: int) -> Iterator[None]:
    """Create files with fewer permissions in the body."""
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


def differences(first: list[Path], second: list[Path]) -> list[str]:
    """Return the names of files that are not in both lists with the same bytes."""
    one, other = ({path.name: path.read_bytes() for path in paths} for paths in (first, second))
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def install(environment: Path, requirement: str) -> Path:
    """Install a requirement in an environment, which is made if need be; return its Python.

    No compiler is on the path, and packages with code to compile are refused.
    """
    python = environment / "bin" / "python"
    if not python.exists():
        venv.create(environment, with_pip=True, symlinks=True)
    keep = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
         "--only-binary", ":all:", requirement],
        env={**keep, "PATH": str(python.parent), "CC": "false", "CXX": "false"},
        capture_output=True, text=True, cwd=environment,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"pip install {requirement} failed:\n{done.stderr}")
    return python


def main() -> None:
    """Build, compare, install, and run all commands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the files")
    parser.add_argument("--only-build", action="store_true", help="do not install and try them")
    parser.add_argument("--kernels", type=Path, help="folder of compiled kernels to use and fill")
    given = parser.parse_args()
    when = epoch(ROOT)
    if uncommitted(ROOT):
        print("note: there are uncommitted changes, which are in the files too")
    files = build_twice(given.out.absolute(), when)
    print(f"Built twice with SOURCE_DATE_EPOCH={when}; the bytes are the same:")
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}  sha256 {digest}", flush=True)
    if given.only_build:
        return
    (wheel,) = [path for path in files if path.suffix == ".whl"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kernels = given.kernels.absolute() if given.kernels else folder / "kernels"
        for title, steps, extras in (
            ("without extras", smoke.PLAIN, ""),
            (f"with {', '.join(smoke.EXTRAS)}", smoke.WITH_EXTRAS, f"[{','.join(smoke.EXTRAS)}]"),
        ):
            print(f"\nInstalling the wheel {title} ...", flush=True)
            python = install(folder / "environment", f"{wheel}{extras}")
            print("Every command, without a compiler, offline, outside the checkout:", flush=True)
            place = smoke.Place(python, folder / (extras or "plain"), kernels)
            smoke.smoke(place, steps)
            if extras:
                smoke.try_service(place)
                print("          rankgrove serve: ranked two documents over HTTP")
        size = sum(path.stat().st_size for path in (folder / "environment").rglob("rankgrove/**/*"))
        print(f"\n{size / 1e6:.1f} MB installed; every command of the program has run.")


if __name__ == "__main__":
    main()
