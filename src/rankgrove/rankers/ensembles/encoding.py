"""Categories as plain numbers, for rankers that cannot use codes: indicators, or mean labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.categories import MOST_CATEGORIES, Names, column_of
from rankgrove.model import sense
from rankgrove.random import derive_seed, mix64

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix, Rows
    from rankgrove.data.queries import QueryDataset

ENCODINGS = ("auto", "onehot", "target")
MOST_INDICATORS = 20  # categories: "auto" takes mean labels for more
PRIOR_ROWS = 10.0  # the mean of all rows counts like this many rows of a category
FOLDS = 5


@dataclass(frozen=True)
class Encoding:
    """How the codes of one column become numbers.

    Attributes
    ----------
    kind : ``"onehot"``, one indicator per code, or ``"target"``, the smoothed mean label of a code
    values : by code: the mean label, or 1
    prior : the mean label of all rows, for missing and unknown categories
    """

    kind: str
    values: np.ndarray
    prior: float

    @property
    def n_columns(self) -> int:
        """Number of columns that the codes become."""
        return int(self.values.size) if self.kind == "onehot" else 1

    def names(self, feature: str, texts: Names) -> list[str]:
        """Return the names of the columns that a feature becomes."""
        if self.kind == "target":
            return [f"{feature} (mean label)"]
        return [
            f"{feature}={code if texts is None else texts[code]}"
            for code in range(self.values.size)
        ]

    def encoded(self, codes: np.ndarray) -> np.ndarray:
        """Return float32 columns of rows, given by codes; NaN and unknown codes are missing."""
        known = (codes >= 0) & (codes < self.values.size)
        places = np.where(known, codes, 0).astype(np.int64)
        if self.kind == "target":
            values = np.append(self.values, self.prior)
            means = values[np.where(known, places, self.values.size)]
            return means.astype(np.float32)[:, None]
        indicators = np.zeros((codes.size, self.values.size), np.float32)
        rows = np.flatnonzero(known)
        indicators[rows, places[rows]] = 1.0
        return indicators


def fit_encoding(data: QueryDataset, column: int, how: str) -> tuple[Encoding, np.ndarray]:
    """Return the encoding of a categorical column, and the training rows' own encoded columns.

    Mean labels of training rows are cross-fitted: those of a query come from the queries of other
    folds, so that no row sees its own label.

    Parameters
    ----------
    how : one of `ENCODINGS`
    """
    codes = column_of(data.features, column, data.rows)
    names = data.categories[column]
    n_codes = len(names) if names is not None else int(np.nanmax(np.append(codes, -1.0))) + 1
    if how == "onehot" or (how == "auto" and n_codes <= MOST_INDICATORS):
        encoding = Encoding("onehot", np.ones(n_codes), 0.0)
        return encoding, encoding.encoded(codes)
    weight = _weights(data)
    everything = np.ones(data.n_rows, np.bool_)
    whole = _mean_labels(codes, data.y, weight, everything, n_codes, 0.0)
    fold = (mix64(data.query_keys ^ np.uint64(derive_seed(0, "encode"))) % np.uint64(FOLDS)).astype(
        np.int64
    )[data.query_of_row]
    own = np.empty((data.n_rows, 1), np.float32)
    for k in range(FOLDS):
        inside = fold == k
        if inside.any():
            other = _mean_labels(codes, data.y, weight, ~inside, n_codes, whole.prior)
            own[inside] = other.encoded(codes[inside])
    return whole, own


def _mean_labels(
    codes: np.ndarray,
    labels: np.ndarray,
    weight: np.ndarray,
    chosen: np.ndarray,
    n_codes: int,
    otherwise: float,
) -> Encoding:
    """Return the mean labels of categories in some rows; `otherwise`: their mean without rows."""
    total = float(weight[chosen].sum())
    prior = float((weight * labels)[chosen].sum() / total) if total > 0.0 else otherwise
    rows = np.flatnonzero(chosen & (codes >= 0))
    places = codes[rows].astype(np.int64)
    count = np.bincount(places, weight[rows], minlength=n_codes)
    sums = np.bincount(places, weight[rows] * labels[rows], minlength=n_codes)
    return Encoding("target", (sums + PRIOR_ROWS * prior) / (count + PRIOR_ROWS), prior)


def _weights(data: QueryDataset) -> np.ndarray:
    weight = np.ones(data.n_rows) if data.weight is None else data.weight
    if data.query_weight is None:
        return weight
    return np.asarray(weight * data.query_weight[data.query_of_row])


def encode_columns(
    features: Matrix, rows: Rows, encodings: Mapping[int, Encoding]
) -> dict[int, np.ndarray]:
    """Return the columns that every encoded column becomes."""
    return {j: encoding.encoded(column_of(features, j, rows)) for j, encoding in encodings.items()}


# -- the model file --------------------------------------------------------------------------------


def packed(encodings: Mapping[int, Encoding]) -> tuple[list[Any], dict[str, np.ndarray]]:
    """Return encodings as plain values and arrays of a model file."""
    listed = [[j, encoding.kind, encoding.prior] for j, encoding in encodings.items()]
    return listed, {f"encoding {j}": encoding.values for j, encoding in encodings.items()}


def unpacked(
    listed: object, arrays: Mapping[str, np.ndarray], n_features: int
) -> dict[int, Encoding]:
    """Return the encodings of a model file; ValueError where they make no sense."""
    if not isinstance(listed, list):
        raise ValueError("the encodings must be a list.")
    encodings: dict[int, Encoding] = {}
    for entry in listed:
        column, kind, prior = entry
        sense.whole(column, "an encoded column", 0, n_features - 1)
        if kind not in ("onehot", "target"):
            raise ValueError(f"an encoding {kind!r}, which is not known.")
        values = sense.numbers(arrays[f"encoding {column}"], "the values of an encoding")
        if values.size > MOST_CATEGORIES:
            raise ValueError("an encoding of too many categories.")
        encodings[column] = Encoding(kind, values, sense.number(prior, "the prior of an encoding"))
    return encodings
