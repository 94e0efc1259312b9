"""Tables block by block, with the rules and errors of `read_table`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.categories import Categories, categorical_columns
from rankgrove.data.category_columns import may_be_categorical
from rankgrove.data.dataset_checks import check_feature_names, check_queries, plain_ids
from rankgrove.data.row_blocks import Block, RowFacts, Seen, pieces
from rankgrove.data.table_batches import TableFile
from rankgrove.data.table_files import line_of_row
from rankgrove.data.tabular import (
    DOCID,
    check_column,
    column_names,
    columns_of_text,
    finite_labels,
    no_query_id,
    numbers_of,
    table_features,
    tokens_of,
)
from rankgrove.data.text_categories import TextCategories
from rankgrove.errors import DataError, DataWarning, ParseError
from rankgrove.validation import counted, warn

if TYPE_CHECKING:
    from rankgrove.data.categories import Categorical

_ROW = re.compile(r"\b(in|at) row (\d+)\b")


@dataclass(frozen=True)
class TableRoles:
    """The columns of a table: the arguments of `read_table`."""

    label: str = "label"
    qid: str = "qid"
    features: Sequence[str] | None = None
    weight: str | None = None
    docid: str | None = None
    base_score: str | None = None
    categorical: Categorical | None = None

    def named(self) -> list[str]:
        """Return the columns that are named, without that of document ids."""
        roles = [self.label, self.qid, self.weight, self.base_score]
        return [*(name for name in roles if name), *(self.features or [])]


class TableBlocks:
    """Reads files as if they were one; see :class:`~rankgrove.data.row_blocks.RowReader`.

    Parameters
    ----------
    known : the names and the categories of training data; None: they are found
    """

    hole = 0.0

    def __init__(
        self,
        paths: list[Path],
        roles: TableRoles,
        block_bytes: int,
        known: tuple[tuple[str, ...], Categories] | None = None,
    ) -> None:
        self._paths = paths
        self._roles = roles
        self._block_bytes = block_bytes
        self._known = known
        self._wanted: list[str] | None = None
        self._texts: dict[int, TextCategories] = {}
        self._position: dict[Any, int] = {}
        self._id_type: Any = None
        self._n_rows = 0
        self._is_text = False

    def blocks(self, seen: Seen) -> Iterator[Block]:
        """Yield all rows."""
        sizes = [os.stat(path).st_size if path.is_file() else 0 for path in self._paths]
        for at, path in enumerate(self._paths):
            file = self._file(path)
            self._is_text = file.is_text
            before = sum(sizes[:at])

            def told(done: int, total: int, before: int = before, size: int = sizes[at]) -> None:
                seen(before + size * done // max(total, 1), sum(sizes))

            first = self._n_rows
            for table in file.tables(told):
                try:
                    # pyarrow lists all columns whenever it is asked for one
                    columns = dict(zip(column_names(table), table.columns, strict=True))
                    yield from pieces(self._block(columns, file.is_text))
                except DataError as error:
                    raise self._in_file(error, path, self._n_rows - first) from error
                self._n_rows += table.num_rows
            if self._n_rows == first:
                raise ParseError(path, None, "the table has no rows. Expected at least one.")

    def facts(self) -> RowFacts:
        """Return what is known after the last block."""
        assert self._wanted is not None
        categories: Categories = {}
        codes: dict[int, np.ndarray] = {}
        for column, texts in self._texts.items():
            try:
                categories[column], codes[column] = texts.names_and_codes(self._n_rows)
            except DataError as error:
                raise self._in_file(error, self._paths[0], 0) from error
            if not self._is_given(column) and texts.is_mostly_single(self._n_rows):
                warn(
                    f"The text column {texts.name!r} is taken as categorical, and most rows have a "
                    f"text of their own ({texts.n_values:,} in {counted(self._n_rows, 'row')}): "
                    "leave it out by naming the feature columns in 'features' (--features) if it "
                    "is no category.",
                    DataWarning,
                )
        tokens = list(self._position)
        ids = plain_ids(tokens) if self._is_text else np.array(tokens, dtype=self._id_type)
        query_ids, same = check_queries(ids, ids.size)
        if not np.array_equal(same, np.arange(ids.size)):
            raise DataError("Two query ids mean the same: write each in one way only.")
        return RowFacts(
            len(self._wanted),
            query_ids,
            feature_names=check_feature_names(self._wanted, len(self._wanted)),
            categories=dict(sorted(categories.items())),
            codes=codes,
        )

    # -- a file -----------------------------------------------------------------------------------

    def _file(self, path: Path) -> TableFile:
        roles = self._roles
        used = roles.named()
        docid = roles.docid if roles.docid or DOCID in used else DOCID
        texts = columns_of_text(path, self._categorical, roles.features, used)
        named = None if roles.features is None else used
        as_text = [roles.qid, *texts, *([docid] if docid is not None else [])]
        return TableFile(path, named, as_text, self._block_bytes)

    @property
    def _categorical(self) -> Categorical | None:
        """The columns that are categorical by request."""
        if self._known is None:
            return self._roles.categorical
        names, categories = self._known
        return [names[j] for j, texts in categories.items() if texts is not None]

    def _is_given(self, column: int) -> bool:
        assert self._wanted is not None
        return column in categorical_columns(self._categorical, self._wanted)

    def _begin(self, table: dict[str, Any], is_text: bool) -> list[str]:
        """Find the features of the first table, and which of them hold texts."""
        roles = self._roles
        names = column_names(table)
        docid = roles.docid
        if docid is None and DOCID in names and DOCID not in roles.named():
            docid = DOCID
        taken = {"label": roles.label, "qid": roles.qid, "weight": roles.weight, "docid": docid}
        taken["base_score"] = roles.base_score
        for role, name in taken.items():
            if name is not None:
                check_column(name, f"the {role}", names, role)
        wanted = list(roles.features or [])
        for name in wanted:
            check_column(name, "a feature", names, "features")
        if roles.features is None:
            wanted = [name for name in names if name not in taken.values()]
        given = categorical_columns(self._categorical, [str(name) for name in wanted])
        known = {} if self._known is None else self._known[1]
        for column, name in enumerate(wanted):
            if column in given or may_be_categorical(table[name]):
                self._texts[column] = TextCategories(
                    name,
                    known.get(column) if self._known is not None else given.get(column),
                    by_request=column in given,
                    of_training=self._known is not None,
                    empty_is_null=is_text,
                )
        return wanted

    # -- a block ----------------------------------------------------------------------------------

    def _block(self, table: dict[str, Any], is_text: bool) -> Block:
        if self._wanted is None:
            self._wanted = self._begin(table, is_text)
        roles, wanted = self._roles, self._wanted
        names = list(table)
        for name in wanted:
            if name not in table:
                check_column(name, "a feature", names, "features")
        labels = finite_labels(table, roles.label)
        plain = [j for j in range(len(wanted)) if j not in self._texts]
        features = np.empty((labels.size, len(wanted)), np.float32)
        matrix, found = table_features(
            table, [wanted[j] for j in plain], labels.size, empty_is_null=is_text
        )
        if found:
            name = wanted[plain[next(iter(found))]]
            raise DataError(
                f"The column {name!r} holds texts in one file or part, and numbers in another: "
                "name it in 'categorical', or make it one of the two."
            )
        features[:, plain] = matrix
        for column, texts in self._texts.items():
            features[:, column] = texts.add(table[wanted[column]], self._n_rows)
        query = self._queries(table, is_text)
        y = np.asarray(labels, np.float64)
        return Block(
            features,
            y,
            query,
            weight=_numbers(table, roles.weight, "Weights"),
            base_score=_numbers(table, roles.base_score, "Base scores"),
            texts=tuple(self._texts),
        )

    def _queries(self, table: dict[str, Any], is_text: bool) -> np.ndarray:
        """Return the number of every row's query, by first appearance."""
        name = self._roles.qid
        if is_text:
            import pyarrow.compute

            trimmed = pyarrow.compute.utf8_trim_whitespace(table[name])
            tokens = np.asarray(trimmed)
            empty = np.flatnonzero(tokens == "")
            if empty.size:
                raise _at_row(int(empty[0]), no_query_id(name, int(empty[0])))
        tokens = tokens if is_text else tokens_of(table, name)
        self._id_type = tokens.dtype if self._id_type is None else self._id_type
        heads = np.flatnonzero(np.concatenate([[True], tokens[1:] != tokens[:-1]]))
        position = self._position
        listed = tokens[heads].tolist()
        of_run = np.array([position.setdefault(token, len(position)) for token in listed], np.int64)
        return np.repeat(of_run, np.diff(np.append(heads, tokens.size)))

    def _in_file(self, error: DataError, path: Path, rows_before: int) -> DataError:
        """Return an error about a block with the row and line in the file."""
        if isinstance(error, ParseError):
            return error
        text = _ROW.sub(lambda m: f"{m[1]} row {int(m[2]) + rows_before}", str(error))
        line = None if error.row is None else line_of_row(path, error.row + rows_before)
        return ParseError(path, line, text)


def _numbers(table: dict[str, Any], name: str | None, role: str) -> np.ndarray | None:
    return None if name is None else np.asarray(numbers_of(table, name, role), np.float64)


def _at_row(row: int, message: str) -> DataError:
    error = DataError(message)
    error.row = row
    return error
