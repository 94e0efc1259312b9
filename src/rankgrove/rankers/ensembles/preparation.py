"""Features that are selected, encoded, transformed and normalised for a ranker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.data.normalising import normalised, transformed
from rankgrove.data.queries import QueryDataset
from rankgrove.rankers.ensembles.encoding import Encoding, encode_columns

if TYPE_CHECKING:
    from rankgrove.data.arrays import Matrix


@dataclass(frozen=True)
class Preparation:
    """How features are prepared.

    The prepared features are: the chosen columns in their order, without those that become
    indicators; the indicators; and with `append` the normalised columns once more. Columns of
    categories that are not encoded are neither transformed nor normalised; mean labels of
    categories are only normalised; indicators are neither.
    """

    columns: np.ndarray
    encodings: Mapping[int, Encoding]
    transform: str | None
    normalise: str | None
    append: bool

    def prepared(
        self,
        data: QueryDataset,
        names: Sequence[str] | None,
        own: Mapping[int, np.ndarray] | None = None,
    ) -> QueryDataset:
        """Return data with prepared features.

        Parameters
        ----------
        names : of the features before; None: they have numbers
        own : the encoded columns, where they are known
        """
        rows = slice(None) if data.rows is None else data.rows
        categories = data.categories
        order = slice(None) if data.order is None else data.order
        features = self.features(data.features[rows], set(categories), own, (order, data.query_ptr))
        place = {j: k for k, j in enumerate(self._plain())}
        return QueryDataset.from_parts(
            features,
            data.y,
            data.query_ids,
            data.query_of_row,
            weight=data.weight,
            docid=data.docid_column,
            feature_names=self._names(names, data),
            query_weight=data.query_weight,
            base_score=data.base_score,
            positions=data.positions,
            absent=data.absent_given,
            categories={
                place[j]: texts
                for j, texts in categories.items()
                if j in place and j not in self.encodings
            },
        )

    def features(
        self,
        features: Matrix,
        categorical: set[int],
        own: Mapping[int, np.ndarray] | None = None,
        queries: tuple[np.ndarray | slice, np.ndarray] | None = None,
    ) -> Matrix:
        """Return prepared features of all rows.

        Parameters
        ----------
        categorical : the columns that are categorical
        queries : where features are normalised: the rows in query order, and the queries' borders
        """
        encoded = own if own is not None else encode_columns(features, None, self.encodings)
        plain = self._plain()
        numeric = [k for k, j in enumerate(plain) if j not in categorical]
        chosen = features[:, plain]
        if self.transform is not None:
            chosen = self._with(chosen, numeric, transformed(chosen[:, numeric], self.transform))
        means = [k for k, j in enumerate(plain) if j in self.encodings]
        for k in means:
            chosen = self._with(chosen, [k], encoded[plain[k]])
        indicators = [encoded[j] for j, encoding in self.encodings.items() if j not in plain]
        if self.normalise is not None and queries is not None:
            order, query_ptr = queries
            changed = sorted([*numeric, *means])
            dense = chosen if isinstance(chosen, np.ndarray) else chosen.toarray()
            scaled = np.empty((dense.shape[0], len(changed)), np.float32)
            values = np.ascontiguousarray(dense[order][:, changed])
            scaled[order] = normalised(values, query_ptr, self.normalise)
            if self.append:
                return np.hstack([dense, *indicators, scaled])
            chosen = self._with(dense, changed, scaled)
        if not indicators:
            return chosen
        return _side_by_side(chosen, indicators)

    def origins(self, categorical: set[int]) -> np.ndarray:
        """Return the column of the data that every prepared feature is made from."""
        plain = self._plain()
        made = list(plain)
        for j, encoding in self.encodings.items():
            if encoding.kind == "onehot":
                made += [j] * encoding.n_columns
        if self.append:
            made += [j for j in plain if j not in categorical or j in self.encodings]
        return np.array(made, np.int64)

    def _plain(self) -> list[int]:
        """Return the chosen columns that do not become indicators."""
        encodings = self.encodings
        return [
            j for j in self.columns.tolist() if j not in encodings or encodings[j].kind != "onehot"
        ]

    @staticmethod
    def _with(features: Matrix, columns: list[int], values: Matrix) -> Matrix:
        """Return features with other values of some columns."""
        if len(columns) == features.shape[1]:
            return values
        if isinstance(features, np.ndarray):
            copied = np.array(features)
            copied[:, columns] = values if isinstance(values, np.ndarray) else values.toarray()
            return copied
        import scipy.sparse

        changed: Any = features.tolil()
        changed[:, columns] = values
        return scipy.sparse.csr_matrix(changed)

    def _names(self, names: Sequence[str] | None, data: QueryDataset) -> tuple[str, ...] | None:
        """Return the names of the prepared features; None: those of numbered columns."""
        if names is None and (self.columns.size < data.n_features or self.append or self.encodings):
            names = tuple(f"f{j + 1}" for j in range(data.n_features))  # the original numbers
        if names is None:
            return None
        categories = data.categories
        plain = self._plain()
        kept = [names[j] for j in plain]
        for k, j in enumerate(plain):
            if j in self.encodings:
                (kept[k],) = self.encodings[j].names(names[j], categories.get(j))
        made = list(kept)
        for j, encoding in self.encodings.items():
            if encoding.kind == "onehot":
                made += encoding.names(names[j], categories.get(j))
        if self.append:
            changed = [
                name
                for name, j in zip(kept, plain, strict=True)
                if j not in categories or j in self.encodings
            ]
            made += [f"{name} ({self.normalise})" for name in changed]
        return tuple(made)


def _side_by_side(features: Matrix, more: Sequence[np.ndarray]) -> Matrix:
    """Return features with more columns after them; sparse ones stay sparse."""
    if isinstance(features, np.ndarray):
        return np.hstack([features, *more])
    import scipy.sparse

    added = [scipy.sparse.csr_matrix(columns) for columns in more]
    return scipy.sparse.hstack([features, *added]).tocsr()
