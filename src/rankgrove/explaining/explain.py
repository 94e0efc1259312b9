"""``rg.explain``: feature contributions (SHAP values) of documents' scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.explaining.additive import Context, taken_apart
from rankgrove.explaining.explanation import Explanation, settle
from rankgrove.explaining.tree_shap import dense
from rankgrove.rankers.base import Ranker
from rankgrove.rankers.foreign_models import of_object
from rankgrove.rankers.load import load
from rankgrove.validation import nearest, refuse


def explain(
    model: Any,
    dataset: QueryDataset,
    query: Any = None,
    background: QueryDataset | None = None,
    *,
    n_threads: int | None = None,
) -> Explanation:
    """Return feature contributions (SHAP values), which sum exactly to every document's score.

    For trees these are exact, path-dependent Shapley values (TreeSHAP), the same numbers as
    LightGBM's ``pred_contrib``: a condition on an unknown feature is met by the same share of rows
    as in training (models of XGBoost have sums of hessians instead of row counts). For linear
    models a contribution is the weight times the distance from the feature's mean. Contributions
    of submodels, weighted combinations and bags are sums of these. Bags with ``combine="minmax"``
    are explained within the query, with its least and largest scores held fixed. Nets with hidden
    units, McRank and bags with ``combine="borda"`` are not sums over features, and are refused.

    Parameters
    ----------
    model : a trained ranker, a model of LightGBM or XGBoost (a Booster, LGBMRanker, XGBRanker), or
        the path of a model file
    dataset : documents with features
    query : the id of the query to explain; None: all queries
    background : reference data, for the row counts of tree nodes and the means of features. None:
        the counts of training, and for linear models the means of `dataset`
    n_threads : threads to use, None for all cores; the result does not depend on it

    Examples
    --------
    >>> import math, rankgrove as rg
    >>> data = rg.make_artificial(50, seed=1)
    >>> model = rg.LambdaMART(n_trees=20).fit(data)
    >>> result = rg.explain(model, data, query=data.query_ids[0])
    >>> total = math.fsum([result.base[3], *result.contributions[3], result.rounding[3]])
    >>> total == float(result.scores[3])
    True
    >>> best, second = result.ranking[:2]
    >>> result.why(best, second).total > 0
    True
    """
    trained = checked_model(model, "explain")
    dataset = checked_data(trained, dataset, "dataset", "explain")
    if background is not None:
        background = checked_data(trained, background, "background", "explain")
    part = dataset if query is None else dataset.select([_position(dataset, query)])
    scores = trained.predict(part, n_threads=n_threads)
    total = taken_apart(trained, Context(part, dataset, background, n_threads))
    parts = np.ascontiguousarray(total.parts)
    rounding = [
        settle(score, base, parts[i])
        for i, (score, base) in enumerate(zip(scores.tolist(), total.base.tolist(), strict=True))
    ]
    names = getattr(trained, "feature_names_", None)
    return Explanation(
        model=type(trained).__name__,
        feature_names=tuple(names or dataset.feature_names),
        documents=_documents(dataset, part, query),
        query_ids=np.array(part.qid),
        labels=np.array(part.y),
        scores=scores,
        base=total.base,
        contributions=parts,
        rounding=np.array(rounding),
        values=dense(part.features, part.rows),
        categories=part.categories,
    )


def checked_model(model: Any, owner: str) -> Ranker:
    """Return the trained ranker that is given, as an object or by the path of its file."""
    rule = "a trained ranker, or the path of its model file"
    if isinstance(model, str | Path):
        if not Path(model).is_file():
            refuse("model", owner, rule + ", and there is no such file", str(model))
        model = load(model)
    model = of_object(model)
    inside = getattr(model, "ranker", None)
    if not isinstance(model, Ranker) and isinstance(inside, Ranker):  # the result of a search
        model = inside
    if not isinstance(model, Ranker):
        refuse("model", owner, rule, model)
    if not hasattr(model, "n_features_in_"):
        refuse("model", owner, "trained: call fit first", model)
    return model


def checked_data(model: Ranker, data: Any, name: str, owner: str) -> QueryDataset:
    """Return the data with the model's features in the model's order; refuse anything else."""
    if not isinstance(data, QueryDataset):
        shown = repr(data) if isinstance(data, str | Path) else type(data).__name__
        raise DataError(
            f"{owner}: {name} must be a QueryDataset, as rg.read_letor reads one from files. "
            f"Got {shown}."
        )
    aligned: QueryDataset = model._aligned(data, owner)
    model._checked_input(aligned, owner, None)
    return aligned


def _position(data: QueryDataset, query: Any) -> int:
    """Return the position of a query among the ids; a number may be given as text."""
    ids = data.query_ids.tolist()
    for wanted in (query, str(query)):
        for i, query_id in enumerate(ids):
            if query_id == wanted or (isinstance(wanted, str) and str(query_id) == wanted):
                return i
    raise DataError(
        f"There is no query {query!r} among the {len(ids):,} of the data"
        f"{nearest(query, [str(query_id) for query_id in ids])}."
    )


def _documents(data: QueryDataset, part: QueryDataset, query: Any) -> tuple[str, ...]:
    """Return the ids of documents; if there are none, their row numbers, as in runs."""
    if query is None:
        rows = np.arange(data.n_rows)
    else:
        rows = np.flatnonzero(data.query_of_row == _position(data, query))
    ids = [""] * part.n_rows if part.docid is None else part.docid.tolist()
    return tuple(document or f"row{row}" for document, row in zip(ids, rows.tolist(), strict=True))
