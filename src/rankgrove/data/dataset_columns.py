"""A data set as the columns of a table, as `from_frame` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove.errors import DataError

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset
    from rankgrove.frames import Columns


def columns_of(data: QueryDataset) -> Columns:
    """Return query ids, labels, what else rows have, and the features, by column name.

    A categorical feature that has names becomes a column of texts.
    """
    columns: dict[str, np.ndarray] = {"qid": data.qid}
    if data.docid is not None:
        columns["docid"] = data.docid
    columns["label"] = data.y
    if data.weight is not None:
        columns["weight"] = data.weight
    if data.query_weight is not None:
        columns["query_weight"] = data.query_weight[data.query_of_row]
    if data.base_score is not None:
        columns["base_score"] = data.base_score
    if data.positions is not None:
        columns["position"] = data.positions.place
        if data.positions.context is not None:
            names = np.array(data.positions.names, dtype=object)
            columns["position_context"] = names[data.positions.context]
    for name in data.feature_names:
        if name in columns:
            raise DataError(
                f"The feature {name!r} has the name of another column of the table: give the data "
                "set other feature names."
            )
    return columns | {name: feature_column(data, j) for j, name in enumerate(data.feature_names)}


def feature_column(data: QueryDataset, j: int) -> np.ndarray:
    """Return a feature's values; of a categorical feature that has names, the names."""
    values = data.column(j + 1)
    names = data.categories.get(j)
    if names is None:
        return values
    missing = np.isnan(values)
    codes = np.where(missing, len(names), values).astype(np.int64)
    return np.array([*names, None], dtype=object)[codes]
