"""Expected reciprocal rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rankgrove.errors import DataError
from rankgrove.measures._value_kernels import CASCADE
from rankgrove.measures._weight_kernels import scaled_weights
from rankgrove.measures.base import Measure, QueryPieces
from rankgrove.measures.gains import gains_of, reciprocal_ranks
from rankgrove.validation import check_real


@dataclass(frozen=True)
class ERR(Measure):
    """The expected 1/rank at which a reader stops who finds each document good with chance R.

    R = (2^l - 1) / 2^max_grade (overview paper, section 3).

    Parameters
    ----------
    max_grade : the highest grade of the scale; None takes the highest label of the data set. Give
        it to compare data sets of which one may lack the highest grade.
    """

    name: ClassVar[str] = "err"
    rule: ClassVar[int] = CASCADE
    max_grade: float | None = None

    def _check(self, owner: str) -> None:
        if self.max_grade is not None:
            self._set(
                "max_grade", check_real("max_grade", owner, self.max_grade, above=0.0, high=1000.0)
            )

    def gains(self, labels: np.ndarray) -> np.ndarray:
        highest = max(float(labels.max()), 0.0)
        top = highest if self.max_grade is None else self.max_grade
        if highest > top:
            raise DataError(
                f"ERR's max_grade is {top:g}, but the data has the label {highest:g}. "
                "Set max_grade to the highest grade of the scale."
            )
        return np.asarray(gains_of(labels, "exp2") / np.exp2(top))

    def weights(
        self, gain: np.ndarray, queries: QueryPieces, beyond_cutoff: bool = False
    ) -> np.ndarray:
        weight = np.empty(gain.size)
        cutoff = None if beyond_cutoff else self.cutoff
        table = reciprocal_ranks(int(queries.sizes.max()), cutoff)
        scale = np.ones(queries.sizes.size)
        queries.run(lambda a, b: scaled_weights(table, scale, queries.ptr, a, b, weight))
        return weight
