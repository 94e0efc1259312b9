"""Wins and losses: one model against another, query by query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankgrove.evaluation.compare import Comparison, paired
from rankgrove.validation import check_choice


@dataclass(frozen=True, eq=False)
class Differences:
    """One system's values minus another's, largest gain first.

    Attributes
    ----------
    system, against, measure : names
    query_ids : in the order of the differences
    values : one per query
    """

    system: str
    against: str
    measure: str
    query_ids: np.ndarray
    values: np.ndarray

    @property
    def counts(self) -> tuple[int, int, int]:
        """Numbers of queries won, lost and tied."""
        won, lost = int((self.values > 0).sum()), int((self.values < 0).sum())
        return won, lost, self.values.size - won - lost


def differences(
    comparison: Comparison, system: str | None = None, against: str | None = None
) -> Differences:
    """Return the differences of two systems of a comparison; by default its second and first."""
    names = list(comparison.per_query)
    against = names[0] if against is None else against
    others = [name for name in names if name != against]
    system = others[0] if system is None else system
    for name in (system, against):
        check_choice("system", "differences", name, names)
    values = paired(comparison.per_query[system], comparison.per_query[against])
    order = np.argsort(-values, kind="stable")
    return Differences(
        system, against, comparison.measure_name, comparison.query_ids[order], values[order]
    )
