"""From files of judged data to a folder of bins, in blocks: the features are never held whole."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.data.arrays import frozen
from rankgrove.data.binned_dataset import BinnedDataset
from rankgrove.data.binning import Binner
from rankgrove.data.bins_folder import (
    CODES,
    COLUMNS,
    Header,
    OtherFormatError,
    binner_arrays,
    draft_folder,
    read_header,
    write_header,
)
from rankgrove.data.categories import check_code_column
from rankgrove.data.dataset_checks import check_base_score, check_labels, check_weights
from rankgrove.data.file_kinds import is_folder_of_bins
from rankgrove.data.letor_cache import content_hash, identity
from rankgrove.data.queries import QueryDataset
from rankgrove.data.row_blocks import Block, RowFacts, RowReader
from rankgrove.data.row_keys import content_keys, hash_features
from rankgrove.data.spill import Spill, told_writing
from rankgrove.data.spill_bins import MEMORY, SpilledRows
from rankgrove.errors import DataError
from rankgrove.files import told_errors
from rankgrove.validation import counted

# Called with what is being done, how much of it is done, and how much it is.
Report = Callable[[str, int, int], None]
_log = logging.getLogger("rankgrove")
_MOVES_OPEN = os.name != "nt"  # Windows does not move the folder of an open file


@dataclass(frozen=True)
class BinsRequest:
    """What a folder of bins is made from.

    Attributes
    ----------
    paths, others : the files of rows, and other files that are read
    options : how they are read, as plain values
    max_bins : the largest number of bins of a feature
    like : data whose bins are used; None: they are made
    memory : about the bytes of columns that are sorted at once
    """

    paths: Sequence[Path]
    options: dict[str, Any]
    max_bins: int
    others: Sequence[Path] = ()
    like: BinnedDataset | None = None
    memory: int = MEMORY

    def key(self) -> dict[str, Any]:
        """Return the files and options that bins depend on, as plain values."""
        files = [str(path.absolute()) for path in [*self.paths, *self.others]]
        like = None if self.like is None else [self.like._header["files"], str(self.like.folder)]
        key = {"files": files, "options": self.options, "max_bins": self.max_bins, "like": like}
        plain: dict[str, Any] = json.loads(json.dumps(key))
        return plain

    def sources(self) -> list[dict[str, Any]]:
        """Return what identifies the content of the files (`letor_cache.py`)."""
        sources: list[dict[str, Any]] = []
        for path in [*self.paths, *self.others]:
            with told_errors(path):
                sources.append(dict(identity(path)) | {"content": content_hash(path)})
        return sources


def known_bins(folder: Path, request: BinsRequest) -> tuple[BinnedDataset | None, str]:
    """Return the data of a folder made from the same files, and what is to be said of these.

    None, and the reason, if it was made from others.
    """
    if not folder.exists():
        return None, ""
    if not is_folder_of_bins(folder):
        raise DataError(
            f"{folder} exists and is no folder of bins: name another one, or remove it."
        )
    try:
        header = read_header(folder)
    except OtherFormatError:
        return None, "they were made by another version"
    before, now = header["key"], request.key()
    names, new_names = before["files"], now["files"]
    moved = f"they were made from {', '.join(names)}"
    if len(names) != len(new_names):
        return None, moved
    if _without_places(before) != _without_places(now):
        return None, "they were made with other options"
    paths, sources = [*request.paths, *request.others], header["sources"]
    said = ""
    for path, name, new_name, source in zip(paths, names, new_names, sources, strict=True):
        is_same, is_known = _compared(path, source, by_content=name != new_name)
        if not is_same:
            return None, f"{path} was changed" if name == new_name else moved
        if not is_known and not said:
            what = "has new times" if name == new_name else f"was {name}"
            said = f"{path} {what}, and the same content"
    found = BinnedDataset.load(folder)
    if found._header != header:  # replaced where files cannot be locked
        return None, "they were made with other options"
    return found, said


def _without_places(key: dict[str, Any]) -> dict[str, Any]:
    """Return files and options without names of files, which may be moved."""
    return key | {"files": None, "like": key["like"] and key["like"][0]}


def _compared(path: Path, before: dict[str, Any], *, by_content: bool) -> tuple[bool, bool]:
    """Return whether a file is as it was, and whether that was known without reading it."""
    with told_errors(path):
        now: dict[str, Any] = dict(identity(path))
        if now["size"] != before["size"]:
            return False, True
        identified = ("mtime_ns", "ctime_ns", "inode")
        is_known = not by_content and all(now[name] == before[name] for name in identified)
        # a file that changed just now may change again without new times
        if is_known and before["rested"]:
            return True, True
        return content_hash(path) == before["content"], is_known


def make_bins(
    folder: Path,
    request: BinsRequest,
    reader: RowReader,
    report: Report,
    n_threads: int,
) -> BinnedDataset:
    """Read all rows, and write their bins to a folder; the caller has set the threads."""
    with told_writing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    with draft_folder(folder) as draft:
        sources = request.sources()
        with Spill(draft / "values.spill", reader.hole) as spill:
            rows, hashes = _spilled(reader, spill, request, report, n_threads)
            header, arrays = _binned(rows, draft, request, report)
        for path, before in zip([*request.paths, *request.others], sources, strict=True):
            if not _compared(path, before, by_content=False)[0]:
                raise DataError(f"{path} was changed while it was read: read it again.")
        vars(rows.bare)["feature_hashes"] = frozen(hashes)
        arrays["row_hashes"] = hashes
        arrays["row_keys"] = content_keys(rows.bare, hashes)
        header |= {"key": request.key(), "sources": sources}
        write_header(draft, header, arrays)
        # before the folder has its name: another process may replace it then
        data = BinnedDataset.load(draft, content=False, name=folder) if _MOVES_OPEN else None
    return BinnedDataset.load(folder, content=False) if data is None else data


# -- reading ---------------------------------------------------------------------------------------


class _Columns:
    """The columns of all rows except their features, gathered block by block."""

    def __init__(self) -> None:
        self.y: list[np.ndarray] = []
        self.hashes: list[np.ndarray] = []
        self.widths: list[int] = []
        self.others: dict[str, list[np.ndarray]] = {"query": [], "weight": [], "base_score": []}

    def add(self, block: Block, hashes: np.ndarray) -> None:
        self.y.append(block.y)
        self.hashes.append(hashes)
        self.widths.append(int(block.features.shape[1]))
        for name, parts in self.others.items():
            column = getattr(block, name)
            if column is not None:
                parts.append(column.astype(np.int32) if name == "query" else column)

    def whole(self, name: str) -> np.ndarray | None:
        parts = self.others[name]
        found = np.concatenate(parts) if parts else None
        parts.clear()
        return found


def _spilled(
    reader: RowReader, spill: Spill, request: BinsRequest, report: Report, n_threads: int
) -> tuple[SpilledRows, np.ndarray]:
    """Return all rows, and the hashes of their features in query order."""
    columns = _Columns()
    like = request.like
    for block in reader.blocks(lambda done, total: report("reading", done, total)):
        spill.add(block.features)
        columns.add(block, _hashes(block, n_threads))
    facts = reader.facts()
    bare = _bare(facts, columns, like)
    hashes = _whole_hashes(columns, facts.n_features, reader.hole, n_threads)
    rows = SpilledRows(spill, facts, bare)
    _check_categories(rows)
    for column in facts.codes:  # numbers of texts took no part in the hashes of blocks
        _add_hashes(hashes, rows, column)
    return rows, bare.grouped(hashes)


def _bare(facts: RowFacts, columns: _Columns, like: BinnedDataset | None) -> QueryDataset:
    """Return the data set without features."""
    y = check_labels(np.concatenate(columns.y))
    columns.y.clear()
    query_of_row = facts.query_of_row
    if query_of_row is None:
        of_rows = columns.whole("query")
        assert of_rows is not None
        query_of_row = of_rows.astype(np.int64)
    if like is not None and facts.n_features > like.n_features:
        raise DataError(
            f"The data has {counted(facts.n_features, 'feature')}; the bins were made for "
            f"{like.n_features}."
        )
    return QueryDataset.from_parts(
        np.empty((0, facts.n_features), np.float32),
        y,
        facts.query_ids,
        query_of_row,
        weight=check_weights("weight", columns.whole("weight"), y.size, "row"),
        base_score=check_base_score(columns.whole("base_score"), y.size),
        feature_names=facts.feature_names,
        absent=facts.absent,
        categories=facts.categories,
    )


def _hashes(block: Block, n_threads: int) -> np.ndarray:
    """Return the hashes of a block's rows, without columns of texts."""
    features = block.features
    if block.texts and isinstance(features, np.ndarray):
        features = features.copy()
        features[:, list(block.texts)] = 0.0
    n = block.n_rows
    some = QueryDataset.from_parts(features, block.y, np.zeros(1), np.zeros(n, np.int64))
    return hash_features(some, n_threads)


def _whole_hashes(columns: _Columns, n_features: int, hole: float, n_threads: int) -> np.ndarray:
    """Return the hashes of all rows; the last features of narrow blocks are missing, or 0."""
    if hole != 0.0:
        for hashes, width in zip(columns.hashes, columns.widths, strict=True):
            if width < n_features:
                absent = np.full((1, n_features), np.nan, np.float32)
                absent[:, :width] = 0.0
                hashes += _hashes(Block(absent, np.zeros(1)), n_threads)
    return np.concatenate(columns.hashes)


def _add_hashes(hashes: np.ndarray, rows: SpilledRows, column: int) -> None:
    """Add what a column adds to the hashes of rows, which are in the order of the files."""
    from rankgrove.data._hash_kernels import hash_sparse

    for first, values in rows.parts_of(column):
        n = values.size
        bits = np.ascontiguousarray(values).view(np.uint32)
        shares = np.empty(n, np.uint64)
        indices, pointers = np.full(n, column, np.int32), np.arange(n + 1, dtype=np.int32)
        frozen_parts = (frozen(bits), frozen(indices), frozen(pointers))
        hash_sparse(*frozen_parts, np.arange(n), 0, n, shares)
        hashes[first : first + n] += shares


def _check_categories(rows: SpilledRows) -> None:
    """Refuse columns of codes that hold other values."""
    categories = rows.bare.categories
    names = rows.bare.feature_names
    for column, texts in categories.items():
        if column in rows.facts.codes:
            continue
        for first, values in rows.parts_of(column):
            check_code_column(values, column, texts, names[column], first)


# -- bins ------------------------------------------------------------------------------------------


def _binned(
    rows: SpilledRows, draft: Path, request: BinsRequest, report: Report
) -> tuple[Header, dict[str, np.ndarray]]:
    """Write the bins; return what the header and the other files hold."""
    bare, like = rows.bare, request.like
    if like is None:
        binner, has_nan = rows.fit(
            request.max_bins, request.memory, lambda n, m: report("finding thresholds", n, m)
        )
        refuse_constant(binner)
    else:
        binner, has_nan = like.binner, bare.absent_given is None and rows.has_nan()
    codes_crc, columns_crc, missing = rows.write_bins(
        binner,
        draft / CODES,
        draft / COLUMNS,
        lambda n, m: report("binning", n, m),
        of_training=like is None,
    )
    arrays = {"y": bare.y, "query_ids": bare.query_ids, "query_of_row": bare.query_of_row}
    if bare.weight is not None:
        arrays["weight"] = bare.weight
    if bare.base_score is not None:
        arrays["base_score"] = bare.base_score
    files = {
        name: [(draft / name).stat().st_size, crc]
        for name, crc in ((CODES, codes_crc), (COLUMNS, columns_crc))
    }
    header: Header = {
        "n_rows": bare.n_rows,
        "n_features": bare.n_features if like is None else like.n_features,
        "max_bins": request.max_bins,
        "of_training": like is None,
        "missing": missing,
        "has_nan": has_nan,
        "absent": bare.absent_given,
        "feature_names": None if bare.given_names is None else list(bare.given_names),
        "categories": {
            str(j): None if texts is None else list(texts) for j, texts in bare.categories.items()
        },
        "rows": [*arrays, "row_hashes", "row_keys"],
        "files": files,
    }
    return header, arrays | binner_arrays(binner)


def refuse_constant(binner: Binner) -> None:
    """Refuse bins of which no tree can be grown."""
    if binner.columns.size == 0:
        raise DataError("Every feature has the same value in all rows: there is nothing to split.")
