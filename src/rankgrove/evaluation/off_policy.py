"""The value of a new ranking, estimated from the clicks on an old one.

A session contributes a number whose mean over sessions is the estimate::

    position        c w         w = weight of the new place / examination of the old ones
    item-position   c w         w = 1 / share of the query's sessions with the document in its new
                                place, where it was there; else 0
    doubly-robust   model + (c - model) w,  with w as in "position"

summed over the shown documents; c is the click. The examination of the old places is the mean over
the sessions of the query, those without the document included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError, DataWarning
from rankgrove.evaluation.log_estimate import LogEstimate, mean_interval
from rankgrove.evaluation.new_ranking import NewRanking, new_ranking
from rankgrove.validation import (
    check_choice,
    check_flag,
    check_integer,
    check_real,
    counted,
    refuse,
    warn,
)

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

OWNER = "estimate_from_log"
METHODS = ("position", "item-position", "doubly-robust", "model")
WITH_MODEL = ("doubly-robust", "model")
REWARDS = ("clicks", "dcg")
BY = ("session", "query")
ENOUGH = 0.95  # of the new ranking's weight, for an estimate without a warning


def estimate_from_log(
    log: ClickLog,
    ranking: Any,
    *,
    data: QueryDataset | None = None,
    method: str = "position",
    examination: Any = None,
    model: Any = None,
    reward: str = "clicks",
    k: int | None = None,
    clip: float | None = None,
    self_normalised: bool = False,
    by: str = "session",
    level: float = 0.95,
) -> LogEstimate:
    """Estimate from a click log what users would do with another ranking.

    Counterfactual, or off-policy, evaluation: ``"position"`` and ``"item-position"`` weigh clicks
    by inverse propensities (IPS), with `self_normalised` as SNIPS; ``"doubly-robust"`` (DR) adds a
    model, and ``"model"`` is the direct method.

    Parameters
    ----------
    log : the log of the old ranking
    ranking : the new ranking: a mapping from query ids to documents, best first, or to scores by
        document (a run); or one score per (query, document) pair of the log; or, with `data`, a
        ranker or one score per row of it
    data : the documents of the log's queries; ids as in the log. Without ``docid``, documents are
        the numbers of rows within their query, from 1
    method : ``"position"``, ``"item-position"``, ``"doubly-robust"`` or ``"model"``
    examination : the probability that a user looks at a position, from the first on: one number
        per position, an object with ``examination_``, such as a fitted click model, or a check of
        the log
    model : for ``"doubly-robust"`` and ``"model"``: an object with ``attractiveness(log)`` or
        ``attractiveness_``, or an array: the probability of a click on a document that is looked
        at, one number per pair of the log. It should come from other sessions. Its
        ``examination_`` is used where `examination` is None
    reward : ``"clicks"``, the clicks per session on the first k documents; or ``"dcg"``, the sum of
        a click's probability at a document that is looked at, over log2(1 + rank)
    k : the number of documents of the new ranking that count; None: the positions of the log that
        have an examination
    clip : the largest weight of a click; None: no bound. With it the estimate is too low, or goes
        toward the model's, and varies less
    self_normalised : divide by the mean of the weights and not by what it should be. Documents
        without overlap then count as the others do on average, not as 0; not for ``"model"`` and
        ``"doubly-robust"``, which have the model for them
    by : the intervals take ``"session"`` s or ``"query"`` s as drawn independently of each other.
        By session holds for queries drawn as often as in the log; by query also says how much
        other queries would change the figure
    level : of the intervals: Student's of the mean of the sums of sessions or queries, corrected
        for their skewness, which is large where clicks are rare (Hall, 1992)

    Returns
    -------
    LogEstimate

    Warns
    -----
    DataWarning
        If the log lacks documents of the new ranking, or queries have no new ranking.

    Notes
    -----
    All methods assume that the new ranking has no influence on which queries come, and that the
    log's sessions were not chosen by what was clicked.

    ``"position"`` assumes the position-based model: a click needs a look, whose probability depends
    on the position alone, and an attractive document; neither depends on the other documents. It
    is then unbiased if `examination` is right (up to a factor, for clicks) and every document of
    the new ranking was shown for its query, at whatever position. The weight is the new position's
    over the mean examination of the document in the query's sessions.

    ``"item-position"`` assumes that clicks depend on the document and its position, and on no other
    document. It needs no examination, but every document must have been shown in its new position.

    ``"doubly-robust"`` adds the model where the log has no information or weights are clipped. It
    is right if the model is, or if the assumptions of ``"position"`` hold.

    ``"model"`` relies on the model alone; its intervals hold if the model is right.

    All four assume that clicks above do not change those below. Where users stop after the first
    click (cascades), use an experiment.

    Examples
    --------
    >>> import rankgrove as rg
    >>> session, click = [1, 1, 2, 2, 3, 3], [0, 1, 1, 1, 0, 0]
    >>> log = rg.ClickLog(session, [7] * 6, ["x", "y"] * 3, [1, 2] * 3, click)
    >>> estimate = rg.estimate_from_log(log, {7: ["y", "x"]}, examination=[1.0, 0.5])
    >>> round(estimate.value, 3), round(estimate.logged, 3)
    (1.5, 1.0)
    """
    _check_arguments(method, reward, by, level, self_normalised)
    clip = None if clip is None else check_real("clip", OWNER, clip, above=0.0)
    k = None if k is None else check_integer("k", OWNER, k, low=1)
    look = _examination(examination, model, method, log.n_positions)
    depth = min(k or look.size, look.size)
    with_model = method in WITH_MODEL
    attractive = _attractiveness(model, log) if with_model else np.zeros(log.n_pairs)
    weights = look[:depth] if reward == "clicks" else 1.0 / np.log2(np.arange(2, depth + 2))
    target = new_ranking(log, ranking, data, weights)
    used = _Used(log, target, by)
    parts = _contributions(used, target, look, weights, attractive, method, clip)
    values = _self_normalised(parts) if self_normalised else parts.values
    logged = _shown(used, look, weights, reward)
    clusters = used.clusters
    estimate = LogEstimate(
        *mean_interval(values, clusters, level),
        *mean_interval(logged, clusters, level),
        *mean_interval(values - logged, clusters, level),
        overlap=parts.overlap,
        effective_size=parts.effective_size,
        n_impressions=used.pair.size,
        largest_weight=parts.largest,
        clipped=parts.clipped,
        n_sessions=used.n_sessions,
        n_queries=int(np.unique(used.query).size),
        without_ranking=used.without_ranking,
        method=method,
        reward=reward,
        k=depth,
        by=by,
        level=float(level),
        session_values=values,
        session_logged=logged,
        session_clusters=clusters,
    )
    _warn(estimate, self_normalised)
    return estimate


def _check_arguments(
    method: str, reward: str, by: str, level: float, self_normalised: bool
) -> None:
    check_choice("method", OWNER, method, METHODS)
    check_choice("reward", OWNER, reward, REWARDS)
    check_choice("by", OWNER, by, BY)
    check_real("level", OWNER, level, low=0.5, high=0.9999)
    check_flag("self_normalised", OWNER, self_normalised)
    if self_normalised and method in WITH_MODEL:
        refuse("self_normalised", OWNER, f"False for {method}, which has a model", True)
    if method == "item-position" and reward == "dcg":
        refuse("reward", OWNER, "'clicks' for item-position, which knows no examination", reward)


def _shown(used: _Used, look: np.ndarray, weights: np.ndarray, reward: str) -> np.ndarray:
    """Return what the shown list of every session was worth, on the scale of the estimate.

    A click at r is worth the weight of r over its examination.
    """
    worth = np.zeros(look.size)
    depth = weights.size
    worth[:depth] = 1.0 if reward == "clicks" else _ratio(weights, look[:depth])
    place = used.position.astype(np.int64) - 1
    return np.bincount(used.session, used.click * worth[place], minlength=used.n_sessions)


def _warn(estimate: LogEstimate, self_normalised: bool) -> None:
    """Say what the log, or the new ranking, lacks."""
    if estimate.without_ranking:
        queries = counted(estimate.without_ranking, "query", "queries")
        warn(f"The sessions of {queries} without a new ranking are left out.", DataWarning)
    if estimate.overlap >= ENOUGH:
        return
    where = " in their new position" if estimate.method == "item-position" else ""
    rest = "is taken to be like them" if self_normalised else "counts as 0"
    warn(
        f"The log knows documents with {100 * estimate.overlap:.0f} % of the new ranking's weight: "
        f"the others were never shown{where} for their query. What they would add {rest}.",
        DataWarning,
    )


# -- what was given ---------------------------------------------------------------------------


def _examination(given: Any, model: Any, method: str, n_positions: int) -> np.ndarray:
    """Return the examination of every position of the log, or refuse what was given."""
    owner = "estimate_from_log"
    if method == "item-position":
        return np.ones(max(n_positions, 1))
    if given is None and hasattr(model, "examination_"):
        given = model
    if given is None:
        refuse("examination", owner, f"given for method={method!r}, as numbers or as a model", None)
    given = getattr(given, "examination", given)  # of a log's check
    values = getattr(given, "examination_", given)
    try:
        look = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        rule = "one number per position, a fitted click model, or a log's check"
        refuse("examination", owner, rule, given)
    if look.ndim == 2 and look.shape[0] == 1:
        look = look[0]
    if look.ndim != 1 or look.size == 0:
        raise DataError(
            f"{owner}: the examination must be one number per position. Got the shape "
            f"{look.shape}. Take that of rg.PositionBased or of the log's check; of a model with "
            "contexts, select the sessions of one context."
        )
    if not np.isfinite(look).all() or np.any(look < 0) or not look.any():
        raise DataError(
            f"{owner}: the examination must be finite numbers of at least 0, some of them above. "
            f"Got {look.tolist()!r:.60}."
        )
    if look.size < n_positions:
        raise DataError(
            f"{owner}: the examination has {counted(look.size, 'position')}, and the log "
            f"{n_positions:,}. Give it for all of them; 0 where nobody looks."
        )
    return look[:n_positions]


def _attractiveness(model: Any, log: ClickLog) -> np.ndarray:
    if model is None:
        refuse("model", "estimate_from_log", "given for this method", None)
    if hasattr(model, "attractiveness"):
        model = model.attractiveness(log)
    values = np.asarray(getattr(model, "attractiveness_", model), np.float64)
    if values.shape != (log.n_pairs,) or not np.isfinite(values).all():
        raise DataError(
            "estimate_from_log: the attractiveness must be one finite number per (query, document) "
            f"pair of the log, {log.n_pairs:,}. Got the shape {values.shape}."
        )
    return values


# -- the estimates ----------------------------------------------------------------------------


class _Used:
    """The impressions of the sessions whose queries have a new ranking."""

    def __init__(self, log: ClickLog, target: NewRanking, by: str) -> None:
        kept = target.ranked[log.session_query]
        self.without_ranking = int(np.unique(log.session_query[~kept]).size)
        self.n_sessions = int(kept.sum())
        if not self.n_sessions:
            raise DataError("estimate_from_log: no session's query has a new ranking.")
        rows = kept[log.session_of]
        self.query = log.session_query[kept].astype(np.int64)
        self.session = (np.cumsum(kept) - 1)[log.session_of[rows]]
        self.pair = log.pair[rows].astype(np.int64)
        self.position = log.position[rows]
        self.click = log.click[rows].astype(np.float64)
        self.pair_query = log.pair_query.astype(np.int64)
        self.n_pairs, self.n_queries = log.n_pairs, log.n_queries
        self.sessions_of_query = np.bincount(self.query, minlength=log.n_queries)
        self.by = by
        self.clusters = np.arange(self.n_sessions) if by == "session" else self.query


class _Parts(NamedTuple):
    """What every session contributes, and how much the log says about the new ranking.

    values : the contributions
    reached, mass : of every session's query, the weight that clicks have after clipping, and that
        of the whole new ranking
    """

    values: np.ndarray
    reached: np.ndarray
    mass: np.ndarray
    overlap: float
    effective_size: float
    largest: float
    clipped: float


def _contributions(
    used: _Used,
    target: NewRanking,
    look: np.ndarray,
    weights: np.ndarray,
    attractive: np.ndarray,
    method: str,
    clip: float | None,
) -> _Parts:
    """Return what every session contributes: the estimate of its query, and how far it is from it.

    A pair has one weight in all sessions of its query: its new weight over the mean of what was
    seen of it. So the query's estimate is the sum over pairs of new weight x clicks / seen.
    """
    n, n_queries = used.n_pairs, used.n_queries
    place = used.position.astype(np.int64) - 1
    seen = look[place]
    if method == "item-position":
        seen = (place == target.place[used.pair]).astype(np.float64)
    click = used.click * (seen > 0)
    total = np.bincount(used.pair, seen, minlength=n)
    clicks = np.bincount(used.pair, click, minlength=n)
    counts = used.sessions_of_query[used.pair_query].astype(np.float64)
    new = np.where(target.place >= 0, weights[np.maximum(target.place, 0)], 0.0)
    full = _ratio(new * counts, total)
    weight = full if clip is None else np.minimum(full, clip)
    if method == "model":
        weight = np.zeros(n)
    of_pair = new * attractive + weight * _ratio(clicks - attractive * total, counts)
    of_query = np.bincount(used.pair_query, of_pair, minlength=n_queries)
    w = weight[used.pair] * (seen > 0)
    apart = w * (click - seen * _ratio(clicks, total)[used.pair])
    if used.by == "session":
        apart = _as_large_as_errors(apart, w * click, seen, total, used)
    noise = np.bincount(used.session, apart, minlength=used.n_sessions)
    mass = target.mass[used.query]
    known = np.ones(n) if method in ("model", "doubly-robust") else total > 0
    overlapping = np.bincount(used.pair_query, new * known, minlength=n_queries)[used.query].sum()
    reached = np.bincount(used.pair_query, weight * _ratio(total, counts), minlength=n_queries)
    uncut = float((full * total).sum())
    return _Parts(
        of_query[used.query] + (noise - noise.mean()),
        reached[used.query],
        mass,
        float(overlapping / mass.sum()) if mass.any() else 0.0,
        float(w.sum()) ** 2 / float((w**2).sum()) if w.any() else 0.0,
        float(full[used.pair].max(initial=0.0)),
        max(0.0, 1.0 - float((weight * total).sum()) / uncut) if clip and uncut else 0.0,
    )


def _as_large_as_errors(
    apart: np.ndarray, weighted: np.ndarray, seen: np.ndarray, total: np.ndarray, used: _Used
) -> np.ndarray:
    """Return distances from the rates of pairs, of the size of those from the true rates.

    A rate follows its own clicks: a distance from it is too small, by the impression's share of the
    pair's examination (and nothing where it is all of it: then the click itself counts). The
    variance between queries of m sessions has 1 / m of the variance within already.
    """
    own = _ratio(seen, total[used.pair])
    sessions = used.sessions_of_query[used.query][used.session]
    alone = own > 1.0 - 1e-9
    larger = apart / np.sqrt(np.where(alone, 1.0, 1.0 - own))
    return np.asarray(np.where(alone, weighted, larger) * np.sqrt(1.0 - 1.0 / sessions))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Return `above` / `below`, and 0 where that is x / 0."""
    return np.divide(above, below, out=np.zeros(above.size), where=below > 0)


def _self_normalised(parts: _Parts) -> np.ndarray:
    """Return contributions to the estimate that is scaled to the new ranking's whole weight.

    Their mean is the estimate; around it they are its derivative by every session.
    """
    value, reached, mass = parts.values.mean(), parts.reached.mean(), parts.mass.mean()
    if reached == 0.0:
        raise DataError(
            "estimate_from_log: the log has no clicks or misses for any document of the new "
            "ranking. Collect a log in which its documents are shown."
        )
    scaled = value * mass / reached
    return np.asarray(
        parts.values * mass / reached
        - (parts.reached - reached) * scaled / reached
        + (parts.mass - mass) * value / reached
    )
