"""How simulated users behave: click probabilities of grades, examination of positions.

Settings of the literature and of other libraries' tests are here by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.errors import DataError
from rankgrove.validation import check_choice, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

OWNER = "simulate_clicks"
RELEVANCE = {
    "lightgbm": (0.4, 0.6, 0.7, 0.8, 0.9),
    "xgboost": (0.1, 0.16, 0.28, 0.52, 1.0),
}
EXAMINATION = {"xgboost": (0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06)}


def of_labels(
    name: str, given: str | ArrayLike | None, labels: np.ndarray, epsilon: float
) -> np.ndarray:
    """Return a probability per label.

    Parameters
    ----------
    name : of the parameter
    given : a name of :data:`RELEVANCE`; a number; a probability per grade, from 0; or None:
        epsilon + (1 - epsilon) (2^label - 1) / (2^highest - 1)
    """
    if given is None:
        highest = max(float(labels.max(initial=0)), 1e-12)
        gains = np.expm1(np.log(2) * np.maximum(labels, 0)) / np.expm1(np.log(2) * highest)
        return np.asarray(epsilon + (1 - epsilon) * gains)
    if isinstance(given, str):
        given = RELEVANCE[check_choice(name, OWNER, given, RELEVANCE)]
    table = probabilities(name, given)
    if table.ndim == 0:
        return np.full(labels.size, float(table))
    wrong = (labels != np.floor(labels)) | (labels < 0) | (labels >= table.size)
    if table.ndim != 1 or wrong.any():
        label = labels[np.argmax(wrong)]
        raise DataError(
            f"{OWNER}: {name} has a probability for each of the grades 0 to {table.size - 1}, "
            f"but the data has the label {label:g}. Give one probability per grade."
        )
    return np.asarray(table[labels.astype(np.int64)])


def by_position(name: str, given: Any, n: int) -> np.ndarray:
    """Return a probability per position; positions below the last one given have that one."""
    table = np.atleast_1d(probabilities(name, given))
    if table.ndim != 1 or not table.size:
        refuse(name, OWNER, "a number, or one per position", given)
    return np.asarray(table[np.minimum(np.arange(n), table.size - 1)])


def examination_curve(given: Any, n: int) -> np.ndarray:
    """Return what is raised to the power of eta: examination per position."""
    if given is None:
        return np.asarray(1.0 / np.arange(1, n + 1))
    if isinstance(given, str):
        given = EXAMINATION[check_choice("examination", OWNER, given, EXAMINATION)]
    return by_position("examination", given, n)


def trust(given: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return click probabilities of irrelevant and of relevant documents that are examined.

    `given` has those of relevant documents first; None: 1 - (min(k, 20) + 1) / 100 and
    0.65 / min(k, 10) at position k.
    """
    if given is None:
        k = np.arange(1, n + 1)
        return 0.65 / np.minimum(k, 10), 1 - (np.minimum(k, 20) + 1) / 100
    if not isinstance(given, tuple | list) or len(given) != 2:
        refuse("trust", OWNER, "a pair: probabilities of relevant and of irrelevant ones", given)
    return by_position("trust", given[1], n), by_position("trust", given[0], n)


def probabilities(name: str, given: Any) -> np.ndarray:
    """Return an array of probabilities, or refuse what is none."""
    try:
        table = np.asarray(given, np.float64)
    except (TypeError, ValueError):
        table = np.array(np.nan)
    if not ((table >= 0) & (table <= 1)).all():
        refuse(name, OWNER, "made of probabilities, from 0 to 1", given)
    return table
