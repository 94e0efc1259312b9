"""Tables to be scored: a model's features by name, whatever the order of the columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.categories import Names
from rankgrove.data.dataset_checks import TABLE_REMEDY
from rankgrove.data.queries import QueryDataset
from rankgrove.data.tabular import (
    DOCID,
    check_column,
    column_names,
    table_features,
    tokens_of,
)
from rankgrove.errors import DataError
from rankgrove.validation import counted, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rankgrove.data.arrays import Frame

NAMES_SHOWN = 5


def dataset_of_frame(
    model: object, frame: Frame, owner: str, *, qid: str | None, docid: str | None = None
) -> QueryDataset:
    """Return the data set of a table without labels; its features are the model's, in their order.

    Columns that the model does not know are left out. A model without names of features, or another
    library's, gets the columns f1, f2, ..., or else every column without another role.

    Parameters
    ----------
    qid : the column of query ids; None: every row is a query of its own
    docid : the column of document ids; None: the column ``docid``, if there is one
    """
    names = column_names(frame)
    if qid is not None:
        check_column(qid, "the query ids", names)
    if docid is not None:
        check_column(docid, "the document ids", names)
    elif DOCID in names and DOCID not in known_names(model):
        docid = DOCID
    features = feature_columns(model, names, {qid, docid}, owner)
    n_rows = row_count(frame, names)
    if n_rows == 0:
        raise DataError(f"{owner}: the table has no rows.")
    known: Mapping[int, Names] = getattr(model, "categories_", {})
    matrix, categories = table_features(
        frame, features, n_rows, known=dict(known), remedy=TABLE_REMEDY
    )
    return QueryDataset(
        matrix,
        np.zeros(n_rows),
        np.arange(n_rows) if qid is None else tokens_of(frame, qid),
        docid=None if docid is None else tokens_of(frame, docid, nulls=True),
        feature_names=[str(name) for name in features] if known_names(model) else None,
        categorical={j + 1: texts for j, texts in categories.items()} or None,
    )


def known_names(model: object) -> tuple[str, ...]:
    """Return the names of a model's features; empty where it has none."""
    return tuple(getattr(model, "feature_names_", None) or ())


def feature_columns(
    model: object, names: list[Any], others: set[str | None], owner: str
) -> list[Any]:
    """Return the columns that are a model's features, in its order; refuse missing ones."""
    known = known_names(model)
    if known:
        by_text = {str(name): name for name in names}
        missing = [name for name in known if name not in by_text]
        if missing:
            shown = ", ".join(map(repr, missing[:NAMES_SHOWN]))
            more = f" and {len(missing) - NAMES_SHOWN:,} more" if len(missing) > NAMES_SHOWN else ""
            hint = nearest(missing[0], list(by_text)) if len(missing) == 1 else ""
            raise DataError(
                f"{owner}: the model has {counted(len(known), 'feature')}, and the table lacks "
                f"{shown}{more}{hint}: give it a column of each, with nulls where a value is "
                "missing."
            )
        return [by_text[name] for name in known]
    features = [name for name in names if name not in others]
    n_features = getattr(model, "n_features_in_", len(features))
    numbered = [f"f{i + 1}" for i in range(n_features)]
    if set(numbered) <= set(names):
        return numbered
    if len(features) != n_features:
        raise DataError(
            f"{owner}: the model has {counted(n_features, 'feature')} without names, and the "
            f"table has {counted(len(features), 'column')} beside ids: give it the features of "
            "training, in their order, and no other columns; or call them f1, f2 and so on."
        )
    return features


def row_count(frame: Any, names: list[Any]) -> int:
    """Return the number of rows of a table."""
    if hasattr(frame, "shape"):
        return int(frame.shape[0])
    return len(frame[names[0]]) if names else 0
