"""Opening files of judged data as bins on disk, for data that memory cannot hold."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rankgrove.compiling import announce
from rankgrove.data.bin_files import BinsRequest, known_bins, make_bins
from rankgrove.data.binned_dataset import BinnedDataset
from rankgrove.data.binning import MOST_VALUE_BINS
from rankgrove.data.bins_folder import remove_leftovers
from rankgrove.data.file_kinds import (
    is_folder_of_bins,
    is_table,
    is_text_table,
    refuse_packed_tables,
)
from rankgrove.data.folder_lock import folder_lock
from rankgrove.data.letor import checked_options, side_files
from rankgrove.data.letor_blocks import BLOCK_BYTES, LetorBlocks
from rankgrove.data.letor_parse import Queries, ReadOptions
from rankgrove.data.row_blocks import RowReader
from rankgrove.data.spill_bins import MEMORY
from rankgrove.data.table_blocks import TableBlocks, TableRoles
from rankgrove.errors import ParameterError
from rankgrove.parallel import threads
from rankgrove.training.progress import TaskBar
from rankgrove.validation import check_integer, refuse

OF_LETOR = ("absent", "zero_based", "query_file", "n_features", "categorical")
OF_TABLES = ("label", "qid", "features", "weight", "docid", "base_score", "categorical")
_AnyPath = str | os.PathLike[str]
_LEAST_MEMORY = 1 << 16
LEAST_BLOCK = 1 << 16  # bytes of text or values that are read at once
_log = logging.getLogger("rankgrove")


def open_binned(
    files: _AnyPath | Sequence[_AnyPath],
    *,
    folder: _AnyPath | None = None,
    max_bins: int = MOST_VALUE_BINS,
    like: BinnedDataset | None = None,
    memory: int = MEMORY,
    n_threads: int | None = None,
    progress: bool = False,
    say: Callable[[str], None] | None = None,
    **reading: Any,
) -> BinnedDataset:
    """Open judged data as bins in files, for training of trees in little memory.

    The files are read in blocks and their bins written to a folder, which takes a byte per value.
    The bins are mapped, not read: rankers of trees are trained on the data set as on any other, and
    the model is the same to the bit as that of training in memory. The second time the folder is
    used at once, unless a file or an option has changed.

    Parameters
    ----------
    files : a LETOR file (plain, gzip or zstd) or a table (CSV, TSV, parquet, arrow, feather), or a
        list of such that are read as one; or a folder that this function has made
    folder : where the bins are; None: next to the first file, its name and ``.bins``
    max_bins : as the ranker has it
    like : training data; the file is validation or test data, and gets the same bins
    memory : about the bytes of features that are in memory at a time; more where one column of
        features for each thread takes more, at 9 bytes a row
    n_threads : number of threads, None for all cores
    progress : show a progress bar
    say : a function that gets a sentence, whether bins are used again or made; None: the log
    **reading : as in ``read_letor`` (absent, zero_based, query_file, n_features, categorical), or
        in ``read_table`` (label, qid, features, weight, base_score, categorical)

    Returns
    -------
    BinnedDataset
        A QueryDataset without features and document ids.

    Examples
    --------
    >>> import pathlib, tempfile, rankgrove as rg
    >>> path = pathlib.Path(tempfile.mkdtemp(), "train.txt")
    >>> rg.write_letor(rg.make_web(20, n_docs=20, seed=1), path)
    >>> data = rg.open_binned(path)
    >>> data.n_rows, data.folder.name
    (379, 'train.txt.bins')
    >>> model = rg.LambdaMART(n_trees=3).fit(data)
    """
    owner = "open_binned"
    announce()
    if folder is not None and (not isinstance(folder, str | os.PathLike) or not str(folder)):
        refuse("folder", owner, "the name of a folder", folder)
    tell = _log.info if say is None else say
    paths = _paths(files, owner)
    if len(paths) == 1 and is_folder_of_bins(paths[0]):
        if reading or folder is not None or like is not None:
            given = [*reading, *(["folder"] if folder else []), *(["like"] if like else [])]
            raise ParameterError(
                f"{owner}: {paths[0]} is a folder of bins, which were made already: leave out "
                f"{', '.join(given)}."
            )
        data = BinnedDataset.load(paths[0])
        _check_same(owner, max_bins, data.max_bins, str(paths[0]))
        return data
    if like is not None and not isinstance(like, BinnedDataset):
        refuse("like", owner, "a BinnedDataset, the training data", like)
    max_bins = check_integer("max_bins", owner, max_bins, low=2, high=MOST_VALUE_BINS)
    check_integer("memory", owner, memory, low=_LEAST_MEMORY)
    if like is not None:
        _check_same(owner, max_bins, like.max_bins, "the training data")
        max_bins = like.max_bins
    with threads(n_threads) as n:
        reader, request = _opened(paths, reading, max_bins, like, memory, n, owner)
        place = _place(paths, like) if folder is None else Path(folder)
        waiting = f"{place}: another process makes or checks these bins; waiting for it."
        with folder_lock(place, lambda: tell(waiting)):
            remove_leftovers(place)
            found, reason = known_bins(place, request)
            if found is not None:
                also = f" ({reason})" if reason else ""
                tell(f"{place}: the bins that were made before are used{also}.")
                return found
            again = f" again ({reason})" if reason else ""
            tell(f"{place}: making bins{again} ...")
            bar = _Bars(progress)
            try:
                return make_bins(place, request, reader, bar.report, n)
            finally:
                bar.close()


def _check_same(owner: str, max_bins: int, there: int, whose: str) -> None:
    """Refuse a number of bins, other than the default, that bins which are there do not have."""
    if max_bins not in (there, MOST_VALUE_BINS):
        raise ParameterError(
            f"{owner}: max_bins={max_bins}, but the bins of {whose} were made with "
            f"max_bins={there}. Leave it out, or make the bins again from the files."
        )


def _paths(files: _AnyPath | Sequence[_AnyPath], owner: str) -> list[Path]:
    listed = [files] if isinstance(files, str | os.PathLike) else files
    if not isinstance(listed, list | tuple) or not listed or "" in listed:
        refuse("files", owner, "the name of a file, or a list of at least one", files)
    if not all(isinstance(file, str | os.PathLike) for file in listed):
        refuse("files", owner, "the name of a file, or a list of names", files)
    return [Path(file) for file in listed]


def check_reading(
    reading: dict[str, Any], table: bool, owner: str, places: tuple[str, str]
) -> None:
    """Refuse options that do not read these files.

    `places` is what another function, and what this one, calls the folder of bins.
    """
    for name in reading:
        if name == places[0]:
            raise ParameterError(
                f"{owner} has no parameter {name!r}: the folder of the bins is {places[1]}= here."
            )
        if name not in (OF_TABLES if table else OF_LETOR):
            known = ", ".join(OF_TABLES if table else OF_LETOR)
            kind = "tables" if table else "LETOR files"
            raise ParameterError(f"{owner} has no parameter {name!r}; {kind} are read by: {known}.")


def _place(paths: list[Path], like: BinnedDataset | None) -> Path:
    """Return the folder of bins next to the first file."""
    first = paths[0]
    more = f".and-{len(paths) - 1}-more" if len(paths) > 1 else ""
    return first.with_name(f"{first.name}{more}{'' if like is None else '.valid'}.bins")


def _opened(
    paths: list[Path],
    reading: dict[str, Any],
    max_bins: int,
    like: BinnedDataset | None,
    memory: int,
    n_threads: int,
    owner: str,
) -> tuple[RowReader, BinsRequest]:
    """Return what reads the files, and what bins are made from."""
    tables = {is_table([path]) for path in paths}
    if len(tables) > 1:
        raise ParameterError(
            f"{owner}: give either LETOR files or tables. Got {', '.join(map(str, paths))}."
        )
    (table,) = tables
    refuse_packed_tables(paths)
    if len({is_text_table(path) for path in paths}) > 1:
        raise ParameterError(
            f"{owner}: give either CSV and TSV files, or parquet and arrow files: query ids of "
            "text and of typed columns cannot be compared."
        )
    check_reading(reading, table, owner, ("bins", "folder"))
    block = min(max(memory // 8, LEAST_BLOCK), BLOCK_BYTES)
    if table:
        roles = TableRoles(**reading)
        columns = None if like is None else (like.feature_names, like.categories)
        if isinstance(roles.features, str):
            roles = replace(roles, features=[roles.features])
        if like is not None and roles.features is None:
            roles = replace(roles, features=list(like.feature_names))
        request = BinsRequest(paths, {"table": asdict(roles)}, max_bins, (), like, memory)
        return TableBlocks(paths, roles, block, columns), request
    given: dict[str, Any] = {
        "absent": "zero",
        "zero_based": False,
        "query_file": None,
        "n_features": None,
    } | reading
    categorical = given.pop("categorical", None)
    if like is not None:
        given |= {"absent": like.absent, "n_features": like.n_features}
        categorical = like.categorical or None
    options = ReadOptions(
        *checked_options(given["absent"], given["zero_based"], "auto", given["n_features"])
    )
    sides = side_files(paths, given["query_file"])
    queries = Queries(sides, given["query_file"] is not None)
    used = [side for side in sides if side is not None]
    plain = {"letor": [*vars(options).values()], "categorical": categorical, "named": queries.named}
    reader = LetorBlocks(paths, queries, options, n_threads, block, categorical)
    return reader, BinsRequest(paths, plain, max_bins, used, like, memory)


class _Bars:
    """One bar after the other, in percent."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._bar: TaskBar | None = None
        self._stage = ""
        self._done = 0

    def report(self, stage: str, done: int, total: int) -> None:
        """Show how much of a stage is done."""
        if not self._shown:
            return
        if stage != self._stage:
            self.close()
            self._bar, self._stage, self._done = TaskBar(stage, 100, "percent"), stage, 0
        percent = 100 * done // max(total, 1)
        if self._bar is not None and percent > self._done:
            self._bar.advance(percent - self._done)
            self._done = percent

    def close(self) -> None:
        """Release the terminal."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
