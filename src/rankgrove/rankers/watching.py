"""Checks of validation data, before any work is done."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.rankers.base import check_names
from rankgrove.training.watch import Watched
from rankgrove.validation import counted


def check_alike(
    data: QueryDataset, name: str, n_features: int, names: Sequence[str] | None, owner: str
) -> None:
    """Refuse validation data whose features are not those of the training data."""
    if data.n_features != n_features:
        raise DataError(
            f"{owner}: the {name} data has {counted(data.n_features, 'feature')}, the "
            f"training data {n_features}."
        )
    check_names(names, data.feature_names if data.has_feature_names else None, owner)


def check_defined(watched: Watched, name: str, owner: str) -> dict[str, float]:
    """Return the measures before training; refuse data of which one leaves out every query."""
    values = watched.values()
    for measure_name, value in values.items():
        if np.isnan(value):
            raise DataError(
                f"{owner}: {measure_name} leaves out every query of the {name} data "
                "(nothing relevant, or all labels equal)."
            )
    return values
