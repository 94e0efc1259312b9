"""Reading models of other libraries: which one a file is of is seen by its content."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.formats.foreign import Foreign

HEAD = 4096  # bytes that tell what a file is
# What a damaged document may raise in a reader, ModelFileError apart.
_DAMAGE = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
    UnicodeError, ValueError,
)  # fmt: skip


def kind_of(path: str | Path) -> str | None:
    """Return what model a file seems to hold: ``"rankgrove"``, or the name of a reader, or None."""
    with Path(path).open("rb") as file:
        head = file.read(HEAD)
    if head.startswith(b"PK\x03\x04"):
        return "rankgrove"
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first_words = begin.split(maxsplit=1)
    if first_words and first_words[0] == b"tree" and b"version=" in begin[:40]:
        return "lightgbm text"
    if begin.startswith(b"{"):
        return "json" if begin[1:2].strip() in (b"", b'"', b"}") else "ubjson"
    for line in begin.splitlines():
        if line.strip() and not line.startswith(b"##"):
            return "ranklib" if line.lstrip().startswith((b"<ensemble", b"<?xml", b"<!")) else None
        if line.startswith(b"##"):
            name = line.strip(b"# \t").decode(errors="replace")
            if name in _RANKLIB:
                return "ranklib"
    return None


_RANKLIB = (
    "LambdaMART", "MART", "RankNet", "RankBoost", "AdaRank", "Coordinate Ascent", "LambdaRank",
    "ListNet", "Random Forests", "Linear Regression",
)  # fmt: skip


def read_foreign(path: str | Path, kind: str) -> Foreign:
    """Read a model of another library; `kind` is what :func:`kind_of` says."""
    target = Path(path)
    try:
        with np.errstate(all="ignore"):  # numbers out of bounds are seen in what they become
            return _READERS[kind](target.read_bytes())
    except ModelFileError as error:
        raise ModelFileError(f"{target}: {error}") from None
    except OSError as error:
        raise ModelFileError(f"{target} cannot be read: {error.strerror}.") from None
    except _DAMAGE as error:
        what = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"{target} is damaged ({what[:200]}): save it again.") from None


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _json(data: bytes) -> Foreign:
    from rankgrove.formats import lightgbm, xgboost

    document: Any = json.loads(_text(data))
    if "learner" in document:
        return xgboost.read_document(document)
    if "tree_info" in document:
        return lightgbm.read_json(document)
    for mark, what in (("class", "a model for Solr"), ("model", "a model for Elasticsearch")):
        if mark in document:
            raise ModelFileError(
                f"it seems to be {what}. Such files are written, not read: convert the model that "
                "it was made from."
            )
    raise ModelFileError(
        "it is JSON, but neither XGBoost's (Booster.save_model) nor LightGBM's (dump_model)."
    )


def _ubjson(data: bytes) -> Foreign:
    from rankgrove.formats import ubjson, xgboost

    return xgboost.read_document(ubjson.decode(data))


def _lightgbm(data: bytes) -> Foreign:
    from rankgrove.formats import lightgbm

    return lightgbm.read_text(_text(data))


def _ranklib(data: bytes) -> Foreign:
    from rankgrove.formats import ranklib

    return ranklib.read_text(_text(data))


_READERS: dict[str, Callable[[bytes], Foreign]] = {
    "lightgbm text": _lightgbm,
    "json": _json,
    "ubjson": _ubjson,
    "ranklib": _ranklib,
}
