"""Results as tables of pandas, polars and pyarrow, which are imported only when one is made."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.errors import DataError, MissingExtraError
from rankgrove.files import atomic_output

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

# The columns of a table by name, all of one length. In columns of texts, None is a null.
Columns = Mapping[str, "np.ndarray | Sequence[Any]"]

# The extra of every library, for the message where it is absent.
_EXTRA = {"pandas": "pandas", "polars": "polars", "pyarrow": "tables"}
# Endings of the tables that can be written.
ARROW = (".arrow", ".feather", ".ipc")
TEXT = (".csv", ".csv.gz", ".tsv", ".tsv.gz")
WRITTEN_ENDINGS = (".parquet", *TEXT, *ARROW)


class Tabular:
    """Base of what can be turned into a table: `to_pandas`, `to_polars`, `to_arrow`.

    A subclass has ``table_columns()``; those that ``table_index()`` names become the index of a
    pandas frame, and are plain first columns of the others.
    """

    def table_columns(self) -> Columns:
        """Return the columns of the table by name."""
        raise NotImplementedError

    def table_index(self) -> tuple[str, ...]:
        """Return the names of the columns that are the index of a pandas frame."""
        return ()

    def to_pandas(self) -> pandas.DataFrame:
        """Return the table as a pandas frame."""
        pd = library("pandas", f"{type(self).__name__}.to_pandas")
        frame = pd.DataFrame({name: plain(c) for name, c in self.table_columns().items()})
        index = list(self.table_index())
        return frame.set_index(index) if index else frame

    def to_polars(self) -> polars.DataFrame:
        """Return the table as a polars frame."""
        pl = library("polars", f"{type(self).__name__}.to_polars")
        return pl.DataFrame({name: plain(c) for name, c in self.table_columns().items()})

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as a pyarrow table."""
        return arrow_table(self.table_columns(), f"{type(self).__name__}.to_arrow")


def by_column(rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Return rows, mappings with the same names, as columns."""
    listed = list(rows)
    return {name: [row[name] for row in listed] for name in (listed[0] if listed else ())}


def library(name: str, purpose: str) -> Any:
    """Return an optional library of tables, imported; the error names what it is needed for."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingExtraError(name, _EXTRA[name], purpose) from None


def plain(column: np.ndarray | Sequence[Any]) -> Any:
    """Return a column as a list, where it holds texts or objects; arrays of numbers unchanged."""
    if isinstance(column, np.ndarray) and column.dtype.kind not in "OUS":
        return column
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def arrow_table(columns: Columns, purpose: str) -> Any:
    """Return columns as a pyarrow table."""
    arrow = library("pyarrow", purpose)
    return arrow.table({name: arrow.array(plain(c)) for name, c in columns.items()})


def check_table_name(path: str | Path, what: str) -> None:
    """Refuse a file name whose ending is not that of a table."""
    if not Path(path).name.lower().endswith(WRITTEN_ENDINGS):
        raise DataError(f"The name of {what} must end in {', '.join(WRITTEN_ENDINGS)}. Got {path}.")


def write_columns(columns: Columns, path: str | Path, what: str) -> None:
    """Write columns as parquet, CSV, TSV or arrow, by the ending of the name; needs pyarrow."""
    check_table_name(path, what)
    write_arrow(arrow_table(columns, f"Writing {what}"), path)


def write_arrow(table: Any, path: str | Path) -> None:
    """Write a pyarrow table in the form that the ending of the name says."""
    name = Path(path).name.lower()
    with atomic_output(path) as out:
        if name.endswith(".parquet"):
            library("pyarrow.parquet", "").write_table(table, out)
        elif name.endswith(TEXT):
            csv = library("pyarrow.csv", "")
            separator = "\t" if ".tsv" in name else ","
            options = csv.WriteOptions(delimiter=separator, quoting_style="needed")
            csv.write_csv(_decoded(table), out, options)
        else:
            with library("pyarrow.ipc", "").new_file(out, table.schema) as file:
                file.write_table(table)


def _decoded(table: Any) -> Any:
    """Return the table without dictionaries, which CSV cannot have."""
    for j, field in enumerate(table.schema):
        if hasattr(field.type, "value_type"):
            table = table.set_column(j, field.name, table.column(j).cast(field.type.value_type))
    return table
