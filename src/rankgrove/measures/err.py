"""Expected reciprocal rank, and pFound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankgrove.errors import DataError
from rankgrove.measures._value_kernels import CASCADE
from rankgrove.measures._weight_kernels import scaled_weights
from rankgrove.measures.base import Measure, QueryPieces
from rankgrove.measures.gains import Gain, check_gain, gains_of, reciprocal_ranks
from rankgrove.validation import check_real


def _checked_grade(owner: str, max_grade: float | None) -> float | None:
    if max_grade is None:
        return None
    return check_real("max_grade", owner, max_grade, above=0.0, high=1000.0)


def _highest(labels: np.ndarray) -> float | None:
    """Return the highest label; None where no label is above 0, and the scale does not matter."""
    highest = float(labels.max())
    return highest if highest > 0.0 else None


def _stopping(labels: np.ndarray, max_grade: float | None, name: str) -> np.ndarray:
    """Return (2^label - 1) / 2^max_grade, the probability that a reader stops at a document."""
    highest = max(float(labels.max()), 0.0)
    top = highest if max_grade is None else max_grade
    if highest > top:
        raise DataError(
            f"{name.upper()}'s max_grade is {top:g}, but the data has the label {highest:g}. "
            "Set max_grade to the highest grade of the scale."
        )
    return np.asarray(gains_of(labels, "exp2") / np.exp2(top))


@dataclass(frozen=True)
class ERR(Measure):
    """The expectation of 1/rank for the rank at which a reader stops.

    A reader stops at a document with probability (2^l - 1) / 2^max_grade (overview paper,
    section 3).

    Parameters
    ----------
    max_grade : the highest grade of the scale; None takes the highest label of the data set. Set it
        to compare data sets if one of them may lack the highest grade.
    """

    name: ClassVar[str] = "err"
    rule: ClassVar[int] = CASCADE
    max_grade: float | None = None

    def _check(self, owner: str) -> None:
        self._set("max_grade", _checked_grade(owner, self.max_grade))

    def gains(self, labels: np.ndarray) -> np.ndarray:
        return _stopping(labels, self.max_grade, self.name)

    def on_scale_of(self, labels: np.ndarray) -> ERR:
        return self if self.max_grade is not None else self.with_(max_grade=_highest(labels))

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        weight = np.empty(gain.size)
        cutoff = None if beyond_cutoff else self.cutoff
        table = reciprocal_ranks(int(queries.sizes.max()), cutoff)
        scale = np.ones(queries.sizes.size)
        queries.run(lambda a, b: scaled_weights(table, scale, queries.ptr, a, b, weight))
        return weight


@dataclass(frozen=True)
class PFound(Measure):
    """The probability that a reader is satisfied: like ERR, with a decay instead of 1 / rank.

    Parameters
    ----------
    gain : the probability that a document satisfies: ``"identity"``, the label, from 0 to 1;
        ``"exp2"``, (2^l - 1) / 2^max_grade as in ERR; or a table for the labels 0, 1, 2, ...
    max_grade : the highest grade of the scale, None for the data set's highest label
    decay : the probability that a reader who is not satisfied continues
    """

    name: ClassVar[str] = "pfound"
    rule: ClassVar[int] = CASCADE
    gain: Gain = "identity"
    max_grade: float | None = None
    decay: float = 0.85

    def _check(self, owner: str) -> None:
        self._set("gain", check_gain(owner, self.gain))
        self._set("max_grade", _checked_grade(owner, self.max_grade))
        self._set("decay", check_real("decay", owner, self.decay, low=0.0, high=1.0))

    def gains(self, labels: np.ndarray) -> np.ndarray:
        if self.gain == "exp2":
            return _stopping(labels, self.max_grade, self.name)
        gain = gains_of(labels, self.gain)
        if gain.max() > 1.0:
            raise DataError(
                f"pfound needs probabilities from 0 to 1, but the data has the label "
                f"{labels.max():g}. Map grades to probabilities by gain='exp2' or a table such as "
                "0/.07/.14/.41/.61."
            )
        return gain

    def on_scale_of(self, labels: np.ndarray) -> PFound:
        if self.gain != "exp2" or self.max_grade is not None:
            return self
        return self.with_(max_grade=_highest(labels))

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        places = np.arange(gain.size) - np.repeat(queries.ptr[:-1], queries.sizes)
        return np.where(beyond_cutoff | (places < self.depth), self.decay**places, 0.0)
