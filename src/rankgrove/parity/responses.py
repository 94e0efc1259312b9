"""Responses of search engines: which engine they are from, their hits, and what a hit logs.

The shapes, as the engines write them:

- Elasticsearch and OpenSearch with the learning-to-rank plugin: ``hits.hits[]`` with ``_id``,
  ``_score`` and ``fields._ltrlog``, a list of one object that maps the name of a log entry to
  ``[{"name": ..., "value": ...}]``. There is no "value" where a feature did not match
  (LoggingFetchSubPhase of the plugin; old versions have an object of values by name).
- Elasticsearch without the plugin: ``matched_queries``, an object of the scores of named queries
  (``include_named_queries_score=true``), in which those that did not match are left out.
- Solr: ``response.docs[]`` with ``id``, ``score`` and ``[features]``, a text ``a=1.0,b=2.0``
  (CSVFeatureLogger); with ``format=sparse`` features of the value 0 are left out.
- Vespa: ``root.children[]`` with ``relevance`` and ``fields``, which has ``documentid``, and
  ``summaryfeatures`` or ``matchfeatures``, objects of values by name; tensors among them are
  objects themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rankgrove.errors import DataError

QUERY_NAMES = ("query_id", "qid", "query", "name", "_name")
_WRAPPED = ("response", "result", "body")
_OF_SOLR = ("[features]", "[fv]", "features", "fv")
_OF_VESPA = ("summaryfeatures", "matchfeatures", "rankfeatures")
_CACHED = "vespa.summaryFeatures.cached"


@dataclass(frozen=True)
class Options:
    """What a user says about a log: names of the entry, and paths of ids and scores."""

    entry: str | None = None
    query: str | None = None
    document: str | None = None
    score: str | None = None


@dataclass(frozen=True)
class Response:
    """A response: its engine, its hits, and the query's id where the response tells it."""

    kind: str
    hits: list[Any]
    query: str | None
    asked: bool = False  # whether the query's id was found where the user said


@dataclass(frozen=True)
class Hit:
    """A scored document; `names` is None where the hit has no logged features."""

    names: tuple[str, ...] | None
    values: list[Any]
    document: str
    score: Any
    query: str | None
    n_tensors: int = 0


def responses_in(
    value: Any, options: Options, query: str | None = None, asked: bool = False
) -> Iterator[Response]:
    """Yield the responses in a JSON value; a hit outside a response is one of its own.

    query, asked : the query's id, and whether it was found where the user said, in what is around
    """
    if isinstance(value, list):
        for part in value:
            yield from responses_in(part, options, query, asked)
        return
    if not isinstance(value, Mapping):
        raise DataError(f"a response must be a JSON object. Got {str(value)[:60]!r}.")
    there = _text(_at(value, options.query))
    asked = asked or there is not None
    told = there or query or _query_of(value)
    if isinstance(value.get("responses"), list):  # of _msearch
        yield from responses_in(value["responses"], options, told, asked)
    elif isinstance(value.get("hits"), Mapping):
        yield Response(
            "elasticsearch", _listed(value["hits"].get("hits"), "hits.hits"), told, asked
        )
    elif isinstance(value.get("response"), Mapping) and "docs" in value["response"]:
        docs = _listed(value["response"]["docs"], "response.docs")
        yield Response("solr", docs, told or _query_of_solr(value), asked)
    elif isinstance(value.get("root"), Mapping):
        yield Response("vespa", list(_leaves(value["root"])), told, asked)
    elif (kind := _kind_of_hit(value)) is not None:
        yield Response(kind, [value], told, asked)
    else:
        wrapped = [name for name in _WRAPPED if isinstance(value.get(name), Mapping | list)]
        if not wrapped:
            raise DataError(_unknown(value))
        yield from responses_in(value[wrapped[0]], options, told, asked)


def hit_of(kind: str, value: Any, options: Options) -> Hit:
    """Return a hit; refuse one that has not the engine's form."""
    if not isinstance(value, Mapping):
        raise DataError(f"a hit must be a JSON object. Got {str(value)[:60]!r}.")
    names: tuple[str, ...] | None
    n_tensors = 0
    if kind == "elasticsearch":
        names, values = _of_elasticsearch(value, options.entry)
        document, score = value.get("_id"), value.get("_score")
    elif kind == "solr":
        names, values = _of_solr(value, options.entry)
        document, score = value.get("id"), value.get("score")
    else:
        names, values, n_tensors = _of_vespa(value, options.entry)
        fields = _fields(value)
        document, score = fields.get("documentid", value.get("id")), value.get("relevance")
    if options.document is not None:
        document = _at(value, options.document)
    if options.score is not None:
        score = _at(value, options.score)
    if document is None:
        place = options.document or {"elasticsearch": "_id", "solr": "id"}.get(kind, "documentid")
        raise DataError(
            f"it has no {place}, so that its document is not known. Ask the engine for it, or name "
            "another field: document= (--document)."
        )
    query = _text(_at(value, options.query))
    return Hit(names, values, str(_first(document)), _first(score), query, n_tensors)


# -- engines --------------------------------------------------------------------------------------


def _of_elasticsearch(
    hit: Mapping[str, Any], entry: str | None
) -> tuple[tuple[str, ...] | None, list[Any]]:
    fields = _fields(hit)
    logged = _first(fields.get("_ltrlog", fields.get("ltr_log")))
    if not logged:
        named = hit.get("matched_queries")
        return (tuple(named), list(named.values())) if isinstance(named, Mapping) else (None, [])
    if not isinstance(logged, Mapping):
        raise DataError("its fields._ltrlog must be a list of one object.")
    features = logged[_entry_name(logged, entry)]
    if isinstance(features, Mapping):
        return tuple(features), list(features.values())
    try:
        return tuple([str(f["name"]) for f in features]), [f.get("value") for f in features]
    except (TypeError, KeyError, AttributeError):
        raise DataError(
            'a log entry in fields._ltrlog must be a list of {"name": ..., "value": ...}.'
        ) from None


def _of_solr(hit: Mapping[str, Any], entry: str | None) -> tuple[tuple[str, ...] | None, list[Any]]:
    keys = [entry] if entry is not None else [key for key in _OF_SOLR if key in hit]
    logged = _first(hit.get(keys[0])) if keys else None
    if logged is None:
        return None, []
    if isinstance(logged, Mapping):
        return tuple(logged), list(logged.values())
    text = str(logged).strip()
    if not text:
        return (), []
    pair, between = ("=", ",") if "=" in text else (":", ";")
    parts = [part.rpartition(pair) for part in text.split(between)]
    if not all(middle for _, middle, _ in parts):
        bad = next(last for _, middle, last in parts if not middle)
        raise DataError(
            f"its {keys[0]} must have the form name=value,name=value. Got {bad[:40]!r}."
        )
    return tuple([part[0] for part in parts]), [part[2] for part in parts]


def _of_vespa(
    hit: Mapping[str, Any], entry: str | None
) -> tuple[tuple[str, ...] | None, list[Any], int]:
    fields = _fields(hit)
    keys = [entry] if entry is not None else [key for key in _OF_VESPA if key in fields]
    logged: dict[str, Any] = {}
    for key in reversed(keys):
        part = fields.get(key)
        if isinstance(part, Mapping):
            logged |= part
    if not logged:
        return None, [], 0
    plain = {
        name: value
        for name, value in logged.items()
        if not isinstance(value, Mapping | list) and name != _CACHED
    }
    n_tensors = sum(isinstance(value, Mapping | list) for value in logged.values())
    return tuple(plain), list(plain.values()), n_tensors


def _leaves(group: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the documents of a Vespa result, which may be in groups."""
    for child in _listed(group.get("children", []), "root.children"):
        if not isinstance(child, Mapping):
            raise DataError("a child in root.children must be a JSON object.")
        if "children" in child:
            yield from _leaves(child)
        elif isinstance(child.get("fields"), Mapping) and "relevance" in child:
            yield child


# -- parts of JSON --------------------------------------------------------------------------------


def _fields(hit: Mapping[str, Any]) -> Mapping[str, Any]:
    fields = hit.get("fields")
    return fields if isinstance(fields, Mapping) else {}


def _entry_name(logged: Mapping[str, Any], entry: str | None) -> str:
    names = list(logged)
    if entry is None and len(names) == 1:
        return str(names[0])
    if entry is None:
        raise DataError(
            f"it has {len(names)} log entries, {', '.join(names)}: say which one is meant, entry= "
            "(--entry)."
        )
    if entry not in logged:
        raise DataError(f"it has no log entry {entry!r}. It has {', '.join(names)}.")
    return entry


def _kind_of_hit(value: Mapping[str, Any]) -> str | None:
    fields = _fields(value)
    if "_id" in value and ("_score" in value or "_ltrlog" in fields or "ltr_log" in fields):
        return "elasticsearch"
    if "relevance" in value and fields:
        return "vespa"
    return "solr" if any(key in value for key in _OF_SOLR[:2]) else None


def _query_of(value: Mapping[str, Any]) -> str | None:
    for name in QUERY_NAMES:
        if isinstance(value.get(name), str | int):
            return str(value[name])
    ubi = _at(value, "ext.ubi.query_id")  # OpenSearch's User Behavior Insights
    return _text(ubi)


def _query_of_solr(value: Mapping[str, Any]) -> str | None:
    params = _at(value, "responseHeader.params")
    if not isinstance(params, Mapping):
        return None
    return next((_text(params[name]) for name in ("qid", "query_id", "q") if name in params), None)


def _at(value: Any, path: str | None) -> Any:
    """Return what is at a path of names with dots between them; None: nothing."""
    if path is None:
        return None
    if isinstance(value, Mapping) and path in value:
        return _first(value[path])
    for name in path.split("."):
        if not isinstance(value, Mapping) or name not in value:
            return None
        value = value[name]
    return _first(value)


def _first(value: Any) -> Any:
    """Return the only item of a list of one, as engines write fields; anything else unchanged."""
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int | float) else None


def _listed(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise DataError(f"its {name} must be a list.")
    return value


def _unknown(value: Mapping[str, Any]) -> str:
    error = value.get("error")
    if error is not None:
        reason = error.get("reason", error.get("msg")) if isinstance(error, Mapping) else error
        return f"it is an error of the engine and no result: {str(reason)[:200]}."
    return (
        "it is no response of Elasticsearch or OpenSearch (hits.hits), Solr (response.docs) or "
        f"Vespa (root.children). It has {', '.join(map(str, list(value)[:6])) or 'nothing'}."
    )
