"""Sets of kernels by name, each compiled by using it: a small run of the code that needs it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.compiling import announce
from rankgrove.data.letor import read_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.evaluation.evaluate import evaluate
from rankgrove.model.ensemble import Ensemble
from rankgrove.model.tree import Tree
from rankgrove.rankers.base import KINDS, Ranker
from rankgrove.rankers.load import trainable
from rankgrove.scoring.score import SCORERS, score
from rankgrove.scoring.scorer import Scorer
from rankgrove.validation import check_choice

N_FEATURES = 12
MANY_ROWS = 1 << 16  # growth runs on several threads from a smaller number on


def _data(n_queries: int = 40, n_docs: int = 12, top: int = 4) -> QueryDataset:
    """Return data from a few hashes: what kernels learn from it does not matter."""
    n_rows = n_queries * n_docs
    numbers = np.arange(n_rows * N_FEATURES, dtype=np.uint32) * np.uint32(2654435761) >> 8
    features = (numbers.reshape(n_rows, N_FEATURES) % 1009 / np.float32(1009)).astype(np.float32)
    labels = (features[:, 0] * (top + 1)).astype(np.float32) // 1
    return QueryDataset(features, labels, qid=np.repeat(np.arange(n_queries), n_docs))


def _text(data: QueryDataset, leave_out: float = 0.0) -> str:
    features = np.asarray(data.X)
    lines = []
    for i, row in enumerate(features.tolist()):
        values = " ".join(f"{j + 1}:{x:.6g}" for j, x in enumerate(row) if x >= leave_out)
        lines.append(f"{int(data.y[i])} qid:{i // 12} {values} # d{i}\n")
    return "".join(lines)


def _lambdamart(data: QueryDataset, valid: QueryDataset | None = None, **params: Any) -> Ranker:
    ranker = KINDS["lambdamart"](**{"n_trees": 2, "n_leaves": 4} | params)
    return ranker.fit(data, valid={"valid": valid} if valid is not None else None)


def _read() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "some.txt")
        path.write_text(_text(_data()), encoding="utf-8")
        read_letor(path)
        path.write_text(_text(_data(), 0.97), encoding="utf-8")
        read_letor(path)


def _grow() -> None:
    """Growth before objectives: `train` starts this while it compiles what comes first."""
    KINDS["mart"](n_trees=2, n_leaves=4).fit(_data())


def _train() -> None:
    few = _data()
    _lambdamart(few, few)
    _lambdamart(_data(MANY_ROWS // 64, 64))


def _evaluate() -> None:
    data = _data()
    scores = np.asarray(data.X)[:, 0].astype(np.float64)
    evaluate(scores, data, ["ndcg@10", "ndcg", "map", "err@10", "mrr", "p@10"])


def _trees() -> Ensemble:
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
        set_of=np.full(3, -1, np.int32),
    )
    return Ensemble.from_arrays(Ensemble.from_trees([tree] * 3, N_FEATURES).to_arrays())


def _predict() -> None:
    trees = _trees()
    for kind in (np.float32, np.float64):
        for scorer in SCORERS:
            score(trees, np.zeros((256, N_FEATURES), kind), scorer=scorer)


def _serve() -> None:
    scorer = Scorer(_trees())
    for kind in (np.float32, np.float64):
        for n_rows in (1, 256, 1024):
            scorer.predict(np.zeros((n_rows, N_FEATURES), kind))
    scorer.top(np.zeros((1024, N_FEATURES), np.float32), 10)


SETS: dict[str, Callable[[], None]] = {
    "read": _read,
    "train": _train,
    "evaluate": _evaluate,
    "predict": _predict,
    "serve": _serve,
}
_PARTS = {"grow": _grow}  # of sets, in another order


def set_names(wanted: list[str]) -> list[str]:
    """Return the names of sets; none: all sets; ``all``: those and all rankers."""
    rankers = sorted(trainable())
    if not wanted:
        return list(SETS)
    if "all" in wanted:
        return [*SETS, *rankers]
    for name in wanted:
        if name not in _PARTS:
            check_choice("what", "compile", name, (*SETS, "all", *rankers))
    return list(dict.fromkeys(wanted))


def compile_set(name: str) -> None:
    """Compile the kernels of a set, or of training a kind of ranker, that are not compiled yet."""
    announce()
    run = SETS.get(name) or _PARTS.get(name)
    if run is not None:
        run()
        return
    kind = trainable()[name]
    top = 1 if name.startswith("svm") else 4  # most goals of SVMs know two kinds of documents
    data = _data(top=top)
    kind(**_short(kind)).fit(data)


def _short(kind: type[Ranker]) -> dict[str, Any]:
    """Return parameters with which training ends soon."""
    short = {"n_trees": 2, "n_rounds": 2, "n_epochs": 1, "n_leaves": 4, "max_iter": 2}
    return {name: value for name, value in short.items() if name in kind.parameters}
