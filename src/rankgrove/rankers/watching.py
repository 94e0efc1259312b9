"""Validation data: checked before any work is done, and told of afterwards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, ParameterError
from rankgrove.rankers.given import check_names
from rankgrove.training.watch import History, Watched
from rankgrove.validation import counted


def check_valid_given(given: bool, parameter: str | None, owner: str) -> None:
    """Refuse training without validation data where a parameter asks for it."""
    if parameter is not None and not given:
        raise ParameterError(
            f"{owner}: {parameter} needs validation data: give fit a valid= (--valid on the "
            "command line)."
        )


def check_alike(
    data: QueryDataset, name: str, n_features: int, names: Sequence[str] | None, owner: str
) -> None:
    """Refuse validation data whose features are not those of the training data."""
    if data.n_features != n_features:
        raise DataError(
            f"{owner}: the {name} data has {counted(data.n_features, 'feature')}, the "
            f"training data {n_features}."
        )
    check_names(names, data.given_names, owner)


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


def history_lines(history: History, best: int | None, unit: str) -> list[str]:
    """Return a summary's lines on validation data: the measures of the best round, or the last."""
    lines = []
    for name, measures in history.items():
        for measure_name, values in measures.items():
            n = best or len(values)
            lines.append(f"{name} {measure_name}: {values[n - 1]:.4f} after {unit} {n}")
    return lines
