"""A data set whose features are bins in files, which are mapped: see :func:`rankgrove.open_binned`.

The features themselves are gone. Values that are on the same side of every threshold have the same
bin, so trees with these thresholds score a row by any value of the bin.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.arrays import Rows, frozen
from rankgrove.data.binned_part import part_of
from rankgrove.data.binning import MISSING, N_BINS, BinnedMatrix, Binner
from rankgrove.data.bins_folder import (
    DamagedBinsError,
    Header,
    array_of,
    binned_of,
    binner_of,
    check_files,
    check_rows,
    damaged,
    read_header,
)
from rankgrove.data.positions import Positions, check_positions
from rankgrove.data.queries import QueryDataset
from rankgrove.data.subsets import chosen_queries, columns_of_subset
from rankgrove.errors import DataError, MissingFileError
from rankgrove.validation import counted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.data.arrays import Matrix

_CELLS_AT_ONCE = 1 << 22  # values that are decoded at once
_MOST_TRIES = 5  # to load a folder that other processes replace
_PAUSE = 0.01


class BinnedDataset(QueryDataset):
    """Judged data of which trees can be grown, with bins instead of features.

    Made by :func:`rankgrove.open_binned`. It can be trained on as often as one likes; `select` and
    folds are views, with the bins of the whole data. Processes that get it map the same files.

    Attributes
    ----------
    folder : the folder of the files
    max_bins : the largest number of bins of a feature, as rankers have it
    """

    folder: Path
    max_bins: int
    of_training: bool
    _header: Header
    _all_bins: BinnedMatrix
    _places: Rows  # of the rows, in query order, among those of the folder; None: all of them

    @classmethod
    def load(cls, folder: Path, *, content: bool = True, name: Path | None = None) -> BinnedDataset:
        """Return the data of a folder; refuse a damaged one, also by `content` if asked for.

        The files are those of one folder, also if another process replaces it meanwhile. `name` is
        what the folder will be called; None: its own.
        """
        folder = folder.absolute()
        name = folder if name is None else name.absolute()
        for tries_left in reversed(range(_MOST_TRIES)):
            header = None
            try:
                header = read_header(folder)
                data = cls._checked(folder, header, content, name)
            except MissingFileError:
                if not tries_left or (header is not None and _has(folder, header)):
                    raise
            except DamagedBinsError:
                if not tries_left or header is None or _has(folder, header):
                    raise
            else:
                if _has(folder, header):
                    return data
            time.sleep(_PAUSE)
        raise DataError(f"Other processes replace {folder} all the time: name another folder.")

    @classmethod
    def _checked(cls, folder: Path, header: Header, content: bool, name: Path) -> BinnedDataset:
        try:
            check_files(folder, header, content=content)
            return cls._loaded(folder, header, name)
        except (DamagedBinsError, MissingFileError):
            raise
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise damaged(folder, f"its files do not fit each other ({error})") from None

    @classmethod
    def _loaded(cls, folder: Path, header: Header, name: Path) -> BinnedDataset:
        there = {name: array_of(folder, name) for name in header["rows"]}
        check_rows(header, there)
        names = header["feature_names"]
        categories = {
            int(j): None if texts is None else tuple(texts)
            for j, texts in header["categories"].items()
        }
        self = cls.__new__(cls)
        self._assemble(
            np.empty((0, 0), np.float32),
            None,
            there["y"],
            there["query_ids"],
            there["query_of_row"],
            weight=there.get("weight"),
            base_score=there.get("base_score"),
            feature_names=None if names is None else tuple(names),
            absent=header["absent"],
            categories=categories,
        )
        binner = binner_of(folder, header)
        self.__dict__.update(
            folder=name,
            max_bins=int(header["max_bins"]),
            of_training=bool(header["of_training"]),
            _header=header,
            _all_bins=binned_of(folder, header, binner, name),
            _places=None,
            feature_hashes=frozen(there["row_hashes"]),
            row_keys=frozen(there["row_keys"]),
        )
        return self

    # -- bins -------------------------------------------------------------------------------------

    @property
    def binner(self) -> Binner:
        """The thresholds of the bins."""
        return self._all_bins.binner

    @cached_property
    def bins(self) -> BinnedMatrix:
        """The bins of the rows, in query order; see :func:`part_of`."""
        if self._places is not None and self.of_training and self.binner.has_ordered:
            raise DataError(
                f"A part of the data in {self.folder} cannot be trained on: it has a categorical "
                "feature of more than 254 categories, whose bins depend on the labels of all of "
                "the data. Make bins of the part alone."
            )
        return part_of(self._all_bins, self._places)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self._header["n_features"])

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a scipy CSR matrix: they are not."""
        return False

    @property
    def features(self) -> Matrix:  # type: ignore[override]
        """Refused: only bins are there."""
        raise DataError(
            f"The data in {self.folder} has bins only, and no features, which this needs. Read the "
            "data itself, with rg.read_letor or rg.read_table."
        )

    @cached_property
    def absent(self) -> str:
        """``"zero"`` or ``"missing"``: the value of a feature that a row does not mention."""
        if self.absent_given is not None:
            return self.absent_given
        return "missing" if self._header["has_nan"] else "zero"

    def same_bins(self, binner: Binner) -> bool:
        """Whether the bins are those of a binner."""
        if binner is self.binner:
            return True
        mine, others = self.binner.content(), binner.content()
        return len(mine) == len(others) and all(map(np.array_equal, mine, others))

    # -- subsets ----------------------------------------------------------------------------------

    def select(self, queries: ArrayLike) -> BinnedDataset:
        """Return the data set of some queries, as a view."""
        chosen = chosen_queries(queries, self.n_queries)
        caller_rows, inside, columns = columns_of_subset(self, chosen)
        part = type(self).__new__(type(self))
        part._assemble(
            np.empty((0, 0), np.float32),
            None,
            self.y[caller_rows],
            self.query_ids[chosen],
            columns.pop("query_of_row"),
            **columns,
        )
        mine = self._places
        at = inside if mine is None else np.arange(self._all_bins.n_rows)[mine][inside]
        is_slice = bool(np.all(np.diff(at) == 1))
        places: Rows = slice(int(at[0]), int(at[-1]) + 1) if is_slice else at
        shared = ("folder", "max_bins", "of_training", "_header", "_all_bins")
        part.__dict__.update(
            {name: vars(self)[name] for name in shared},
            _places=places,
            feature_hashes=frozen(self.feature_hashes[inside]),
        )
        return part

    def without_features(self) -> BinnedDataset:
        """Return the data itself."""
        return self

    def with_n_features(self, n_features: int) -> QueryDataset:
        """Return the data itself; another number of features is refused."""
        return self if n_features == self.n_features else super().with_n_features(n_features)

    def with_positions(
        self,
        position: ArrayLike | Positions | None,
        context: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> BinnedDataset:
        """Return the data with these positions, one per row; the folder stays as it is."""
        if not isinstance(position, Positions):
            position = check_positions(position, context, self.n_rows)
        other = type(self).__new__(type(self))
        other.__dict__.update(vars(self) | {"positions": position})
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the name of the folder, which queries a view has, and positions."""
        if self.positions is not None:
            return _with_positions, (self.with_positions(None), self.positions)
        if self._places is None:
            return _opened, (self.folder, self._header["files"])
        places = np.arange(self._all_bins.n_rows)[self._places]
        files = self._header["files"]
        whole = _opened(self.folder, files)
        query_at = np.searchsorted(whole.query_ptr, places[self.query_ptr[:-1]], side="right") - 1
        return _part, (self.folder, files, query_at)

    # -- scores -----------------------------------------------------------------------------------

    def decoded(self) -> Iterator[tuple[np.ndarray, QueryDataset]]:
        """Yield pieces: the caller's rows, and their data with a value of its bin for every value.

        A piece has whole queries. Trees with the thresholds of the bins score it as the data.
        """
        tables = self._values()
        height = max(_CELLS_AT_ONCE // max(self.n_features, 1), 1)
        first = 0
        while first < self.n_queries:
            wanted = self.query_ptr[first] + height
            last = max(int(np.searchsorted(self.query_ptr, wanted, "right")) - 1, first + 1)
            part = self.select(np.arange(first, last))
            codes = part.bins.codes
            values = np.zeros((part.n_rows, self.n_features), np.float32)
            for at, column in enumerate(self.binner.columns.tolist()):
                values[:, column] = tables[at][codes[:, at]]
            start, end = self.query_ptr[[first, last]].tolist()
            rows = np.arange(start, end) if self.order is None else self.order[start:end]
            yield (
                rows,
                QueryDataset.from_parts(
                    values, part.y, part.query_ids, part.query_of_row, **part._columns()
                ),
            )
            first = last

    def _values(self) -> list[np.ndarray]:
        """Return by kept feature a value of every bin."""
        if self.of_training and self.binner.has_ordered:
            raise DataError(
                f"The data in {self.folder} cannot be scored: it has a categorical feature of more "
                "than 254 categories, whose bins in training data depend on labels. Open it with "
                "like= instead, or read the data itself."
            )
        tables = []
        for at, thresholds in enumerate(self.binner.thresholds):
            table = np.full(N_BINS, np.inf, np.float32)
            categories = self.binner.categories_of(at)
            if categories is None:
                table[: thresholds.size] = thresholds
            else:
                table[categories.bins] = categories.codes
            table[MISSING] = np.nan
            tables.append(table)
        return tables

    def __repr__(self) -> str:
        return (
            f"BinnedDataset({counted(self.n_rows, 'row')}, "
            f"{counted(self.n_queries, 'query', 'queries')}, "
            f"{counted(self.n_features, 'feature')} in at most {self.max_bins} bins; "
            f"labels {self._label_text()})"
        )


def _with_positions(data: BinnedDataset, positions: Positions) -> BinnedDataset:
    return data.with_positions(positions)


def _has(folder: Path, header: Header) -> bool:
    """Whether a folder has a header."""
    try:
        return read_header(folder) == header
    except (DamagedBinsError, MissingFileError):
        return False


def _opened(folder: Path, files: Mapping[str, Any]) -> BinnedDataset:
    """Return the data of a folder that has still these files, by size and checksum."""
    data = BinnedDataset.load(folder, content=False)
    if data._header["files"] != files:
        raise DataError(
            f"{folder} holds other bins than when the data set was pickled: open it again."
        )
    return data


def _part(folder: Path, files: Mapping[str, Any], queries: np.ndarray) -> BinnedDataset:
    return _opened(folder, files).select(queries)
