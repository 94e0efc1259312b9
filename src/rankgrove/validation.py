"""Checks of parameters and inputs, with one form of message for all.

``The 'x' parameter of Y must be <rule>. Got <value> instead.``
"""

from __future__ import annotations

import difflib
import math
import os
import sys
import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np

from rankgrove.errors import DataError, ParameterError
from rankgrove.files import real_path


def refuse(name: str, owner: str, rule: str, value: object) -> NoReturn:
    """Raise ParameterError with the common form of message."""
    raise ParameterError(
        f"The '{name}' parameter of {owner} must be {rule}. Got {value!r} instead."
    )


def check_integer(
    name: str, owner: str, value: Any, *, low: int | None = None, high: int | None = None
) -> int:
    """Return `value` as an int within [low, high], or refuse it."""
    fits = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not fits or (low is not None and value < low) or (high is not None and value > high):
        refuse(name, owner, "a whole number" + _range(low, high), value)
    return int(value)


def check_real(
    name: str,
    owner: str,
    value: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
) -> float:
    """Return `value` as a finite float within [low, high] and above `above`, or refuse it."""
    fits = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if (
        not fits
        or not math.isfinite(value)
        or (low is not None and value < low)
        or (high is not None and value > high)
        or (above is not None and value <= above)
    ):
        rule = "a finite number" + _range(low, high)
        if above is not None:
            rule += f" above {above:g}"
        refuse(name, owner, rule, value)
    return float(value)


def check_choice(
    name: str,
    owner: str,
    value: object,
    choices: Iterable[str],
    elsewhere: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return `value` if it is one of `choices`; otherwise refuse it, with the nearest name.

    `elsewhere` has other names of the choices, in lower case, as other libraries use them.
    """
    names = list(choices)
    if not isinstance(value, str) or value not in names:
        rule = repr(names[0])
        if len(names) > 1:
            meant = elsewhere.get(str(value).lower())
            hint = nearest(value, names) if meant is None else f" (did you mean {meant!r}?)"
            rule = "one of " + ", ".join(repr(name) for name in names) + hint
        refuse(name, owner, rule, value)
    return value


def check_flag(name: str, owner: str, value: object) -> bool:
    """Return True or False, or refuse the value."""
    if not isinstance(value, bool):
        refuse(name, owner, "True or False", value)
    return value


def check_output_file(name: str, owner: str, value: object) -> Path:
    """Return `value` as the path of a file that can be written, or refuse it before any work."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        refuse(name, owner, "the path of a file", value)
    path = Path(value)
    if path.is_dir():
        refuse(name, owner, "the path of a file, not of a folder", str(value))
    if real_path(path).is_symlink():
        refuse(name, owner, "the path of a file, not a link that leads back to itself", str(value))
    folder = real_path(path).parent
    if not folder.is_dir():
        refuse(name, owner, "in a folder that exists: create it first", str(value))
    if not os.access(folder, os.W_OK):
        refuse(name, owner, "in a folder that may be written to", str(value))
    return path


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the caller outside this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("rankgrove."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def nearest(value: object, names: Iterable[str]) -> str:
    """Return `` (did you mean 'x'?)`` if a name is close to `value`, otherwise nothing."""
    close = difflib.get_close_matches(str(value), list(names), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def with_article(word: str) -> str:
    """Return a word with its article: ``a LambdaMART``, ``an AdaRank``."""
    return f"{'an' if word[:1].upper() in set('AEIO') else 'a'} {word}"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: ``1 tree``, ``2,000 trees``; `many` is an irregular plural."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def check_scores(scores: object, n_rows: int, owner: str) -> np.ndarray:
    """Return `scores` as one float64 per row, or refuse them.

    Minus infinity is allowed: it means that a document was not retrieved.
    """
    array = np.asarray(scores)
    if array.dtype == object or array.dtype.kind not in "fiub":
        raise DataError(f"{owner}: scores must be numbers. Got an array of {array.dtype}.")
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (n_rows,):
        raise DataError(
            f"{owner}: scores must be one number per row of the data ({counted(n_rows, 'row')}). "
            f"Got an array of shape {array.shape}."
        )
    array = np.ascontiguousarray(array, dtype=np.float64)
    bad = np.flatnonzero(np.isnan(array))
    if bad.size:
        raise DataError(
            f"{owner}: got NaN for {counted(bad.size, 'score')} of {n_rows:,}, the first at row "
            f"{bad[0]}. "
            "A document without a score cannot be ranked: give it a number, "
            "or minus infinity if it was not retrieved."
        )
    return array


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" between {low:g} and {high:g}"
    if low is not None:
        return f" of at least {low:g}"
    if high is not None:
        return f" of at most {high:g}"
    return ""
