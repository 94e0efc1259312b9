"""Parameters that several linear rankers share, each declared once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankgrove.rankers.declaring import Parameter, choice, integer, optional, real
from rankgrove.svm.cutting_plane import FORMS
from rankgrove.validation import check_real, refuse

# The values of C="auto".
AUTO = (0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 1000.0)


def listed_c(name: str, owner: str, value: object) -> list[float]:
    """Return the values of C to try, given as one number, several, or ``"auto"``."""
    if isinstance(value, str):
        if value != "auto":
            refuse(name, owner, "a number, a list of them, or 'auto'", value)
        return list(AUTO)
    listed = list(value) if isinstance(value, Sequence | np.ndarray) else [value]
    if not listed:
        refuse(name, owner, "a number, a list of them, or 'auto'", value)
    return [check_real(name, owner, number, above=0.0) for number in listed]


C: Any = Parameter(
    1.0,
    "the weight of the mean slack, added to |w|^2 / 2 (the paper's equation 3: C / n per query); "
    'several values or ``"auto"``: the one that is best on validation data',
    listed_c,
)
EPSILON: Any = Parameter(
    1e-3,
    "tolerated violation of a constraint; the objective is then within about C * epsilon of the "
    "optimum",
    real(above=0.0),
)
RELEVANT: Any = Parameter(
    1.0,
    "the lowest label that counts as relevant; queries without relevant or without irrelevant "
    "documents are left out",
    real(),
)
THRESHOLDS: Any = Parameter(
    None,
    "replace every feature by this many threshold indicators, so that the model is a sum of step "
    "functions; standard scaling is then not done",
    optional(integer(low=1, high=65_535)),
)
FORM: Any = Parameter(
    "1-slack",
    '``"1-slack"``, whose number of iterations does not grow with the number of queries, or '
    '``"n-slack"``, the SVM-map paper\'s Algorithm 1',
    choice(FORMS),
)
MAX_ITERATIONS: Any = Parameter(
    None, "maximum number of passes over all queries, for one C", optional(integer(low=1))
)
TIME_LIMIT: Any = Parameter(
    None,
    "maximum time of solving in seconds, for all values of C together",
    optional(real(above=0.0)),
)
MEMORY_LIMIT: Any = Parameter(
    None, "maximum memory of constraints in megabytes", optional(real(above=0.0))
)
