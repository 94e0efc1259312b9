"""Reading models of other libraries; the library is recognised by the content of the file."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.errors import ModelFileError
from rankgrove.files import told_errors, why
from rankgrove.formats.foreign import Foreign, ForeignWeights

HEAD = 4096  # bytes by which a file is recognised
# The errors that a damaged document may raise in a reader, besides ModelFileError.
_DAMAGE = (
    ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError,
    UnicodeError, ValueError,
)  # fmt: skip
DUMP = "xgboost dump"
# Files that are recognised by their content but cannot be read -> what they are, and the remedy.
_NAMED = {
    "xgboost binary": "it is in XGBoost's old binary format, which cannot be read (XGBoost 3.1 and "
    "later cannot read it either). Convert it with XGBoost 3.0 or older: "
    "xgboost.Booster(model_file=path).save_model('model.json').",
    "xgboost text": "it is XGBoost's dump as text, which cannot be read. Use "
    "booster.save_model('model.json'), or dump_model(path, dump_format='json').",
    "pickle": "it is a Python pickle, which is never read: loading one runs the code in it. Save "
    "the model in its library's own format: save_model of LightGBM and XGBoost.",
    "lfs": "it is a Git LFS pointer, not the file itself. Get the file with: git lfs pull.",
    "gzip": "it is compressed. Decompress it first: gunzip.",
}


def kind_of(path: str | Path) -> str | None:
    """Return the kind of model in a file: ``"rankgrove"``, the name of a reader, or None.

    A compressed model is ``"gzip"``, which is refused; other compressed files, such as data, give
    None.
    """
    with told_errors(path, kind=ModelFileError), Path(path).open("rb") as file:
        head = file.read(HEAD)
    if head.startswith(b"\x1f\x8b"):
        return "gzip" if _kind_of_head(_unpacked(head)) else None
    return _kind_of_head(head)


def _unpacked(head: bytes) -> bytes:
    """Return the beginning of the content of a gzip file; b"" if it is damaged."""
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    except zlib.error:
        return b""


def _kind_of_head(head: bytes) -> str | None:
    if head.startswith(b"PK\x03\x04"):
        return "rankgrove"
    begin = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    first_words = begin.split(maxsplit=1)
    if first_words and first_words[0] == b"tree" and b"version=" in begin[:40]:
        return "lightgbm text"
    if re.match(rb"Tree=\d", begin):
        return "lightgbm text"
    if begin.startswith(b"{"):
        return "json" if begin[1:2].strip() in (b"", b'"', b"}") else "ubjson"
    if begin.startswith(b"["):
        return DUMP
    return _named(head, begin) or _ranklib_kind(begin)


def _named(head: bytes, begin: bytes) -> str | None:
    """Return the kind of a file that is recognised but cannot be read, or None."""
    if re.search(rb"[\4-\10]\0{7}(gbtree|gblinear|dart)", head) or head.startswith(b"bs64\t"):
        return "xgboost binary"
    if re.match(rb"booster(\[0\])?:\s", begin):
        return "xgboost text"
    if re.match(rb"\x80[\2-\5]|ccopy_reg\n|c?numpy|\(dp\d", head):
        return "pickle"
    return "lfs" if head.startswith(b"version https://git-lfs") else None


def _ranklib_kind(begin: bytes) -> str | None:
    from rankgrove.formats.ranklib import model_name

    for line in begin.splitlines():
        if line.startswith(b"##"):
            if model_name(line.decode(errors="replace")):
                return "ranklib"
        elif line.strip():
            xml = line.lstrip().startswith((b"<ensemble", b"<ranker", b"<?xml", b"<!"))
            return "ranklib" if xml else None
    return None


def read_foreign(
    path: str | Path,
    kind: str,
    features: Sequence[str] | None = None,
    base_score: float | None = None,
) -> Foreign | ForeignWeights:
    """Read a model of another library; `kind` is the result of :func:`kind_of`.

    `features` and `base_score` are for a dump of XGBoost, which lacks them.
    """
    target = Path(path)
    try:
        if kind in _NAMED:
            raise ModelFileError(_NAMED[kind])
        return _read(target.read_bytes(), kind, features, base_score)
    except ModelFileError as error:
        cut = re.sub(r"(\S{80})\S+", r"\1...", str(error))  # a damaged name may be of any length
        raise ModelFileError(f"{target}: {cut}") from None
    except OSError as error:
        raise ModelFileError(f"{target} cannot be read: {why(error)}.") from None
    except _DAMAGE as error:
        raise ModelFileError(f"{target} is damaged: {_what(error)}. Save it again.") from None


def _read(
    data: bytes,
    kind: str,
    features: Sequence[str] | None = None,
    base_score: float | None = None,
) -> Foreign | ForeignWeights:
    with np.errstate(all="ignore"):  # numbers out of bounds are refused in the result
        if kind == DUMP:
            from rankgrove.formats.xgboost_dump import read_dump

            return read_dump(_document(data), features, base_score)
        return _READERS[kind](data)


def read_object(model: Any) -> Foreign | ForeignWeights | None:
    """Read a model of LightGBM or XGBoost in memory, or return None for anything else.

    It may be a Booster or a scikit-learn model, which scores by the rounds up to the best one.
    """
    kind, library = type(model), type(model).__module__.partition(".")[0]
    try:
        if library == "lightgbm" and hasattr(kind, "model_to_string"):
            return _read(model.model_to_string().encode(), "lightgbm text")
        if library == "lightgbm" and hasattr(kind, "booster_"):
            return _read(model.booster_.model_to_string().encode(), "lightgbm text")
        if library == "xgboost" and hasattr(kind, "save_raw"):
            return _read(bytes(model.save_raw("json")), "json")
        if library == "xgboost" and hasattr(kind, "get_booster"):
            booster = model.get_booster()
            if booster.attr("best_iteration") is not None:  # it stopped early
                booster = booster[: int(booster.attr("best_iteration")) + 1]
            return _read(bytes(booster.save_raw("json")), "json")
    except ModelFileError as error:
        raise ModelFileError(f"This {library} {kind.__name__}: {error}") from None
    return None


def _what(error: Exception) -> str:
    """Return a message about a document on which a reader failed."""
    if isinstance(error, json.JSONDecodeError):
        return f"its JSON ends or is wrong at line {error.lineno}, column {error.colno}"
    if isinstance(error, UnicodeDecodeError):
        return f"it is not UTF-8 text from byte {error.start:,} on"
    if isinstance(error, RecursionError):
        return "it is nested deeper than any model"
    if isinstance(error, MemoryError):
        return "a number in it requires more memory than this machine has"
    no_number = re.match(
        r"could not convert string to float: (.+)|invalid literal.*: (.+)", str(error)
    )
    if no_number:
        shown = no_number[1] or no_number[2]
        return f"{shown[:80]} is not a number"
    if isinstance(error, ValueError | ArithmeticError):
        return str(error)[:200].rstrip(".")
    return "a value is missing or has the wrong type"


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n")


def _document(data: bytes) -> Any:
    return json.loads(_text(data))


def _json(data: bytes) -> Foreign:
    from rankgrove.formats import lightgbm, solr, xgboost

    document = _document(data)
    if "learner" in document:
        return xgboost.read_document(document)
    if "tree_info" in document:
        return lightgbm.read_json(document)
    if "class" in document:
        return solr.read_document(document)
    if "model" in document:
        raise ModelFileError(
            "it seems to be a model for Elasticsearch, which can be written but not read. Convert "
            "the model that it was made from; or save the text of its 'definition', which is a "
            "model of XGBoost (a dump) or of RankLib, to another file."
        )
    raise ModelFileError(
        "it is JSON, but neither XGBoost's (Booster.save_model, dump_model), nor LightGBM's "
        "(dump_model), nor Solr's."
    )


def _ubjson(data: bytes) -> Foreign:
    from rankgrove.formats import ubjson, xgboost

    return xgboost.read_document(ubjson.decode(data))


def _lightgbm(data: bytes) -> Foreign:
    from rankgrove.formats import lightgbm

    return lightgbm.read_text(_text(data))


def _ranklib(data: bytes) -> Foreign | ForeignWeights:
    from rankgrove.formats import ranklib

    return ranklib.read_text(_text(data))


_READERS: dict[str, Callable[[bytes], Foreign | ForeignWeights]] = {
    "lightgbm text": _lightgbm,
    "json": _json,
    "ubjson": _ubjson,
    "ranklib": _ranklib,
}
