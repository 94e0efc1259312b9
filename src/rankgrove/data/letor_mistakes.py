"""Error messages for mistakes that a kernel found: the text, what was expected, the remedy."""

from __future__ import annotations

import re

from rankgrove.data._letor_kernels import (
    BAD_LABEL,
    BAD_QID,
    BARE_RETURN,
    BEYOND,
    MOST_INDEX,
    TWICE,
    Rules,
)
from rankgrove.data.letor_source import Source, excerpt
from rankgrove.errors import ParseError

_WORDS = re.compile(rb"[+-]?(nan|inf|infinity)|null", re.IGNORECASE)
_QID = re.compile(rb"qid:", re.IGNORECASE)
_ROW_AFTER_RETURN = re.compile(rb"\r[ \t]*[^\s:#]+[ \t]+(qid|[0-9]+):", re.IGNORECASE)
_DECIMAL = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


def explain(source: Source, offset: int, code: int, rules: Rules) -> ParseError:
    """Return the error for a mistake that a kernel reported at `offset` of `source`."""
    number, line = source.line(offset)
    token = source.token(offset)
    if _is_binary(line):
        message = (
            f"the line has bytes that are not text: {excerpt(line)}. Expected LETOR rows in "
            "UTF-8; UTF-16 files and other archives than gzip must be converted first."
        )
    elif code == BAD_LABEL:
        message = _label(token)
    elif code == BAD_QID:
        message = (
            f"'qid:' has no query id after it ({excerpt(line)}). "
            "Write it in one piece, as in qid:17."
        )
    elif code == TWICE:
        message = (
            f"feature {_twin(line)} appears twice in one row. "
            "Expected each index once: remove one of the two values."
        )
    elif code == BEYOND:
        message = (
            f"the feature index in {excerpt(token)} is beyond n_features={rules.limit}. "
            "Leave n_features out, or make it larger; for a model, give the features it was "
            "trained on."
        )
    elif has_bare_returns(line):
        message = bare_returns(line)
    elif code == BARE_RETURN:
        message = (
            f"there is a carriage return inside a comment ({excerpt(line)}): with old line ends "
            "the next row would be lost there. Convert the line ends of the file, or remove the "
            "carriage return."
        )
    elif _QID.match(token):
        message = _late_qid(token, line)
    else:
        message = _pair(token, rules)
    return ParseError(source.path, number, message)


def has_bare_returns(text: bytes) -> bool:
    """Return whether something that looks like a row begins after a carriage return."""
    return _ROW_AFTER_RETURN.search(text) is not None


def bare_returns(line: bytes) -> str:
    """Return the message for rows that end in only a carriage return."""
    return (
        f"rows end in a carriage return without a line feed ({excerpt(line)}). "
        "Expected a line feed after every row: convert the line ends of the file."
    )


def overflow(token: bytes) -> str:
    """Return the message for a value that is too large for float32."""
    return (
        f"the value of {excerpt(token)} is too large for float32, whose maximum is 3.4e38. "
        "Scale that feature, or write 'inf' if infinity is meant."
    )


def endless_label(token: bytes) -> str:
    """Return the message for a label that is not finite."""
    return (
        f"the label {excerpt(token)} is not a finite number. "
        "Leave out documents without a judgement, or give them the label 0."
    )


def no_qid(line: bytes, others: str | None) -> str:
    """Return the message for a row without query id; `others` says where rows have one."""
    second, *later = [*_data_part(line).split()[1:], b""]
    if _QID.match(second):
        return (
            f"the row has no query id: {excerpt(second)} is not one. "
            "Write qid: in lower case, as in qid:17."
        )
    for token in later:
        if _QID.match(token):
            return (
                f"the row has no query id in its place: {excerpt(token)} comes after "
                f"{excerpt(second)}. Expected qid:ID as the second token, right after the label."
            )
    if others:
        return (
            f"the row has no query id, but there are rows with one {others} ({excerpt(line)}). "
            "Write qid:ID after the label of every row, or of none."
        )
    return (
        f"the row has no query id ({excerpt(line)}). Write qid:ID after the label of every row, "
        "or the sizes of the queries, one per line, to a file of the same name plus .query "
        "(in Python also query_file=)."
    )


def _is_binary(line: bytes) -> bool:
    """Return whether there are control characters, or bytes before a comment that are not UTF-8."""
    if any(byte < 32 and byte not in b"\t\r\v\f" for byte in line[:10_000]):
        return True
    try:
        _data_part(line).decode()
    except UnicodeDecodeError:
        return True
    return False


def _data_part(line: bytes) -> bytes:
    return line.partition(b"#")[0]


def _label(token: bytes) -> str:
    if _WORDS.fullmatch(token):
        return endless_label(token)
    hint = ": the label comes first, then qid:ID" if b":" in token else ""
    return f"the label {excerpt(token)} is not a number. Expected one, as in 0, 2 or 1.5{hint}."


def _twin(line: bytes) -> int:
    seen = set()
    for token in _data_part(line).split()[1:]:
        index = token.split(b":")[0]
        if index.isdigit():
            if int(index) in seen:
                return int(index)
            seen.add(int(index))
    return -1


def _late_qid(token: bytes, line: bytes) -> str:
    first = _data_part(line).split()[1]
    if first.startswith(b"qid:"):
        return (
            f"{excerpt(token)} is a second query id in one row, after {excerpt(first)}. "
            "Expected one, right after the label: remove the other."
        )
    if not token.startswith(b"qid:"):
        return f"{excerpt(token)} is not a query id. Write qid: in lower case, as in qid:17."
    return f"{excerpt(token)} comes after a feature. Expected qid:ID right after the label."


def _pair(token: bytes, rules: Rules) -> str:
    index, colon, value = token.partition(b":")
    if not colon:
        return (
            f"{excerpt(token)} has no colon. Expected index:value, as in 3:0.25; "
            "a comment starts with #."
        )
    if re.fullmatch(rb"-[0-9]+", index):
        return f"the feature index in {excerpt(token)} is negative. Features count from 1."
    if not index.isdigit():
        return f"the feature index in {excerpt(token)} is not a whole number of at least 1."
    if len(index) > 10 or int(index) > MOST_INDEX:
        return f"the feature index in {excerpt(token)} is too large: the last one is {MOST_INDEX}."
    if int(index) < rules.base:
        return (
            f"the feature index in {excerpt(token)} is 0, and features count from 1. "
            "If this file counts from 0, read it with zero_based=True (--zero-based)."
        )
    if not value:
        return f"{excerpt(token)} has no value after the colon. Write a number, or NULL."
    if _DECIMAL.fullmatch(value):
        return overflow(token)
    return (
        f"the value of {excerpt(token)} is not a number. "
        "Expected one, as in 0.25 or 1e-3; NULL or nan if it is missing."
    )
