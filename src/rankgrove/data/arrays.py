"""The types of arrays and tables that hold data, and read-only views of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import scipy.sparse
    from numpy.typing import ArrayLike

    # Features as they are kept.
    Matrix = np.ndarray | scipy.sparse.csr_matrix

    # A table: pandas' or polars' data frame, pyarrow's table, or a mapping from name to column.
    Frame: TypeAlias = "DataFrame | ArrowTable | Mapping[str, ArrayLike]"

    # Features as a caller may give them.
    Features: TypeAlias = "ArrayLike | Sparse | DataFrame | ArrowTable"

# Some rows of an array: positions, a slice, or all (None).
Rows = np.ndarray | slice | None


class Sparse(Protocol):
    """A scipy sparse matrix of any format: the members that are used."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> scipy.sparse.csr_matrix:
        """Return the matrix in CSR format."""


class DataFrame(Protocol):
    """A pandas or polars data frame: the members that are used."""

    @property
    def columns(self) -> Iterable[Any]:
        """The names of the columns."""

    def __getitem__(self, name: Any, /) -> Any: ...


class ArrowTable(Protocol):
    """A pyarrow table: the members that are used."""

    @property
    def column_names(self) -> list[str]:
        """The names of the columns."""

    def column(self, name: str, /) -> Any:
        """Return a column by name."""


def frozen(array: np.ndarray) -> np.ndarray:
    """Return a view that cannot be written to.

    Kernels are compiled once for writable arrays and once for read-only ones. Arrays that may be
    either are frozen before a kernel gets them, so that it is compiled only once.
    """
    view = array.view()
    view.flags.writeable = False
    return view


def frozen_matrix(features: Matrix) -> Matrix:
    """Return the features in a form that cannot be written to, sharing memory."""
    if isinstance(features, np.ndarray):
        return frozen(features)
    import scipy.sparse

    arrays = (frozen(features.data), frozen(features.indices), frozen(features.indptr))
    sparse = scipy.sparse.csr_matrix(arrays, shape=features.shape, copy=False)
    sparse.has_canonical_format = features.has_canonical_format
    return sparse
