"""Click logs made by simulated users, whose behaviour is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rankgrove.clicks.log import MOST_POSITION, ClickLog, Context
from rankgrove.clicks.shown_lists import document_ids, ranked_rows
from rankgrove.clicks.user_settings import by_position, examination_curve, of_labels, probabilities
from rankgrove.clicks.user_settings import trust as trust_tables
from rankgrove.errors import DataError
from rankgrove.parallel import run_pieces
from rankgrove.random import derive_seed, generator
from rankgrove.validation import check_choice, check_integer, check_real, refuse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from rankgrove.data.queries import QueryDataset

OWNER = "simulate_clicks"
POSITION, CHAIN, BROWSING = 0, 1, 2
MODELS = {
    "position-based": POSITION,
    "trust-bias": POSITION,
    "cascade": CHAIN,
    "dependent-click": CHAIN,
    "simplified-dbn": CHAIN,
    "dbn": CHAIN,
    "user-browsing": BROWSING,
}
CONTINUATION = {"cascade": 1.0, "dependent-click": 0.6, "simplified-dbn": 1.0, "dbn": 0.9}
MOST_BROWSED = 1000  # positions of the user browsing model, whose table is a square


@dataclass(frozen=True)
class ClickTruth:
    """The parameters that clicks were simulated with.

    Attributes
    ----------
    model : the name of the model
    attractiveness : per pair of the log, which is a row of the data
    satisfaction : per pair, or None where users are not satisfied by documents
    examination : per position, or per context and position; user browsing: per position and
        distance to the last click above, 0 where there is none, or the same per context; or None
    continuation : the probability of continuing; dependent click: per position, after a click
    trust : click probabilities per position of relevant and of irrelevant documents that are
        examined, or None
    """

    model: str
    attractiveness: np.ndarray = field(repr=False)
    satisfaction: np.ndarray | None = field(default=None, repr=False)
    examination: np.ndarray | None = field(default=None, repr=False)
    continuation: float | np.ndarray | None = field(default=None, repr=False)
    trust: tuple[np.ndarray, np.ndarray] | None = field(default=None, repr=False)


def simulate_clicks(
    data: QueryDataset,
    ranker: Any,
    *,
    model: str = "position-based",
    sessions: int = 100_000,
    seed: int = 0,
    n_shown: int = 10,
    noise: float = 0.0,
    shuffle_top: int = 0,
    shares: Sequence[float] | None = None,
    zipf: float = 0.0,
    eta: float = 1.0,
    epsilon: float = 0.1,
    relevance: str | ArrayLike | None = None,
    satisfaction: str | ArrayLike | None = None,
    examination: str | ArrayLike | None = None,
    continuation: float | Sequence[float] | None = None,
    trust: tuple[Any, Any] | None = None,
    contexts: Mapping[str, Mapping[str, float | tuple[float, float]]] | None = None,
    return_truth: bool = False,
    n_threads: int | None = None,
) -> Any:
    """Return a log of simulated users who look at ranked results and click.

    A session draws a query, a ranker (if there are several) and a context, ranks the documents of
    the query, shows the first ones, and draws clicks. Everything is drawn by hashing the session
    and the position, so the log is the same for any number of threads, and a longer log begins
    with a shorter one.

    Parameters
    ----------
    data : judged queries; users find a document attractive with a probability of its label
    ranker : what ranked the documents: an object with ``predict``, an array of scores, one per
        row, or a list of these: every session takes one of them, so that documents are seen at
        different positions
    model : ``"position-based"``: users look at position k with probability ``(1 / k) ** eta``, and
        click on what attracts them there; ``"trust-bias"``: they also click on other documents at
        high positions (see `trust`); ``"cascade"``: they read from the top down and stop at the
        first click; ``"dependent-click"``: after a click they continue with the probability
        `continuation`; ``"simplified-dbn"``: after a click they stop if they are satisfied;
        ``"dbn"``: the same, and they continue with the probability `continuation`;
        ``"user-browsing"``: they look at a document with probability ``(1 / d) ** eta``, at the
        distance d from the last click above, or from the top
    sessions : the number of sessions
    seed : of all random numbers
    n_shown : the number of documents that are shown at most
    noise : the scale of Gumbel noise that is added to scores in every session, in standard
        deviations of the scores of the query; 0: none
    shuffle_top : how many documents at the top are shuffled in every session; 0: none
    shares : how often each of several rankers is taken; None: equally often
    zipf : the query at place r of a random order is drawn with a frequency proportional to
        ``(1 / r) ** zipf``; 0: equally often
    eta : how fast examination falls with the position
    epsilon : the probability that a document of label 0 attracts:
        ``epsilon + (1 - epsilon) (2**label - 1) / (2**highest - 1)``
    relevance : the probability of attraction per grade, from 0, in place of that formula; or
        ``"lightgbm"`` or ``"xgboost"``, those in these libraries' tests and examples
    satisfaction : the probability, per grade or for all, that a click satisfies; None: that of the
        formula with epsilon 0.1. For the two DBNs, and for ``"cascade"``, where it is 1
    examination : base of the powers of `eta`, per position, in place of ``1 / k``; or ``"xgboost"``
    continuation : the probability of continuing: after a click, for all positions or per position
        (dependent click, 0.6 by default); after every document (DBN, 0.9, and cascade, 1)
    trust : click probabilities of relevant and of irrelevant documents that are examined, each a
        number or one per position; None: 1 - (min(k, 20) + 1) / 100 and 0.65 / min(k, 10)
    contexts : such as ``{"device": {"phone": 1.5, "desktop": 1.0}}``: the eta of every context of
        one kind; or pairs of eta and share. They are equally frequent otherwise
    return_truth : whether to return the users' true parameters as well
    n_threads : the number of threads; None: all cores

    Returns
    -------
    log : ClickLog
        Its pairs are the rows of `data`: the pair of an impression is the row in the caller's
        order. Documents have their docids, or without docids the row number within the query,
        from 1, as a text
    truth : ClickTruth, if `return_truth`

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(50, seed=1)
    >>> rg.simulate_clicks(data, data.column(1), sessions=1000, seed=1)  # doctest: +ELLIPSIS
    ClickLog(1,000 sessions, ... impressions, ... clicks, 50 queries, ... documents)

    The test protocol of LightGBM: a cascade whose users stop after any document with
    probability 0.2.

    >>> log = rg.simulate_clicks(
    ...     data, data.column(1), model="dbn", relevance="lightgbm", satisfaction=0.0,
    ...     continuation=0.8,
    ... )
    """  # fmt: skip
    kind = MODELS[check_choice("model", OWNER, model, MODELS)]
    n_sessions = check_integer("sessions", OWNER, sessions, low=1, high=2**31 - 1)
    check_integer("seed", OWNER, seed)
    check_integer("shuffle_top", OWNER, shuffle_top, low=0)
    check_real("epsilon", OWNER, epsilon, low=0, high=1)
    scale = check_real("noise", OWNER, noise, low=0)
    n = _most_shown(data, n_shown, kind, model)
    ranked = ranked_rows(data, ranker, seed)
    name, values, etas, context_shares = _contexts(contexts, eta)
    labels = data.y
    after_click, going = _continuation(model, continuation, n)
    users = _Users(
        kind=kind,
        attraction=of_labels("relevance", relevance, labels, epsilon),
        satisfied=_satisfaction(model, satisfaction, labels),
        table=_examination(kind, examination, etas, n),
        trust=trust_tables(trust, n) if model == "trust-bias" else (np.zeros(n), np.ones(n)),
        after_click=after_click,
        going=going,
    )
    key = np.uint64(derive_seed(seed, "clicks"))
    heads = _heads(
        key,
        n_sessions,
        _query_shares(data.n_queries, zipf, seed),
        _shares(shares, len(ranked.rows)),
        context_shares,
        n_threads,
    )
    ptr, pair, position, click = _impressions(
        key, heads, data, ranked, users, (n_shown, scale, shuffle_top), n_threads
    )
    query, _, context = heads
    document_names, document = document_ids(data)
    log = ClickLog.from_parts(
        query_ids=data.query_ids,
        document_ids=document_names,
        pair_query=data.query_of_row.astype(np.int32),
        pair_document=document,
        session_ptr=ptr,
        session_query=query,
        contexts={} if name is None else {name: Context(context.astype(np.int16), values)},
        pair=pair,
        position=position,
        click=click,
    )
    return (log, _truth(model, users, name is not None)) if return_truth else log


class _Users(NamedTuple):
    """What users do, as arrays for the kernel.

    attraction, satisfied : per row of the data
    table : examination by context and position, and distance for user browsing
    trust : click probabilities per position of irrelevant and of relevant documents
    after_click, going : the probability of continuing per position after a click, and otherwise
    """

    kind: int
    attraction: np.ndarray
    satisfied: np.ndarray
    table: np.ndarray
    trust: tuple[np.ndarray, np.ndarray]
    after_click: np.ndarray
    going: float


def _most_shown(data: QueryDataset, n_shown: int, kind: int, model: str) -> int:
    """Return the number of documents in the longest list."""
    check_integer("n_shown", OWNER, n_shown, low=1, high=MOST_POSITION)
    if data.n_rows == 0:
        raise DataError(f"{OWNER}: the data has no rows.")
    n = int(min(n_shown, np.diff(data.query_ptr).max()))
    if kind == BROWSING and n > MOST_BROWSED:
        refuse("n_shown", OWNER, f"at most {MOST_BROWSED:,} for the model {model!r}", n_shown)
    return n


def _impressions(
    key: np.uint64,
    heads: tuple[np.ndarray, np.ndarray, np.ndarray],
    data: QueryDataset,
    ranked: Any,
    users: _Users,
    shown: tuple[int, float, int],
    n_threads: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the borders of sessions, and the pair, position and click of every impression.

    `shown` are the length of lists, the noise on scores and the number of shuffled documents.
    """
    n_shown, noise, shuffle_top = shown
    sizes = np.diff(data.query_ptr)
    lengths = np.minimum(sizes, n_shown)[heads[0]]
    ptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    pair = np.empty(ptr[-1], np.int32)
    position = np.empty(ptr[-1], np.uint16)
    click = np.empty(ptr[-1], np.bool_)
    longest = int(sizes.max())

    def work(first: int, last: int) -> None:
        from rankgrove.clicks._simulation_kernels import simulate as kernel

        kernel(
            *(key, first, last, *heads, data.query_ptr, ptr, *ranked, noise, shuffle_top),
            *(users.kind, users.attraction, users.satisfied, users.table, *users.trust),
            *(users.after_click, users.going, np.empty(longest), np.empty(longest, np.int64)),
            *(pair, position, click),
        )

    run_pieces(work, np.unique(np.linspace(0, lengths.size, 65).astype(np.int64)), n_threads)
    return ptr, pair, position, click


def _truth(model: str, users: _Users, with_contexts: bool) -> ClickTruth:
    """Return the parameters of the users that the model has."""
    low, high = users.trust
    return ClickTruth(
        model,
        users.attraction,
        users.satisfied if model in ("simplified-dbn", "dbn", "cascade") else None,
        _shown_table(users.table, users.kind, with_contexts),
        _shown_continuation(model, users.after_click, users.going),
        (high, low) if model == "trust-bias" else None,
    )


def _contexts(
    contexts: Mapping[str, Mapping[str, Any]] | None, eta: float
) -> tuple[str | None, tuple[str, ...], np.ndarray, np.ndarray]:
    """Return the name of the context, its values, the eta and the share of each."""
    if contexts is None:
        return None, (), np.array([check_real("eta", OWNER, eta, low=0)]), np.ones(1)
    rule = 'one name with the eta of its values, as {"device": {"phone": 1.5, "desktop": 1}}'
    if not isinstance(contexts, Mapping) or len(contexts) != 1:
        refuse("contexts", OWNER, rule, contexts)
    ((name, values),) = contexts.items()
    if not isinstance(values, Mapping) or not values:
        refuse("contexts", OWNER, rule, contexts)
    pairs = [v if isinstance(v, tuple) else (v, 1.0) for v in values.values()]
    etas = np.array([check_real("contexts", OWNER, pair[0], low=0) for pair in pairs])
    shares = np.array([check_real("contexts", OWNER, pair[1], above=0) for pair in pairs])
    return str(name), tuple(map(str, values)), etas, shares / shares.sum()


def _shares(shares: Sequence[float] | None, n: int) -> np.ndarray:
    """Return how often each ranker is taken, the sum is 1."""
    values = np.ones(n) if shares is None else np.asarray(shares, np.float64)
    if values.shape != (n,) or not (values >= 0).all() or not values.sum() > 0:
        refuse("shares", OWNER, f"a number of at least 0 for each ranker ({n})", shares)
    return np.asarray(values / values.sum())


def _query_shares(n_queries: int, zipf: float, seed: int) -> np.ndarray:
    """Return the frequency of every query."""
    check_real("zipf", OWNER, zipf, low=0)
    shares = np.arange(1, n_queries + 1, dtype=np.float64) ** -zipf
    if zipf > 0:
        shares = generator(seed, "frequencies of queries").permutation(shares)
    return np.asarray(shares / shares.sum())


def _satisfaction(model: str, given: Any, labels: np.ndarray) -> np.ndarray:
    """Return the probability per row that a click ends the session."""
    if model in ("simplified-dbn", "dbn"):
        return of_labels("satisfaction", given, labels, 0.1)
    if given is not None:
        refuse("satisfaction", OWNER, f"None for the model {model!r}", given)
    return np.full(labels.size, 1.0 if model == "cascade" else 0.0)


def _continuation(model: str, given: Any, n: int) -> tuple[np.ndarray, float]:
    """Return the probability of continuing per position after a click, and after any document."""
    if model not in CONTINUATION:
        if given is not None:
            refuse("continuation", OWNER, f"None for the model {model!r}", given)
        return np.ones(n), 1.0
    value = CONTINUATION[model] if given is None else given
    if model == "dependent-click":
        return by_position("continuation", value, n), 1.0
    if probabilities("continuation", value).ndim:
        refuse("continuation", OWNER, f"one number for the model {model!r}", given)
    return np.ones(n), float(value)


def _examination(kind: int, given: Any, etas: np.ndarray, n: int) -> np.ndarray:
    """Return the examination by context and position, and distance for user browsing."""
    if kind == CHAIN:
        if given is not None:
            refuse("examination", OWNER, "None for models of users who read downwards", given)
        return np.ones((etas.size, n, 1))
    base = examination_curve(given, n)
    if kind == POSITION:
        return np.asarray(base[None, :, None] ** etas[:, None, None])
    table = np.empty((etas.size, n, n + 1))
    for c, eta in enumerate(etas):
        table[c, :, 1:] = base**eta
        table[c, :, 0] = base**eta
    return table


def _shown_table(table: np.ndarray, kind: int, with_contexts: bool) -> np.ndarray | None:
    if kind == CHAIN:
        return None
    plain = table[:, :, 0] if kind == POSITION else table
    return plain if with_contexts else plain[0]


def _shown_continuation(
    model: str, after_click: np.ndarray, going: float
) -> float | np.ndarray | None:
    if model not in CONTINUATION:
        return None
    return after_click if model == "dependent-click" else going


def _heads(
    key: np.uint64,
    n_sessions: int,
    queries: np.ndarray,
    rankers: np.ndarray,
    contexts: np.ndarray,
    n_threads: int | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the query, the ranker and the context of every session."""
    from rankgrove.clicks._simulation_kernels import draw_heads

    query, ranker, context = (np.empty(n_sessions, np.int32) for _ in range(3))
    reached = [np.cumsum(shares) for shares in (queries, rankers, contexts)]
    run_pieces(
        lambda a, b: draw_heads(key, a, b, *reached, query, ranker, context),
        np.unique(np.linspace(0, n_sessions, 65).astype(np.int64)),
        n_threads,
    )
    return query, ranker, context
