"""Solr, Vespa and RankLib against their emulators: ``python -m tools.search_cases predict``.

``predict``
    Random models are written for every engine, read by its emulator and scored; the scores must be
    those that are predicted from the model, bit for bit. The prediction does not know the file.
``write ENGINE FOLDER``
    Writes cases for a real engine, a folder each: ``model`` (or ``model.ubj``); ``features``,
    Solr's feature store; ``expressions``, the functions of a rank profile and its first phase, one
    per line, after their names and a tab; ``values.csv``, a line of names and one per document,
    with semicolons. A cell is empty where the document lacks the feature, ``'text`` is a string.
``compare ENGINE FOLDER``
    Reads the scores that the engine gave (``scores.csv``, one per line; a line ``refused: why`` if
    it refused the model), and compares them with the emulator's and the predicted ones.

Thresholds and leaves go from the smallest to the largest numbers; values stand on thresholds, just
beside them, or are missing; trees may have one leaf; features may be categorical; Vespa's also have
files of XGBoost's form. A case is identified by its engine and its number.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.data.categories import without_unknown
from rankgrove.errors import ModelFileError
from rankgrove.formats import solr
from rankgrove.formats.foreign import TreeParts
from rankgrove.formats.targets import TARGETS
from rankgrove.formats.write import FORMATS, Labels, Model, fitted, write
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.mlp import Network, n_weights
from rankgrove.model.tree import Tree
from rankgrove.parity.engines import ENGINES
from rankgrove.scoring.linear_scores import score_linear
from rankgrove.scoring.score import score
from tools.search_scores import as_single, bound_of, vespa_sum, weighted

NAMES = ("bm25(title)", "attribute(brand)", "age", "fieldMatch(title).completeness", "clicks")
BRAND = 1  # the categorical column
WORDS = ("acme", "b o", "c,d", "3", *(f"brand {j}" for j in range(9)))
EDGES = np.array([0.0, -0.0, 1e-45, -1e-45, 1.2e-38, 1e-6, 1e-5, 0.1, -0.1, 1.0, -1.0, 3.0, 1e30])
MOST = 3e38
LARGE_EVERY = 200  # every so many models is one whose leaves Vespa rounds to float32


@dataclass(frozen=True)
class Case:
    """A model for an engine, and documents.

    Attributes
    ----------
    content : the file that is uploaded
    values : float64, NaN where a document lacks a feature; columns as NAMES
    model : our model; None: the file is not ours, and nothing is predicted
    predicted : the scores that the engine is predicted to give
    own : the model's own scores
    bound : how far these may be from the predicted
    defaults : Solr's values of missing features
    strings : whether brands are strings, and not codes
    definitions : Solr's feature store
    """

    content: bytes
    values: np.ndarray
    model: Model | None
    predicted: np.ndarray
    own: np.ndarray
    bound: np.ndarray
    defaults: Mapping[str, float] = field(default_factory=dict)
    strings: bool = False
    definitions: str = ""


def make_case(engine: str, number: int, documents: int) -> Case:
    """Return a case by its number."""
    rng = np.random.default_rng([sum(engine.encode()), number])
    if number % 10 in (8, 9) and engine != "ranklib":
        return _weights_case(rng, engine, documents, net=number % 10 == 9)
    if _is_xgboosts(engine, number):
        return _xgboost_case(rng, documents)
    large = engine == "vespa" and number % LARGE_EVERY == 1
    return _tree_case(rng, engine, documents, large)


def _is_xgboosts(engine: str, number: int) -> bool:
    """Return whether a case is of XGBoost's form, whose scores are not predicted."""
    return engine == "vespa" and number % 10 == 7


# -- trees ----------------------------------------------------------------------------------------


def _tree_case(rng: np.random.Generator, engine: str, documents: int, large: bool) -> Case:
    form = ENGINES[engine].format
    dtype: type = np.float64 if rng.random() < 0.4 else np.float32
    wild = bool(rng.random() < 0.5)
    sets = engine == "vespa" and not large and bool(rng.random() < 0.4)
    words = sets and bool(rng.integers(2))
    n_trees = 120 if large else int(rng.integers(0, 12))
    trees = [_tree(rng, dtype, wild, sets, 60 if large else 0) for _ in range(n_trees)]
    base = float(rng.choice([0.0, 0.5, -3.25])) + 0.1 * float(rng.integers(2))
    model = Ensemble.from_trees(trees, len(NAMES), base)
    values = _values(rng, model, documents, sets)
    categories = {BRAND: WORDS} if words else {}
    labels = Labels("case", NAMES, True, None, categories)
    zero = form != "vespa" and (engine != "solr-9.2" or bool(rng.random() < 0.3))
    held, labels, _ = fitted(
        model, form, labels, missing="zero" if zero else "keep", engine=TARGETS.get(engine)
    )
    content, _ = write(held, form, labels)
    assert isinstance(held, Ensemble)
    rows = np.ascontiguousarray(values.astype(np.float32))
    rows = np.where(np.isnan(rows), np.float32(0), rows) if zero else rows
    rows = without_unknown(rows, categories)
    own = score(model, rows, scorer="walk")
    if form == "vespa":
        predicted = vespa_sum(model, rows, large, fast=engine == "vespa-fast-forest")
    else:
        single = replace(
            model.for_float32(),
            value=as_single(model.value),
            base=float(as_single(np.array([base]))[0]),
            single=True,
        )
        if form == "solr":
            single, exact = replace(single, threshold=solr.compared(held)), single.threshold
            if not solr.tells_missing(held):
                rows = np.where(np.isnan(rows), np.float32(0), rows)
        predicted = score(single, rows, scorer="walk")
    defined = FORMATS[form].definitions
    store = defined(held, labels) if form == "solr" and defined else ""
    bound = np.full(documents, bound_of(model, form == "vespa" and not large))
    if engine == "vespa-fast-forest":
        bound[:] = bound_of(model, False)
    if form == "solr" and np.any(single.threshold != exact):  # it says so
        bound[:] = np.inf
    return Case(content, values, model, predicted, own, bound, _defaults(store), bool(words), store)


def _tree(rng: np.random.Generator, dtype: type, wild: bool, sets: bool, chain: int = 0) -> Tree:
    """Return a tree of 1 to 12 leaves, any of which may be split next; or a chain of many."""
    parts, n_leaves = TreeParts(), chain or int(rng.integers(1, 13))
    open_places: list[tuple[int, bool] | None] = [None]
    while len(open_places) < n_leaves:
        place = open_places.pop(-1 if chain else int(rng.integers(len(open_places))))
        column, codes, missing = int(rng.integers(len(NAMES))), None, bool(rng.integers(2))
        threshold = float(rng.choice(EDGES)) if rng.random() < 0.5 else _number(rng, wild)
        if column == BRAND and sets:
            codes = rng.choice(len(WORDS), int(rng.integers(1, 6)), replace=False)
            threshold = 0.0
        elif rng.random() < 0.03:
            threshold = float("inf")
        with np.errstate(over="ignore", under="ignore"):
            threshold = float(dtype(threshold))
        node = parts.split(place, column, threshold, missing, codes)
        open_places += [(node, True), (node, False)]
    for place in open_places:
        parts.leaf(place, _number(rng, wild))
    return parts.tree(dtype)


def _number(rng: np.random.Generator, wild: bool) -> float:
    """Return a number; a wild one may be as small as a denormal float32, or very large."""
    return float(rng.normal() * 10.0 ** (rng.integers(-45, 31) if wild else rng.integers(-3, 3)))


def _values(rng: np.random.Generator, model: Ensemble, n: int, sets: bool) -> np.ndarray:
    """Return values that stand on thresholds, just beside them, anywhere, or are missing."""
    at = model.threshold[np.isfinite(model.threshold) & (model.set_of < 0)].astype(np.float32)
    near = rng.choice(np.concatenate([at, EDGES.astype(np.float32)]), (n, len(NAMES)))
    sides = rng.choice([-np.inf, np.inf], near.shape).astype(np.float32)
    free = (rng.normal(size=near.shape) * 10.0 ** rng.integers(-3, 3, near.shape)).astype(
        near.dtype
    )
    choice = rng.random(near.shape)
    values = np.where(
        choice < 0.3, near, np.where(choice < 0.6, np.nextafter(near, sides), free)
    ).astype(np.float64)
    values = np.clip(values, -MOST, MOST)
    values[rng.random(near.shape) < 0.2] = np.nan
    if sets:
        codes = rng.integers(0, len(WORDS) + 2, n).astype(np.float64)
        codes[rng.random(n) < 0.2] = np.nan
        values[:, BRAND] = codes
    return values


# -- XGBoost's form, which Vespa imports ----------------------------------------------------------


def _xgboost_case(rng: np.random.Generator, documents: int) -> Case:
    wild = bool(rng.integers(2))
    trees = [_tree(rng, np.float32, wild, False) for _ in range(int(rng.integers(1, 8)))]
    model = Ensemble.from_trees(trees, len(NAMES), 0.0)
    values = np.clip(_values(rng, model, documents, False), -MOST, MOST)
    dumped = [_dumped(tree) for tree in trees]
    nothing = np.full(documents, np.nan)
    return Case(json.dumps(dumped).encode(), values, None, nothing, nothing, nothing)


def _dumped(tree: Tree, node: int | None = None) -> dict[str, Any]:
    at = (0 if tree.n_nodes else -1) if node is None else node
    if at < 0:
        return {"nodeid": tree.n_nodes + ~at, "leaf": float(tree.value[~at])}
    left, right = int(tree.left[at]), int(tree.right[at])
    numbers = [tree.n_nodes + ~child if child < 0 else child for child in (left, right)]
    return {
        "nodeid": at,
        "depth": 0,
        "split": NAMES[tree.feature[at]],
        "split_condition": min(MOST, float(tree.threshold[at])),
        "yes": numbers[0],
        "no": numbers[1],
        "missing": numbers[0 if tree.missing_left[at] else 1],
        "children": [_dumped(tree, left), _dumped(tree, right)],
    }


# -- linear models and nets -----------------------------------------------------------------------


def _weights_case(rng: np.random.Generator, engine: str, documents: int, net: bool) -> Case:
    form, n = ENGINES[engine].format, len(NAMES)
    mean = rng.normal(size=n) * 10.0 ** rng.integers(-2, 5, n)
    deviation = 10.0 ** rng.uniform(-2, 3, n)
    model: Linear | Network
    if net:
        hidden = [int(rng.integers(1, 9)) for _ in range(int(rng.integers(0, 3)))]
        flat = rng.normal(size=n_weights((n, *hidden)))
        kind = str(rng.choice(["tanh", "relu"]))
        model = Network((n, *hidden), flat, mean, 1.0 / deviation, kind)
    else:
        weights = rng.normal(size=n) * (rng.random(n) < 0.8)
        empty = np.empty(0)
        model = Linear(n, weights, "standard", mean, deviation, empty, empty)
    values = mean + deviation * rng.normal(size=(documents, n)) * 2
    values = values.astype(np.float32).astype(np.float64)
    values[rng.random(values.shape) < 0.2] = np.nan
    labels = Labels("case", NAMES, True)
    held, labels, _ = fitted(model, form, labels, engine=TARGETS.get(engine))
    content, _ = write(held, form, labels)
    rows = values.astype(np.float32)
    own = model.scores(rows) if isinstance(model, Network) else score_linear(model, rows)
    if form == "solr" and isinstance(model, Linear):
        own = own - model.intercept  # Solr has none; that of the means is in the normalisers
    predicted, size = weighted(model, values, np.float32 if form == "solr" else np.float64)
    defined = FORMATS[form].definitions
    store = defined(held, labels) if form == "solr" and defined else ""
    # ours fills a missing value of a linear model with the mean as float32
    step = 2.0**-24 if form == "solr" or isinstance(model, Linear) else 2.0**-53
    means = np.abs(mean) / deviation
    bound = size * (1.0 + float(means.max())) * step * 16
    return Case(content, values, model, predicted, own, bound, _defaults(store), False, store)


def _defaults(store: str) -> dict[str, float]:
    if not store:
        return {}
    return {
        entry["name"]: float(np.float32(entry["params"].get("defaultValue", "0")))
        for entry in json.loads(store)
    }


# -- commands -------------------------------------------------------------------------------------


def emulated(engine: str, case: Case) -> np.ndarray:
    """Return the emulator's scores of a case."""
    model = ENGINES[engine].read(case.content)
    names = [str(j + 1) for j in range(len(NAMES))] if engine == "ranklib" else list(NAMES)
    columns = np.array([names.index(name) for name in model.features], np.int64)
    values = case.values[:, columns].copy()
    for at, name in enumerate(model.features):
        if name in case.defaults:
            values[np.isnan(values[:, at]), at] = case.defaults[name]
    return model.scores(values)


def mismatches(engine: str, numbers: Sequence[int], documents: int) -> Iterator[tuple[int, str]]:
    """Yield the cases whose emulated scores are not as predicted, or beyond the bound."""
    for number in numbers:
        case = make_case(engine, number, documents)
        scores = emulated(engine, case)
        if case.model is None:
            continue
        wrong = scores != case.predicted
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            yield number, f"{scores[at]!r} for {case.predicted[at]!r}, document {at}"
        elif np.any(np.abs(scores - case.own) > case.bound):
            far = float(np.nanmax(np.abs(scores - case.own) / case.bound))
            yield number, f"{far} times the bound from the model's own score"


def write_cases(engine: str, folder: Path, n: int, documents: int) -> None:
    """Write cases, one folder each."""
    for number in range(n):
        case, place = make_case(engine, number, documents), folder / f"{number:05d}"
        if engine == "vespa" and number % LARGE_EVERY == 1 and case.model is not None:
            continue  # its classes in Java compute in double
        place.mkdir(parents=True, exist_ok=True)
        (place / "model").write_bytes(case.content)
        (place / "features").write_text(case.definitions or "[]")
        if case.content.startswith(b"rank-profile"):
            (place / "expressions").write_text(_expressions(case.content.decode()))
        names = [str(j + 1) for j in range(len(NAMES))] if engine == "ranklib" else NAMES
        lines = [";".join(names)]
        for row in case.values:
            cells = [_cell(x, case.strings and column == BRAND) for column, x in enumerate(row)]
            lines.append(";".join(cells))
        (place / "values.csv").write_text("\n".join(lines) + "\n")


def _cell(value: float, is_word: bool) -> str:
    if is_word:
        known = value >= 0 and value < len(WORDS)
        return "'" + (WORDS[int(value)] if known else "" if np.isnan(value) else "never seen")
    return "" if np.isnan(value) else repr(float(value))


def _expressions(profile: str) -> str:
    """Return name, tab and expression of functions of a profile; the first phase is the last."""
    found = re.findall(r"function (\w+)\(\) \{\s*expression: (.*)", profile)
    first = re.search(r"first-phase \{\s*expression \{([^}]*)\}", profile)
    assert first is not None
    found.append(("", " ".join(first[1].split())))
    return "".join(f"{name}\t{expression}\n" for name, expression in found)


def compare(engine: str, folder: Path, documents: int) -> int:
    """Print how many scores of the engine are unlike the emulator's and the predicted ones."""
    seen = unlike = unpredicted = models = 0
    largest, odd = 0.0, []
    for place in sorted(folder.iterdir()):
        number = int(place.name)
        case = make_case(engine, number, documents)
        text = (place / "scores.csv").read_text()
        try:
            scores = emulated(engine, case)
        except ModelFileError as error:
            print(f"{place.name}: the emulator refuses it: {error}; the engine: {text[:80]!r}")
            continue
        if text.startswith("refused"):
            odd.append(f"{place.name}: {text.strip()}")
            continue
        real = np.array([float(line) for line in text.split()])
        if engine != "vespa":
            real = as_single(real)
        models, seen = models + 1, seen + real.size
        step = 0.0  # functions such as tanh are not the same to the last bit everywhere
        if engine == "vespa" and isinstance(case.model, Network):
            step = 2.0**-50 * max(1.0, float(np.abs(scores).max()))
        if n := int(np.count_nonzero(np.abs(real - scores) > step)):
            most = float(np.abs(real - scores).max())
            odd.append(f"{place.name}: {n} scores unlike the emulator's, by up to {most:.3g}")
            unlike += n
        if case.model is not None:
            unpredicted += int(np.count_nonzero(np.abs(real - case.predicted) > step))
            far = np.abs(real - case.own)
            share = np.divide(far, case.bound, out=np.zeros_like(far), where=far > 0)
            largest = max(largest, float(share.max()))
    print(
        f"{engine}: {models} models, {seen} scores, {unlike} unlike the emulator's, {unpredicted} "
        f"unlike the predicted; largest difference from the model's own {largest:.3g} of the bound"
    )
    print("\n".join(odd[:10]))
    return 1 if odd or unpredicted else 0


def main(words: list[str]) -> int:
    """Run a command; return the status."""
    engines = ["solr-9.2", "solr-9.1", "vespa", "vespa-fast-forest", "ranklib"]
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=["predict", "write", "compare"])
    parser.add_argument("engine", nargs="?", choices=engines)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--models", type=int, default=10_000, help="in all, over the engines")
    parser.add_argument("--documents", type=int, default=40, help="of every model")
    options = parser.parse_args(words)
    if options.command == "predict":
        chosen, wrong = [options.engine] if options.engine else engines, 0
        each = -(-options.models // len(chosen))
        for engine in chosen:
            found = list(mismatches(engine, range(each), options.documents))
            wrong += len(found)
            n = sum(not _is_xgboosts(engine, number) for number in range(each))
            print(f"{engine}: {n} models, {n * options.documents} scores, {len(found)} wrong")
            for number, why in found[:5]:
                print(f"  model {number}: {why}")
        return 1 if wrong else 0
    if options.engine is None or options.folder is None:
        parser.error("name an engine and a folder")
    if options.command == "write":
        write_cases(options.engine, options.folder, options.models, options.documents)
        return 0
    return compare(options.engine, options.folder, options.documents)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
