"""Writing a data set as a LETOR file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.data import _letor_write_kernels as kernels
from rankgrove.data._letor_write_kernels import MOST_PAIR_BYTES, Block, Texts
from rankgrove.data.arrays import frozen
from rankgrove.data.queries import QueryDataset
from rankgrove.data.text_column import TextColumn
from rankgrove.errors import DataError, ParameterError
from rankgrove.files import atomic_output
from rankgrove.parallel import threads

if TYPE_CHECKING:
    import scipy.sparse

_BLOCK_BYTES = 64 << 20  # maximum bytes of text at a time
_NOT_IN_QID = re.compile(r"[\x00-\x20#]")
_NOT_IN_DOCID = re.compile(r"[\x00-\x08\x0a\x0d-\x1f]")
_LOOKS_NAMED = re.compile(r"(?:^|[ \t\v\f])docid[ \t\v\f]*=[ \t\v\f]*[^ \t\v\f]")


def write_letor(
    dataset: QueryDataset,
    path: str | os.PathLike[str],
    *,
    zeros: bool | None = None,
    n_threads: int | None = None,
    names: bool = False,
) -> None:
    """Write a data set as LETOR (SVMlight with ``qid``) text.

    :func:`read_letor` reads the same data set back: rows in the same order, features to the last
    bit (written with as few digits as possible), labels, query ids, document ids. Weights and
    feature names are not part of the format and are left out; query ids that are texts but all
    look like whole numbers come back as numbers. The file appears under its name only when it is
    complete.

    Parameters
    ----------
    dataset : QueryDataset
    path : where to write; gzip-compressed if the name ends in ``.gz``
    zeros : also write features that are 0; None: only if a feature that a row does not mention
        counts as missing (``dataset.absent``), so that all readers read the same values.
        Without them, the first row still names the last feature, so that no feature is lost
    n_threads : number of threads, None for all cores
    names : whether to begin with a comment per feature, ``# feature 3: bm25(title)``, which readers
        pass over

    Examples
    --------
    >>> import tempfile, pathlib, rankgrove as rg
    >>> data = rg.QueryDataset([[0.5, 0], [0, 2]], [1, 0], qid=["a", "a"], docid=["x", "y"])
    >>> path = pathlib.Path(tempfile.mkdtemp(), "train.txt")
    >>> rg.write_letor(data, path)
    >>> print(path.read_text(), end="")
    1 qid:a 1:0.5 2:0 #docid = x
    0 qid:a 2:2 #docid = y
    """
    if not isinstance(dataset, QueryDataset):
        raise ParameterError(
            "The 'dataset' parameter of write_letor must be a QueryDataset. "
            f"Got {type(dataset).__name__} instead."
        )
    if zeros is None:
        zeros = dataset.absent == "missing"
    labels, qids, comments = _labels(dataset), _qids(dataset), _comments(dataset)
    with threads(n_threads) as n, atomic_output(path) as file:
        if names:
            spelt = [" ".join(name.split()) for name in dataset.feature_names]
            lines = [f"# feature {j}: {name}\n" for j, name in enumerate(spelt, 1)]
            file.write("".join(lines).encode())
        for piece in _pieces(dataset, zeros, n, labels, qids, comments):
            file.write(piece)


def _pieces(
    dataset: QueryDataset, zeros: bool, n_threads: int, labels: Texts, qids: Texts, comments: Texts
) -> Iterator[memoryview]:
    """Yield the text of the file, one block of rows after another."""
    matrix = _matrix(dataset)
    room = _room(dataset, matrix, zeros, labels, qids, comments)
    ends = np.cumsum(room)
    first = 0
    while first < dataset.n_rows:
        before = ends[first - 1] if first else 0
        stop = max(first + 1, int(np.searchsorted(ends, before + _BLOCK_BYTES, "right")))
        block = _block(dataset, matrix, first, stop, zeros)
        block_texts = [t._replace(which=t.which[first:stop]) for t in (labels, qids, comments)]
        n_parts = min(stop - first, 4 * n_threads)
        cuts = np.linspace(0, stop - first, n_parts + 1).astype(np.int64)
        offsets = np.concatenate([[0], ends[first:stop] - before])
        out = np.empty(offsets[-1], np.uint8)
        starts = offsets[cuts[:-1]]
        used = np.empty(n_parts, np.int64)
        if out.size < 1 << 20:
            starts, used = starts[:1], used[:1]
            used[0] = kernels.write_part(out, 0, 0, stop - first, block, *block_texts)
        else:
            kernels.write_parts(out, starts, used, cuts, block, *block_texts)
        for start, end in zip(starts.tolist(), used.tolist(), strict=True):
            yield out[start:end].data
        first = stop


def _room(
    dataset: QueryDataset,
    matrix: scipy.sparse.csr_matrix | None,
    zeros: bool,
    labels: Texts,
    qids: Texts,
    comments: Texts,
) -> np.ndarray:
    """Return an upper bound of the number of bytes of every row."""
    room = np.ones(dataset.n_rows, np.int64)
    for texts in (labels, qids, comments):
        room += (texts.end - texts.start)[texts.which]
    if matrix is not None and not zeros:
        n_pairs: np.ndarray = np.diff(matrix.indptr).astype(np.int64)
        n_pairs[0] += 1
    else:
        n_pairs = np.full(dataset.n_rows, dataset.n_features)
    return np.asarray(room + n_pairs * MOST_PAIR_BYTES)


def _matrix(dataset: QueryDataset) -> scipy.sparse.csr_matrix | None:
    """Return sparse features in canonical format; None for dense ones."""
    X = dataset.X
    if isinstance(X, np.ndarray):
        return None
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _block(
    dataset: QueryDataset,
    matrix: scipy.sparse.csr_matrix | None,
    first: int,
    stop: int,
    zeros: bool,
) -> Block:
    nothing = np.empty(0, np.int64)
    X, columns, values, pointers = np.empty((0, 0), np.float32), nothing, nothing, nothing
    values = values.astype(np.float32)
    if matrix is not None:
        pointers = matrix.indptr[first : stop + 1].astype(np.int64)
        columns = matrix.indices[pointers[0] : pointers[-1]].astype(np.int64)
        values = np.ascontiguousarray(matrix.data[pointers[0] : pointers[-1]])
        pointers -= pointers[0]
    elif dataset.rows is None:
        X = dataset.features[first:stop]  # type: ignore[assignment]
    else:  # a view: copy the rows of this block only
        rows = dataset.rows
        picked = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        X = dataset.features[picked[first:stop]]  # type: ignore[assignment]
    # The kernels are compiled only for read-only arrays.
    X, values = frozen(X), frozen(values)
    return Block(
        not dataset.is_sparse, zeros, dataset.n_features, first == 0, X, columns, values, pointers
    )


# -- the texts around the features -----------------------------------------------------------------


def _texts(texts: Iterable[str], which: np.ndarray) -> Texts:
    column = TextColumn.from_texts(texts)
    return Texts(frozen(column.blob), column.start, column.end, which.astype(np.int64))


def _labels(dataset: QueryDataset) -> Texts:
    values, which = np.unique(dataset.y, return_inverse=True)
    return _texts([repr(value).removesuffix(".0") for value in values.tolist()], which)


def _qids(dataset: QueryDataset) -> Texts:
    tokens = [str(token) for token in dataset.query_ids.tolist()]
    for token in tokens:
        if not token or _NOT_IN_QID.search(token):
            raise DataError(
                f"The query id {token!r} cannot be written to a LETOR file: a query id there has "
                "at least one character, and no blanks, control characters or '#'. Rename it."
            )
    return _texts([f" qid:{token}" for token in tokens], dataset.query_of_row)


def _comments(dataset: QueryDataset) -> Texts:
    if dataset.docid is None:
        return _texts([""], np.zeros(dataset.n_rows))
    return _texts(map(_comment, dataset.docid.tolist()), np.arange(dataset.n_rows))


def _comment(docid: str) -> str:
    """Return the comment that reads back as `docid`."""
    if not docid:
        return ""
    if _NOT_IN_DOCID.search(docid) or docid != docid.strip(" \t\v\f"):
        raise DataError(
            f"The document id {docid!r} cannot be written to a LETOR file: a document id there has "
            "no line breaks or control characters, and no blanks around it. Rename it."
        )
    if not any(blank in docid for blank in " \t\v\f"):
        return f" #docid = {docid}"
    if _LOOKS_NAMED.search(docid):
        raise DataError(
            f"The document id {docid!r} cannot be written to a LETOR file: the text after "
            "'docid =' in it would be read as the whole id. Rename it."
        )
    return f" #{docid}"
