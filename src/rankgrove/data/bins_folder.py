"""A folder of bins: what training on trees needs of judged data, in files that are mapped.

::

    NAME.bins/  header.json    sizes and checksums of the other files, sources, options
                codes.bin      bins row by row, in query order
                columns.bin    the same bins column by column
                NAME.npy       labels, queries, weights, keys, thresholds

A folder is made under a temporary name and moved into place when it is whole. While its process
lives, a lock says so; what a killed process has left is removed by the next one. One process at a
time makes a folder or looks whether it can be used again (`folder_lock.py`).
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import logging
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.data.binning import MOST_VALUE_BINS, BinnedMatrix, Binner
from rankgrove.data.categories import MOST_CATEGORIES
from rankgrove.data.category_bins import CategoryBins
from rankgrove.data.columns_file import ColumnsFile, map_bytes
from rankgrove.data.file_kinds import HEADER
from rankgrove.data.folder_lock import lock_file
from rankgrove.data.spill import told_writing
from rankgrove.data.spill_bins import checksum
from rankgrove.errors import DataError
from rankgrove.files import told_errors

CODES, COLUMNS = "codes.bin", "columns.bin"
FORMAT = 2
_LOCK = "in-use"
_OCCUPIED = (errno.ENOTEMPTY, errno.EEXIST)
_DIGEST = 16
_log = logging.getLogger("rankgrove")

Header = dict[str, Any]


class DamagedBinsError(DataError):
    """A folder of bins that is damaged."""


class OtherFormatError(DamagedBinsError):
    """A folder of bins that another version has made."""


# -- making a folder -------------------------------------------------------------------------------


@contextmanager
def draft_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder that becomes `folder` if the body succeeds, and is removed otherwise."""
    with scratch_folder(folder) as draft:
        yield draft
        with told_writing(folder):
            _put_in_place(draft, folder.absolute())
            (folder / _LOCK).unlink(missing_ok=True)


@contextmanager
def scratch_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder next to `folder`, and remove it at the end.

    What processes that are dead have left there is removed first.
    """
    named = folder.absolute()
    remove_leftovers(named)
    draft = named.with_name(f".{named.name}.{secrets.token_hex(4)}.part")
    with told_writing(folder):
        draft.mkdir()
    lock = open(draft / _LOCK, "w")  # noqa: SIM115
    try:
        if _locked(lock):
            lock.write("locked\n")  # without it, nobody takes the folder for one that is left over
            lock.flush()
        else:
            lock.close()
        yield draft
    finally:
        lock.close()
        shutil.rmtree(draft, ignore_errors=True)


def _put_in_place(draft: Path, folder: Path) -> None:
    """Replace a folder; if that fails, it stays."""
    old = draft.with_name(f"{draft.name}.old")
    while True:
        with suppress(FileNotFoundError):
            os.replace(folder, old)
        try:
            os.replace(draft, folder)
        except OSError as error:
            if error.errno not in _OCCUPIED:
                with suppress(OSError):
                    os.replace(old, folder)
                raise
            # another process, without a lock, has just put its own there
            shutil.rmtree(old, ignore_errors=True)
        else:
            shutil.rmtree(old, ignore_errors=True)
            return


def remove_leftovers(folder: Path) -> None:
    """Remove what processes that are dead have left."""
    start = glob.escape(f".{folder.name}.")
    for draft in folder.absolute().parent.glob(f"{start}*.part"):
        try:
            with open(draft / _LOCK, "r+") as lock:
                if not (lock.read() and _locked(lock)):
                    continue
        except OSError:  # just being made, or put into place
            continue
        _log.warning(
            "%s: binning was interrupted by the end of its process; what it left is removed.",
            folder,
        )
        shutil.rmtree(draft, ignore_errors=True)
    for old in folder.absolute().parent.glob(f"{start}*.part.old"):
        if not old.with_suffix("").exists():  # the folder was replaced; else it may come back
            shutil.rmtree(old, ignore_errors=True)


def _locked(file: Any) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it."""
    try:
        return lock_file(file)
    except OSError:  # such as on Windows, where the folder of an open file cannot be moved
        return False


def write_header(draft: Path, header: Header, arrays: Mapping[str, np.ndarray]) -> None:
    """Write the arrays and the header, the last file; `header` has the checksums of the bins."""
    files: dict[str, list[int]] = dict(header["files"])
    with told_writing(draft):
        for name, array in arrays.items():
            path = draft / f"{name}.npy"
            np.save(path, array, allow_pickle=False)
            files[path.name] = [path.stat().st_size, checksum(path)]
        text = json.dumps(header | {"format": FORMAT, "files": files}, indent=1)
        digest = hashlib.blake2b(text.encode(), digest_size=_DIGEST).hexdigest()
        with open(draft / HEADER, "w", encoding="utf-8") as file:
            file.write(f"{digest}\n{text}\n")
            file.flush()
            os.fsync(file.fileno())


# -- reading a folder ------------------------------------------------------------------------------


def read_header(folder: Path) -> Header:
    """Return the header; refuse a damaged one."""
    path = folder / HEADER
    with told_errors(path):
        blob = path.read_bytes()
    digest, _, text = blob.removesuffix(b"\n").partition(b"\n")
    if hashlib.blake2b(text, digest_size=_DIGEST).hexdigest().encode() != digest:
        raise damaged(folder, "its header was changed")
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise damaged(folder, "its header is no JSON object")
    if header.get("format") != FORMAT:
        raise OtherFormatError(
            f"The folder of bins {folder} has the format {header.get('format')} of another "
            f"version, and not {FORMAT}. Make the bins again from the data."
        )
    return header


def check_files(folder: Path, header: Header, *, content: bool = True) -> None:
    """Refuse files that are not those that were written: by size, and by `content`."""
    for name, (size, crc) in header["files"].items():
        if Path(name).name != name:
            raise ValueError(f"a file named {name!r}")
        path = folder / name
        if not path.is_file():
            raise damaged(folder, f"{name} is missing")
        with told_errors(path):
            n_bytes = path.stat().st_size
        if n_bytes != size:
            raise damaged(folder, f"{name} has {n_bytes:,} bytes, and not {size:,}")
        if content and checksum(path) != crc:
            raise damaged(folder, f"the content of {name} was changed")


def damaged(folder: Path, reason: str) -> DamagedBinsError:
    """Return the error for a damaged folder."""
    return DamagedBinsError(
        f"The folder of bins {folder} is damaged: {reason}. Remove it, and make the bins again "
        "from the data."
    )


def array_of(folder: Path, name: str) -> np.ndarray:
    """Return an array of the folder, mapped."""
    with told_errors(folder / f"{name}.npy"):
        found = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    return np.asarray(found)


def binned_of(folder: Path, header: Header, binner: Binner, name: Path) -> BinnedMatrix:
    """Return the mapped bins; `name` is what the folder will be called."""
    n_rows, n_kept = int(header["n_rows"]), int(binner.columns.size)
    with told_errors(folder / CODES), open(folder / CODES, "rb", buffering=0) as file:
        codes = map_bytes(file.fileno(), 0, (n_rows, -(-n_kept // 8) * 8))
    with told_errors(folder / COLUMNS), open(folder / COLUMNS, "rb", buffering=0) as file:
        columns = ColumnsFile.of_open(file.fileno(), name / COLUMNS, n_rows, n_kept)
    return BinnedMatrix(binner, codes, columns, bool(header["missing"]))


def check_rows(header: Header, rows: Mapping[str, np.ndarray]) -> None:
    """Refuse, by a ValueError, arrays that cannot be those of rows."""
    n_rows = int(header["n_rows"])
    types = {"query_of_row": np.int64, "row_hashes": np.uint64, "row_keys": np.uint64}
    for name, array in rows.items():
        if name == "query_ids":
            continue
        _demand(array.shape == (n_rows,) and array.dtype == types.get(name, np.float64))
        _demand(array.dtype != np.float64 or bool(np.isfinite(array).all()))
    ids, of_row = rows["query_ids"], rows["query_of_row"]
    _demand(ids.ndim == 1 and ids.dtype.kind in "iU" and n_rows > 0)
    _demand(of_row.min() >= 0 and np.bincount(of_row).size == ids.size)
    _demand(bool(np.bincount(of_row, minlength=ids.size).all()))


def _demand(sound: bool | np.bool_) -> None:
    if not sound:
        raise ValueError("arrays that cannot be")


# -- thresholds as arrays --------------------------------------------------------------------------


def binner_arrays(binner: Binner) -> dict[str, np.ndarray]:
    """Return bins as arrays by name; :func:`binner_of` is the inverse."""
    arrays = {
        "bins_columns": binner.columns,
        "bins_sizes": np.array([t.size for t in binner.thresholds], np.int64),
        "bins_thresholds": np.concatenate([np.empty(0, np.float32), *binner.thresholds]),
    }
    for at, categories in enumerate(binner.categories):
        if categories is not None:
            arrays[f"codes_{at}"] = categories.codes
            arrays[f"codes_{at}_bins"] = categories.bins
            if categories.by_fold is not None:
                arrays[f"codes_{at}_folds"] = categories.by_fold
    return arrays


def binner_of(folder: Path, header: Header) -> Binner:
    """Return the bins of a folder."""
    columns = np.array(array_of(folder, "bins_columns"))
    sizes, every = array_of(folder, "bins_sizes"), np.array(array_of(folder, "bins_thresholds"))
    n_features = int(header["n_features"])
    _demand(columns.dtype == np.int32 and columns.ndim == sizes.ndim == every.ndim == 1)
    _demand(columns.size == sizes.size == np.unique(columns).size and every.dtype == np.float32)
    _demand(columns.size > 0 and columns.min() >= 0 and columns.max() < n_features)
    _demand(sizes.min() >= 0 and sizes.max() <= MOST_VALUE_BINS and sizes.sum() == every.size)
    thresholds = np.split(every, np.cumsum(sizes)[:-1])
    categories: list[CategoryBins | None] = []
    for at in range(columns.size):
        if f"codes_{at}.npy" not in header["files"]:
            categories.append(None)
            continue
        folds = None
        if f"codes_{at}_folds.npy" in header["files"]:
            folds = np.array(array_of(folder, f"codes_{at}_folds"))
        codes, bins = (np.array(array_of(folder, f"codes_{at}{end}")) for end in ("", "_bins"))
        _demand(codes.shape == bins.shape and codes.ndim == 1 and bins.dtype == np.uint8)
        _demand(codes.size > 0 and codes.dtype == np.int64 and bool((np.diff(codes) > 0).all()))
        _demand(codes[0] >= 0 and codes[-1] < MOST_CATEGORIES)
        _demand(folds is None or (folds.shape[1:] == codes.shape and folds.dtype == np.uint8))
        categories.append(CategoryBins(codes, bins, folds))
    if all(of is None for of in categories):
        categories = []
    return Binner(n_features, columns, tuple(thresholds[: columns.size]), tuple(categories))
