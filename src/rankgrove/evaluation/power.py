"""Power: how many queries, or sessions, it takes to see a difference."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from rankgrove.errors import DataError
from rankgrove.evaluation.compare import Comparison, paired
from rankgrove.evaluation.evaluate import Evaluation
from rankgrove.validation import check_choice, check_real, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

DESIGNS = ("paired", "interleaving", "rates")
MANY = 1 << 20  # from here on the t distribution is taken as normal


@overload
def queries_needed(
    effect: float,
    spread: float | Evaluation | Comparison | None = ...,
    *,
    design: str = ...,
    power: float = ...,
    level: float = ...,
    correlation: float = ...,
    ties: float = ...,
    rate: float | None = ...,
) -> int: ...


@overload
def queries_needed(
    effect: ArrayLike,
    spread: ArrayLike | Evaluation | Comparison | None = ...,
    *,
    design: str = ...,
    power: ArrayLike = ...,
    level: ArrayLike = ...,
    correlation: float = ...,
    ties: ArrayLike = ...,
    rate: ArrayLike | None = ...,
) -> Any: ...


def queries_needed(
    effect: Any,
    spread: Any = None,
    *,
    design: str = "paired",
    power: Any = 0.8,
    level: Any = 0.05,
    correlation: float = 0.5,
    ties: Any = 0.0,
    rate: Any = None,
) -> Any:
    """Return how many queries, or sessions, it takes to see a difference.

    Parameters
    ----------
    effect : the true difference that should be seen, or an array of them: of the mean of a measure
        (``"paired"``), delta, the share of wins minus 1/2 with ties as halves
        (``"interleaving"``), or the difference of two click-through rates (``"rates"``). Its sign
        matters for rates alone: below 0, the rate falls
    spread : for ``"paired"``, the standard deviation of the differences per query; or a
        :class:`Comparison`, whose first contrast it is taken from; or an :class:`Evaluation` of
        one measure, from whose standard deviation s it is s sqrt(2 (1 - `correlation`))
    design : ``"paired"``: two rankers on the same judged queries, by the paired t-test.
        ``"interleaving"``: team drafts with a click, by the sign test. ``"rates"``: the sessions of
        each of the two arms of an A/B test of the share of sessions with a click
    power : the probability that the test sees the difference
    level : the level of the two-sided test
    correlation : between the values of the two rankers over queries, where `spread` is an
        :class:`Evaluation`. 0.5 is careful: rankers that share features have more
    ties : for ``"interleaving"``, the share of ties among the sessions with a click
    rate : for ``"rates"``, the click-through rate without the difference

    Returns
    -------
    int, or an array of int64 where a parameter is an array

    Notes
    -----
    ``"paired"`` is exact for differences that are normally distributed (noncentral t). The others
    use the normal approximation; that for the sign test has a correction for continuity.

    Examples
    --------
    >>> import rankgrove as rg
    >>> rg.queries_needed(0.01, 0.1)
    787
    >>> rg.queries_needed([0.005, 0.01, 0.02], 0.1)
    array([3142,  787,  199])
    >>> rg.queries_needed(0.02, design="interleaving", ties=0.3)
    3481
    >>> rg.queries_needed(0.01, design="rates", rate=0.3)
    33275
    """
    owner = "queries_needed"
    check_choice("design", owner, design, DESIGNS)
    named = {
        "effect": _numbers("effect", effect, above=None),
        "power": _numbers("power", power, above=0.0, below=1.0),
        "level": _numbers("level", level, above=0.0, below=1.0),
    }
    if np.any(named["effect"] == 0.0):
        refuse("effect", owner, "other than 0", effect)
    if design != "rates":
        named["effect"] = np.abs(named["effect"])
    if design == "paired":
        if spread is None:
            refuse("spread", owner, "given: the standard deviation of differences", spread)
        named["spread"] = _numbers("spread", _deviation(spread, correlation), above=0.0)
    elif design == "interleaving":
        named["ties"] = _numbers("ties", ties, above=-1e-300, below=1.0)
    else:
        if rate is None:
            refuse("rate", owner, "given: the click-through rate without the difference", rate)
        named["rate"] = _numbers("rate", rate, above=0.0, below=1.0)
    try:
        values = dict(zip(named, np.broadcast_arrays(*named.values()), strict=True))
    except ValueError:
        shapes = ", ".join(f"{name} {value.shape}" for name, value in named.items())
        raise DataError(f"{owner}: arrays must have shapes that fit. Got {shapes}.") from None
    ways: dict[str, Callable[..., np.ndarray]] = {
        "paired": _paired,
        "interleaving": _interleaving,
        "rates": _rates,
    }
    needed = ways[design](**values)
    return int(needed) if needed.ndim == 0 else needed


def _numbers(name: str, value: Any, above: float | None, below: float | None = None) -> np.ndarray:
    """Return finite numbers within bounds as an array, or refuse them."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        refuse(name, "queries_needed", "a number, or an array of numbers", value)
    outside = ~np.isfinite(array)
    if above is not None:
        outside |= array <= above
    if below is not None:
        outside |= array >= below
    if outside.any() or array.size == 0:
        rule = "finite" if above is None else "above 0" if above == 0.0 else "at least 0"
        refuse(name, "queries_needed", rule + (f" and below {below:g}" if below else ""), value)
    return array


def _deviation(spread: Any, correlation: float) -> Any:
    """Return the standard deviation of differences per query."""
    if isinstance(spread, Comparison):
        contrast = spread.contrasts[0]
        ours, theirs = spread.per_query[contrast.system], spread.per_query[contrast.against]
        return _sample_deviation(paired(ours, theirs))
    if isinstance(spread, Evaluation):
        check_real("correlation", "queries_needed", correlation, low=-1.0, high=0.9999)
        if len(spread.per_query) != 1:
            refuse("spread", "queries_needed", "an evaluation by one measure", list(spread.mean))
        (values,) = spread.per_query.values()
        return _sample_deviation(values[~np.isnan(values)]) * np.sqrt(2.0 * (1.0 - correlation))
    return spread


def _sample_deviation(values: np.ndarray) -> float:
    if values.size < 2 or not np.any(values != values[0]):
        raise DataError(
            "queries_needed takes the standard deviation of values that differ, of at least two "
            f"queries. Got {values.size} that do not: give spread as a number."
        )
    return float(values.std(ddof=1))


def _normal_sum(power: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Return the sum of the normal quantiles of 1 - level / 2 and of the power."""
    from scipy.special import ndtri

    return np.asarray(ndtri(1.0 - level / 2.0) + ndtri(power))


def t_power(n: np.ndarray, effect: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Return the power of the two-sided t-test of n normal differences; effect: mean / deviation.

    For very many differences the distribution is taken as normal.
    """
    from scipy.special import ndtr, ndtri, stdtrit
    from scipy.stats import nct

    n, effect, level = np.broadcast_arrays(n, effect, level)
    shift = effect * np.sqrt(n)
    many = n >= MANY
    power = np.asarray(ndtr(shift + ndtri(level / 2.0)) + ndtr(-shift + ndtri(level / 2.0)))
    few = ~many
    if few.any():
        df, nc = n[few] - 1.0, shift[few]
        border = stdtrit(df, 1.0 - level[few] / 2.0)
        # the tail behind a far larger border is 0
        exact = nct.sf(border, df, nc) + np.nan_to_num(nct.cdf(-border, df, nc))
        power[few] = np.where(np.isnan(exact), power[few], exact)
    return power


def _paired(
    effect: np.ndarray, spread: np.ndarray, power: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """Return the least n >= 2 whose power is enough, by bisection."""
    size = effect / spread
    with np.errstate(over="ignore"):
        about = (_normal_sum(power, level) / size) ** 2
    if np.any(about > 1e15):
        refuse("effect", "queries_needed", "larger: it would take over 1e15 queries", effect.min())
    low = np.full(effect.shape, 1, np.int64)  # not enough, or below the least n
    high = np.maximum(2.0 * about + 10.0, 4.0).astype(np.int64)
    while np.any(short := t_power(high, size, level) < power):
        high = np.where(short, 2 * high, high)
    while np.any(high - low > 1):
        middle = np.maximum((low + high) // 2, 2)
        enough = t_power(middle, size, level) >= power
        open_ = high - low > 1
        high = np.where(open_ & enough, middle, high)
        low = np.where(open_ & ~enough, middle, low)
    return high


def _interleaving(
    effect: np.ndarray, ties: np.ndarray, power: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """Return the sessions with a click for the sign test, whose p-values leave out ties."""
    from scipy.special import ndtri

    lead = effect / (1.0 - ties)  # the share of wins among the sessions without a tie, minus 1/2
    if np.any(lead >= 0.5):
        refuse("effect", "queries_needed", "below (1 - ties) / 2", float(effect.max()))
    spread = np.sqrt((0.5 + lead) * (0.5 - lead))
    root = ndtri(1.0 - level / 2.0) * 0.5 + ndtri(power) * spread
    plain = (root / lead) ** 2
    decided = plain / 4.0 * (1.0 + np.sqrt(1.0 + 2.0 / (plain * lead))) ** 2
    return np.ceil(decided / (1.0 - ties)).astype(np.int64)


def _rates(
    effect: np.ndarray, rate: np.ndarray, power: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """Return the sessions of each arm for the test of two shares."""
    from scipy.special import ndtri

    other = rate + effect
    wrong = (other <= 0.0) | (other >= 1.0)
    if np.any(wrong):
        refuse(
            "effect",
            "queries_needed",
            "such that rate + effect is between 0 and 1",
            float(effect[wrong].flat[0]),
        )
    middle = (rate + other) / 2.0
    under = ndtri(1.0 - level / 2.0) * np.sqrt(2.0 * middle * (1.0 - middle))
    true = ndtri(power) * np.sqrt(rate * (1.0 - rate) + other * (1.0 - other))
    return np.ceil(((under + true) / effect) ** 2).astype(np.int64)
