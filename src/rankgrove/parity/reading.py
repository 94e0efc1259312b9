"""``rg.read_feature_log``: logs of scored documents from files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankgrove.data.file_kinds import TABLE_ENDINGS, is_table, refuse_packed_tables
from rankgrove.data.text_files import read_text_bytes
from rankgrove.errors import DataError, ParseError
from rankgrove.parity.log import FeatureLog
from rankgrove.parity.log_builder import LogBuilder
from rankgrove.parity.log_tables import read_tables
from rankgrove.parity.responses import Options, hit_of, responses_in
from rankgrove.validation import check_choice, counted

_HOW = {
    "elasticsearch": 'ask for the log of the sltr query. If it is in "rescore": '
    '"ext": {"ltr_log": {"log_specs": {"name": "main", "rescore_index": 0}}}; if it is in "query", '
    'give it a name (_name), and "named_query": NAME in place of "rescore_index": 0',
    "solr": "ask for fl=id,score,[features]",
    "vespa": "list the features in summary-features or match-features of the rank profile",
}


def read_feature_log(
    path: str | Path | Sequence[str | Path],
    *,
    entry: str | None = None,
    query: str | None = None,
    document: str | None = None,
    score: str | None = None,
    absent: str | None = None,
) -> FeatureLog:
    """Read documents that a search engine has scored, with the features that it logged.

    A file holds responses as JSON, one after the other or in a list, also with gzip: of
    Elasticsearch or OpenSearch with ``_ltrlog`` or the scores of named queries, of Solr with
    ``[features]``, of Vespa with summary-features or match-features. Or it is a table (CSV, TSV,
    parquet, arrow) with columns of numbers, which needs the extra ``tables``.

    The query's id is what is at `query`; else ``query_id``, ``qid``, ``query`` or ``name`` beside
    the response (``{"query_id": "q1", "response": {...}}``), OpenSearch's ``ext.ubi.query_id``, or
    Solr's parameter ``q``; else the number of the response in the file, from 1.

    Parameters
    ----------
    path : a file, or several of the same kind
    entry : where a hit has several logs: the name of the log entry, or of the field
    query, document, score : where these are, if not at the usual place: names with dots between
        them, as in ``"_source.query"``, within the hit (or the response, for `query`); or names of
        columns
    absent : what a feature is that a document does not name, ``"zero"`` or ``"missing"``; None:
        zero for Solr, whose sparse format leaves zeros out, else missing

    Returns
    -------
    FeatureLog

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "log.json"
    >>> _ = path.write_text('''{"query_id": "rain", "response": {"hits": {"hits": [
    ...   {"_id": "d1", "_score": 1.5, "fields": {"_ltrlog": [{"main": [
    ...     {"name": "bm25", "value": 3.5}, {"name": "age"}]}]}}]}}}''')
    >>> log = read_feature_log(path)
    >>> log
    FeatureLog(elasticsearch, 1 document, 1 query, 2 features)
    >>> log.values
    array([[3.5, nan]])
    """
    files = [Path(path)] if isinstance(path, str | Path) else [Path(one) for one in path]
    if not files:
        raise DataError("read_feature_log needs at least one file.")
    if absent is not None:
        check_choice("absent", "read_feature_log", absent, ["zero", "missing"])
    options = Options(entry, query, document, score)
    refuse_packed_tables(files)
    if is_table(files):
        return read_tables(files, options, absent)
    collected = _Collected(files, options)
    for number, file in enumerate(files):
        for line, value in _values(file):
            collected.add(value, number, line)
    builder = collected.builder
    if builder is None or len(builder) == 0:
        kind = "elasticsearch" if builder is None else builder.kind
        said = "has no hits" if builder is None or not builder.n_without else "has no features"
        raise ParseError(files[0], None, f"the log {said}: {_HOW[kind]}.")
    collected.check_places()
    zero = absent == "zero" or (absent is None and builder.kind == "solr")
    return builder.log(0.0 if zero else np.nan)


class _Collected:
    """The hits of all responses of some files; all of one engine."""

    def __init__(self, files: Sequence[Path], options: Options) -> None:
        self.files, self.options = files, options
        self.builder: LogBuilder | None = None
        self.n_responses = 0
        self.n_queries = 0  # hits whose query was found where the user said

    def add(self, value: Any, number: int, line: int) -> None:
        """Add the hits of a JSON value, which begins in a line of the file of a number."""
        at = 0
        try:
            for response in responses_in(value, self.options):
                builder = self._builder_of(response.kind)
                self.n_responses += 1
                told = response.query or str(self.n_responses)
                for at, one in enumerate(response.hits, 1):
                    hit = hit_of(response.kind, one, self.options)
                    if hit.names is None:
                        builder.n_without += 1
                        continue
                    builder.n_tensors = max(builder.n_tensors, hit.n_tensors)
                    place = (number, line, at)
                    query = hit.query or told
                    self.n_queries += response.asked or hit.query is not None
                    builder.add(hit.names, hit.values, query, hit.document, hit.score, place)
                at = 0
        except ParseError:
            raise
        except DataError as error:
            message = (f"hit {at}: " if at else "") + str(error)
            raise ParseError(self.files[number], line, message) from None

    def check_places(self) -> None:
        """Refuse a place of the query or the score that no hit has; note where some lack it."""
        builder, options = self.builder, self.options
        assert builder is not None
        n = {"query": self.n_queries, "score": builder.n_scored}
        for what, place in (("query", options.query), ("score", options.score)):
            if place is None or n[what] == len(builder):
                continue
            if n[what] == 0:
                raise ParseError(
                    self.files[0],
                    None,
                    f"no hit has anything at {place!r}, where {what}= (--{what}) says that its "
                    f"{what} is. Write names with dots between them, as in _source.title, or leave "
                    f"{what}= (--{what}) out.",
                )
            if what == "query":
                lacking = counted(len(builder) - n[what], "document")
                builder.notes.append(f"{lacking} without {place!r}: the query is told otherwise")

    def _builder_of(self, kind: str) -> LogBuilder:
        if self.builder is None:
            self.builder = LogBuilder(kind, self.files)
        if kind != self.builder.kind:
            raise DataError(
                f"a response of {kind} among those of {self.builder.kind}: give logs of one engine."
            )
        return self.builder


def _values(file: Path) -> Iterator[tuple[int, Any]]:
    """Yield the JSON values of a file, with the line where each begins."""
    text = read_text_bytes(file).decode()
    decoder = json.JSONDecoder()
    at, line, counted_to = _skip(text, 0), 1, 0
    if at < len(text) and text[at] not in "{[":
        raise ParseError(
            file,
            1,
            "a log is JSON (responses of Elasticsearch, OpenSearch, Solr or Vespa), or a table "
            f"whose name ends in {', '.join(TABLE_ENDINGS)}. Got {text[at : at + 30]!r}.",
        )
    while at < len(text):
        line += text.count("\n", counted_to, at)
        counted_to = at
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise ParseError(file, error.lineno, f"this is not JSON: {error.msg}.") from None
        except RecursionError:
            raise ParseError(file, line, "the JSON is nested too deeply.") from None
        yield line, value
        at = _skip(text, end)


def _skip(text: str, at: int) -> int:
    """Return the place of the next character that is no blank or comma between values."""
    while at < len(text) and text[at] in " \t\r\n\x1e":
        at += 1
    return at
