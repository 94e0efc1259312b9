"""Sets of kernels by name, each compiled by using it: small runs of the code that needs it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.cli.ahead import FEW
from rankgrove.compiling import announce
from rankgrove.data.arrays import frozen
from rankgrove.data.letor import read_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import MissingExtraError, ParameterError
from rankgrove.evaluation.compare import compare
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.explaining.explain import explain
from rankgrove.growth import regions
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.model.category_sets import NO_SETS, CategorySets
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree
from rankgrove.operations.combining import optimal_combination
from rankgrove.rankers.base import KINDS, Ranker
from rankgrove.rankers.load import trainable
from rankgrove.rankers.trees.open_binned import open_binned
from rankgrove.scoring.score import SCORERS, score
from rankgrove.scoring.scorer import Scorer
from rankgrove.validation import check_choice

N_FEATURES = 12
MANY_ROWS = 1 << 16  # growth runs on several threads from a smaller number on
_CODES, _MORE_CODES = 5, 300  # numbers of categories: in bins of their own, and in an order


# -- data ------------------------------------------------------------------------------------------


def _data(n_queries: int = 40, n_docs: int = 12, top: int = 4, **more: Any) -> QueryDataset:
    """Return data from a few hashes: what kernels learn from it does not matter."""
    n_rows = n_queries * n_docs
    features = _features(n_rows)
    labels = (features[:, 0] * (top + 1)).astype(np.float32) // 1
    return QueryDataset(features, labels, np.repeat(np.arange(n_queries), n_docs), **more)


def _features(n_rows: int) -> np.ndarray:
    """Return numbers in columns of many and of few values, some of which share bytes."""
    numbers = np.arange(n_rows * N_FEATURES, dtype=np.uint32) * np.uint32(2654435761) >> 8
    features = (numbers.reshape(n_rows, N_FEATURES) % 1009 / np.float32(1009)).astype(np.float32)
    features[:, 6:] = features[:, 6:] > 0.5
    return features


def _categories(n_queries: int = 40, n_docs: int = 12) -> QueryDataset:
    """Return data with missing values, weights, and categories of both kinds."""
    n_rows = n_queries * n_docs
    features = _features(n_rows)
    labels = features[:, 0] * 5 // 1
    features[::7, 1] = np.nan
    features[:, 2] = features[:, 2] * _CODES // 1
    features[:, 3] = np.arange(n_rows) % _MORE_CODES
    return QueryDataset(
        features,
        labels,
        np.repeat(np.arange(n_queries), n_docs),
        weight=features[:, 4] + 0.5,
        categorical=[3, 4],
    )


def _text(data: QueryDataset, leave_out: float = 0.0) -> str:
    features = np.asarray(data.X)
    lines = []
    for i, row in enumerate(features.tolist()):
        values = " ".join(f"{j + 1}:{x:.6g}" for j, x in enumerate(row) if x >= leave_out)
        lines.append(f"{int(data.y[i])} qid:{i // 12} {values} # d{i}\n")
    return "".join(lines)


def _table(data: QueryDataset) -> str:
    lines = ["label,qid,brand,x\n"]
    for i, row in enumerate(np.asarray(data.X).tolist()):
        lines.append(f"{int(data.y[i])},{i // 12},b{i % _CODES},{row[1]:.6g}\n")
    return "".join(lines)


@contextmanager
def _files(**texts: str) -> Iterator[list[Path]]:
    """Yield text files with these contents, in a folder of their own."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name.replace("_", ".")) for name in texts]
        for path, text in zip(paths, texts.values(), strict=True):
            path.write_text(text, encoding="utf-8")
        yield paths


# -- training --------------------------------------------------------------------------------------


class _Free:
    """Prices of parallel regions where they always pay."""

    price = 0.0

    def trial(self) -> bool:
        return True

    def note(self, took: float, work: float) -> None: ...


@contextmanager
def _all_regions() -> Iterator[None]:
    """Enter every parallel region, as training on many rows may."""
    before = regions.prices
    regions.prices = _Free()  # type: ignore[assignment]
    try:
        yield
    finally:
        regions.prices = before


def _short(kind: type[Ranker]) -> dict[str, Any]:
    """Return parameters with which training ends soon."""
    short = {"n_trees": 2, "n_rounds": 2, "n_epochs": 1, "n_leaves": 4, "max_iter": 2}
    return {name: value for name, value in short.items() if name in kind.parameters}


def _fit(name: str, data: QueryDataset, valid: QueryDataset | None = None, **more: Any) -> Ranker:
    kind = KINDS[name]
    return kind(**_short(kind) | more).fit(data, valid=valid)


def _few(name: str) -> None:
    """What training on rows of numbers uses first: `train` starts it while it reads data."""
    few = _data(top=1 if name.startswith("svm") else 4)  # most goals of SVMs know two kinds
    if name == "lambdamart":
        _fit(name, few, few)
        _fit(name, _data(MANY_ROWS // 64, 64))
    else:
        _fit(name, few)


def _train_on_rows(name: str) -> None:
    """Train on all kinds of data; rankers of trees also on many rows, and on bins."""
    _few(name)
    if not KINDS[name].uses_bins:
        return
    few, many = _data(), _data(MANY_ROWS // 64, 64)
    _fit(name, few, few)
    with _all_regions():
        _fit(name, many, many)
    if KINDS[name].takes_categories:
        with _all_regions():
            _fit(name, _categories(MANY_ROWS // 64, 64))
        rows = _categories()
        _fit(name, rows, rows)


def _grow() -> None:
    """Growth before objectives: `train` starts this while it compiles what comes first."""
    _fit("mart", _data())


def _train() -> None:
    _predict()  # models of a bag are scored
    _train_on_rows("lambdamart")
    few = _data()
    KINDS["bag"](KINDS["lambdamart"](n_trees=2, n_leaves=4), 2).fit(few).predict(few)
    _bins()


def _bins() -> None:
    """Train on files in little memory."""
    few = _data()
    for kind, text in {
        "txt": _text(few),
        "sparse_txt": _text(few, 0.97),
        "csv": _table(few),
    }.items():
        with _files(**{f"a_{kind}": text}) as (path,):
            try:
                train = open_binned(path)
            except MissingExtraError:  # no tables without pyarrow
                continue
            _fit("lambdamart", train, open_binned(path, like=train))


def _measure(text: str) -> None:
    """Train for a measure; where there is no gradient for it, only compute it."""
    few = _data()
    evaluate(_scores(few), few, text)
    try:
        _fit("lambdamart", few, few, measure=text)
    except ParameterError:  # the measure has no differences that gradients need
        KINDS["lambdamart"](n_trees=2).fit(few, valid=few, valid_measures=text)


# -- the rest --------------------------------------------------------------------------------------


def _scores(data: QueryDataset) -> np.ndarray:
    return np.asarray(data.X)[:, 0].astype(np.float64)


def _read() -> None:
    data = _data()
    with _files(a_txt=_text(data), b_txt=_text(data, 0.97)) as paths:
        for path in paths:
            read_letor(path)


def _evaluate() -> None:
    data = _data()
    scores = _scores(data)
    evaluate(scores, data, ["ndcg@10", "ndcg", "map", "err@10", "mrr", "p@10"])
    compare({"a": scores, "b": -scores}, data, "ndcg@10")


def _trees(sets: CategorySets = NO_SETS) -> Ensemble:
    """Return some trees as a model file has them, without training: that needs other kernels."""
    tree = Tree(
        feature=np.array([0, 1, 2], np.int32),
        threshold=np.array([0.5, 0.3, 0.7], np.float32),
        left=np.array([1, -1, -3], np.int32),
        right=np.array([2, -2, -4], np.int32),
        missing_left=np.zeros(3, np.bool_),
        gain=np.ones(3),
        value=np.arange(4.0),
        count=np.ones(7, np.int64),
        weight=np.ones(7),
        mean=np.zeros(7),
        set_of=np.array([-1, -1, len(sets) - 1], np.int32),
        sets=sets,
    )
    return Ensemble.from_arrays(Ensemble.from_trees([tree] * 3, N_FEATURES).to_arrays())


def _both() -> Iterator[Ensemble]:
    """Yield trees without and with sets of categories."""
    yield _trees()
    yield _trees(CategorySets.of([[0, 3]]))


def _predict() -> None:
    for trees in _both():
        for kind in (np.float32, np.float64):
            features = np.zeros((256, N_FEATURES), kind)
            for scorer in SCORERS:
                score(trees, features, scorer=scorer)
                score(trees, frozen(features), scorer=scorer)  # as a data set has them


def _serve() -> None:
    for trees in _both():
        scorer = Scorer(trees)
        for kind in (np.float32, np.float64):
            for n_rows in (1, 256, 1024):
                scorer.predict(np.zeros((n_rows, N_FEATURES), kind))
        scorer.top(np.zeros((1024, N_FEATURES), np.float32), 10)


def _explain() -> None:
    data = _data()
    explain(_fit("lambdamart", data), data)


def _combine() -> None:
    data = _data()
    scores = _scores(data)
    optimal_combination(scores, scores[::-1].copy(), data, "ndcg@10")


# Read-only arrays come last: a process that has a kernel for them uses it for others too, and does
# not compile what a process without it would.
SETS: dict[str, Callable[[], None]] = {
    "read": _read,
    "predict": _predict,
    "serve": _serve,
    "evaluate": _evaluate,
    "train": _train,
}
MORE_SETS = {"explain": _explain, "combine": _combine}  # only where they are named, or with all
_PARTS = {"grow": _grow}  # of sets, in another order


def set_names(wanted: list[str]) -> list[str]:
    """Return the names of sets; none: those of `SETS`; ``all``: those, others and all rankers."""
    rankers = sorted(trainable())
    if not wanted:
        return list(SETS)
    names = (*SETS, *MORE_SETS, *rankers)
    if "all" in wanted:
        return list(dict.fromkeys([*names, *(name for name in wanted if name != "all")]))
    for name in wanted:
        if name not in _PARTS and name.removesuffix(FEW) not in rankers and not is_measure(name):
            check_choice("what", "compile", name, (*names, "all"))
    return list(dict.fromkeys(wanted))


def is_measure(name: str) -> bool:
    """Return whether a name is that of a measure."""
    try:
        parse_measure(name)
    except ParameterError:
        return False
    return True


def compile_set(name: str) -> None:
    """Compile the kernels of a set, ranker or measure that are not compiled yet."""
    announce(advises=False)
    runs = SETS | MORE_SETS | _PARTS
    if name in runs:
        runs[name]()
    elif name.removesuffix(FEW) in trainable():
        (_few if name.endswith(FEW) else _train_on_rows)(name.removesuffix(FEW))
    else:
        _measure(name)
