"""Whether a click log tells relevance from position: numbers, and the methods that are safe."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.clicks.examination import (
    Examination,
    PairCells,
    estimate,
    pair_counts,
    sandwich,
    squared_attraction,
)
from rankgrove.data.arrays import frozen
from rankgrove.errors import DataError
from rankgrove.showing import html_table
from rankgrove.validation import counted

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

METHODS = ("naive", "judgements", "additive", "ratios", "ips", "affine")
LINKED = 0.95  # share of impressions at positions whose examination is known relative to others
FLAT = 0.1  # a bias that moves clicks by less than a tenth
NOISE = {"judgements": 0.5, "additive": 0.5, "ratios": 0.5, "ips": 0.33, "affine": 0.2}
# error / bias, at most
IPS_ERROR, AFFINE_ERROR = 0.3, 0.15  # standard errors of log examination, at most
KISH = 0.1  # effective share of clicks that are weighted by 1 / examination, at least
STRONG = 0.2  # correlation of relevance and height, from which a logging ranker is strong
AFTER_CLICK = 0.03  # clicks after a click may differ by this share, and twice its standard error
FEW_CLICKS = 100
SHOWN_POSITIONS = 20
PUBLISHED = (
    "Correction may lose to naive learning: on the logs of a large web search engine it improved "
    "predicted clicks but not experts' judgements (Hager et al., 2024), and with a strong logging "
    "ranker and few sessions counterfactual methods often lose (arXiv 2404.03707). Compare it with "
    "naive learning on held-out sessions."
)


@dataclass(frozen=True)
class ClickCheck:
    """The result of :func:`check_clicks`; prints as text.

    Attributes
    ----------
    safe : the methods that should not lose to naive learning, the best choice first; ``("naive",)``
        where bias and relevance cannot be told apart
    verdict : the reasons, in sentences
    n_sessions, n_clicks, n_queries : sizes
    clicks_per_query : clicks per query that was sent
    overlap : share of impressions of pairs that were shown at two positions or more
    positions_per_pair : mean number of positions of a pair, weighted by impressions
    linked : share of impressions at positions that are joined to the reference position
    reference : the position, from 1, whose examination is 1
    examination : per position, relative to the reference; NaN where it cannot be known
    standard_error : of its logarithm, per position
    effective_clicks : per position, clicks that say as much about its examination relative to the
        position above: 1 / standard error ** 2
    bias, error : root mean squares of log examination and of its standard error, over impressions
    strength : correlation of the corrected click rates of pairs with how high they were shown,
        within queries: near 1 where the logging ranker was good, NaN where it cannot be known
    after_click : clicks over those expected, of impressions with a click above in the session:
        about 1 where users look at a position whatever they clicked above it, 0 where they stop
        after a click; NaN where it cannot be known
    stability : share of the variance of positions that documents explain; 1: every document was
        always shown at the same position
    effective_share : effective share of the clicks when they are weighted by 1 / examination
    """

    safe: tuple[str, ...]
    verdict: str
    n_sessions: int
    n_clicks: int
    n_queries: int
    clicks_per_query: float
    overlap: float
    positions_per_pair: float
    linked: float
    reference: int
    examination: np.ndarray
    standard_error: np.ndarray
    effective_clicks: np.ndarray
    bias: float
    error: float
    strength: float
    after_click: float
    stability: float
    effective_share: float

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, for JSON; None where there is no finite number."""
        values = asdict(self) | {"safe": list(self.safe)}
        for name in ("examination", "standard_error", "effective_clicks"):
            values[name] = [_finite(value) for value in values[name].tolist()]
        return {
            name: _finite(value) if isinstance(value, float) else value
            for name, value in values.items()
        }

    def _rows(self) -> list[tuple[str, str]]:
        return [
            ("sessions", f"{self.n_sessions:,}"),
            ("clicks", f"{self.n_clicks:,}, {self.clicks_per_query:.1f} per query"),
            ("impressions of pairs seen at several positions", f"{self.overlap:.1%}"),
            ("positions per pair", f"{self.positions_per_pair:.2f}"),
            ("impressions at linked positions", f"{self.linked:.1%}"),
            ("position explained by the document", _number(self.stability, ".0%")),
            ("correlation of relevance and height", _number(self.strength, ".2f")),
            ("clicks over expected ones, below a click", _number(self.after_click, ".2f")),
            ("bias (log examination)", _number(self.bias, ".2f")),
            ("its standard error", _number(self.error, ".2f")),
            ("effective share of weighted clicks", _number(self.effective_share, ".0%")),
        ]

    def __str__(self) -> str:
        lines = [f"{name:<47}  {text}" for name, text in self._rows()]
        lines += ["", f"{'position':>8}  {'examination':>11}  {'95 % interval':>15}"
                      f"  {'effective clicks':>16}"]  # fmt: skip
        for p in range(min(self.examination.size, SHOWN_POSITIONS)):
            value, error = float(self.examination[p]), float(self.standard_error[p])
            interval = ""
            if math.isfinite(error) and value > 0:
                low, high = value * math.exp(-1.96 * error), value * math.exp(1.96 * error)
                interval = f"{low:.3f} - {high:.3f}" if error else "(reference)"
            clicks = float(self.effective_clicks[p])
            text = f"{clicks:,.0f}" if math.isfinite(clicks) and p else ""
            lines.append(f"{p + 1:>8}  {_number(value, '.3f'):>11}  {interval:>15}  {text:>16}")
        if self.examination.size > SHOWN_POSITIONS:
            lines.append(f"    ...  (positions up to {self.examination.size:,})")
        return "\n".join([*lines, "", self.verdict, f"Safe: {', '.join(self.safe)}."])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        note = f"{self.verdict}\nSafe: {', '.join(self.safe)}."
        return html_table("Check of a click log", [], self._rows(), note)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _number(value: float, form: str) -> str:
    return format(value, form) if math.isfinite(value) else "unknown"


def check_clicks(log: ClickLog) -> ClickCheck:
    """Check whether relevance and position bias can be told apart, and which methods are safe.

    Clicks of the same query and document at several positions say how much more the one position
    is looked at than the other, whatever the document's relevance is. The check fits examination
    to nothing but these clicks, and gives its standard errors, which are those of a graph whose
    nodes are positions (`rankgrove.clicks.examination`). Documents with equal features count as
    different documents: training on features can tell a little more apart than the check says.

    The rule of the verdict:

    1. ``naive`` alone, if there are fewer than 100 clicks on pairs that were seen at several
       positions, or if less than 95 % of the impressions are at positions that such pairs join:
       bias and relevance cannot be told apart.
    2. ``naive`` first, if the bias (root mean square of log examination over impressions) is below
       0.1: there is nothing to correct.
    3. Otherwise a method is safe if the standard error of log examination (root mean square) is at
       most a share of the bias: 1/2 for ``judgements``, ``additive`` and ``ratios``, 1/3 for
       ``ips``, 1/5 for ``affine``, which learns two numbers per position. A correction then takes
       away much more error than it adds. In addition, ``ips`` needs a standard error of at most 0.3
       and an effective share of the weighted clicks of at least 10 %, ``affine`` one of at most
       0.15.
    4. ``judgements`` alone, which is training on :func:`smoothed_judgements`, in two cases. If the
       correlation of corrected click rates and height is 0.2 or more, the logging ranker was
       strong: naive learning copies it, and the other methods lose what it knew. If clicks
       below a click are not as many as expected (by more than 3 % and two standard errors), users
       do not look at a position whatever they clicked above it, which the other methods assume.
       If the correlation cannot be known, no method is safe.
    5. ``naive``, if no method is left.

    Parameters
    ----------
    log : the sessions that a ranker is to learn from

    Returns
    -------
    ClickCheck

    Examples
    --------
    >>> import rankgrove as rg
    >>> log = rg.ClickLog([1, 1, 2, 2], ["a"] * 4, ["x", "y"] * 2, [1, 2] * 2, [1, 0, 0, 1])
    >>> rg.check_clicks(log).safe
    ('naive',)
    """
    if log.n_sessions < 2:
        raise DataError(
            "check_clicks needs a log of at least two sessions. Got one: a session is one list of "
            "results."
        )
    if not log.n_clicks:
        raise DataError("check_clicks needs clicks. Got a log without any.")
    counts = pair_counts(log)
    found = estimate(counts)
    n_places = np.bincount(counts.pair, minlength=log.n_pairs)
    of_pair = np.bincount(counts.pair, counts.shown, minlength=log.n_pairs)
    several = n_places > 1
    impressions = np.bincount(counts.cell, counts.shown, minlength=counts.n_cells)
    useful = int(counts.clicked[several[counts.pair]].sum())
    linked = float(impressions[found.linked].sum() / log.n_impressions)
    bias, error = _bias_and_error(found, impressions)
    strength = _strength(log, counts, found) if linked >= LINKED else math.nan
    effective = _kish(counts, found)
    after_click, chance = _after_click(log, counts, found) if linked >= LINKED else (math.nan, 0.0)
    queries = int((np.bincount(log.session_query, minlength=log.n_queries) > 0).sum())
    safe, reasons = _verdict(useful, linked, bias, error, strength, effective, after_click, chance)
    with np.errstate(divide="ignore"):
        clicks = np.where(np.isinf(found.adjacent_error), 0.0, 1 / found.adjacent_error**2)
    return ClickCheck(
        safe=safe,
        verdict=" ".join([*reasons, PUBLISHED] if safe[0] != "naive" else reasons),
        n_sessions=log.n_sessions,
        n_clicks=log.n_clicks,
        n_queries=queries,
        clicks_per_query=log.n_clicks / queries,
        overlap=float(of_pair[several].sum() / log.n_impressions),
        positions_per_pair=float((n_places * of_pair).sum() / log.n_impressions),
        linked=linked,
        reference=found.reference + 1,
        examination=frozen(np.exp(found.log_examination)),
        standard_error=frozen(found.standard_error),
        effective_clicks=frozen(clicks),
        bias=bias,
        error=error,
        strength=strength,
        after_click=after_click,
        stability=_stability(log, counts),
        effective_share=effective,
    )


def _bias_and_error(found: Examination, impressions: np.ndarray) -> tuple[float, float]:
    """Return root mean squares over the impressions at linked positions."""
    there = found.linked & np.isfinite(found.log_examination)
    weight = impressions[there].astype(np.float64)
    if there.sum() < 2:
        return math.nan, math.nan
    # The reference takes part: what counts is how positions differ from their mean.
    log_theta = found.log_examination[there]
    centred = log_theta - np.average(log_theta, weights=weight)
    variance = sandwich(found.information, found.excess, np.flatnonzero(there))
    share = weight / weight.sum()
    spread = np.diag(variance) - 2 * variance @ share + share @ variance @ share
    bias = math.sqrt(np.average(centred**2, weights=weight))
    return bias, math.sqrt(max(float(np.average(spread, weights=weight)), 0.0))


def _kish(counts: PairCells, found: Examination) -> float:
    """Return the effective share of clicks that are weighted by 1 / examination."""
    clicks = np.bincount(counts.cell, counts.clicked, minlength=counts.n_cells)
    there = found.linked & np.isfinite(found.log_examination) & (clicks > 0)
    if there.sum() < 2:
        return math.nan
    weight = np.exp(-found.log_examination[there])
    n = clicks[there].astype(np.float64)
    return float((n * weight).sum() ** 2 / (n.sum() * (n * weight**2).sum()))


def _within(values: np.ndarray, group: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return values less the weighted mean of their group."""
    total = np.bincount(group, weight)
    means = np.bincount(group, weight * values) / np.maximum(total, 1e-300)
    return np.asarray(values - means[group])


def _strength(log: ClickLog, counts: PairCells, found: Examination) -> float:
    """Return the correlation of corrected click rates and height, within queries.

    The noise of rates is taken out of their variance, so that few clicks do not hide a strong
    logging ranker. A pair's C clicks of N examinations have the variance N a - a^2 sum of theta^2,
    where a^2 is estimated as in :mod:`rankgrove.clicks.examination`; a query's mean follows its
    pairs, and takes its share of their noise away.
    """
    theta = np.exp(np.where(found.linked, found.log_examination, -np.inf))
    n, pair = log.n_pairs, counts.pair
    examined = np.bincount(pair, counts.shown * theta[counts.cell], minlength=n)
    clicks = np.bincount(pair, counts.clicked, minlength=n)
    shown = np.bincount(pair, counts.shown, minlength=n)
    place = np.bincount(pair, counts.shown * counts.cell, minlength=n)
    squares = np.bincount(pair, counts.shown * theta[counts.cell] ** 2, minlength=n)
    there = examined > 0
    if not there.any():
        return math.nan
    rate, weight = clicks[there] / examined[there], examined[there]
    height = -place[there] / shown[there]
    query = log.pair_query[there]
    share = weight / np.bincount(query, weight)[query]
    certain = squared_attraction(clicks, examined, squares)[there] * squares[there] / weight
    noise = float(((rate - certain) * (1 - share)).sum())
    rate, height = _within(rate, query, weight), _within(height, query, weight)
    square = float((weight * rate**2).sum()) - noise
    spread = float((weight * height**2).sum())
    if square <= 0 or spread <= 0:
        return math.nan
    return float(np.clip((weight * rate * height).sum() / math.sqrt(square * spread), -1.0, 1.0))


def _after_click(log: ClickLog, counts: PairCells, found: Examination) -> tuple[float, float]:
    """Return clicks over those expected, of impressions with a click above, and its error.

    The expected clicks are examination times the corrected rate of the pair in all sessions.
    """
    theta = np.exp(np.where(found.linked, found.log_examination, -np.inf))
    n, pair = log.n_pairs, counts.pair
    examined = np.bincount(pair, counts.shown * theta[counts.cell], minlength=n)
    clicks = np.bincount(pair, counts.clicked, minlength=n)
    rate = np.divide(clicks, examined, out=np.zeros(n), where=examined > 0)
    before = np.cumsum(log.click) - log.click
    start = log.session_ptr[:-1][log.session_of]
    below = before > before[start]
    expected = float((theta[log.position - 1][below] * rate[log.pair[below]]).sum())
    if expected < FEW_CLICKS:
        return math.nan, 0.0
    return float(log.click[below].sum()) / expected, 1 / math.sqrt(expected)


def _stability(log: ClickLog, counts: PairCells) -> float:
    """Return the share of the variance of positions that pairs explain, of pairs seen twice."""
    shown = counts.shown
    of_pair = np.bincount(counts.pair, shown, minlength=log.n_pairs)
    twice = of_pair[counts.pair] > 1
    if not twice.any():
        return math.nan
    place, weight = counts.cell[twice].astype(np.float64), shown[twice]
    _, pair = np.unique(counts.pair[twice], return_inverse=True)
    query = log.pair_query[counts.pair[twice]]
    inner = float((weight * _within(place, pair, weight) ** 2).sum())
    total = float((weight * _within(place, query, weight) ** 2).sum())
    free = weight.sum() - pair.max() - 1
    free_total = weight.sum() - np.unique(query).size
    if total <= 0 or free <= 0 or free_total <= 0:
        return math.nan
    return float(np.clip(1 - (inner / free) / (total / free_total), 0.0, 1.0))


def _verdict(
    useful: int,
    linked: float,
    bias: float,
    error: float,
    strength: float,
    effective: float,
    after_click: float,
    chance: float,
) -> tuple[tuple[str, ...], list[str]]:
    """Return the safe methods, and the reasons."""
    if useful < FEW_CLICKS:
        return ("naive",), [
            f"Bias and relevance cannot be told apart: there are {counted(useful, 'click')} on "
            "documents that were seen at two positions for the same query, and 100 are needed. "
            "Learn naively, or swap results of some sessions at random and log again."
        ]
    if linked < LINKED or not math.isfinite(bias):
        return ("naive",), [
            f"Bias and relevance cannot be told apart: only {linked:.0%} of the impressions are at "
            "positions that are joined by documents seen at both, and 95 % are needed. Learn "
            "naively, leave the other positions out, or swap results of some sessions at random."
        ]
    enough = [method for method in ("judgements", "ips", "additive", "ratios", "affine")
              if error <= NOISE[method] * max(bias, FLAT)]  # fmt: skip
    reasons = [f"Positions move log clicks by {bias:.2f}, known to {error:.2f}."]
    if "ips" in enough and (error > IPS_ERROR or not effective >= KISH):
        enough.remove("ips")
        reasons.append("Propensity weights would vary too much for ips.")
    if "affine" in enough and error > AFFINE_ERROR:
        enough.remove("affine")
    if not math.isfinite(strength):
        enough = []
        reasons.append(
            "How strong the logging ranker was cannot be known: clicks show no differences of "
            "relevance beyond chance."
        )
    elif strength >= STRONG and enough:
        enough = ["judgements"]
        reasons.append(
            f"The logging ranker was strong (correlation of relevance and height {strength:.2f}): "
            "naive learning copies it, and corrections of positions alone may lose what it knew."
        )
    if abs(after_click - 1) > AFTER_CLICK + 2 * chance and enough:
        enough = ["judgements"]
        reasons.append(
            f"Below a click there are {after_click:.2f} times the clicks that were expected: users "
            "do not look at a position whatever they clicked above it. A click model must say how "
            "they do, as choose_click_model finds out."
        )
    if "judgements" in enough:
        reasons.append("The safest is to train on smoothed_judgements(log, data).")
    if bias < FLAT:
        return ("naive", *enough), [*reasons, "There is little to correct."]
    if not enough:
        reasons.append("That is not precise enough for a correction: learn naively.")
        return ("naive",), reasons
    return tuple(enough), reasons
