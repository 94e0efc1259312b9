"""The pages of the site: docs/, files elsewhere in the repository, and generated reference pages.

The pages are written for readers of the repository; here their links are adapted to the site.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import rankgrove as rg
from tools.reference import reference_pages

ROOT = Path(__file__).resolve().parents[1]
# Files outside docs/ that are pages of the site.
OUTSIDE = {
    "README.md": "index.md",
    "benchmarks/README.md": "benchmarks.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
# The navigation: captions, and their pages in order. Every page is listed here.
NAVIGATION = {
    "Start": ["index", "install", "tutorial", "choosing", "rankers", "comparison"],
    "Notebooks": [
        "notebooks/first-model",
        "notebooks/clicks",
        "notebooks/new-market",
        "notebooks/report",
        "notebooks/engine",
    ],
    "How to train": [
        "howto/best-ranker",
        "howto/little-data",
        "howto/another-market",
        "howto/clicks",
        "howto/categorical-data",
        "howto/more-data-than-memory",
        "howto/cluster",
        "howto/own-measure",
        "howto/calibration",
        "howto/optuna",
    ],
    "How to use a model": [
        "report",
        "explaining",
        "formats",
        "scoring",
        "serving",
        "howto/model-files",
        "howto/images",
    ],
    "How to use a search engine": [
        "howto/elasticsearch",
        "howto/elasticsearch-native",
        "howto/opensearch",
        "howto/solr",
        "howto/vespa",
        "howto/parity",
        "engines",
    ],
    "How to work with other tools": [
        "howto/ranklib",
        "howto/lightgbm-model",
        "howto/ndcg-differs",
        "howto/scikit-learn",
        "howto/data-frames",
        "howto/runs",
        "howto/mlflow",
        "howto/pyterrier",
        "howto/reproduce",
    ],
    "Explanation": [
        "measures",
        "smoothing",
        "combining",
        "bagging",
        "adaptation",
        "trada",
        "determinism",
        "comparing-online",
    ],
    "Reference: rankers": ["lambdamart", "mart", "nets", "svm", "linear", "classical"],
    "Reference": [
        "data",
        "clicks",
        "scale",
        "api/index",
        "commands",
        "parameters",
        "model-file",
        "robustness",
    ],
    "Evidence": ["results", "published-figures", "papers", "benchmarks"],
    "Development": ["design", "contributing", "releases", "security", "changelog"],
}
GROUPS = {
    "Rankers": "Rankers to train, and ensembles of trained rankers.",
    "Working with rankers": "Loading, combining, adapting, pruning, checking.",
    "Data": "Reading, writing, splitting and generating judged data.",
    "Measures and evaluation": "Measures, evaluation and significance tests.",
    "Tuning": "Hyperparameters, cross-validation, and variance over training data.",
    "Modules": "Plots, MLflow, PyTerrier, and the bridge to PyTorch.",
    "Errors": "All are subclasses of `rg.RankgroveError`.",
}
LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]*)((?:#[^)\s]*)?)\)")
# Pages with wide tables, without a table of contents.
WIDE = (
    "papers.md",
    "published-figures.md",
    "results.md",
    "comparison.md",
    "commands.md",
    "parameters.md",
)


def site_path(path: str) -> str:
    """Return the path of a repository file in the site."""
    return OUTSIDE.get(path, path.removeprefix("docs/"))


def relinked(text: str, source: str) -> str:
    """Return a page whose links to files of the repository lead to pages of the site.

    source : path of the page's file, from the root of the repository
    """
    folder = (ROOT / source).parent
    up = "../" * site_path(source).count("/")

    def link(match: re.Match[str]) -> str:
        text, target, place = match.groups()
        if not target or ":" in target:
            return match[0]
        path = (folder / target).resolve()
        if re.fullmatch(r"[\w./-]+\.md", text):  # the site shows titles instead of file names
            text = title_of(path)
        return f"[{text}]({up}{site_path(path.relative_to(ROOT).as_posix())}{place})"

    return LINK.sub(link, text)


def title_of(path: Path) -> str:
    """Return the first heading of a page."""
    return path.read_text().split("\n", 1)[0].removeprefix("# ")


def group_of(name: str) -> str:
    """Return the group of the reference that a public name belongs to."""
    from rankgrove.rankers.base import Ranker

    value = getattr(rg, name)
    if inspect.ismodule(value):
        return "Modules"
    if isinstance(value, type) and issubclass(value, Exception):
        return "Errors"
    if isinstance(value, type) and issubclass(value, Ranker):
        return "Rankers"
    package = value.__module__.split(".")[1]
    if package == "data":
        return "Data"
    if package in ("measures", "evaluation"):
        return "Measures and evaluation"
    return "Tuning" if package == "tuning" else "Working with rankers"


def names_by_group() -> dict[str, list[str]]:
    """Return all public names except the version, by group."""
    groups: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name in rg.__all__:
        if not name.startswith("__"):
            groups[group_of(name)].append(name)
    return groups


def page_of(group: str) -> str:
    """Return the name of a group's page."""
    return group.lower().replace(",", "").replace(" ", "-")


def api_pages() -> dict[str, str]:
    """Return the reference: a page with all names, and one for every group."""
    start = [
        "# API reference",
        "",
        "After this page you know every public name: its purpose, arguments and results. "
        "`import rankgrove as rg` loads a name when it is first used.",
        "",
    ]
    pages = {}
    for group, names in names_by_group().items():
        page = page_of(group)
        start += [f"## [{group}]({page}.md)", "", "| | |", "|---|---|"]
        parts = [f"# {group}", "", GROUPS[group], ""]
        for name in names:
            value = getattr(rg, name)
            first = re.sub(r":\w+:|\|", "", inspect.getdoc(value).split("\n")[0])
            start.append(
                f"| {{py:obj}}`rg.{name} <{path_of(name)}>` | {first.replace('``', '`')} |"
            )
            parts += [f"## rg.{name}", "", *_directive(name, value)]
        start.append("")
        pages[f"api/{page}.md"] = "\n".join(parts)
    contents = ["```{toctree}", ":hidden:", *map(page_of, GROUPS), "```", ""]
    return {"api/index.md": "\n".join([*start, *contents])} | pages


def path_of(name: str) -> str:
    """Return the full name of a public object in the reference."""
    value = getattr(rg, name)
    return value.__name__ if inspect.ismodule(value) else f"rankgrove.{name}"


def _directive(name: str, value: object) -> list[str]:
    """Return the directive that inserts the docstrings of an object and its members."""
    if inspect.ismodule(value):
        names = ", ".join(getattr(value, "__all__", ["lambda_loss"]))
        lines = [
            f".. automodule:: {value.__name__}",
            f"   :members: {names}",
            "   :imported-members:",
        ]
    elif isinstance(value, type) and not issubclass(value, Exception):
        lines = [f".. autoclass:: rankgrove.{name}", "   :members:"]
        lines += ["   :inherited-members: BaseEstimator, tuple, dict, Mapping, Protocol, ABC"]
    elif isinstance(value, type):
        lines = [f".. autoexception:: rankgrove.{name}"]
    else:
        lines = [f".. autofunction:: rankgrove.{name}"]
    return ["```{eval-rst}", *lines, "```", ""]


def contents() -> str:
    """Return the navigation as hidden Sphinx tables of contents."""
    parts = []
    for caption, pages in NAVIGATION.items():
        entries = ["Overview <self>" if page == "index" else page for page in pages]
        parts += ["```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```", ""]
    return "\n".join(parts)


def all_pages() -> dict[str, str]:
    """Return the text of every page of the site by its path."""
    pages = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        source = path.relative_to(ROOT).as_posix()
        pages[site_path(source)] = relinked(path.read_text(), source)
    for source, page in OUTSIDE.items():
        pages[page] = relinked((ROOT / source).read_text(), source)
    pages["index.md"] += "\n" + contents()
    pages |= reference_pages()
    for page in WIDE:
        pages[page] = f"---\nhide-toc: true\n---\n{pages[page]}"
    return pages | api_pages()
