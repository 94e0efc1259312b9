"""Checking a ranking request, and reading its features into one matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from rankgrove.serving.problems import Problem, shown
from rankgrove.validation import nearest

REQUEST_KEYS = ("documents", "top_k")
DOCUMENT_KEYS = ("id", "features", "base_score")
_DOCUMENT_KEYS = frozenset(DOCUMENT_KEYS)
_NUMBERS = frozenset({float, int, type(None)})
_VALUE_RULE = "A value is a number within float32's range; null or NaN is a missing value."


class RankRequest(NamedTuple):
    """The documents to rank.

    ids : the documents' ids, in the order of the request
    features : float32, one row per document
    base_score : one per document, for models that were trained on base scores
    top_k : number of documents to return, or None for all
    """

    ids: list[str | int]
    features: np.ndarray
    base_score: np.ndarray | None
    top_k: int | None


class RequestForm:
    """The form of requests to one model.

    Parameters
    ----------
    names : the model's features
    max_documents : more are refused
    needs_base_score : whether every document must have a base score
    absent : ``"zero"`` or ``"missing"``, the value of features that a document does not name
    categories : the model's categorical columns, with the names of their codes. Where there are
        names, a value is a name, or a whole number that is one; unknown names are missing values
    """

    def __init__(
        self,
        names: Sequence[str],
        max_documents: int,
        needs_base_score: bool = False,
        absent: str = "missing",
        categories: Mapping[int, Sequence[str] | None] = MappingProxyType({}),
    ) -> None:
        self.names = list(names)
        self.max_documents = max_documents
        self.needs_base_score = needs_base_score
        self.absent = absent
        self._codes = {
            j: {name: float(code) for code, name in enumerate(names)}
            for j, names in categories.items()
            if names is not None
        }
        unnamed = 0.0 if absent == "zero" else None
        self._unnamed = [None if j in self._codes else unnamed for j in range(len(self.names))]
        self._column = {name: j for j, name in enumerate(self.names)}

    def read(self, request: object) -> RankRequest:
        """Return the checked request, or raise a Problem that says where the mistake is."""
        if type(request) is not dict:
            raise _wrong("", request, "The body is an object.", 'Send {"documents": [...]}.')
        _check_keys(request, REQUEST_KEYS, "")
        documents = request.get("documents")
        if type(documents) is not list:
            raise _wrong(
                "documents",
                documents,
                "documents is a list of objects.",
                'Send {"documents": [{"id": "a", "features": [0.5, null, 3]}]}.',
            )
        if len(documents) > self.max_documents:
            raise Problem(
                422,
                f"The request has {len(documents):,} documents.",
                rule=f"At most {self.max_documents:,} documents are ranked at once.",
                remedy="Send fewer, or start the service with a larger --max-documents.",
                path="documents",
            )
        top_k = request.get("top_k")
        if top_k is not None and (type(top_k) is not int or top_k < 1):
            rule = "top_k is a whole number of at least 1."
            raise _wrong("top_k", top_k, rule, "Leave it out for all documents.")
        for i, document in enumerate(documents):
            if type(document) is not dict:
                rule = "A document is an object with features."
                raise _wrong(f"documents[{i}]", document, rule, 'Send {"features": [...]}.')
            if not document.keys() <= _DOCUMENT_KEYS:
                _check_keys(document, DOCUMENT_KEYS, f"documents[{i}]")
        ids = _ids(documents)
        return RankRequest(ids, self._features(documents), self._base_scores(documents), top_k)

    def _features(self, documents: list[dict[str, Any]]) -> np.ndarray:
        rows: list[Any] = [document.get("features") for document in documents]
        kinds = set(map(type, rows))
        if kinds == {dict}:
            rows = self._by_name(rows)
        elif kinds - {list}:
            rows = self._one_by_one(rows)
        n = len(self.names)
        for i, row in enumerate(rows):
            if len(row) != n:
                raise _wrong_length(i, len(row), n)
        if self._codes:
            rows = self._coded(rows, documents)
        if not set(map(type, chain.from_iterable(rows))) <= _NUMBERS:
            raise self._first_wrong(documents)
        try:
            wide = np.array(rows, np.float64).reshape(len(rows), n)
        except OverflowError:  # a whole number beyond all floats
            raise self._first_wrong(documents) from None
        with np.errstate(over="ignore"):
            features = wide.astype(np.float32)
        if np.count_nonzero(np.isinf(features)) != np.count_nonzero(np.isinf(wide)):
            raise self._first_wrong(documents)
        return features

    def _coded(self, rows: list[list[Any]], documents: list[dict[str, Any]]) -> list[list[Any]]:
        """Return the values with codes in place of the names of categories."""
        coded = [list(row) for row in rows]
        for i, row in enumerate(coded):
            for j, codes in self._codes.items():
                value = row[j]
                if type(value) is not str:
                    if value is None or value != value:
                        continue
                    if type(value) not in (int, float, bool) or value % 1 != 0:
                        by_name = type(documents[i]["features"]) is dict
                        place = f".{self.names[j]}" if by_name else f"[{j}]"
                        raise _wrong(
                            f"documents[{i}].features{place}",
                            value,
                            f"{self.names[j]} is a categorical feature, whose values are texts.",
                            "Send the name of a category, or null.",
                        )
                    value = str(value).lower() if type(value) is bool else str(int(value))
                row[j] = codes.get(value)
        return coded

    def _by_name(self, rows: list[Any], first: int = 0) -> list[list[Any]]:
        """Return the values of objects as lists; features that an object lacks are absent."""
        column, lists = self._column, []
        for i, row in enumerate(rows, first):
            values: list[Any] = self._unnamed.copy()
            for name, value in row.items():
                j = column.get(name)
                if j is None:
                    raise Problem(
                        422,
                        f"The model has no feature {shown(name)}{nearest(name, self.names)}.",
                        rule=f"Features are named as in training: {_excerpt(self.names)}.",
                        remedy="Leave out features that the model does not know.",
                        path=f"documents[{i}].features",
                    )
                values[j] = value
            lists.append(values)
        return lists

    def _one_by_one(self, rows: list[Any]) -> list[list[Any]]:
        """Return the values as lists, if only some documents name their features."""
        lists: list[list[Any]] = []
        for i, row in enumerate(rows):
            if type(row) is list:
                lists.append(row)
            elif type(row) is dict:
                lists += self._by_name([row], i)
            else:
                raise _wrong(
                    f"documents[{i}].features",
                    row,
                    f"features is a list of {len(self.names)} values, or an object of values by "
                    "name.",
                    "Give every document its features.",
                )
        return lists

    def _first_wrong(self, documents: list[dict[str, Any]]) -> Problem:
        """Return the problem of the first invalid value; slow, and needed only for the message."""
        for i, document in enumerate(documents):
            features = document["features"]
            pairs = features.items() if type(features) is dict else enumerate(features)
            for key, value in pairs:
                column = key if type(key) is int else self._column[str(key)]
                if column not in self._codes and not _is_value(value):
                    place = f"[{key}]" if type(key) is int else f".{key}"
                    path = f"documents[{i}].features{place}"
                    return _wrong(path, value, _VALUE_RULE, "Send a number or null.")
        raise AssertionError("a value was refused, but all are valid")

    def _base_scores(self, documents: list[dict[str, Any]]) -> np.ndarray | None:
        scores = [document.get("base_score") for document in documents]
        if not self.needs_base_score:
            for i, score in enumerate(scores):
                if score is not None:
                    raise Problem(
                        422,
                        "The model does not start from base scores.",
                        rule="base_score is for models trained on base scores.",
                        remedy="Leave base_score out.",
                        path=f"documents[{i}].base_score",
                    )
            return None
        for i, score in enumerate(scores):
            if not (_is_value(score) and score is not None and -1e300 < score < 1e300):
                raise _wrong(
                    f"documents[{i}].base_score",
                    score,
                    "The model starts from base scores: every document has a finite base_score.",
                    "Send the score of the ranker that the model was trained on.",
                )
        return np.array(scores, np.float64)


def _ids(documents: list[dict[str, Any]]) -> list[str | int]:
    """Return the documents' ids; a document without one gets its position, from 0."""
    ids: list[Any] = [document.get("id") for document in documents]
    if not set(map(type, ids)) <= {str, int}:
        for i, document_id in enumerate(ids):
            if "id" not in documents[i]:
                ids[i] = i
            elif type(document_id) not in (str, int):
                rule = "An id is a text or a whole number."
                remedy = "Leave it out to get the document's position in the list."
                raise _wrong(f"documents[{i}].id", document_id, rule, remedy)
    return ids


def _is_value(value: Any) -> bool:
    if type(value) not in _NUMBERS:
        return False
    if value is None:
        return True
    try:
        wide = float(value)
    except OverflowError:
        return False
    with np.errstate(over="ignore"):
        return bool(np.isinf(wide) == np.isinf(np.float32(wide)))


def _check_keys(mapping: dict[Any, Any], known: Sequence[str], path: str) -> None:
    for key in mapping:
        if key not in known:
            raise Problem(
                422,
                f"There is no {shown(key)}{nearest(key, known)}.",
                rule=f"The object may have {', '.join(known)}.",
                remedy=f"Leave {shown(key)} out.",
                path=path or "(the body)",
            )


def _wrong(path: str, value: object, rule: str, remedy: str) -> Problem:
    where = path or "(the body)"
    return Problem(422, f"{where} is {shown(value)}.", rule=rule, remedy=remedy, path=where)


def _wrong_length(i: int, n_values: int, n_features: int) -> Problem:
    return Problem(
        422,
        f"documents[{i}].features has {n_values:,} values.",
        rule=f"The model needs {n_features:,} features, in the order of its training data.",
        remedy="Send all of them, null for a missing one; or an object of values by name.",
        path=f"documents[{i}].features",
    )


def _excerpt(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
