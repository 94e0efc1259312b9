"""Engines and their emulators on random models: ``python -m tools.engine_cases predict``.

``predict``
    For every engine, random models are written, read by its emulator and scored; the scores must be
    those that are predicted from the model, bit for bit. The prediction knows nothing of the file:
    it scores the model itself, with float32 thresholds, leaves and sums, or in float64.
``write ENGINE FOLDER``
    Writes cases for a real engine: of each the file that is uploaded (``model.json``) and the
    values of documents (``values.csv``, a cell is empty where the document lacks the feature).
``compare ENGINE FOLDER``
    Reads the scores that the engine gave (``scores.csv``, one line per document; one line
    ``refused: why``, if it refused the model), and compares them with emulator and prediction.

Models have missing values, thresholds and leaves from the smallest to the largest numbers, values
equal to thresholds and just beside them, trees of one leaf, categories (one feature each), shifted
scores; linear models have normalisers. A case is identified by its engine and its number.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rankgrove.formats.foreign import TreeParts
from rankgrove.formats.targets import Target, target_of
from rankgrove.formats.write import Labels, fitted, write
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.linear import Linear
from rankgrove.model.tree import Tree
from rankgrove.parity.engines import ENGINES
from rankgrove.scoring.score import score

NAMES = ("title", "body", "age", "brand", "clicks")
BRAND, N_BRANDS = 3, 12  # the categorical column, and its number of codes
EDGES = np.array([0.0, -0.0, 1e-45, -1e-45, 1.2e-38, 1e-5, 0.1, -0.1, 1.0, -1.0, 3.0, 1e30])
MOST = 3e38  # values are below the largest float32, where an infinite threshold is written as it
OURS = ("elasticsearch", "opensearch", "elasticsearch-native")


@dataclass(frozen=True)
class Case:
    """A model for an engine, and documents.

    Attributes
    ----------
    content : the file that is uploaded
    features : names of the columns of `values`
    values : float64, NaN where a document lacks a feature
    predicted : the scores that the engine is predicted to give
    bound : how far these may be from the model's own scores; NaN: not stated
    own : the model's own scores, plus what was added to all of them
    """

    content: bytes
    features: tuple[str, ...]
    values: np.ndarray
    predicted: np.ndarray
    bound: float
    own: np.ndarray


def make_case(engine: str, number: int, documents: int) -> Case:
    """Return a case by its number."""
    rng = np.random.default_rng([len(engine), sum(engine.encode()), number])
    target = target_of(engine)
    native = target.format == "elasticsearch-native"
    if not native and number % 10 == 9:
        return _linear_case(rng, target, documents)
    return _tree_case(rng, target, documents, native)


# -- trees ----------------------------------------------------------------------------------------


def _tree_case(rng: np.random.Generator, target: Target, documents: int, native: bool) -> Case:
    dtype: type = np.float64 if rng.random() < 0.4 else np.float32
    wild, categories = rng.random() < 0.5, rng.random() < 0.3
    trees = [_tree(rng, dtype, wild, categories) for _ in range(int(rng.integers(0, 12)))]
    base = float(rng.choice([0.0, 0.5, -3.25])) + 0.1 * float(rng.integers(2))
    model = Ensemble.from_trees(trees, len(NAMES), base)
    values = _values(rng, model, documents, native)
    missing = "zero" if target.missing == "zero" or rng.random() < 0.3 else "keep"
    labels = Labels("case", NAMES, True)
    held, held_labels, _ = fitted(
        model,
        target.format,
        labels,
        missing=missing,
        engine=target,
        shift=bool(rng.integers(2)),
        expand_categories=True,
    )
    content, _ = write(held, target.format, held_labels)
    assert isinstance(held, Ensemble)
    seen = values if native and dtype == np.float64 else values.astype(np.float32)
    seen = np.where(np.isnan(seen), seen.dtype.type(0), seen) if missing == "zero" else seen
    seen[:, BRAND] = values[:, BRAND]  # a missing category is like an unknown one
    exact = score(replace(model, base=held.base), np.ascontiguousarray(seen), scorer="walk")
    if native:
        predicted = exact.astype(np.float32).astype(np.float64)
    else:
        single = replace(
            model.for_float32(),
            value=_single(model.value),
            base=float(_single(np.array([held.base]))[0]),
            single=True,
        )
        predicted = score(single, np.ascontiguousarray(seen.astype(np.float32)), scorer="walk")
    names, columns = _columns(held_labels.features, values)
    return Case(content, names, columns, predicted, _bound(held, native), exact)


def _tree(rng: np.random.Generator, dtype: type, wild: bool, categories: bool) -> Tree:
    """Return a tree of 1 to 12 leaves, any of which may be the next to be split."""
    parts, n_leaves = TreeParts(), int(rng.integers(1, 13))
    open_places: list[tuple[int, bool] | None] = [None]
    while len(open_places) < n_leaves:
        place = open_places.pop(int(rng.integers(len(open_places))))
        column, codes, missing = int(rng.integers(len(NAMES))), None, bool(rng.integers(2))
        threshold = float(rng.choice(EDGES)) if rng.random() < 0.5 else _number(rng, wild)
        if column == BRAND and categories:
            codes = np.unique(rng.integers(0, N_BRANDS, int(rng.integers(1, 5))))
            threshold, missing = 0.0, False
        elif column == BRAND:
            column = 0
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


def _values(rng: np.random.Generator, model: Ensemble, n: int, native: bool) -> np.ndarray:
    """Return values that stand on thresholds, just beside them, anywhere, or are missing."""
    kind: type = np.float64 if native and rng.random() < 0.5 else np.float32
    at = model.threshold[np.isfinite(model.threshold) & (model.set_of < 0)].astype(kind)
    at = np.concatenate([at, EDGES.astype(kind)])
    near = rng.choice(at, (n, len(NAMES)))
    beside = np.nextafter(near, rng.choice([-np.inf, np.inf], near.shape).astype(kind))
    free = (rng.normal(size=near.shape) * 10.0 ** rng.integers(-3, 3, near.shape)).astype(kind)
    choice = rng.random(near.shape)
    values = np.where(choice < 0.3, near, np.where(choice < 0.6, beside, free)).astype(np.float64)
    values = np.clip(values, -MOST, MOST)
    values[rng.random(near.shape) < 0.2] = np.nan
    codes = rng.integers(0, N_BRANDS + 2, n).astype(np.float64)
    codes[rng.random(n) < 0.2] = np.nan
    values[:, BRAND] = codes
    return values


def _columns(features: object, values: np.ndarray) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the columns of a model whose categories are features of their own."""
    names, columns = [], []
    for name in features:  # type: ignore[attr-defined]
        if name in NAMES:
            column = values[:, NAMES.index(name)]
        else:  # brand=7, by number: f4=7
            column = (values[:, BRAND] == float(name.partition("=")[2])).astype(np.float64)
        names.append(name)
        columns.append(column)
    return tuple(names), np.stack(columns, axis=1)


def _bound(model: Ensemble, native: bool) -> float:
    """Return how far a score can be from the model's: one float32 rounding per leaf and per sum."""
    if model.n_trees == 0:
        size = abs(model.base)
    else:
        highest = np.maximum.reduceat(np.abs(model.value), model.leaf_ptr[:-1])
        size = abs(model.base) + float(highest.sum())
    steps = 1 if native else 2 * (model.n_trees + 1)
    tiny = 2.0**-149  # float32's absolute step below its smallest normal number
    return size * steps * 2.0**-24 * (1.0 + 1e-6) + steps * tiny


# -- linear models --------------------------------------------------------------------------------


def _linear_case(rng: np.random.Generator, target: Target, documents: int) -> Case:
    n = len(NAMES)
    standard = bool(rng.integers(2))
    weights = rng.normal(size=n) * (rng.random(n) < 0.8)
    model = Linear(
        n,
        weights,
        "standard" if standard else "none",
        rng.normal(size=n) * 10 if standard else np.zeros(n),
        np.abs(rng.normal(size=n)) + 0.1 if standard else np.ones(n),
        np.empty(0),
        np.empty(0),
    )
    values = (rng.normal(size=(documents, n)) * 10).astype(np.float32).astype(np.float64)
    values[rng.random(values.shape) < 0.2] = np.nan
    labels = Labels("case", NAMES, True)
    held, labels, _ = fitted(model, target.format, labels, missing="zero", engine=target)
    content, _ = write(held, target.format, labels)
    seen = np.nan_to_num(values.astype(np.float32))
    used = [j for j in range(n) if weights[j]]
    total = np.zeros(documents, np.float32)
    for j in used:  # as the plugin's classes do: normalised, weighed, added, all in float32
        x = seen[:, j]
        if standard:
            x = (x - np.float32(model.shift[j])) / np.float32(model.scale[j])
        total += np.float32(weights[j]) * x
    own = ((seen - model.shift) / model.scale) @ model.weights
    names = tuple(NAMES[j] for j in used)
    return Case(content, names, values[:, used], total.astype(np.float64), float("nan"), own)


def _single(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(np.float32).astype(np.float64)


# -- commands -------------------------------------------------------------------------------------


def emulated(engine: str, case: Case) -> np.ndarray:
    """Return the emulator's scores of a case."""
    model = ENGINES[engine].read(case.content)
    columns = [case.features.index(name) for name in model.features]
    return model.scores(case.values[:, columns])


def mismatches(engine: str, numbers: range, documents: int) -> Iterator[tuple[int, str]]:
    """Yield the cases whose emulated scores are not as predicted, or beyond the bound."""
    for number in numbers:
        case = make_case(engine, number, documents)
        scores = emulated(engine, case)
        wrong = ~((scores == case.predicted) | (np.isnan(scores) & np.isnan(case.predicted)))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            yield number, f"{scores[at]!r} for {case.predicted[at]!r}, document {at}"
        elif np.any(np.abs(scores - case.own) > case.bound):
            yield number, f"{np.abs(scores - case.own).max()} from the model, over {case.bound}"


def write_cases(engine: str, folder: Path, n: int, documents: int) -> None:
    """Write cases, one folder each."""
    for number in range(n):
        case, place = make_case(engine, number, documents), folder / f"{number:05d}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "model.json").write_bytes(case.content)
        rows = [
            ",".join("" if np.isnan(value) else repr(float(value)) for value in row)
            for row in case.values
        ]
        (place / "values.csv").write_text("\n".join([",".join(case.features), *rows]) + "\n")


def compare(engine: str, folder: Path, documents: int) -> tuple[int, int, int, float]:
    """Return the numbers of scores, of those unlike the emulator's, and unlike the predicted.

    The last number is the largest difference from the scores of models of trees, as a share of the
    bound.
    """
    seen = unlike = unpredicted = 0
    largest = 0.0
    for place in sorted(folder.iterdir()):
        case = make_case(engine, int(place.name), documents)
        text = (place / "scores.csv").read_text()
        if text.startswith("refused"):
            raise SystemExit(f"{place}: {text.strip()}")
        scores = _single(np.array([float(line) for line in text.split()]))
        seen += scores.size
        unlike += int(np.count_nonzero(scores != emulated(engine, case)))
        unpredicted += int(np.count_nonzero(scores != case.predicted))
        if np.isfinite(case.bound):
            largest = max(largest, float(np.abs(scores - case.own).max()) / case.bound)
    return seen, unlike, unpredicted, largest


def main(words: list[str]) -> int:
    """Run a command; return the status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("command", choices=["predict", "write", "compare"])
    parser.add_argument("engine", nargs="?", choices=list(ENGINES))
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--models", type=int, default=10_000, help="in all, over the engines")
    parser.add_argument("--documents", type=int, default=40, help="of every model")
    given = parser.parse_args(words)
    engines = [name for name in ENGINES if ENGINES[name].format in OURS]
    if given.command == "predict":
        chosen = [given.engine] if given.engine else engines
        each, wrong = -(-given.models // len(chosen)), 0
        for engine in chosen:
            found = list(mismatches(engine, range(each), given.documents))
            wrong += len(found)
            print(f"{engine}: {each} models, {each * given.documents} scores, {len(found)} wrong")
            for number, why in found[:5]:
                print(f"  model {number}: {why}")
        return 1 if wrong else 0
    if given.engine is None or given.folder is None:
        parser.error("name an engine and a folder")
    if given.command == "write":
        write_cases(given.engine, given.folder, given.models, given.documents)
        return 0
    seen, unlike, unpredicted, largest = compare(given.engine, given.folder, given.documents)
    print(
        f"{given.engine}: {seen} scores, {unlike} unlike the emulator's, {unpredicted} unlike the "
        f"predicted; largest difference from the models' own {largest:.3g} of the bound"
    )
    return 1 if unlike or unpredicted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
