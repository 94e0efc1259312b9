"""LETOR text to arrays: one parallel pass that writes rows where they belong.

Text is cut into chunks at line ends; every chunk ends in a line feed, the stop of every inner
loop. A chunk knows its first row (rows were counted), and so writes straight into the arrays::

    state[chunk]    START END FIRST_ROW FIRST_SLOT | what the kernel reports back

Kernels never raise: a chunk stops at its first mistake and reports what (ERROR) and where (WHERE);
Python looks at the place again, with time to explain.
"""

# mypy: allow-untyped-defs, allow-untyped-calls
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankgrove.data._number_kernels import (
    CERTAIN,
    DECIMAL,
    DOUBTFUL,
    INFINITE,
    NOT_A_NUMBER,
    ends_token,
    is_largest_double,
    is_space,
    read_number,
    skip_spaces,
    to_float32,
    to_float64,
)
from rankgrove.jit import njit

# Columns of `state`: what a chunk is told ...
START, END, FIRST_ROW, FIRST_SLOT = 0, 1, 2, 3
# ... and what it reports. WITH_QID and WITHOUT_QID: the first line of each kind, or -1.
ERROR, WHERE, HIGHEST, N_RUNS, N_SLOW, N_SLOTS, WITH_QID, WITHOUT_QID, N_COMMENTS = range(4, 13)
N_STATE = 13

# Errors. UNORDERED stays inside: the row is read again with the exact check for twins.
FINE, BAD_LABEL, BAD_QID, BAD_PAIR, TWICE, BEYOND, UNORDERED, BARE_RETURN = range(8)

LABEL_COLUMN = -1  # in the list of numbers left to Python: the label of the row
MOST_INDEX = 2**31 - 1
_LINE_FEED, _RETURN, _HASH, _COLON, _EQUALS = 10, 13, 35, 58, 61
_HOLE = np.uint32(0x7FC0_DEAD)  # a NaN that no text gives: "nothing written here yet"


class Rules(NamedTuple):
    """What the caller chose: first index (0 or 1), value of an absent feature, bound of columns."""

    base: int
    absent: np.float32
    limit: int
    dense: bool


class Arrays(NamedTuple):
    """What the kernel fills; X and bits are one memory, and so unused where the data is sparse."""

    X: np.ndarray  # float32 [row, column]
    bits: np.ndarray  # X as uint32
    columns: np.ndarray  # int32 [slot]
    values: np.ndarray  # float32 [slot]
    row_size: np.ndarray  # int64 [row], slots used
    y: np.ndarray  # float64 [row]
    doc_start: np.ndarray  # int64 [row], in the text
    doc_end: np.ndarray
    run_row: np.ndarray  # int64 [run], first row of a run of one query
    run_start: np.ndarray  # int64 [run], its token in the text
    run_end: np.ndarray
    slow: np.ndarray  # int64 [chunk, k, 3]: offset, row, column of numbers left to Python


@njit(cache=True, nogil=True)
def _leave_to_python(offset, row, column, n_slow, chunk, out):
    """List a number for Python while there is room; return the number of numbers."""
    if n_slow < out.slow.shape[1]:
        out.slow[chunk, n_slow, 0] = offset
        out.slow[chunk, n_slow, 1] = row
        out.slow[chunk, n_slow, 2] = column
    return n_slow + 1


@njit(cache=True, nogil=True)
def _sort_slots(columns, values, start, n):
    """Sort slots start .. start+n by column: a heap sort, which no input makes slow."""
    for stop in range(2 * n - 1, 0, -1):
        # First every inner node sinks, from the last one to the root; then the root is taken off.
        building = stop >= n
        root = stop - n if building else 0
        size = n if building else stop
        if not building:
            a, b = start, start + stop
            columns[a], columns[b] = columns[b], columns[a]
            values[a], values[b] = values[b], values[a]
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and columns[start + child] < columns[start + child + 1]:
                child += 1
            a, b = start + root, start + child
            if columns[a] >= columns[b]:
                break
            columns[a], columns[b] = columns[b], columns[a]
            values[a], values[b] = values[b], values[a]
            root = child


@njit(cache=True, nogil=True)
def _settle_unordered(row, slot, n_values, rules, out):
    """Finish a row whose indices do not ascend; return (error, slots used)."""
    if rules.dense:
        for j in range(out.X.shape[1]):
            if out.bits[row, j] == _HOLE:
                out.X[row, j] = rules.absent
        return FINE, 0
    columns, values = out.columns, out.values
    _sort_slots(columns, values, slot, n_values)
    for k in range(slot + 1, slot + n_values):
        if columns[k] == columns[k - 1]:
            return TWICE, 0
    used = 0
    for k in range(slot, slot + n_values):
        if values[k] != 0.0 or np.signbit(values[k]):
            columns[slot + used] = columns[k]
            values[slot + used] = values[k]
            used += 1
    return FINE, used


@njit(cache=True, nogil=True)
def _features(data, pos, row, slot, n_slow, ordered, chunk, rules, out):
    """Read a row's index:value pairs; return (error, where, next slot, highest column, n_slow)."""
    width = out.X.shape[1]
    first_slot = slot
    last = -1
    if rules.dense and not ordered:
        for j in range(width):
            out.bits[row, j] = _HOLE
    while True:
        pos = skip_spaces(data, pos)
        if data[pos] == _LINE_FEED or data[pos] == _HASH:
            break
        token = pos
        index = np.int64(0)
        digit = data[pos] ^ 48
        while digit <= 9:
            index = index * 10 + digit
            pos += 1
            digit = data[pos] ^ 48
        column = index - rules.base
        length = pos - token
        if data[pos] != _COLON or length == 0 or length > 10 or column < 0 or index > MOST_INDEX:
            return BAD_PAIR, token, slot, last, n_slow
        kind, negative, mantissa, exponent, pos = read_number(data, pos + 1)
        if kind == DECIMAL:
            sure, value = to_float32(mantissa, exponent)
            if sure != CERTAIN:
                if sure == DOUBTFUL:
                    n_slow = _leave_to_python(token, row, column, n_slow, chunk, out)
                elif is_largest_double(mantissa, exponent):
                    value = np.float32(np.nan)
                else:
                    return BAD_PAIR, token, slot, last, n_slow
        elif kind == NOT_A_NUMBER:
            return BAD_PAIR, token, slot, last, n_slow
        else:
            value = np.float32(np.inf) if kind == INFINITE else np.float32(np.nan)
        if negative and value == value:
            value = -value
        if column >= rules.limit:
            return BEYOND, token, slot, last, n_slow
        if ordered and column <= last:
            return (TWICE if column == last else UNORDERED), token, slot, last, n_slow
        if rules.dense:
            if ordered:
                for j in range(last + 1, min(column, width)):
                    out.X[row, j] = rules.absent
            if column < width:
                if not ordered and out.bits[row, column] != _HOLE:
                    return TWICE, token, slot, last, n_slow
                out.X[row, column] = value
        elif not ordered or value != 0.0 or np.signbit(value):
            out.columns[slot] = column
            out.values[slot] = value
            slot += 1
        last = max(last, column)
    if not ordered:
        error, used = _settle_unordered(row, first_slot, slot - first_slot, rules, out)
        return error, pos, first_slot + used, last, n_slow
    if rules.dense:
        for j in range(last + 1, width):
            out.X[row, j] = rules.absent
    return FINE, pos, slot, last, n_slow


@njit(cache=True, nogil=True)
def _named_document(data, pos, end):
    """Return start and end of TOKEN in ``docid = TOKEN`` at `pos`; start == end: not there."""
    if not (
        data[pos] == 100  # d
        and data[pos + 1] == 111  # o
        and data[pos + 2] == 99  # c
        and data[pos + 3] == 105  # i
        and data[pos + 4] == 100  # d
    ):
        return pos, pos
    pos = skip_spaces(data, pos + 5)
    if data[pos] != _EQUALS:
        return pos, pos
    pos = skip_spaces(data, pos + 1)
    start = pos
    while pos < end and not is_space(data[pos]):
        pos += 1
    return start, pos


@njit(cache=True, nogil=True)
def _comment(data, pos):
    """Return start and end of the document id in the comment after `pos`, and the next line.

    The last of the four is where a carriage return stands inside the comment, or -1: what follows
    it would be lost, were it the next row of a file with old line ends.
    """
    start = skip_spaces(data, pos)
    end = pos
    first_return = -1
    while data[end] != _LINE_FEED:
        if data[end] == _RETURN and first_return < 0:
            first_return = end
        end += 1
    next_line = end + 1
    while end > start and is_space(data[end - 1]):
        end -= 1
    if first_return >= end or end == start:
        first_return = -1
    for i in range(start, end):
        if data[i] == 100 and (i == start or is_space(data[i - 1])):
            name_start, name_end = _named_document(data, i, end)
            if name_end > name_start:
                return name_start, name_end, next_line, first_return
    return start, end, next_line, first_return


@njit(cache=True, nogil=True, forceinline=True)
def _label(data, pos, row, n_slow, chunk, out):
    """Read the label of a row; return (error, where it ends or is, n_slow)."""
    kind, negative, mantissa, exponent, end = read_number(data, pos)
    if kind != DECIMAL:
        return BAD_LABEL, pos, n_slow
    sure, value = to_float64(mantissa, exponent)
    if sure != CERTAIN:
        n_slow = _leave_to_python(pos, row, LABEL_COLUMN, n_slow, chunk, out)
    out.y[row] = -value if negative else value
    return FINE, end, n_slow


@njit(cache=True, nogil=True, forceinline=True)
def _has_qid(data, pos):
    return (
        data[pos] == 113
        and data[pos + 1] == 105
        and data[pos + 2] == 100
        and data[pos + 3] == _COLON
    )


@njit(cache=True, nogil=True, forceinline=True)
def _qid(data, pos):
    """Return (error, start, end) of the query id at `pos`; start == end: the row has none."""
    if not _has_qid(data, pos):
        return FINE, pos, pos
    start = pos + 4
    pos = start
    while not ends_token(data[pos]) and data[pos] >= 32:  # a control sign is no text
        pos += 1
    if pos == start or not ends_token(data[pos]):
        return BAD_QID, start - 4, pos
    return FINE, start, pos


@njit(cache=True, nogil=True, forceinline=True)
def _same_text(data, a, a_end, b, b_end):
    if a_end - a != b_end - b:
        return False
    for k in range(a_end - a):  # noqa: SIM110
        if data[a + k] != data[b + k]:
            return False
    return True


@njit(cache=True, nogil=True)
def parse_chunk(data, state, chunk, rules, out):
    """Read one chunk into its rows of `out`, and report in its row of `state`."""
    pos, end = state[chunk, START], state[chunk, END]
    row, slot = state[chunk, FIRST_ROW], state[chunk, FIRST_SLOT]
    run = row  # no chunk has more runs than rows: its runs stand where its rows do
    first_run, first_slot = run, slot
    qid_start, qid_end = 0, -1
    n_slow, n_comments, error, where, highest = 0, 0, FINE, -1, -1
    with_qid, without_qid = -1, -1
    while pos < end:
        line = pos
        pos = skip_spaces(data, pos)
        if data[pos] == _LINE_FEED or data[pos] == _HASH:
            _, _, pos, where = _comment(data, pos)
            if where >= 0:
                error = BARE_RETURN
                break
            continue
        error, where, n_slow = _label(data, pos, row, n_slow, chunk, out)
        if error != FINE:
            break
        pos = skip_spaces(data, where)
        error, where, pos = _qid(data, pos)
        if error != FINE:
            break
        if where == pos:
            without_qid = line if without_qid < 0 else without_qid
        else:
            with_qid = line if with_qid < 0 else with_qid
            if not _same_text(data, where, pos, qid_start, qid_end):
                out.run_row[run], out.run_start[run], out.run_end[run] = row, where, pos
                run += 1
            qid_start, qid_end = where, pos
        before, row_slot = n_slow, slot
        error, where, slot, last, n_slow = _features(
            data, pos, row, slot, n_slow, True, chunk, rules, out
        )
        if error == UNORDERED:
            error, where, slot, last, n_slow = _features(
                data, pos, row, row_slot, before, False, chunk, rules, out
            )
        if error != FINE:
            break
        highest = max(highest, last)
        if not rules.dense:
            out.row_size[row] = slot - row_slot
        if data[where] == _HASH:
            out.doc_start[row], out.doc_end[row], pos, where = _comment(data, where + 1)
            if where >= 0:
                error = BARE_RETURN
                break
            n_comments += out.doc_end[row] > out.doc_start[row]
        else:
            out.doc_start[row] = out.doc_end[row] = where
            pos = where + 1
        row += 1
    state[chunk, ERROR] = error
    state[chunk, WHERE] = where
    state[chunk, HIGHEST] = highest
    state[chunk, N_RUNS] = run - first_run
    state[chunk, N_SLOW] = n_slow
    state[chunk, N_SLOTS] = slot - first_slot
    state[chunk, WITH_QID] = with_qid
    state[chunk, WITHOUT_QID] = without_qid
    state[chunk, N_COMMENTS] = n_comments


@njit(cache=True, nogil=True)
def gather_texts(data, start, end, blob, offset):
    """Copy the texts data[start[i]:end[i]] to blob[offset:], one after another, and point there."""
    for i in range(start.size):
        length = end[i] - start[i]
        for k in range(length):
            blob[offset + k] = data[start[i] + k]
        start[i] = offset
        offset += length
        end[i] = offset
    return offset
