"""What all click models share: fitting with a prior, intervals, probabilities, perplexity."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from rankgrove.clicks.bootstrap import (
    ModelIntervals,
    percentile_intervals,
    random_counts,
    session_weights,
)
from rankgrove.clicks.learned import (
    EDGE,
    FIRST_STRENGTH,
    Learned,
    PairPrior,
    PseudoCounts,
    estimated_mean,
    estimated_strength,
)
from rankgrove.clicks.log import ClickLog
from rankgrove.clicks.pair_lookup import Pairs, pairs_of, places
from rankgrove.clicks.perplexity import Perplexity, outcome_probabilities, perplexity
from rankgrove.errors import DataError, ParameterError
from rankgrove.random import derive_seed
from rankgrove.validation import (
    check_choice,
    check_integer,
    check_real,
    counted,
    refuse,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

PRIOR_ROUNDS = 4  # at most so many estimates of the prior
PRIOR_BUDGET = 30  # steps of EM between them
PRIOR_TOLERANCE = 1e-3
PRIOR_CLOSE = 0.02  # relative changes of mean and strength that end them
REPLICATE_TOLERANCE = 1e-5
FAINT = 1e-12  # attractiveness that is taken for 0
REPLICATE_ITERATIONS = 100


class ClickModel:
    """A model of users who look at results and click.

    Subclasses say how to collect evidence, how to learn from it and how probable clicks are.
    """

    n_threads: int | None
    prior_strength: float | None
    max_iterations: int = 0
    tolerance: float = 0.0

    attractiveness_: np.ndarray
    impressions_: np.ndarray
    prior_mean_: float | np.ndarray
    prior_strength_: float
    n_iterations_: int
    converged_: bool
    history_: list[float]

    _parameters: ClassVar[tuple[str, ...]] = ("prior_strength", "n_threads")

    def __init__(
        self, *, prior_strength: float | None = None, n_threads: int | None = None
    ) -> None:
        self._set_up(prior_strength=prior_strength, n_threads=n_threads)

    def _set_up(self, **parameters: Any) -> None:
        """Check and keep the parameters of the constructor."""
        owner = type(self).__name__
        strength = parameters["prior_strength"]
        if strength is not None:
            parameters["prior_strength"] = check_real("prior_strength", owner, strength, low=0)
        if parameters["n_threads"] is not None:
            check_integer("n_threads", owner, parameters["n_threads"], low=1)
        if "max_iterations" in parameters:
            check_integer("max_iterations", owner, parameters["max_iterations"], low=1)
            check_real("tolerance", owner, parameters["tolerance"], low=0)
        vars(self).update(parameters)

    # -- what subclasses do -----------------------------------------------------------------

    def _evidence(self, log: ClickLog) -> Any:
        """Return what is collected once from a log."""
        raise NotImplementedError

    def _learn(
        self,
        evidence: Any,
        weights: np.ndarray,
        prior: PseudoCounts,
        start: Learned | None,
        limits: tuple[int, float],
    ) -> Learned:
        """Return what is learned where sessions have weights.

        `limits` are the number of steps and the tolerance of EM, `start` is where it starts.
        """
        raise NotImplementedError

    def _probabilities(
        self, log: ClickLog, attractiveness: np.ndarray, *, conditional: bool
    ) -> np.ndarray:
        """Return the click probability of every impression from the attractiveness of pairs."""
        raise NotImplementedError

    def _with_random_priors(
        self, learned: Learned, draw: Callable[[PseudoCounts, str], PseudoCounts], seed: int
    ) -> Learned:
        """Return what was learned, with draws in place of other priors than that of pairs.

        `seed` is for draws from posterior distributions.
        """
        return learned

    def _examined(self, log: ClickLog, attractiveness: np.ndarray) -> np.ndarray:
        """Return the probability that impressions were examined, given all clicks.

        Here examination depends on clicks above only, and a click follows from examination alone.
        """
        seen = self.examined_given_above(log, attractiveness)
        chance = attractiveness[log.pair] * seen
        return np.divide(seen - chance, 1 - chance, out=np.ones(seen.size), where=chance < 1)

    def examined_given_above(self, log: ClickLog, attractiveness: np.ndarray) -> np.ndarray:
        """Return the probability that impressions were examined, given the clicks above them.

        It is that of a click over attractiveness. It does not depend on the latter, which may be 0.

        Parameters
        ----------
        log : the sessions
        attractiveness : of the pairs of the log
        """
        attractive = np.maximum(attractiveness, FAINT)
        chance = self._probabilities(log, attractive, conditional=True)
        return np.asarray(chance / attractive[log.pair])

    # -- learning ---------------------------------------------------------------------------

    def fit(self, log: ClickLog, prior: ArrayLike | None = None) -> Any:
        """Learn from a click log.

        Parameters
        ----------
        log : the sessions
        prior : the attractiveness to which pairs with few impressions are shrunk: a number, or
            one per pair of the log (such as a ranker's predicted probability), above 0 and below
            1. None: the clicks per examination of all pairs

        Returns
        -------
        self
        """
        owner = type(self).__name__
        if log.n_impressions == 0:
            raise DataError(f"{owner}: the click log has no impressions.")
        mean = None if prior is None else _check_prior(prior, log, owner)
        evidence = self._evidence(log)
        weights = np.ones(log.n_sessions)
        strength = self.prior_strength
        clicks = float(np.clip(log.n_clicks / log.n_impressions, EDGE, 1 - EDGE))
        current = PairPrior(
            clicks if mean is None else mean, FIRST_STRENGTH if strength is None else strength
        )
        learned = None
        budget = (min(PRIOR_BUDGET, self.max_iterations), max(self.tolerance, PRIOR_TOLERANCE))
        for _ in range(PRIOR_ROUNDS):
            learned = self._learn(evidence, weights, current.counts(log.n_pairs), learned, budget)
            before = current
            new_mean = estimated_mean(learned.exposures) if mean is None else mean
            current = PairPrior(
                new_mean,
                estimated_strength(learned.exposures, new_mean) if strength is None else strength,
            )
            if _close(before, current):
                break
        limits = (self.max_iterations, self.tolerance)
        learned = self._learn(evidence, weights, current.counts(log.n_pairs), learned, limits)
        self._keep(log, current, learned)
        return self

    def _keep(self, log: ClickLog, prior: PairPrior, learned: Learned) -> None:
        """Make what was learned attributes."""
        self._pairs: Pairs = pairs_of(log)
        self._learned = learned
        self._prior = prior
        self.attractiveness_ = learned.attractiveness
        self.impressions_ = np.bincount(log.pair, minlength=log.n_pairs)
        self.prior_mean_, self.prior_strength_ = prior
        self.history_ = learned.history
        self.n_iterations_ = learned.n_iterations
        self.converged_ = learned.converged
        for name, value in learned.shared.items():
            setattr(self, f"{name}_", value if np.ndim(value) else float(value))

    def intervals(
        self,
        log: ClickLog,
        n: int = 200,
        seed: int = 0,
        level: float = 0.95,
        *,
        weights: str = "bayesian",
    ) -> ModelIntervals:
        """Return intervals of what was learned, by the bootstrap over sessions.

        Parameters
        ----------
        log : the log that the model was fitted to
        n : the number of randomly weighted logs to learn from
        seed : of the random weights
        level : the probability with which an interval should hold the true value
        weights : ``"bayesian"``, exponential weights and a random prior: intervals are also right
            for pairs with few clicks or none; ``"poisson"``, resampled sessions
        """
        owner = f"{type(self).__name__}.intervals"
        self._check_fitted()
        check_integer("n", owner, n, low=2)
        check_real("level", owner, level, above=0, high=1)
        poisson = check_choice("weights", owner, weights, ["bayesian", "poisson"]) == "poisson"
        if log.n_pairs != self.attractiveness_.size:
            raise DataError(
                f"{owner} needs the log that the model was fitted to, with "
                f"{counted(self.attractiveness_.size, 'pair')}. Got one with {log.n_pairs:,}."
            )
        evidence = self._evidence(log)
        fitted = replace(self._learned, priors_fixed=True)
        pseudo = self._prior.counts(log.n_pairs)
        limits = (
            min(self.max_iterations, REPLICATE_ITERATIONS),
            max(self.tolerance, REPLICATE_TOLERANCE),
        )

        def learn(replicate: int) -> Learned:
            drawn = session_weights(log.n_sessions, poisson, seed, replicate, self.n_threads)
            if poisson:
                return self._learn(evidence, drawn, pseudo, fitted, limits)

            def draw(counts: PseudoCounts, of: str = "") -> PseudoCounts:
                return random_counts(counts, seed, replicate, self.n_threads, of)

            start = self._with_random_priors(
                fitted, draw, derive_seed(seed, "posterior", replicate)
            )
            return self._learn(evidence, drawn, draw(pseudo), start, limits)

        return percentile_intervals(learn, n, level)

    # -- predicting -------------------------------------------------------------------------

    def attractiveness(self, log: ClickLog) -> np.ndarray:
        """Return the attractiveness of the pairs of a log, which may be another one.

        Pairs that were not in the log of ``fit`` have the mean of the prior.
        """
        return self._looked_up(log, self.attractiveness_, float(np.mean(self.prior_mean_)))

    def click_probabilities(self, log: ClickLog) -> np.ndarray:
        """Return the probability of a click on every impression, before the session is seen."""
        return self._probabilities(log, self.attractiveness(log), conditional=False)

    def conditional_click_probabilities(self, log: ClickLog) -> np.ndarray:
        """Return the probability of a click on every impression, given the clicks above it."""
        return self._probabilities(log, self.attractiveness(log), conditional=True)

    def examination_probabilities(self, log: ClickLog) -> np.ndarray:
        """Return how probably every impression was examined, given all clicks of its session.

        What was clicked was examined. Where users read from the top down, so was all above a click;
        below the last click examination becomes less probable with every document.
        """
        found = np.clip(self._examined(log, self.attractiveness(log)), 0.0, 1.0)
        return np.where(log.click, 1.0, found)

    def log_likelihood(self, log: ClickLog) -> float:
        """Return the natural logarithm of the probability of all clicks of a log."""
        p = outcome_probabilities(log.click, self.conditional_click_probabilities(log))
        return float(np.log(p).sum())

    def perplexity(self, log: ClickLog, *, conditional: bool = False) -> Perplexity:
        """Return how surprised the model is by the clicks of a log, best one that was held out.

        Parameters
        ----------
        log : the sessions
        conditional : whether to predict every click given those above it
        """
        p = self._probabilities(log, self.attractiveness(log), conditional=conditional)
        return perplexity(log, p)

    def _looked_up(self, log: ClickLog, values: np.ndarray, otherwise: float) -> np.ndarray:
        """Return values, one per pair of the log of ``fit``, for the pairs of a log."""
        at = places(pairs_of(log), self._pairs)
        return np.where(at >= 0, values[at], otherwise)

    def _check_fitted(self) -> None:
        if not hasattr(self, "attractiveness_"):
            raise ParameterError(f"{type(self).__name__} has learned nothing yet: call fit first.")

    def __getattr__(self, name: str) -> Any:
        unfitted = "attractiveness_" not in vars(self)
        remedy = " yet: call fit first" if unfitted and not name.startswith("__") else ""
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{remedy}.")

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={vars(self)[name]!r}" for name in self._parameters)
        return f"{type(self).__name__}({values})"


def _check_prior(prior: ArrayLike, log: ClickLog, owner: str) -> float | np.ndarray:
    """Return the prior mean: a number, or one per pair."""
    values = np.asarray(prior, np.float64)
    if values.shape not in ((), (log.n_pairs,)):
        raise DataError(
            f"{owner}: prior must be a number, or one per pair of the log "
            f"({counted(log.n_pairs, 'pair')}). Got an array of shape {values.shape}."
        )
    if not ((values > 0) & (values < 1)).all():
        refuse("prior", f"{owner}.fit", "above 0 and below 1", prior)
    return values if values.ndim else float(values)


def _close(a: PairPrior, b: PairPrior) -> bool:
    """Return whether two priors are about the same."""
    means = np.allclose(a.mean, b.mean, rtol=PRIOR_CLOSE, atol=0)
    return bool(means and np.isclose(a.strength, b.strength, rtol=PRIOR_CLOSE, atol=0))
