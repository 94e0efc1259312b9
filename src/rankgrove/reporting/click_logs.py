"""What a report and plots show of a click log: clicks by position, examination, the check."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankgrove.clicks.check import ClickCheck, check_clicks
from rankgrove.clicks.click_model import ClickModel
from rankgrove.clicks.log import ClickLog
from rankgrove.clicks.training_data import log_of_rows
from rankgrove.data.queries import QueryDataset
from rankgrove.errors import DataError
from rankgrove.objectives.position_bias import PositionTable
from rankgrove.validation import refuse

LEVEL = 1.96  # standard errors on both sides: 95 %
_SHOWN_AS = {"ips": "propensity", "affine": "alpha", "ratios": "clicked"}
_RULE = (
    "a log's check, a trained PositionBased, a ranker with position_bias, or an array with one "
    "number per position"
)


@dataclass(frozen=True, eq=False)
class ExaminationCurve:
    """How often positions are looked at, relative to the first one.

    Attributes
    ----------
    name : whose estimate it is, and the context
    value : one number per position, from 1; NaN where it is not known
    low, high : ends of 95 % intervals, or None
    """

    name: str
    value: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    @property
    def position(self) -> np.ndarray:
        """The positions, from 1."""
        return np.arange(1, self.value.size + 1)


def examination_curves(
    subject: Any, name: str, log: ClickLog | None, samples: int, owner: str
) -> list[ExaminationCurve]:
    """Return what a check, a click model, a ranker or an array says, one curve per context."""
    if isinstance(subject, ClickCheck):
        return [_of_check(subject, name)]
    table = position_table(subject)
    if table is not None:
        return _of_table(table, name, _sigma(_inside(subject)))
    if hasattr(subject, "attractiveness") and hasattr(subject, "examination"):  # the truth
        subject = subject.examination
    contexts: tuple[str, ...] = ("",)
    low = high = None
    values = subject
    if isinstance(subject, ClickModel):
        values = getattr(subject, "examination_", None)
        contexts = getattr(subject, "context_names_", ())
        if not contexts:  # user browsing: by distance too
            refuse("models", owner, _RULE, subject)
        if log is not None and samples:
            edges = subject.intervals(log, n=samples)
            low, high = (np.atleast_2d(edge["examination"]) for edge in (edges.low, edges.high))
    try:
        rows = np.atleast_2d(np.asarray(values, np.float64))
    except (TypeError, ValueError):
        refuse(name or "models", owner, _RULE, subject)
    if values is None or rows.ndim != 2 or not rows.size:
        refuse(name or "models", owner, _RULE, subject)
    if len(contexts) != len(rows):
        contexts = tuple(f"context {c + 1}" for c in range(len(rows)))
    return [
        ExaminationCurve(
            _named(name, contexts[c]),
            rows[c],
            None if low is None else low[c],
            None if high is None else high[c],
        )
        for c in range(len(rows))
    ]


def _inside(model: Any) -> Any:
    return model.inside() if hasattr(model, "inside") else model


def _sigma(ranker: Any) -> float:
    """Return the slope of the sigmoid of a ranker, or of the models of a bag."""
    model = next(iter(getattr(ranker, "models_", ())), ranker)
    return float(getattr(model, "sigma", 1.0))


def position_table(model: Any) -> PositionTable | None:
    """Return what a ranker has learned about positions, if it has."""
    table = getattr(_inside(model), "position_bias_", None)
    return table if isinstance(table, PositionTable) else None


def _named(name: str, context: str) -> str:
    return ", ".join(part for part in (name, context) if part)


def _of_check(check: ClickCheck, name: str) -> ExaminationCurve:
    with np.errstate(over="ignore", invalid="ignore"):
        factor = np.exp(LEVEL * check.standard_error)
        low, high = check.examination / factor, check.examination * factor
    known = np.isfinite(check.examination) & np.isfinite(high)
    low, high = (np.where(known, edge, math.nan) for edge in (low, high))
    return ExaminationCurve(name, np.where(known, check.examination, math.nan), low, high)


def _of_table(table: PositionTable, name: str, sigma: float) -> list[ExaminationCurve]:
    """Return curves relative to the first position that was shown, one per context."""
    curves = []
    for c, context in enumerate(table.contexts):
        shown = table.shown[c] > 0
        if "bias" in table.values:  # of scores: the odds of a click are exp(sigma * score)
            values = np.exp(sigma * table.values["bias"][c])
        else:
            values = np.asarray(table.values[_SHOWN_AS[table.method]][c], np.float64)
        values = np.where(shown, values, math.nan)
        first = values[shown][0] if shown.any() else math.nan
        curves.append(ExaminationCurve(_named(name, context), values / first))
    return curves


# -- the log ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ClickFigures:
    """The figures of a click log.

    Attributes
    ----------
    log : the log
    impressions, clicks : of every position, from 1
    check : the check of the log; None where it is refused
    refusal : why it is refused, or an empty text
    """

    log: ClickLog
    impressions: np.ndarray
    clicks: np.ndarray
    check: ClickCheck | None
    refusal: str

    @property
    def rate(self) -> np.ndarray:
        """Clicks per impression of every position; NaN where nothing was shown."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.clicks / self.impressions)

    @property
    def facts(self) -> dict[str, str]:
        """Sizes, and numbers of the check, as texts."""
        log = self.log
        facts = {
            "sessions": f"{log.n_sessions:,}",
            "impressions": f"{log.n_impressions:,}",
            "clicks": f"{log.n_clicks:,}",
            "clicks per session": f"{log.n_clicks / log.n_sessions:.2f}",
        }
        if self.check is not None:
            shown = "of the impressions show a document seen at several positions"
            facts[shown] = f"{self.check.overlap:.1%}"
            if math.isfinite(self.check.bias):
                bias = f"{self.check.bias:.2f} ± {self.check.error:.2f}"
                facts["bias (log examination) with its standard error"] = bias
        return facts


def click_figures(clicks: Any, owner: str) -> ClickFigures:
    """Return the figures of a click log, or of training data with positions."""
    log = _log_of(clicks, owner)
    size = log.n_positions + 1
    check, refusal = None, ""
    if isinstance(clicks, QueryDataset) and clicks.positions.pair is None:  # type: ignore[union-attr]
        refusal = (
            "It is not known which rows are the same document, so relevance and position cannot be "
            "told apart: make the data with rg.click_data, or give the log."
        )
    else:
        try:
            check = check_clicks(log)
        except DataError as error:
            refusal = str(error)
    return ClickFigures(
        log,
        np.bincount(log.position, minlength=size)[1:],
        np.bincount(log.position[log.click], minlength=size)[1:],
        check,
        refusal,
    )


def _log_of(clicks: Any, owner: str) -> ClickLog:
    """Return a click log, or that of training data with positions."""
    if isinstance(clicks, QueryDataset):
        return log_of_rows(clicks, owner)
    if not isinstance(clicks, ClickLog) or not clicks.n_sessions:
        rule = "a ClickLog with sessions, training data with positions, or None"
        refuse("clicks", owner, rule, clicks)
    return clicks


def learned_curves(models: Mapping[str, Any]) -> dict[str, list[ExaminationCurve]]:
    """Return what rankers have learned about positions, by name; those without are left out."""
    tables = {name: model for name, model in models.items() if position_table(model) is not None}
    return {
        name: examination_curves(model, name, None, 0, "report") for name, model in tables.items()
    }
