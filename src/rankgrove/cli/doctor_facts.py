"""What ``rankgrove doctor`` tells: collected so that nothing broken keeps the rest from being told.

The values are numbers, texts, True, False or None. Problems are sentences with a remedy.
"""

from __future__ import annotations

import os
import platform
import re
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from rankgrove._version import __version__
from rankgrove.errors import RankgroveError

Facts = dict[str, Any]

# As in pyproject.toml, which an installed package does not have; a test compares them.
REQUIRED = {
    "numpy": "1.26",
    "scipy": "1.11.1",
    "numba": "0.60",
    "scikit-learn": "1.6",
    "typer": "0.15.4",
    "rich": "13.7",
}
EXTRAS: Mapping[str, Mapping[str, str]] = {
    "tables": {"pyarrow": "15"},
    "pandas": {"pandas": "2.2"},
    "polars": {"polars": "1.0"},
    "ranx": {"ranx": "0.3.20"},
    "plot": {"matplotlib": "3.8"},
    "cluster": {"dask": "2024.8", "distributed": "2024.8"},
    "optuna": {"optuna": "3.6"},
    "formats": {"onnx": "1.16"},
    "serve": {"starlette": "0.40", "uvicorn": "0.30", "orjson": "3.10"},
    "torch": {"torch": "2.2"},
    "mlflow": {"mlflow-skinny": "3.0", "pandas": "2.2"},
    "pyterrier": {"python-terrier": "1.0"},
}
# Used where they are there, and named in no extra.
OTHERS = ("lightgbm", "xgboost", "xgboost-cpu")
# Variables that change how things run and whose values are no paths.
VARIABLES = (
    "NUMBA_NUM_THREADS", "NUMBA_THREADING_LAYER", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES",
    "NUMBA_DISABLE_JIT", "NUMBA_BOUNDSCHECK", "OMP_NUM_THREADS", "OMP_WAIT_POLICY",
    "RANKGROVE_COMPILE_AHEAD",
)  # fmt: skip
DATA = "RANKGROVE_DATA"
# The model of the speed test: enough rows that a tree is more than its overhead.
QUERIES, DOCUMENTS, FEATURES, TREES, LEAVES = 300, 40, 25, 20, 16


def all_facts(*, speed: bool) -> Facts:
    """Return everything by section; the last is the list of problems."""
    problems: list[str] = []
    # the speed first: it starts the threads, and finds out whether kernels can be kept
    last = {"speed": _tried(speeds, problems)} if speed else {}
    facts: Facts = {
        "versions": _tried(lambda: versions(problems), problems),
        "machine": _tried(machine, problems),
        "threads": _tried(threads, problems),
        "compiled kernels": _tried(lambda: kernels(problems), problems),
        "optional packages": _tried(lambda: optional_packages(problems), problems),
        "settings": settings(),
    }
    return {**facts, **last, "problems": list(dict.fromkeys(problems))}


def _tried(collect: Callable[[], Facts], problems: list[str]) -> Facts:
    """Return what a function collects; an error becomes a fact and a problem."""
    try:
        return collect()
    except Exception as error:  # whatever is broken is what the user wants to know
        message = " ".join(str(error).split())[:300]
        text = without_home(message if isinstance(error, RankgroveError) else _named(error))
        problems.append(text)
        return {"failed": text}


def _named(error: Exception) -> str:
    """Return an unexpected error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def version_of(package: str) -> str | None:
    """Return the version of an installed package, without importing it; None: not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def sources(file: str) -> str:
    """Return whether a file of the package is of an installed one, or of a checkout."""
    parts = set(Path(file).parts)
    return "installed" if {"site-packages", "dist-packages"} & parts else "a checkout"


def is_older(version: str, least: str) -> bool:
    """Return whether a version is below a minimum, by its numbers."""
    numbers = [[int(part) for part in re.findall(r"\d+", text)[:4]] for text in (version, least)]
    size = max(map(len, numbers))
    first, second = ([*one, *[0] * (size - len(one))] for one in numbers)
    return first < second


def versions(problems: list[str]) -> Facts:
    """Return the versions of rankgrove, Python and the packages that it needs."""
    python = f"{platform.python_version()} ({platform.python_implementation()})"
    facts: Facts = {"rankgrove": __version__, "sources": sources(__file__), "python": python}
    for package, least in REQUIRED.items():
        facts[package] = version = version_of(package)
        if version is None:
            problems.append(f"{package} is not installed: pip install '{package}>={least}'")
        elif is_older(version, least):
            problems.append(_too_old(package, version, least))
    facts["llvmlite"] = version_of("llvmlite")
    return facts


def _too_old(package: str, version: str, least: str) -> str:
    return (
        f"{package} {version} is older than {least}, the oldest that works: pip install "
        f"--upgrade '{package}>={least}'"
    )


def machine() -> Facts:
    """Return the system, the processor, and the memory."""
    import llvmlite.binding

    return {
        "platform": platform.platform(),
        "processor": processor(),
        "compiled for": os.environ.get("NUMBA_CPU_NAME") or llvmlite.binding.get_host_cpu_name(),
        "memory in GB": memory(),
    }


def processor(file: str = "/proc/cpuinfo") -> str:
    """Return the name of the processor, as well as the system knows it."""
    try:
        found = re.search(r"^model name\s*: (.+)$", Path(file).read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def memory() -> float | None:
    """Return the machine's memory in GB; None where the system does not say."""
    try:
        n_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
    return round(n_bytes / 1e9, 1)


def threads() -> Facts:
    """Return how many threads are used, why, and what starts them."""
    from rankgrove.parallel import QUOTA_FILE, available_threads, quota_of_cores

    try:
        allowed: int | None = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this platform
        allowed = None
    quota = quota_of_cores(QUOTA_FILE)
    return {
        "used by default": available_threads(),
        "cores of the machine": os.cpu_count(),
        "cores for this process": allowed,
        "cores by the container's quota": quota,
        "threading layer": threading_layer(),
    }


def threading_layer() -> str:
    """Return which library runs Numba's threads; it is started if no kernel did so."""
    import numba
    from numba.np.ufunc import parallel

    layer: Any = getattr(numba, "threading_layer")  # noqa: B009  (its types leave it out)
    try:
        return str(layer())
    except ValueError:  # no parallel kernel has run in this process
        start: Any = parallel._launch_threads
        start()
        return str(layer())


def kernels(problems: list[str]) -> Facts:
    """Return where compiled kernels are kept, and how many there are."""
    from numba import config

    from rankgrove.kernel_cache import chosen_folder, is_private, kernel_files, refuse_lost

    folder, files = chosen_folder(), kernel_files()
    sizes = [n_bytes for file, n_bytes in files if file.is_relative_to(folder)]
    writable = os.access(folder, os.W_OK | os.X_OK)
    named = getattr(config, "CACHE_DIR", "")
    if named and not folder.is_relative_to(Path(named).absolute()):
        problems.append(
            f"NUMBA_CACHE_DIR: files cannot be created in {without_home(named)}. Name another "
            "folder."
        )
    elif is_private(folder):
        problems.append(
            "Compiled kernels are kept in a temporary folder, because no other can be written to: "
            "set NUMBA_CACHE_DIR to a folder that stays."
        )
    try:
        refuse_lost()
    except RankgroveError as error:  # a full disk
        problems.append(without_home(str(error)))
    return {
        "folder": without_home(str(folder)),
        "writable": writable,
        "files": len(sizes),
        "size in MB": round(sum(sizes) / 1e6, 1),
        "files in other folders": len(files) - len(sizes),
    }


def without_home(text: str) -> str:
    """Return a text in which ~ stands for the home folder."""
    home = os.path.expanduser("~").rstrip(os.sep)
    return re.sub(rf"{re.escape(home)}(?=$|[^\w.-])", "~", text) if len(home) > 1 else text


def optional_packages(problems: list[str]) -> Facts:
    """Return the packages of the extras; those that are absent with what installs them."""
    facts: Facts = {}
    for extra, packages in EXTRAS.items():
        for package, least in packages.items():
            version = version_of(package)
            if package in facts:  # another extra has it too
                continue
            facts[package] = version or f"absent: pip install 'rankgrove[{extra}]'"
            if version and is_older(version, least):
                problems.append(_too_old(package, version, least))
    facts |= {package: version for package in OTHERS if (version := version_of(package))}
    return facts


def settings() -> Facts:
    """Return the variables that are set, and whether the folder of data sets is there."""
    facts: Facts = {name: os.environ[name] for name in VARIABLES if name in os.environ}
    folder = os.environ.get(DATA)
    if folder is None:
        state = "not set (only tests and benchmarks need it)"
    else:
        state = "set, and a folder" if Path(folder).is_dir() else "set, but there is no such folder"
    return facts | {f"{DATA} (data folder)": state}


def speeds() -> Facts:
    """Return how fast a tiny model is trained and scored, with compilation apart.

    Every step is done twice. The first time kernels are compiled, or read from disk.
    """
    import rankgrove as rg

    data = rg.make_web(QUERIES, n_docs=DOCUMENTS, n_features=FEATURES, seed=1)

    def train() -> Any:
        return rg.LambdaMART(n_trees=TREES, n_leaves=LEAVES, normalise=False).fit(data)

    started = time.perf_counter()
    model = train()
    model.predict(data)
    first = time.perf_counter() - started
    started = time.perf_counter()
    model = train()
    training = time.perf_counter() - started
    started = time.perf_counter()
    model.predict(data)
    scoring = time.perf_counter() - started
    return {
        "rows": data.n_rows,
        "features": data.n_features,
        "trees": TREES,
        "seconds to compile or read kernels": round(max(0.0, first - training - scoring), 2),
        "milliseconds per tree": round(1e3 * training / TREES, 2),
        "documents scored per second": round(data.n_rows / scoring),
    }
