"""The model file: a zip of a JSON header and plain ``.npy`` arrays; nothing in it is executed.

The header has the version of rankgrove, the kind of model, its parameters and training record, and
a checksum of every array. The bytes depend only on the content.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import math
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove._version import __version__
from rankgrove.errors import ModelFileError
from rankgrove.files import atomic_output, interrupts_wait, told_errors
from rankgrove.model.sense import table

FORMAT = "rankgrove model"
FORMAT_VERSION = 1
_HEADER = "header.json"
# The errors that a damaged zip, header or array may raise in reading, or in building the model.
DAMAGE = (
    ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, OSError, RuntimeError,
    SyntaxError, TypeError, ValueError,
    lzma.LZMAError, struct.error, tokenize.TokenError, zlib.error,
)  # fmt: skip
_REMEDY = "copy it again, or train again."
_EPOCH = (1980, 1, 1, 0, 0, 0)  # zip files have no earlier time


def write_model(
    path: str | Path, kind: str, content: dict[str, Any], arrays: dict[str, np.ndarray]
) -> None:
    """Write a model: `content` must be plain JSON values, `arrays` of numbers or booleans.

    Ctrl-C waits until the file is complete: a zip file cannot be closed in the middle of an entry.
    """
    packed = {name: _npy(array) for name, array in arrays.items()}
    header = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "rankgrove": __version__,
        "kind": kind,
        "content": content,
        "checksums": {name: _digest(blob) for name, blob in packed.items()},
    }
    with (
        interrupts_wait(),
        atomic_output(path, pack=False) as out,
        zipfile.ZipFile(out, "w") as archive,
    ):
        _add(archive, _HEADER, json.dumps(header, indent=1).encode())
        for name, blob in packed.items():
            _add(archive, f"{name}.npy", blob)


def read_model(path: str | Path) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Return (kind, content, arrays) of a model file, or refuse it."""
    target = Path(path)
    if target.is_dir():
        raise ModelFileError(f"{target} is a folder: give the name of a model file.")
    with told_errors(target, kind=ModelFileError):
        file = target.open("rb")
    try:
        with file, zipfile.ZipFile(file) as archive:
            if _HEADER not in archive.namelist():
                raise ModelFileError(f"{target} is a zip file, but not a rankgrove model.")
            header = json.loads(archive.read(_HEADER))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise ModelFileError(f"{target} is not a rankgrove model.")
            if header.get("version", 0) > FORMAT_VERSION:
                raise ModelFileError(
                    f"{target} was written by rankgrove {header.get('rankgrove')}, in a newer "
                    "format than this version can read: upgrade rankgrove."
                )
            arrays = {
                name: _array(target, name, archive.read(f"{name}.npy"), checksum)
                for name, checksum in table(header["checksums"], "the checksums").items()
            }
        return str(header["kind"]), table(header["content"], "the content"), arrays
    except ModelFileError:
        raise
    except zipfile.BadZipFile:
        raise ModelFileError(f"{target} {_no_zip(target)}") from None
    except DAMAGE as error:
        raise ModelFileError(f"{target} is damaged ({said(error)}): {_REMEDY}") from None


def said(error: BaseException) -> str:
    """Return the message of an inner error, in one short line."""
    text = " ".join(str(error).split())[:200]
    return text.rstrip(".:") or type(error).__name__


def needed(arrays: Mapping[str, np.ndarray], names: Iterable[str]) -> dict[str, Any]:
    """Return these arrays of a model file; refuse a file that lacks one of them."""
    values = {}
    for name in names:
        if name not in arrays:
            raise ModelFileError(f"The model file lacks the array {name!r}: it is damaged.")
        values[name] = arrays[name]
    return values


def _no_zip(path: Path) -> str:
    """Return what is wrong with a file that is not a zip: a foreign file, or a damaged model."""
    with path.open("rb") as file:
        begin = file.read(4)
    if not begin:
        return "is empty."
    # A model begins with the mark of a zip, and ends with its directory.
    if begin == b"PK\x03\x04" or zipfile.is_zipfile(path):
        return f"is damaged or truncated: {_REMEDY}"
    return "is not a rankgrove model."


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(array), allow_pickle=False)
    return out.getvalue()


def _array(path: Path, name: str, blob: bytes, checksum: str) -> np.ndarray:
    if _digest(blob) != checksum:
        raise ModelFileError(f"{path} is damaged: the array {name!r} fails its checksum.")
    try:
        return _values(blob)
    except DAMAGE as error:
        raise ModelFileError(
            f"{path} is damaged: the array {name!r} has an impossible header ({said(error)}). "
            f"{_REMEDY[0].upper()}{_REMEDY[1:]}"
        ) from None


def _values(blob: bytes) -> np.ndarray:
    """Return the array of ``.npy`` bytes; refuse a shape that does not fit their number."""
    file = io.BytesIO(blob)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("another version of npy")
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.kind not in "biuf" or min(shape, default=0) < 0:
        raise ValueError(f"values of the type {dtype} in the shape {shape}")
    n_bytes = math.prod(shape) * dtype.itemsize
    if n_bytes != len(blob) - file.tell():
        raise ValueError(f"{len(blob) - file.tell():,} bytes, but its shape needs {n_bytes:,}")
    return np.ndarray(shape, dtype, blob, file.tell(), order="F" if by_column else "C").copy()


def _digest(blob: bytes) -> str:
    return hashlib.blake2b(blob, digest_size=16).hexdigest()


def _add(archive: zipfile.ZipFile, name: str, blob: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, blob, compresslevel=6)
