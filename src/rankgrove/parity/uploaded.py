"""What emulators share: JSON as engines read it, and trees walked for many documents at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError

Fields = dict[str, Any]


def parsed(content: bytes | str, what: str) -> Any:
    """Return JSON; refuse text that is not JSON and objects that have a field twice."""
    try:
        return json.loads(content, object_pairs_hook=_once, parse_constant=_no_constant)
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelFileError(f"{what} is not JSON: {error}") from None
    except RecursionError:
        raise ModelFileError(f"{what} is nested too deeply.") from None


def whole(fields: Fields, name: str, what: str) -> int:
    """Return a whole number of an object."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ModelFileError(f"{what}: [{name}] must be a whole number. Got {value!r}.")
    return value


def real(fields: Fields, name: str, what: str) -> float:
    """Return a number of an object, in float64."""
    value = fields.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelFileError(f"{what}: [{name}] must be a number. Got {value!r}.")
    return float(value)


def objects(value: object, what: str) -> list[Fields]:
    """Return a list of objects."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ModelFileError(f"{what} must be a list of objects.")
    return value


def check_fields(fields: Fields, known: Iterable[str], what: str) -> None:
    """Refuse fields that an engine does not know, and those without a value."""
    unknown = sorted(set(fields) - set(known))
    if unknown:
        raise ModelFileError(f"{what}: unknown field [{unknown[0]}].")
    empty = [name for name, value in fields.items() if value is None]
    if empty:
        raise ModelFileError(f"{what}: [{empty[0]}] is null.")


@dataclass(frozen=True)
class WalkedTree:
    """A tree as arrays, one entry per node; a leaf is ~leaf.

    Attributes
    ----------
    root : the first node, or ~leaf
    feature : column of the values
    threshold : in the engine's type
    left, right : children
    missing_left : where a missing value goes
    value : one per leaf
    """

    root: int
    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    missing_left: np.ndarray
    value: np.ndarray

    def values(
        self, values: np.ndarray, goes_left: Callable[[np.ndarray, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        """Return the value of every document's leaf.

        values : (documents, features)
        goes_left : of values and the nodes where they are, whether they go left
        """
        at = np.full(len(values), self.root, np.int64)
        inside = np.arange(len(values) if self.root >= 0 else 0)
        while inside.size:
            node = at[inside]
            left = goes_left(values[inside, self.feature[node]], node)
            after = np.where(left, self.left[node], self.right[node])
            at[inside] = after
            inside = inside[after >= 0]
        return self.value[~at]


def _once(pairs: list[tuple[str, Any]]) -> Fields:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise ModelFileError(f"duplicate field [{twice}].")
    return fields


def _no_constant(text: str) -> float:
    raise ModelFileError(f"{text} is not a number of JSON.")
