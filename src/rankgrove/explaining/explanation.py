"""Explanations: scores as exact sums of feature contributions, and tables of these."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rankgrove.data.arrays import frozen
from rankgrove.data.categories import Names
from rankgrove.errors import DataError
from rankgrove.frames import Columns, Tabular
from rankgrove.showing import html_table
from rankgrove.validation import check_integer, counted, nearest


@dataclass(frozen=True, eq=False, repr=False)
class ContributionTable(Tabular):
    """Feature contributions to a number, the largest first; prints as a table.

    Attributes
    ----------
    title : what the number is
    features : names, by absolute contribution, the largest first
    values : the features' values: column name -> one value per feature; of a categorical feature
        that has names, the category's name
    amounts : the contribution of every feature
    base, base_name : the start of the sum
    rounding : the rounding error of the model's arithmetic
    total, total_name : the number itself: ``math.fsum([base, *amounts, rounding])``, to the bit
    """

    title: str
    features: tuple[str, ...]
    values: dict[str, np.ndarray]
    amounts: np.ndarray
    base: float
    base_name: str
    rounding: float
    total: float
    total_name: str

    def text(self, top: int | None = 10) -> str:
        """Return the table with the `top` features (None: all with a contribution)."""
        rows = self._rows(top)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [self.title]
        for row in rows:
            cells = [row[0].ljust(widths[0])]
            cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        header, *rows = self._rows(10)
        return html_table(self.title, header, rows)

    def _rows(self, top: int | None) -> list[list[str]]:
        """Return the table's cells, the header first."""
        if top is not None:
            check_integer("top", "text", top, low=0)
        used = np.flatnonzero(self.amounts)
        shown, rest = (used, used[:0]) if top is None else (used[:top], used[top:])
        rows = [["feature", *self.values, "adds"]]
        for k in shown.tolist():
            values = [_number(column[k]) for column in self.values.values()]
            rows.append([self.features[k], *values, _signed(float(self.amounts[k]))])
        blank = [""] * len(self.values)
        if rest.size:
            amount = math.fsum(self.amounts[rest].tolist())
            rows.append([counted(rest.size, "other feature"), *blank, _signed(amount)])
        if self.base_name:
            rows.append([self.base_name, *blank, _signed(self.base)])
        if abs(self.rounding) > 1e-9 * (abs(self.total) + abs(self.base)):
            rows.append(["rounding", *blank, _signed(self.rounding)])
        return [*rows, [self.total_name, *blank, _signed(self.total)]]

    def __repr__(self) -> str:
        return self.text()

    def table_columns(self) -> Columns:
        """Return the table's columns, one row per feature."""
        return {"feature": self.features, **self.values, "adds": self.amounts}

    def table_index(self) -> tuple[str, ...]:
        """Return the column of features."""
        return ("feature",)


@dataclass(frozen=True, eq=False)
class Explanation(Tabular):
    """Scores as sums over features: the result of :func:`explain`.

    For every document i, to the last bit::

        scores[i] == math.fsum([base[i], *contributions[i], rounding[i]])

    Attributes
    ----------
    model : the model's class
    feature_names : one per column of `contributions`
    documents : the ids of documents, in the order of the data; ``row12`` if it has none
    query_ids : the query of every document
    labels, scores : one per document
    base : the start of every document's sum: the expected score over the training rows
    contributions : float64, one row per document, one column per feature
    rounding : the difference between score and contributions in floating-point arithmetic, one per
        document: about 1e-16 of the score, and 1e-7 where a model adds in float32
    values : float32, the values of the features; of categorical ones, codes
    categories : column of a categorical feature -> the names of its codes, or None
    """

    model: str
    feature_names: tuple[str, ...]
    documents: tuple[str, ...]
    query_ids: np.ndarray
    labels: np.ndarray
    scores: np.ndarray
    base: np.ndarray
    contributions: np.ndarray
    rounding: np.ndarray
    values: np.ndarray
    categories: Mapping[int, Names] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("query_ids", "labels", "scores", "base", "contributions", "rounding"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        object.__setattr__(self, "values", frozen(self.values))

    @property
    def ranking(self) -> np.ndarray:
        """The documents' positions, the highest score first; ties in the order of the data."""
        return np.argsort(-self.scores, kind="stable")

    def position(self, document: int | str) -> int:
        """Return the position of a document, given by its id or by its position."""
        if isinstance(document, str):
            places = [i for i, name in enumerate(self.documents) if name == document]
            if len(places) == 1:
                return places[0]
            if places:
                raise DataError(
                    f"{counted(len(places), 'document')} have the id {document!r}: explain one "
                    "query, or give the document's position, a number."
                )
            raise DataError(
                f"There is no document {document!r} among the {len(self.documents):,} explained"
                f"{nearest(document, self.documents)}."
            )
        last = len(self.documents) - 1
        return check_integer("document", "Explanation", document, low=0, high=last)

    def importance(self) -> dict[str, float]:
        """Return every feature's mean absolute contribution, the largest first."""
        size = np.abs(self.contributions).mean(axis=0)
        order = np.argsort(-size, kind="stable")
        return {self.feature_names[j]: float(size[j]) for j in order.tolist()}

    def table(self, document: int | str) -> ContributionTable:
        """Return the feature contributions to one document's score, the largest first."""
        i = self.position(document)
        order, rounding = _by_size(self.contributions[i]), float(self.rounding[i])
        return ContributionTable(
            title=f"{self.documents[i]}, query {self.query_ids[i]}: score {self.scores[i]:.6g}",
            features=tuple(self.feature_names[j] for j in order),
            values={"value": self._shown(i, order)},
            amounts=self.contributions[i, order],
            base=float(self.base[i]),
            base_name="base",
            rounding=rounding,
            total=float(self.scores[i]),
            total_name="score",
        )

    def why(self, above: int | str, below: int | str) -> ContributionTable:
        """Return why a document's score is above another's: their difference per feature.

        A feature's amount is its contribution to the first, minus its contribution to the second.
        """
        a, b = self.position(above), self.position(below)
        total = float(self.scores[a] - self.scores[b])
        base = float(self.base[a] - self.base[b])
        amounts = self.contributions[a] - self.contributions[b]
        rounding = settle(total, base, amounts)
        order = _by_size(amounts)
        names = self.documents[a], self.documents[b]
        sign = ">" if total > 0 else "<" if total < 0 else "="
        columns = [names[0], names[1]] if names[0] != names[1] else ["first", "second"]
        return ContributionTable(
            title=f"{names[0]} ({self.scores[a]:.6g}) {sign} {names[1]} ({self.scores[b]:.6g})",
            features=tuple(self.feature_names[j] for j in order),
            values={columns[0]: self._shown(a, order), columns[1]: self._shown(b, order)},
            amounts=amounts[order],
            base=base,
            base_name="base" if base else "",
            rounding=rounding,
            total=total,
            total_name="difference",
        )

    def _shown(self, document: int, order: np.ndarray) -> np.ndarray:
        """Return a document's values in some order, with names in place of codes."""
        values = self.values[document, order]
        if not any(self.categories.values()):
            return values
        shown = values.astype(object)
        for k, j in enumerate(order.tolist()):
            names, x = self.categories.get(j) or (), float(values[k])
            if 0 <= x < len(names):
                shown[k] = names[int(x)]
        return shown

    def table_columns(self) -> Columns:
        """Return the table's columns: query, document, score, base and all contributions."""
        columns: dict[str, np.ndarray | Sequence[str]] = {
            "qid": self.query_ids,
            "document": self.documents,
            "score": self.scores,
            "base": self.base,
            "rounding": self.rounding,
        }
        taken = set(columns).intersection(self.feature_names)
        by_feature = zip(self.feature_names, self.contributions.T, strict=True)
        # a feature that is called like another column gives way
        return columns | {f"{n} (feature)" if n in taken else n: c for n, c in by_feature}

    def table_index(self) -> tuple[str, ...]:
        """Return the columns of queries and documents."""
        return ("qid", "document")

    def _repr_html_(self) -> str:
        most = list(self.importance().items())[:10]
        rows = [[name, f"{size:.4g}"] for name, size in most]
        documents = counted(len(self.documents), "document")
        more = len(self.feature_names) - len(rows)
        note = f"and {counted(more, 'other feature')}" if more else ""
        title = f"Explanation of {self.model}, {documents}"
        return html_table(title, ["feature", "mean absolute contribution"], rows, note)

    def __repr__(self) -> str:
        return (
            f"Explanation({self.model}: {counted(len(self.documents), 'document')}, "
            f"{counted(len(self.feature_names), 'feature')})"
        )


def settle(score: float, base: float, parts: np.ndarray) -> float:
    """Return the rounding that makes ``fsum([base, *parts, rounding])`` the score to the bit.

    It is far smaller than a unit in the last place of the summands, so that one float can hold it,
    unless the score itself is only rounding error (1.0 - 1.0 + 1e-30): the remainder is then added
    to the smallest parts.
    """
    rounding = math.fsum([score, -base, *(-parts).tolist()])
    for j in np.argsort(np.abs(parts), kind="stable").tolist():
        listed = [base, *parts.tolist(), rounding]
        if math.fsum(listed) == score:
            break
        parts[j] += math.fsum([score, *(-term for term in listed)])
    return rounding


def _by_size(amounts: np.ndarray) -> np.ndarray:
    return np.argsort(-np.abs(amounts), kind="stable")


def _number(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "missing" if math.isnan(value) else f"{value:.5g}"


def _signed(value: float) -> str:
    return f"{value:+.6f}" if value == 0 or 1e-4 <= abs(value) < 1e6 else f"{value:+.3e}"
