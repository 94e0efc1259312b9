"""Changes of single features, found step by step: exchanged, lost, in other units, stale.

At every step all changes of a family are tried on some documents at once, and the one by which the
most scores become right is kept; where no score becomes right, the one that brings scores nearest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rankgrove.parity.case import Case, Hypothesis, listed, sample_of
from rankgrove.parity.column_changes import CHANGES, FILLS, LOST, ColumnChange
from rankgrove.parity.hypotheses import changing

RANK = 2000
_ROWS = 40  # documents on which changes are tried
_MOST_VALUES = 1 << 24  # values that are scored at once
_MOST_WORK = 1e8  # documents times trees that are scored in one search
_STEPS = 6  # that the work must suffice for, with fewer documents if need be
_MOST_STEPS = 40
_GAIN = 0.02  # share by which a step must bring scores nearer


@dataclass(frozen=True)
class Edit:
    """A change of one or two columns: `apply` writes into values (documents, columns) of rows."""

    names: tuple[str, ...]
    detail: str
    apply: Callable[[np.ndarray, np.ndarray], None]


def edit_hypotheses(case: Case, rows: np.ndarray) -> list[Hypothesis]:
    """Return the best changes of single features, per family; of one feature all that do it."""
    if case.production.whole or case.used.size == 0:
        return []
    found: list[Hypothesis] = []
    for rank, (cause, edits, tell) in enumerate(_families(case, rows)):
        done = any(case.agree(h.scores(rows), rows, case.noise).all() for h in found)
        if done and cause == "feature-order":  # the most work
            break
        if not edits:
            continue
        search = _search(case, rows, len(edits))
        chosen = search.run(edits)
        if not chosen:
            continue
        found.append(_hypothesis(case, cause, chosen, tell, RANK + rank))
        if len(chosen) == 1:
            equal = [edit for edit in search.equal_to(chosen[0], edits) if tell is not _order_text]
            found += [_hypothesis(case, cause, [e], tell, RANK + 5 + rank) for e in equal]
    return found


def _hypothesis(
    case: Case, cause: str, chosen: Sequence[Edit], tell: Callable[[Sequence[Edit]], str], rank: int
) -> Hypothesis:
    def change(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        changed = x.copy()
        for edit in chosen:
            edit.apply(changed, rows)
        return changed

    plain = changing(case, cause, tell(chosen), change)
    return Hypothesis(cause, plain.detail, plain.scores, rank + 10 * len(chosen), least=3)


# -- families -------------------------------------------------------------------------------------


def _families(
    case: Case, rows: np.ndarray
) -> Iterator[tuple[str, list[Edit], Callable[[Sequence[Edit]], str]]]:
    used = case.used
    with_missing = used[np.isnan(case.values[np.ix_(rows, used)]).any(axis=0)]
    yield "feature-lost", list(_column_edits(case, LOST, used)), _lost_text
    yield "missing-as-number", list(_column_edits(case, FILLS, with_missing)), _filled_text
    yield "feature-normalised", list(_column_edits(case, CHANGES, used)), _changed_text
    yield "feature-order", list(_swaps(case)), _order_text
    yield "feature-order", list(_copies(case)), _copied_text


def _column_edits(
    case: Case, changes: Sequence[ColumnChange], columns: np.ndarray
) -> Iterator[Edit]:
    for column in columns.tolist():
        for change in changes:
            yield Edit((case.names[column],), change.title, _Changed(case, column, change))


class _Changed:
    """Changes a column; the values of the last rows are kept, as a search asks for them often."""

    def __init__(self, case: Case, column: int, change: ColumnChange) -> None:
        self._of = (case, column, change)
        self._last: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, x: np.ndarray, rows: np.ndarray) -> None:
        case, column, change = self._of
        if self._last is None or self._last[0] is not rows:
            self._last = (rows, change.apply(case, column, rows))
        x[:, column] = self._last[1]


def _swaps(case: Case) -> Iterator[Edit]:
    """Yield exchanges of a feature that the model reads with any other one."""
    used = set(case.used.tolist())
    for first in case.used.tolist():
        for second in range(len(case.names)):
            if second == first or (second in used and second < first):
                continue

            def apply(x: np.ndarray, rows: np.ndarray, i=first, j=second) -> None:  # type: ignore[no-untyped-def]
                x[:, [i, j]] = x[:, [j, i]]

            yield Edit((case.names[first], case.names[second]), "", apply)


def _copies(case: Case) -> Iterator[Edit]:
    """Yield the values of any other feature in place of a feature that the model reads."""
    for to in case.used.tolist():
        for of in range(len(case.names)):
            if of == to:
                continue

            def apply(x: np.ndarray, rows: np.ndarray, to=to, of=of) -> None:  # type: ignore[no-untyped-def]
                x[:, to] = x[:, of]

            yield Edit((case.names[to], case.names[of]), "", apply)


def _lost_text(chosen: Sequence[Edit]) -> str:
    parts = [f"{edit.names[0]} is always {edit.detail}" for edit in chosen]
    return f"in the engine {listed(parts)}"


def _filled_text(chosen: Sequence[Edit]) -> str:
    return listed([f"a missing {edit.names[0]} is taken as {edit.detail}" for edit in chosen])


def _copied_text(chosen: Sequence[Edit]) -> str:
    return listed([f"{edit.names[0]} has the value of {edit.names[1]}" for edit in chosen])


def _changed_text(chosen: Sequence[Edit]) -> str:
    return listed([f"{edit.names[0]} reaches the model {edit.detail}" for edit in chosen])


def _order_text(chosen: Sequence[Edit]) -> str:
    if len(chosen) == 1:
        return f"{chosen[0].names[0]} and {chosen[0].names[1]} are exchanged"
    value_of = {name: name for edit in chosen for name in edit.names}
    for first, second in (edit.names for edit in chosen):
        value_of[first], value_of[second] = value_of[second], value_of[first]
    return listed([f"{name} has the value of {of}" for name, of in value_of.items()], 12)


# -- the search -----------------------------------------------------------------------------------


def _search(case: Case, rows: np.ndarray, n_edits: int) -> _Search:
    """Return a search on as many rows as the work allows."""
    trees = case.production.ensemble
    most = _MOST_WORK / (100 if trees is None else max(1, trees.n_trees))
    n = min(_ROWS, max(8, int(most / (_STEPS * n_edits))))
    return _Search(case, sample_of(rows, n), most)


class _Search:
    """A search for the changes that make the scores of some rows right.

    `most` : number of documents that may be scored
    """

    def __init__(self, case: Case, rows: np.ndarray, most: float) -> None:
        self.case, self.rows = case, rows
        self.logged, self.allowed = case.log.score[rows], case.allowed(rows) + case.noise
        self.left = most

    def _off(self, values: np.ndarray) -> np.ndarray:
        """Return by how much scores are off, in allowed differences: (changes, rows)."""
        scores = self.case.quick(values).reshape(-1, self.rows.size)
        off = np.abs(scores - self.logged) / self.allowed
        return np.where(np.isnan(off), np.inf, off)

    def run(self, edits: Sequence[Edit]) -> list[Edit]:
        """Return the changes, in their order; none if no score becomes right."""
        now = self.case.values[self.rows].copy()
        off = self._off(now)[0]
        chosen: list[Edit] = []
        for _ in range(_MOST_STEPS):
            best = self._best(edits, now)
            if best is None or not _better(best[1], off):
                break
            chosen.append(best[0])
            best[0].apply(now, self.rows)
            off = best[1]
            if np.all(off <= 1.0):
                break
        if not np.any(off <= 1.0):
            return []
        return self._needed(chosen, int((off <= 1.0).sum()))

    def _best(self, edits: Sequence[Edit], now: np.ndarray) -> tuple[Edit, np.ndarray] | None:
        """Return the best change and by how much scores are off after it."""
        n, k = now.shape
        if len(edits) * n > self.left:
            return None
        self.left -= len(edits) * n
        block = max(1, _MOST_VALUES // (n * k))
        best: tuple[tuple[int, float], Edit, np.ndarray] | None = None
        for start in range(0, len(edits), block):
            part = edits[start : start + block]
            values = np.repeat(now[None], len(part), axis=0)
            for edit, changed in zip(part, values, strict=True):
                edit.apply(changed, self.rows)
            for edit, off in zip(part, self._off(values.reshape(-1, k)), strict=True):
                key = _quality(off)
                if best is None or key > best[0]:
                    best = (key, edit, off)
        return None if best is None else best[1:]

    def equal_to(self, chosen: Edit, edits: Sequence[Edit]) -> list[Edit]:
        """Return the other changes of a change's feature that make the same scores right."""
        same = [edit for edit in edits if edit.names == chosen.names]
        right = []
        for edit in same:
            values = self.case.values[self.rows].copy()
            edit.apply(values, self.rows)
            right.append(self._off(values)[0] <= 1.0)
        wanted = right[same.index(chosen)]
        return [
            edit
            for edit, fits in zip(same, right, strict=True)
            if edit is not chosen and np.array_equal(fits, wanted)
        ]

    def _needed(self, chosen: list[Edit], n_right: int) -> list[Edit]:
        """Leave out changes without which as many scores are right."""
        for edit in list(chosen):
            fewer = [other for other in chosen if other is not edit]
            values = self.case.values[self.rows].copy()
            for other in fewer:
                other.apply(values, self.rows)
            if int((self._off(values)[0] <= 1.0).sum()) >= n_right:
                chosen = fewer
        return chosen


def _quality(off: np.ndarray) -> tuple[int, float]:
    """Return how good scores are: the number of right ones, then how near the others are."""
    with np.errstate(invalid="ignore"):
        return int((off <= 1.0).sum()), -float(np.minimum(off, 1e9).sum())


def _better(off: np.ndarray, before: np.ndarray) -> bool:
    """Return whether more scores are right, or as many and the others clearly nearer."""
    (n, near), (n_before, near_before) = _quality(off), _quality(before)
    return n > n_before or (n == n_before and near > near_before * (1.0 - _GAIN))
