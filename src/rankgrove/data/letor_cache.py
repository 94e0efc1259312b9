"""A binary cache of parsed files that is never stale: it is identified by the files' content.

One file::

    magic | length of header | header (JSON) | blake2b of all before | arrays, 64-byte aligned

The header lists the source files with size, times, inode and a hash of their content, and the
CRC-32 of the arrays: checking 300 MB takes one core about 40 ms. If size, times and inode are
unchanged, and the file had not been touched for two seconds before it was read (so that a later
change must change its times), the content is the same; otherwise the hash decides.
A copy that is damaged, or belongs to another file, is silently replaced.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from rankgrove.data.letor_parse import Parts, Queries, ReadOptions
from rankgrove.data.text_column import TextColumn
from rankgrove.errors import DataError
from rankgrove.files import atomic_output

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix

_MAGIC = b"RGCACHE\x01"
_FORMAT = 2
_ALIGN = 64
_REST_NS = 2_000_000_000  # longer than the time resolution of any file system
_DIGEST = 32
_TYPES = {"<f4", "<f8", "<i4", "<i8", "|u1"}


class Identity(TypedDict):
    """Size, times and inode, which identify the content of a file without reading it."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    rested: bool  # not changed in the last two seconds


class FileSource(Identity):
    """A source file of a copy, with the hash of its content."""

    content: str


class Key(TypedDict):
    """The files and options that a copy was made from."""

    options: dict[str, bool | str | int | None]
    files: list[str]
    named: bool


class ArrayEntry(TypedDict):
    """Type, shape and offset of an array in the file."""

    type: str
    shape: tuple[int, ...]
    offset: int


def cached(
    paths: list[Path], queries: Queries, options: ReadOptions, read: Callable[[], Parts]
) -> Parts:
    """Return the cached result of `read`, or call it and cache its result."""
    used = [*paths, *(side for side in queries.side_files if side is not None)]
    if not all(path.is_file() for path in used):  # a pipe is read once; others: `read` raises
        return read()
    key: Key = {
        "options": asdict(options),
        "files": [str(path.absolute()) for path in used],
        "named": queries.named,
    }
    try:
        now = [identity(path) for path in used]
        # A file that changed just now may change again, during reading, without new times.
        content = [None if i["rested"] else content_hash(p) for i, p in zip(now, used, strict=True)]
    except OSError:  # `read` raises the better error
        return read()
    places = _places(paths[0], options, key)
    for place in places:
        copy = _load(place, key)
        if copy is None:
            continue
        parts, sources = copy
        pairs = zip(sources, now, strict=True)
        if all(_known(source) == i and i["rested"] for source, i in pairs):
            return parts
        if all(_same_content(path, s) for path, s in zip(used, sources, strict=True)):
            content = [source["content"] for source in sources]
            _keep([place], key, used, now, content, parts)  # next time no hash is needed
            return parts
    parts = read()
    _keep(places, key, used, now, content, parts)
    return parts


# -- the identity of a file ----------------------------------------------------------------------


def identity(path: Path) -> Identity:
    """Return what identifies the content of a file without reading it."""
    status = os.stat(path)
    youth = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns)
    return {
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "ctime_ns": status.st_ctime_ns,
        "inode": status.st_ino,
        "rested": youth >= _REST_NS,
    }


def _known(source: FileSource) -> dict[str, object]:
    return {name: value for name, value in source.items() if name != "content"}


def content_hash(path: Path) -> str:
    """Return a hash of the content of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=_DIGEST)).hexdigest()


def _same_content(path: Path, source: FileSource) -> bool:
    try:
        return os.stat(path).st_size == source["size"] and content_hash(path) == source["content"]
    except OSError:
        return False


def _places(path: Path, options: ReadOptions, key: Key) -> list[Path]:
    """Return where the copy may be: next to the file, or in the user's cache folder."""
    usual = ReadOptions("zero", False, "auto", None)
    digest = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=8).hexdigest()
    plain = options == usual and len(key["files"]) == 1
    beside = f"{path.name}.rgcache" if plain else f"{path.name}.{digest}.rgcache"
    folder = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [path.with_name(beside), Path(folder, "rankgrove", f"{path.name}.{digest}.rgcache")]


# -- the file ------------------------------------------------------------------------------------


def _arrays(parts: Parts) -> dict[str, np.ndarray]:
    """Return the arrays that make up `parts`, by name."""
    arrays = {"y": parts.y, "query_of_row": parts.query_of_row}
    features = parts.features
    if isinstance(features, np.ndarray):
        arrays["X"] = features
    else:
        arrays |= {"data": features.data, "indices": features.indices, "indptr": features.indptr}
    if parts.query_ids.dtype.kind == "U":
        arrays |= _text_arrays("query", TextColumn.from_texts(parts.query_ids.tolist()))
    else:
        arrays["query_ids"] = parts.query_ids
    if parts.docid is not None:
        arrays |= _text_arrays("docid", parts.docid)
    return arrays


def _text_arrays(name: str, column: TextColumn) -> dict[str, np.ndarray]:
    return {f"{name}_blob": column.blob, f"{name}_start": column.start, f"{name}_end": column.end}


def _keep(
    places: list[Path],
    key: Key,
    used: list[Path],
    before: list[Identity],
    content: Sequence[str | None],
    parts: Parts,
) -> None:
    """Write the copy to the first place that can be written to, if any.

    `before` and `content` (where known) were taken before the files were read.
    """
    try:
        sources: list[FileSource] = [
            {**identity, "content": content_hash(path)}
            for identity, path in zip(before, used, strict=True)
        ]
        after = [identity(path) for path in used]
    except OSError:
        return
    if [_place_and_times(i) for i in before] != [_place_and_times(i) for i in after]:
        return  # a file changed while it was read: the result is not its content
    if any(c not in (None, s["content"]) for c, s in zip(content, sources, strict=True)):
        return
    for place in places:
        try:
            if place is not places[0]:
                place.parent.mkdir(parents=True, exist_ok=True)
            _write(place, key, sources, parts)
            return
        except (OSError, DataError):
            continue


def _place_and_times(identity: Identity) -> tuple[int, int, int, int]:
    return identity["size"], identity["mtime_ns"], identity["ctime_ns"], identity["inode"]


def _write(place: Path, key: Key, sources: list[FileSource], parts: Parts) -> None:
    arrays = {name: np.ascontiguousarray(array) for name, array in _arrays(parts).items()}
    table: dict[str, ArrayEntry] = {}
    offset = checksum = 0  # from the end of the header
    for name, array in arrays.items():
        kind = array.dtype.newbyteorder("<").str
        table[name] = {"type": kind, "shape": array.shape, "offset": offset}
        offset += _aligned(array.nbytes)
        for piece in _pieces(array):
            checksum = zlib.crc32(piece, checksum)
    header = {
        "format": _FORMAT,
        "key": key,
        "sources": sources,
        "arrays": table,
        "n_features": parts.features.shape[1],
        "bytes": offset,
        "checksum": checksum,
    }
    text = json.dumps(header).encode()
    head = _MAGIC + len(text).to_bytes(8, "little") + text
    head += hashlib.blake2b(head, digest_size=_DIGEST).digest()
    with atomic_output(place) as file:
        file.write(head.ljust(_aligned(len(head)), b"\0"))
        for array in arrays.values():
            for piece in _pieces(array):
                file.write(piece)


def _pieces(array: np.ndarray) -> tuple[memoryview | bytes, bytes]:
    """Return the bytes of an array, and its padding."""
    content = array.reshape(-1).data.cast("B") if array.size else b""
    return content, bytes(_aligned(array.nbytes) - array.nbytes)


def _aligned(size: int) -> int:
    return -(-size // _ALIGN) * _ALIGN


def _load(place: Path, key: Key) -> tuple[Parts, list[FileSource]] | None:
    """Return the copy at `place` and its sources; None if it is damaged or of other files."""
    try:
        with open(place, "rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    try:
        length = int.from_bytes(content[8:16], "little")
        signed = 16 + length
        if content[:8] != _MAGIC or signed + _DIGEST > len(content):
            return None
        digest = hashlib.blake2b(content[:signed], digest_size=_DIGEST).digest()
        if content[signed : signed + _DIGEST] != digest:
            return None
        header = json.loads(content[16:signed])
        begin = _aligned(signed + _DIGEST)
        wanted = (_FORMAT, key, begin + header["bytes"])
        if (header["format"], header["key"], len(content)) != wanted:
            return None
        with memoryview(content) as every, every[begin:] as body:
            if zlib.crc32(body) != header["checksum"]:
                return None
        arrays = {name: _array(content, begin, entry) for name, entry in header["arrays"].items()}
        return _parts(arrays, header["n_features"]), header["sources"]
    except (KeyError, ValueError, TypeError, IndexError, RecursionError):
        return None


def _array(content: mmap.mmap, begin: int, entry: ArrayEntry) -> np.ndarray:
    if entry["type"] not in _TYPES:
        raise ValueError(entry["type"])
    count = int(np.prod(entry["shape"], dtype=np.int64))
    kind = np.dtype(entry["type"])
    if count == 0:
        return np.empty(entry["shape"], kind)
    return np.frombuffer(content, kind, count, begin + entry["offset"]).reshape(entry["shape"])


def _parts(arrays: dict[str, np.ndarray], n_features: int) -> Parts:
    """Assemble the arrays of a copy; ValueError if they do not fit each other."""
    y, query_of_row = arrays["y"], arrays["query_of_row"]
    if "X" in arrays:
        features: Matrix = arrays["X"]
    else:
        import scipy.sparse

        columns, pointers = arrays["indices"], arrays["indptr"]
        _demand(pointers[0] == 0 and pointers[-1] == columns.size)
        _demand(bool((np.diff(pointers) >= 0).all()))
        _demand(columns.size == 0 or (columns.min() >= 0 and columns.max() < n_features))
        features = scipy.sparse.csr_matrix(
            (arrays["data"], columns, pointers), shape=(y.size, n_features)
        )
        features.has_canonical_format = True
    ids = arrays.get("query_ids")
    if ids is None:
        ids = np.array(_column("query", arrays).to_array().tolist())
    docid = _column("docid", arrays) if "docid_blob" in arrays else None
    _demand(features.shape == (y.size, n_features) and query_of_row.size == y.size)
    _demand(query_of_row.min() >= 0 and query_of_row.max() < ids.size)
    _demand(docid is None or len(docid) == y.size)
    return Parts(features, y, ids, query_of_row, docid)


def _column(name: str, arrays: dict[str, np.ndarray]) -> TextColumn:
    blob, start, end = (arrays[f"{name}_{part}"] for part in ("blob", "start", "end"))
    _demand(start.size == end.size and bool((start <= end).all()))
    _demand(start.size == 0 or (start.min() >= 0 and end.max() <= blob.size))
    return TextColumn(blob, start, end)


def _demand(sound: bool | np.bool_) -> None:
    if not sound:
        raise ValueError("the arrays do not fit each other")
