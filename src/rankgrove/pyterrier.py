"""``rg.pyterrier``: rankers in PyTerrier's pipelines.

``pt.ltr.apply_learned_model(ranker, form="ltr")`` takes rankers as they are. It gives them features
alone to score, without the queries; `apply_ranker` gives them both. PyTerrier is not a dependency:
it is imported when a function here is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, MissingExtraError, ParameterError
from rankgrove.rankers.base import Ranker
from rankgrove.validation import counted

__all__ = ["apply_ranker"]

OWNER = "apply_ranker"
COLUMNS = ("qid", "docno", "features")


def apply_ranker(
    ranker: Ranker, feature_names: Sequence[str] | None = None, **fit_kwargs: Any
) -> Any:
    """Return a PyTerrier transformer that reranks documents by a ranker.

    It needs a column ``features``, one array per document, as ``**`` pipelines make it. ``fit`` of
    the pipeline trains the ranker; without it, the ranker must be trained already. Unlike
    ``pt.ltr.apply_learned_model``, it can also have rankers that scale something within a query,
    training without validation data, names of features, and results without documents.

    Parameters
    ----------
    ranker : a ranker, trained or not
    feature_names : names of the features, in their order
    fit_kwargs : arguments of the ranker's ``fit``

    Examples
    --------
    >>> pipeline = bm25 >> features >> rg.pyterrier.apply_ranker(ranker)  # doctest: +SKIP
    """
    if not isinstance(ranker, Ranker):
        raise ParameterError(
            f"rg.pyterrier.{OWNER} takes a ranker of rankgrove. Got {type(ranker).__name__}: give "
            "other models to pt.ltr.apply_learned_model."
        )
    transformer = _transformer_class()
    return transformer(ranker, feature_names, fit_kwargs)


def dataset_of_results(
    results: Any, qrels: Any = None, feature_names: Sequence[str] | None = None
) -> QueryDataset:
    """Return the data set of a PyTerrier frame of results with features.

    Parameters
    ----------
    results : a frame with the columns qid, docno and features
    qrels : a frame with the columns qid, docno and label; documents that it lacks get the label 0.
        None: all labels are 0
    feature_names : names of the features, in their order
    """
    _check_columns(results, COLUMNS, "results")
    labels = np.zeros(len(results))
    if qrels is not None:
        _check_columns(qrels, ("qid", "docno", "label"), "qrels")
        grades = {
            (str(qid), str(docno)): float(label)
            for qid, docno, label in zip(qrels["qid"], qrels["docno"], qrels["label"], strict=True)
        }
        pairs = zip(results["qid"], results["docno"], strict=True)
        labels = np.array([grades.get((str(qid), str(docno)), 0.0) for qid, docno in pairs])
    return QueryDataset(
        _matrix(results["features"]),
        labels,
        results["qid"].astype(str).to_numpy(dtype=object),
        docid=results["docno"].astype(str).tolist(),
        feature_names=feature_names,
    )


def _matrix(column: Any) -> np.ndarray:
    rows = [np.atleast_1d(np.asarray(features, np.float64)) for features in column]
    widths = {row.size for row in rows}
    if len(widths) != 1:
        few, many = min(widths), max(widths)
        raise DataError(
            f"{OWNER}: documents have {few} to {counted(many, 'feature')}: every document needs "
            "the same ones."
        )
    return np.stack(rows)


def _check_columns(frame: Any, names: Sequence[str], what: str) -> None:
    there = list(getattr(frame, "columns", ()))
    missing = [name for name in names if name not in there]
    if missing:
        raise DataError(
            f"{OWNER}: the {what} lack the column {missing[0]!r}. They have: "
            f"{', '.join(map(str, there)) or 'no columns'}."
            + (" Make features by ** before the ranker." if missing[0] == "features" else "")
        )


@cache
def _transformer_class() -> type:
    """Return the class of the transformer, whose base is PyTerrier's."""
    try:
        import pyterrier as pt
    except ImportError:
        raise MissingExtraError("pyterrier", "pyterrier", f"rg.pyterrier.{OWNER}") from None

    class RankerTransformer(pt.Estimator):  # type: ignore[misc]
        """Reranks documents by a ranker."""

        def __init__(
            self,
            ranker: Ranker,
            feature_names: Sequence[str] | None,
            fit_kwargs: dict[str, Any],
        ) -> None:
            super().__init__()
            self.ranker = ranker
            self.feature_names = feature_names
            self.fit_kwargs = fit_kwargs

        def __repr__(self) -> str:
            return f"apply_ranker({self.ranker!r})"

        def fit(
            self,
            topics_or_res_tr: Any,
            qrels_tr: Any,
            topics_or_res_va: Any = None,
            qrels_va: Any = None,
        ) -> RankerTransformer:
            """Train the ranker on results and qrels; the second pair is validation data."""
            if len(topics_or_res_tr) == 0:
                raise DataError(f"{OWNER}: there are no results to train on.")
            arguments = dict(self.fit_kwargs)
            if topics_or_res_va is not None and len(topics_or_res_va):
                arguments["valid"] = self._data(topics_or_res_va, qrels_va)
            self.ranker.fit(self._data(topics_or_res_tr, qrels_tr), **arguments)
            return self

        def transform(self, inp: Any) -> Any:
            """Return the documents with new scores and ranks."""
            results = inp.copy()
            if len(results) == 0:
                results["score"] = np.zeros(0)
                results["rank"] = np.zeros(0, np.int64)
                return results
            results["score"] = self.ranker.predict(self._data(results, None))
            return pt.model.add_ranks(results)

        def transform_outputs(self, inp_cols: list[str]) -> list[str]:
            """Return the columns of the output."""
            return [*inp_cols, *(name for name in ("score", "rank") if name not in inp_cols)]

        def _data(self, results: Any, qrels: Any) -> QueryDataset:
            return dataset_of_results(results, qrels, self.feature_names)

    return RankerTransformer
