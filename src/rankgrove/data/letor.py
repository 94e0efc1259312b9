"""Judged data from LETOR files: SVMlight text with query ids, the format of public collections."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rankgrove.data.dataset_checks import check_absent
from rankgrove.data.letor_source import as_paths, side_file
from rankgrove.data.letor_write import write_letor
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import ParameterError
from rankgrove.parallel import threads
from rankgrove.validation import check_integer, refuse

if TYPE_CHECKING:
    from rankgrove.data.categories import Categorical

__all__ = ["read_letor", "write_letor"]

_AnyPath = str | os.PathLike[str]


def read_letor(
    path: _AnyPath | Sequence[_AnyPath],
    *,
    absent: str = "zero",
    zero_based: bool = False,
    query_file: _AnyPath | Sequence[_AnyPath] | None = None,
    sparse: bool | str = "auto",
    n_features: int | None = None,
    cache: bool = False,
    n_threads: int | None = None,
    categorical: Categorical | None = None,
) -> QueryDataset:
    """Read LETOR (SVMlight with ``qid``) text, plain or compressed by gzip or zstd.

    A row is ``LABEL qid:ID INDEX:VALUE ... # COMMENT``. Indices count from 1, may have gaps and
    may be in any order; a value is a number, ``inf``, or ``NULL`` or ``nan`` if it is missing.
    The largest double, 1.79769e308 of either sign and with any further digits, is a missing value
    too: Istella's data sets write it so.
    The text after ``#`` is kept as the document id: the token after ``docid =`` if there is one,
    else the whole comment. The rows of a query need not be adjacent.

    In LightGBM's form rows have no ``qid``; a side file has the number of rows of every query, one
    per line. It is found by its name (``rank.train.query`` for ``rank.train``), and the queries are
    numbered from 1.

    Parameters
    ----------
    path : path of a file, or a list of paths that are read as if they were one file
    absent : "zero" or "missing", the value of a feature that a row does not mention; a model that
        is trained on the data keeps it as ``absent_``
    zero_based : feature indices count from 0
    query_file : path of the side file, or a list with one for every file
    sparse : "auto", True or False
        Whether features become a scipy CSR matrix. "auto": if the dense matrix would take more
        than 64 MB and more than 8 times the text.
    n_features : number of features; None for the highest index in the files
    cache : keep a binary copy next to the file (``NAME.rgcache``), and read the copy as long as
        the file's content is unchanged; where that folder cannot be written to, the copy is in the
        user's cache folder
    n_threads : number of threads, None for all cores; the result does not depend on it
    categorical : the categorical features, by number, from 1 also with `zero_based`; or a mapping
        from them to the names of their codes. Their values are codes: whole numbers from 0 and
        below 2**20

    Returns
    -------
    QueryDataset
        Query ids are whole numbers if all of them are, else texts.

    Raises
    ------
    ParseError
        With the file, the line, the text found and what was expected.

    Examples
    --------
    >>> import tempfile, pathlib, rankgrove as rg
    >>> path = pathlib.Path(tempfile.mkdtemp(), "train.txt")
    >>> _ = path.write_text("2 qid:1 1:0.5 3:7 #docid = a\\n0 qid:1 2:1e-3 #docid = b\\n")
    >>> data = rg.read_letor(path)
    >>> data
    QueryDataset(2 rows, 1 query, 3 features; labels 0: 1, 2: 1)
    >>> data.X[0].tolist(), data.docid.tolist()
    ([0.5, 0.0, 7.0], ['a', 'b'])
    """
    from rankgrove.data.letor_parse import Queries, ReadOptions, parse

    paths = as_paths("path", path)
    options = ReadOptions(*checked_options(absent, zero_based, sparse, n_features))
    queries = Queries(side_files(paths, query_file), query_file is not None)
    with threads(n_threads) as n:
        if cache:
            from rankgrove.data.letor_cache import cached

            parts = cached(paths, queries, options, lambda: parse(paths, queries, options, n))
        else:
            parts = parse(paths, queries, options, n)
    data = QueryDataset.from_parts(
        parts.features,
        parts.y,
        parts.query_ids,
        parts.query_of_row,
        docid=parts.docid,
        absent=absent,
    )
    return data if categorical is None else data.with_categorical(categorical)


def checked_options(
    absent: str, zero_based: bool, sparse: bool | str, n_features: int | None
) -> tuple[str, bool, bool | str, int | None]:
    """Return the options of read_letor that change the result, checked."""
    check_absent(absent, "read_letor")
    if not isinstance(zero_based, bool):
        refuse("zero_based", "read_letor", "True or False", zero_based)
    if not (isinstance(sparse, bool) or sparse == "auto"):
        refuse("sparse", "read_letor", "'auto', True or False", sparse)
    if absent == "missing" and sparse is True:
        raise ParameterError(
            "read_letor cannot combine absent='missing' with sparse=True: values that a sparse "
            "matrix does not store are 0. Use sparse=False, or absent='zero'."
        )
    if n_features is not None:
        n_features = check_integer("n_features", "read_letor", n_features, low=1, high=2**31 - 1)
    return absent, zero_based, sparse, n_features


def side_files(
    paths: list[Path], query_file: _AnyPath | Sequence[_AnyPath] | None
) -> list[Path | None]:
    """Return the side file of group sizes of every path, or None if there is none."""
    if query_file is None:
        return [side_file(path) for path in paths]
    named = as_paths("query_file", query_file)
    if len(named) != len(paths):
        raise ParameterError(
            "The 'query_file' parameter of read_letor must name one file for every path "
            f"({len(paths)}). Got {len(named)} instead."
        )
    return list(named)
