"""Constraints as parameters of rankers: their rules, and the features that they name."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from rankgrove.growth.constraints import NO_CONSTRAINTS, Constraints
from rankgrove.validation import nearest, refuse

_MONOTONE = 'a dict of features and their directions, -1, 0 or 1, such as {"price": -1}'
_GROUPS = 'a list of groups of features, such as [["price", "brand"], ["bm25", "title"]]'


class HasConstraints(Protocol):
    """The parameters of a ranker whose trees may have constraints."""

    monotone: Mapping[str | int, int] | None
    interactions: Sequence[Sequence[str | int]] | None


def directions(name: str, owner: str, value: object) -> None:
    """Check a dict of features and directions."""
    if not isinstance(value, Mapping):
        refuse(name, owner, _MONOTONE, value)
    for feature, direction in value.items():
        if not _is_feature(feature):
            refuse(name, owner, "given for features by name or 1-based number", feature)
        if not _is_whole(direction) or direction not in (-1, 0, 1):
            refuse(name, owner, f"-1, 0 or 1 for the feature {feature!r}", direction)


def groups(name: str, owner: str, value: object) -> None:
    """Check a list of groups of features."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        refuse(name, owner, _GROUPS, value)
    for group in value:
        if isinstance(group, str) or not isinstance(group, Sequence):
            refuse(name, owner, _GROUPS, value)
        for feature in group:
            if not _is_feature(feature):
                refuse(name, owner, "given for features by name or 1-based number", feature)
        if len(group) < 2:
            rule = "groups of at least two features (a feature in no group is alone: leave it out)"
            refuse(name, owner, rule, list(group))


def constraints_of(
    ranker: HasConstraints, names: Sequence[str], categorical: Container[int] = ()
) -> Constraints:
    """Return a ranker's constraints, for data with features of these names."""
    owner = type(ranker).__name__
    if ranker.monotone is None and ranker.interactions is None:
        return NO_CONSTRAINTS
    given = ranker.monotone or {}
    columns = _columns("monotone", owner, given, names)
    for column, direction in zip(columns, given.values(), strict=True):
        if direction and column in categorical:
            rule = f"given for numbers: the feature {names[column]!r} is categorical"
            refuse("monotone", owner, rule, dict(given))
    found = zip(columns, given.values(), strict=True)
    return Constraints(
        {column: int(direction) for column, direction in found if direction},
        None
        if ranker.interactions is None
        else tuple(
            frozenset(_columns("interactions", owner, group, names))
            for group in ranker.interactions
        ),
    )


def _columns(name: str, owner: str, features: Iterable[Any], names: Sequence[str]) -> list[int]:
    """Return the columns of features given by name or 1-based number, as text too."""
    columns: list[int] = []
    for feature in features:
        text = str(feature)
        if isinstance(feature, str) and feature in names:
            column = names.index(feature)
        elif text.isdecimal() and 1 <= int(text) <= len(names):
            column = int(text) - 1
        else:
            rule = (
                f"given for features of the training data, numbered 1 to {len(names)} or named "
                f"{names[0]!r} to {names[-1]!r}{nearest(feature, names)}"
            )
            refuse(name, owner, rule, feature)
        if column in columns:
            refuse(name, owner, "given for different features", feature)
        columns.append(column)
    return columns


def _is_feature(value: object) -> bool:
    return isinstance(value, str) or (_is_whole(value) and int(value) >= 1)  # type: ignore[call-overload]


def _is_whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
