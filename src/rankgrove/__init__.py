"""rankgrove: learning to rank.

Public names are loaded when they are first used, so that ``import rankgrove`` stays quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from rankgrove._version import __version__

# Public name -> the module that defines it.
_HOME = {
    "DataError": "errors",
    "MissingExtraError": "errors",
    "ParameterError": "errors",
    "ParseError": "errors",
    "RankgroveError": "errors",
    "QueryDataset": "data.queries",
    "read_letor": "data.letor",
    "write_letor": "data.letor",
    "Qrels": "data.trec",
    "Run": "data.trec",
    "dataset_from_runs": "data.trec",
    "read_qrels": "data.trec",
    "read_run": "data.trec",
    "write_run": "data.trec",
    "read_table": "data.tabular",
    "k_fold": "data.folds",
    "letor_folds": "data.folds",
    "random_trials": "data.folds",
    "make_artificial": "data.synthetic",
    "make_domains": "data.synthetic",
    "make_web": "data.synthetic",
    "Measure": "measures.base",
    "measure": "measures.parse",
    "register_measure": "measures.custom",
    "Evaluation": "evaluation.evaluate",
    "evaluate": "evaluation.evaluate",
    "Comparison": "evaluation.compare",
    "compare": "evaluation.compare",
    "QueryKFold": "rankers.folds",
}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604

if TYPE_CHECKING:
    from rankgrove.data.folds import k_fold, letor_folds, random_trials
    from rankgrove.data.letor import read_letor, write_letor
    from rankgrove.data.queries import QueryDataset
    from rankgrove.data.synthetic import make_artificial, make_domains, make_web
    from rankgrove.data.tabular import read_table
    from rankgrove.data.trec import (
        Qrels,
        Run,
        dataset_from_runs,
        read_qrels,
        read_run,
        write_run,
    )
    from rankgrove.errors import (
        DataError,
        MissingExtraError,
        ParameterError,
        ParseError,
        RankgroveError,
    )
    from rankgrove.evaluation.compare import Comparison, compare
    from rankgrove.evaluation.evaluate import Evaluation, evaluate
    from rankgrove.measures.base import Measure
    from rankgrove.measures.custom import register_measure
    from rankgrove.measures.parse import measure
    from rankgrove.rankers.folds import QueryKFold


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rankgrove' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"rankgrove.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
