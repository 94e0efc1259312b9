"""Categorical features of rankers: data is coded as a model's training data was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.categories import MOST_CATEGORIES, Categories, Names, names_text
from rankgrove.data.category_columns import refuse_numbers
from rankgrove.data.tabular import column_names, table_features
from rankgrove.errors import DataError
from rankgrove.model import sense

if TYPE_CHECKING:
    from rankgrove.data.queries import QueryDataset

SHOWN_FEATURES = 5


def coded_like(
    data: QueryDataset,
    known: Mapping[int, Names],
    n_features: int,
    owner: str,
    *,
    whose: str = "the model",
) -> QueryDataset:
    """Return data with the codes of a model or of training data; refuse other kinds of columns.

    Categories with unknown names become missing values. Columns without names hold codes.

    Parameters
    ----------
    known : the categorical columns of `whose`
    n_features : number of features that are used
    """
    given = data.categories
    if given == known:
        return data
    for column in sorted({*known, *(j for j in given if j < n_features)}):
        name = data.feature_names[column]
        if column not in known:
            raise DataError(
                f"{owner}: the feature {name!r} is categorical in the data, and {whose} has "
                "numbers there: read the data without it in 'categorical', as numbers."
            )
        names = known[column]
        if names is None and given.get(column) is not None:
            raise DataError(
                f"{owner}: the feature {name!r} has names of categories, and {whose} has codes "
                "without names there: give the codes, by 'categorical' without names."
            )
        if names is not None and column not in given:
            raise DataError(
                f"{owner}: the feature {name!r} is categorical for {whose}, with "
                f"{names_text(names)}, and not in the data: give a table with its texts, or name "
                "it in 'categorical' (--categorical)."
            )
        refuse_numbers(given.get(column) or (), names or (), name, owner)
    wanted: Categories = dict(known)
    more = {j: v for j, v in given.items() if j >= n_features}
    return data.recoded(wanted).with_codes_of(wanted | more)


def coded_frame(
    frame: Any, known: Mapping[int, Names], kind: type[np.floating[Any]] = np.float64
) -> np.ndarray:
    """Return the features of a table with a model's codes; unknown categories are missing."""
    from rankgrove.data.dataset_checks import TABLE_REMEDY

    names = column_names(frame)
    n_rows = int(frame.shape[0] if hasattr(frame, "shape") else len(frame))
    return table_features(frame, names, n_rows, kind=kind, known=dict(known), remedy=TABLE_REMEDY)[
        0
    ]


def refusal(owner: str, names: Sequence[str], ranker: str) -> DataError:
    """Return the error of a ranker that cannot use categorical features."""
    shown = ", ".join(map(repr, names[:SHOWN_FEATURES]))
    more = f" and {len(names) - SHOWN_FEATURES:,} more" if len(names) > SHOWN_FEATURES else ""
    begin = f"features {shown}{more} are" if len(names) > 1 else f"feature {shown} is"
    return DataError(
        f"{owner}: the {begin} categorical, and {ranker} would take codes for quantities. Use "
        f"rg.PreparedRanker(rg.{ranker}(...), encode='auto') (--encode auto), trees such as "
        "rg.LambdaMART, or leave such features out."
    )


# -- the model file --------------------------------------------------------------------------------


def packed(categories: Mapping[int, Names]) -> list[Any]:
    """Return categories as plain values for a model file: column and names, or None."""
    return [[j, None if names is None else list(names)] for j, names in categories.items()]


def unpacked(value: object, n_features: int) -> Categories:
    """Return the categories of a model file; ValueError where they make no sense."""
    if not isinstance(value, list):
        raise ValueError("the categories must be a list.")
    categories: Categories = {}
    before = -1
    for entry in value:
        if not isinstance(entry, list) or len(entry) != 2:
            raise ValueError("an entry of the categories must be a column and its names.")
        column = sense.whole(entry[0], "a categorical column", before + 1, n_features - 1)
        names = None
        if entry[1] is not None:
            names = tuple(sense.texts(entry[1], "the names of categories"))
            if len(set(names)) != len(names) or len(names) > MOST_CATEGORIES:
                raise ValueError("the names of categories must differ, and be at most 2**20.")
        categories[column] = names
        before = column
    return categories
