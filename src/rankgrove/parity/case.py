"""A case of scores that differ: the log, the model in production, and what hypotheses are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from rankgrove.errors import DataError
from rankgrove.parity.log import FeatureLog
from rankgrove.parity.production import Production

FEW = 250  # documents on which hypotheses are tried
# Values of some rows (documents, columns) and their numbers -> changed values.
Change = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Hypothesis:
    """One explanation of scores.

    Attributes
    ----------
    cause : a key of `causes.CAUSES`
    detail : what exactly, in words
    scores : the scores that some rows would have
    rank : of two that explain the same, the one of lower rank is named
    least : number of documents that it must explain; more where numbers were fitted
    noise : by how much scores may differ besides the tolerance, where numbers were fitted to scores
        that are rounded
    """

    cause: str
    detail: str
    scores: Callable[[np.ndarray], np.ndarray]
    rank: int
    least: int = 1
    noise: float = 0.0


@dataclass(frozen=True)
class Case:
    """Everything that hypotheses are made of.

    Attributes
    ----------
    log : the scored documents
    production : the model as the engine should compute it
    values : (documents, columns) the logged features in the model's columns
    tolerance : scores agree where they differ by at most this times max(1, |score|)
    engines : returns other engines with the same model, by name
    also : other models in the same engine, by name
    reference : expected values in the model's columns, NaN where they are not known
    known : (documents, columns) which values of the reference are known
    """

    log: FeatureLog
    production: Production
    values: np.ndarray
    tolerance: float
    engines: Callable[[], Mapping[str, Production]] = dict
    also: Mapping[str, Production] = field(default_factory=dict)
    reference: np.ndarray | None = None
    known: np.ndarray | None = None
    statistics: dict[tuple[int, str], tuple[np.ndarray, np.ndarray]] = field(
        default_factory=dict, init=False, repr=False
    )  # of columns, by column and kind

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.production.names

    @cached_property
    def used(self) -> np.ndarray:
        """The columns that the model reads."""
        place = {name: j for j, name in enumerate(self.names)}
        return np.array([place[name] for name in self.production.read if name in place], np.int64)

    @cached_property
    def others(self) -> Mapping[str, Production]:
        """Other engines with the same model, by name."""
        return self.engines()

    @cached_property
    def base(self) -> np.ndarray:
        """The recomputed score of every document."""
        return self.production.scores(self.values)

    @cached_property
    def missing(self) -> np.ndarray:
        """Which documents lack a value that the model reads."""
        return np.isnan(self.values[:, self.used]).any(axis=1)

    @cached_property
    def query_order(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows by query, the start of every query in them, and the query of every row."""
        _, codes = np.unique(self.log.query.astype(str), return_inverse=True)
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(codes.max(initial=-1) + 1))
        return order, starts, codes

    @cached_property
    def quick(self) -> Callable[[np.ndarray], np.ndarray]:
        """The engine's scores up to `noise`: by our own scorer where that is known to give them.

        An emulator takes its time for a few documents, and hypotheses are tried on a few.
        """
        fast = self.production.fast
        if fast is not None:
            every = np.arange(len(self.log))
            rows = np.union1d(sample_of(every, 200), sample_of(every[self.missing], 200))
            apart = self.base[rows] - fast(self.values[rows])
            constant = float(np.median(apart))
            if np.all(np.abs(apart - constant) <= self.allowed(rows) + self.noise):
                return lambda values: fast(values) + constant
        return self.production.scores

    def changed(self, change: Change, rows: np.ndarray) -> np.ndarray:
        """Return the scores of rows after a change of their values; of a few rows, `quick` ones."""
        if rows.size <= FEW and not self.production.whole:
            return self.quick(change(self.values[rows], rows))
        return self.scored(change, rows, self.production)

    def scored(self, change: Change | None, rows: np.ndarray, by: Production) -> np.ndarray:
        """Return the scores of rows by a model in an engine, after a change of their values."""
        if by.whole:  # scores depend on the other documents of a query
            every = np.arange(len(self.log))
            values = self.values if change is None else change(self.values, every)
            try:
                return by.scores(values)[rows]
            except DataError:  # changed values that the ranker refuses, such as infinite ones
                return np.full(rows.size, np.nan)
        values = self.values[rows]
        return by.scores(values if change is None else change(values, rows))

    def allowed(self, rows: np.ndarray) -> np.ndarray:
        """Return the difference up to which scores agree."""
        return self.tolerance * np.maximum(1.0, np.abs(self.log.score[rows]))

    def agree(self, scores: np.ndarray, rows: np.ndarray, noise: float = 0.0) -> np.ndarray:
        """Return for which rows scores agree with the logged ones."""
        with np.errstate(invalid="ignore"):
            return np.abs(scores - self.log.score[rows]) <= self.allowed(rows) + noise

    @cached_property
    def noise(self) -> float:
        """By how much sums in float32 of the size of the scores may be off."""
        finite = self.base[np.isfinite(self.base)]
        return 8 * float(np.finfo(np.float32).eps) * float(np.abs(finite).max(initial=0.0))


def sample_of(rows: np.ndarray, most: int) -> np.ndarray:
    """Return at most so many rows, evenly spread."""
    if rows.size <= most:
        return rows
    return rows[np.linspace(0, rows.size - 1, most).astype(np.int64)]


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return some names with commas."""
    shown = ", ".join(names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
