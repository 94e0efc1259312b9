"""Categories as plain numbers, for rankers that cannot use codes: indicators, or mean labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.categories import MOST_CATEGORIES, Names, column_of
from rankgrove.data.category_means import CategorySums, fold_of_queries
from rankgrove.model import sense

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix, Rows
    from rankgrove.data.queries import QueryDataset

ENCODINGS = ("auto", "onehot", "target")
MOST_INDICATORS = 20  # categories: "auto" takes mean labels for more


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

    Mean labels of training rows are cross-fitted by query (`category_means`), so that no row sees
    its own label; the prior is the mean label of the same rows.

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
    weight, fold = _weights(data), fold_of_queries(data)[data.query_of_row]
    places = np.where(codes >= 0, codes, n_codes).astype(np.int64)  # missing values come last
    sums = CategorySums.of(places, n_codes + 1, fold, weight * data.y, weight)
    whole, elsewhere = sums.total(), sums.elsewhere()
    prior = float(_mean(whole, 0.0))
    priors = _mean(elsewhere, prior)
    means = elsewhere.means(priors[:, None])
    means[:, n_codes] = priors
    own = means[fold, places].astype(np.float32)[:, None]
    return Encoding("target", whole.means(prior)[:n_codes], prior), own


def _mean(sums: CategorySums, otherwise: float) -> np.ndarray:
    """Return the mean of the target over all categories; without rows, `otherwise`."""
    total, weight = sums.sums.sum(axis=-1), sums.counts.sum(axis=-1)
    return np.divide(total, weight, out=np.full_like(total, otherwise), where=weight > 0.0)


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
    listed: object, arrays: Mapping[str, np.ndarray], categories: Mapping[int, Names]
) -> dict[int, Encoding]:
    """Return the encodings of a model file; ValueError where they make no sense."""
    if not isinstance(listed, list):
        raise ValueError("the encodings must be a list.")
    encodings: dict[int, Encoding] = {}
    for entry in listed:
        column, kind, prior = entry
        if sense.whole(column, "an encoded column") not in categories:
            raise ValueError(f"an encoding of the column {column}, which is not categorical.")
        if kind not in ("onehot", "target"):
            raise ValueError(f"an encoding {kind!r}, which is not known.")
        values = sense.numbers(arrays[f"encoding {column}"], "the values of an encoding")
        names = categories[column]
        if values.size > MOST_CATEGORIES or (names is not None and values.size != len(names)):
            raise ValueError(f"an encoding of {values.size:,} categories, which is another number.")
        encodings[column] = Encoding(kind, values, sense.number(prior, "the prior of an encoding"))
    return encodings
