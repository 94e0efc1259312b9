"""When are lambdas a gradient? The Poincare condition, checked numerically (overview paper, 4.3).

Functions f_1 ... f_n of scores are the partial derivatives of one function if and only if
d f_i / d s_j = d f_j / d s_i for all i and j (equation 10). Central differences give the matrix of
these derivatives, which must be symmetric.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.errors import DataError
from rankgrove.measures.base import Measure
from rankgrove.measures.parse import measure as parse_measure
from rankgrove.objectives.lambdas import LambdaObjective
from rankgrove.validation import check_flag, check_integer, check_real, refuse

OWNER = "is_gradient"
Lambdas = Callable[[np.ndarray], Any]


@dataclass(frozen=True, eq=False, repr=False)
class GradientCheck:
    """The result of :func:`is_gradient`; true if the lambdas are a gradient.

    Attributes
    ----------
    is_gradient : whether d lambda_i / d s_j = d lambda_j / d s_i within the tolerance, at all
        scores that were checked
    asymmetry : the largest difference of the two, as a share of the largest derivative at the same
        scores
    where : the documents i and j of the largest difference
    scores : the scores of the largest difference
    derivatives : d lambda_i / d s_j at these scores, row i and column j
    tolerance : the largest asymmetry that is allowed
    """

    asymmetry: float
    where: tuple[int, int]
    scores: np.ndarray
    derivatives: np.ndarray
    tolerance: float

    @property
    def is_gradient(self) -> bool:
        """Whether the derivatives are symmetric within the tolerance."""
        return self.asymmetry <= self.tolerance

    def __bool__(self) -> bool:
        return self.is_gradient

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        i, j = self.where
        if self.is_gradient:
            return (
                "a gradient: the derivatives are symmetric within "
                f"{self.asymmetry:.1e} of their largest"
            )
        return (
            f"no gradient: d lambda_{i} / d s_{j} is {self.derivatives[i, j]:.4g}, and "
            f"d lambda_{j} / d s_{i} is {self.derivatives[j, i]:.4g}"
        )


def is_gradient(
    lambdas: Lambdas | str | Measure,
    scores: Any,
    labels: Any = None,
    *,
    truncation: int | None = None,
    beyond_cutoff: bool = True,
    sigma: float = 1.0,
    normalise: bool = False,
    step: float = 1e-4,
    tolerance: float = 1e-6,
) -> GradientCheck:
    """Check whether lambdas are the gradient of a cost, as a function of one query's scores.

    Parameters
    ----------
    lambdas : a function that takes the scores of a query's documents and returns one lambda each;
        or a measure, for its LambdaRank lambdas on `labels` (``"pairs"``: RankNet's)
    scores : one per document; or several rows of them, each of which is checked
    labels : labels of the documents, if `lambdas` is a measure
    truncation, beyond_cutoff, sigma, normalise : of a measure's lambdas, as in LambdaRank
    step : step of the central differences. Lambdas of a measure jump where documents change places:
        a step across such a point sees the jump, a smaller step only sees the smooth part between
        two jumps
    tolerance : the largest asymmetry allowed, as a share of the largest derivative

    Examples
    --------
    >>> import rankgrove as rg
    >>> print(rg.is_gradient("pairs", [0.3, -0.2, 1.0], [2, 1, 0]).is_gradient)
    True
    >>> rg.is_gradient(lambda s: [1.0, s[0]], [0.5, 0.5])  # section 4.3's own example
    no gradient: d lambda_0 / d s_1 is 0, and d lambda_1 / d s_0 is 1
    """
    check_real("step", OWNER, step, above=0.0)
    check_real("tolerance", OWNER, tolerance, low=0.0)
    places = _checked_places(scores)
    n = places.shape[1]
    if isinstance(lambdas, str | Measure):
        if truncation is not None:
            check_integer("truncation", OWNER, truncation, low=1)
        field = _of_measure(
            parse_measure(lambdas),
            labels,
            n,
            truncation=truncation,
            beyond_cutoff=check_flag("beyond_cutoff", OWNER, beyond_cutoff),
            sigma=check_real("sigma", OWNER, sigma, above=0.0),
            normalise=check_flag("normalise", OWNER, normalise),
        )
    elif callable(lambdas):
        field = _checked(lambdas, n)
    else:
        refuse("lambdas", OWNER, "a function of scores, or a measure", lambdas)
    worst: GradientCheck | None = None
    for place in places:
        check = _at(field, place, float(step), float(tolerance))
        if worst is None or check.asymmetry > worst.asymmetry:
            worst = check
    assert worst is not None  # there is at least one place
    return worst


def _at(field: Lambdas, place: np.ndarray, step: float, tolerance: float) -> GradientCheck:
    """Check the condition at the scores of one place."""
    n = place.size
    derivatives = np.empty((n, n))
    for j in range(n):
        move = np.zeros(n)
        move[j] = step
        derivatives[:, j] = (field(place + move) - field(place - move)) / (2.0 * step)
    apart = np.abs(derivatives - derivatives.T)
    largest = float(np.abs(derivatives).max())
    # rounding errors of the lambdas, divided by the step, are no asymmetry
    noise = 16.0 * np.finfo(np.float64).eps * float(np.abs(field(place)).max()) / step
    i, j = divmod(int(apart.argmax()), n)
    share = float(apart[i, j]) / largest if float(apart[i, j]) > noise else 0.0
    where = (min(i, j), max(i, j))
    return GradientCheck(share, where, place, derivatives, tolerance)


def _checked_places(scores: Any) -> np.ndarray:
    try:
        places = np.atleast_2d(np.asarray(scores, np.float64))
    except (TypeError, ValueError):
        refuse("scores", OWNER, "numbers, one per document", scores)
    if places.ndim != 2 or places.size == 0 or not np.isfinite(places).all():
        refuse("scores", OWNER, "finite numbers, one per document, in one row or several", scores)
    return places


def _checked(lambdas: Lambdas, n: int) -> Lambdas:
    def field(scores: np.ndarray) -> np.ndarray:
        gradient = np.asarray(lambdas(scores.copy()), np.float64)
        if gradient.shape != (n,) or not np.isfinite(gradient).all():
            raise DataError(
                f"{OWNER}: the function must return {n} finite lambdas, one per score. "
                f"Got {gradient!r}."
            )
        return gradient

    return field


def _of_measure(measure: Measure, labels: Any, n: int, **options: Any) -> Lambdas:
    if labels is None:
        refuse("labels", OWNER, "given with a measure, one per document", labels)
    judged = np.asarray(labels, np.float64)
    if judged.shape != (n,):
        raise DataError(f"{OWNER} needs one label per score ({n}). Got shape {judged.shape}.")
    objective = LambdaObjective(
        measure,
        judged,
        np.array([0, n]),
        row_keys=np.arange(n, dtype=np.uint64),
        n_threads=1,
        **options,
    )

    def field(scores: np.ndarray) -> np.ndarray:
        gradient, hessian = np.zeros(n), np.zeros(n)
        objective.gradients(scores, gradient, hessian, n_threads=1)
        return gradient

    return field
