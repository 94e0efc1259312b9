"""Which click model fits a log: the one that predicts the clicks of held-out sessions best."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.showing import html_table
from rankgrove.validation import refuse

if TYPE_CHECKING:
    from rankgrove.clicks.log import ClickLog

STEPS, CLOSE = 300, 1e-5
PSEUDO_CLICKS = 5.0  # of every position, where the model is right


@dataclass(frozen=True)
class ClickModelChoice:
    """The result of :func:`choose_click_model`; prints as a table.

    Attributes
    ----------
    model : the chosen model, fitted to the whole log
    models : all models, as texts, the best first
    log_likelihood : of the clicks of held-out sessions, per impression and in the order of
        `models`; the highest is the best
    """

    model: Any
    models: tuple[str, ...]
    log_likelihood: tuple[float, ...]

    def _rows(self) -> list[tuple[str, str]]:
        values = zip(self.models, self.log_likelihood, strict=True)
        return [(name, f"{value:.5f}") for name, value in values]

    def __str__(self) -> str:
        rows = [("click model", "held-out log likelihood per impression"), *self._rows()]
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("Held-out log likelihood of click models", [], self._rows())


def choose_click_model(
    log: ClickLog, models: Sequence[Any] | None = None, *, share: float = 0.2, seed: int = 0
) -> ClickModelChoice:
    """Choose the click model that predicts held-out sessions best.

    Every model learns from the other sessions, and predicts each click of the held-out ones given
    the clicks above it. The best one is then fitted to the whole log.

    Parameters
    ----------
    log : the sessions
    models : the click models; None: ``PositionBased()``, ``DependentClick()`` and ``DBN()``
    share : the share of the sessions that are held out
    seed : of the draw of held-out sessions

    Returns
    -------
    ClickModelChoice

    Examples
    --------
    >>> import rankgrove as rg
    >>> data = rg.make_web(20, seed=1)
    >>> log = rg.simulate_clicks(
    ...     data, data.column(1), model="cascade", noise=1.0, sessions=5000, seed=1
    ... )
    >>> rg.choose_click_model(log, [rg.PositionBased(), rg.DependentClick()]).models
    ('DependentClick', 'PositionBased')
    """
    owner = "choose_click_model"
    candidates = _default_models() if models is None else list(models)
    if not candidates:
        refuse("models", owner, "at least one click model", models)
    for model in candidates:
        if not hasattr(model, "fit") or not hasattr(model, "log_likelihood"):
            raise ParameterError(
                f"The 'models' parameter of {owner} must be click models, such as "
                f"rg.PositionBased(). Got {type(model).__name__} instead."
            )
    rest, held_out = log.split(share, seed=seed)
    values = [
        copy.deepcopy(model).fit(rest).log_likelihood(held_out) / held_out.n_impressions
        for model in candidates
    ]
    order = np.argsort([-value for value in values], kind="stable").tolist()
    return ClickModelChoice(
        model=copy.deepcopy(candidates[order[0]]).fit(log),
        models=tuple(type(candidates[i]).__name__ for i in order),
        log_likelihood=tuple(values[i] for i in order),
    )


def _default_models() -> list[Any]:
    from rankgrove.clicks.dbn import DBN
    from rankgrove.clicks.dependent_click import DependentClick
    from rankgrove.clicks.position_based import PositionBased

    return [PositionBased(), DependentClick(), DBN()]


def expected_examinations(model: Any, log: ClickLog) -> np.ndarray:
    """Return how many impressions of every pair were examined, given the clicks above them."""
    return np.bincount(log.pair, _examined(model, log), minlength=log.n_pairs)


def calibrated_examinations(model: Any, log: ClickLog) -> np.ndarray:
    """Return expected examinations that are right at every position, even if the model is not.

    The examinations of a position get a factor, that of position 1 is 1. Factors are found from
    pairs that were shown at several positions: their clicks are shared out between positions as
    examinations say, whatever their attractiveness is.
    """
    n = log.n_positions
    cells, cell = np.unique(log.pair * np.int64(n) + log.position - 1, return_inverse=True)
    examined = np.bincount(cell, _examined(model, log))
    clicked = np.bincount(cell[log.click], minlength=cells.size)
    pair, place = cells // n, cells % n
    linking = np.bincount(pair, minlength=log.n_pairs)[pair] > 1
    of_pair = np.bincount(pair, clicked, minlength=log.n_pairs)
    got = np.bincount(place[linking], clicked[linking], minlength=n)
    factor = np.ones(n)
    for _ in range(STEPS):
        total = np.bincount(pair, examined * factor[place], minlength=log.n_pairs)
        rate = np.divide(of_pair, total, out=np.zeros(log.n_pairs), where=total > 0)
        mass = (examined * rate[pair])[linking]
        expected = np.bincount(place[linking], mass, minlength=n)
        new = (got + PSEUDO_CLICKS) / (expected + PSEUDO_CLICKS)
        new /= new[0]
        moved = np.abs(new - factor).max()
        factor = new
        if moved < CLOSE:
            break
    return np.bincount(pair, examined * factor[place], minlength=log.n_pairs)


def _examined(model: Any, log: ClickLog) -> np.ndarray:
    """Return the probability that an impression was examined, given the clicks above it."""
    return np.asarray(model.examined_given_above(log, model.attractiveness(log)))
