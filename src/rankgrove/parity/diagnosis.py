"""Causes of differences: which hypothesis makes which documents' scores right."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rankgrove.parity.case import Case, Hypothesis, sample_of
from rankgrove.parity.causes import ROUNDING, UNEXPLAINED
from rankgrove.parity.edits import edit_hypotheses
from rankgrove.parity.fitted import fitted_hypotheses
from rankgrove.parity.hypotheses import plain_hypotheses

_SAMPLE = 240  # documents on which hypotheses are tried
_MOST_CAUSES = 12


@dataclass
class Explained:
    """Documents with one cause.

    Attributes
    ----------
    cause, detail : a key of `causes.CAUSES`, and what exactly
    rows : the documents
    scores : their scores by the hypothesis
    also : other hypotheses that explain all of them, as texts
    n_tried, n_against : of documents whose scores are right, how many were tried, and how many of
        them would be wrong by the hypothesis
    """

    cause: str
    detail: str
    rows: np.ndarray
    scores: np.ndarray
    also: list[str] = field(default_factory=list)
    n_tried: int = 0
    n_against: int = 0


@dataclass(frozen=True)
class _Trial:
    """A hypothesis, tried on a sample: which rows it explains, and how many speak against it."""

    hypothesis: Hypothesis
    explains: np.ndarray
    n_against: int

    @property
    def quality(self) -> tuple[int, int, int]:
        return int(self.explains.sum()), -self.n_against, -self.hypothesis.rank


def diagnosed(case: Case, wrong: np.ndarray, right: np.ndarray) -> list[Explained]:
    """Return the causes of wrong scores, the most frequent first.

    wrong, right : documents whose scores do not agree with the logged ones, and those that do
    """
    found: list[Explained] = []
    simple = plain_hypotheses(case)
    left, control = wrong, sample_of(right, _SAMPLE)
    while left.size and len(found) < _MOST_CAUSES:
        part = _next_cause(case, simple, left, control, first=not found)
        if part is None:
            break
        found.append(part)
        left = np.setdiff1d(left, part.rows, assume_unique=True)
    return [*sorted(found, key=lambda part: -part.rows.size), *_rest(case, left)]


def _next_cause(
    case: Case, simple: list[Hypothesis], left: np.ndarray, control: np.ndarray, first: bool
) -> Explained | None:
    """Return the documents that the best hypothesis explains; None if there is none."""
    sample = sample_of(left, _SAMPLE)
    trials = [_tried(case, hypothesis, sample, control) for hypothesis in simple]
    best = max(trials, key=lambda trial: trial.quality)
    if not (best.explains.all() and best.n_against == 0):
        more = [
            *fitted_hypotheses(case, sample, _promising(trials)),
            *edit_hypotheses(case, sample),
        ]
        trials += [_tried(case, hypothesis, sample, control) for hypothesis in more]
        best = max(trials, key=lambda trial: trial.quality)
    n = int(best.explains.sum())
    enough = n >= best.hypothesis.least and (first or n >= 3 or best.n_against == 0)
    if n == 0 or not enough:
        return None
    scores = best.hypothesis.scores(left)
    agree = case.agree(scores, left)
    others = [
        trial.hypothesis.detail
        for trial in sorted(trials, key=lambda trial: trial.hypothesis.rank)
        if trial is not best
        and trial.quality[:2] == best.quality[:2]
        and np.array_equal(trial.explains, best.explains)
    ]
    return Explained(
        best.hypothesis.cause,
        best.hypothesis.detail,
        left[agree],
        scores[agree],
        list(dict.fromkeys(others)),
        control.size,
        best.n_against,
    )


def _tried(
    case: Case, hypothesis: Hypothesis, sample: np.ndarray, control: np.ndarray
) -> _Trial:
    explains = case.agree(hypothesis.scores(sample), sample)
    against = 0
    if explains.any() and control.size:
        against = int((~case.agree(hypothesis.scores(control), control)).sum())
    return _Trial(hypothesis, explains, against)


def _promising(trials: list[_Trial]) -> list[Hypothesis]:
    """Return the hypotheses about values and rules, with which constants are tried."""
    about_scores = ("score-rounded", "score-clipped")
    return [t.hypothesis for t in trials if t.hypothesis.cause not in about_scores]


def _rest(case: Case, left: np.ndarray) -> list[Explained]:
    """Return the documents that no hypothesis explains; small differences may be rounding."""
    if not left.size:
        return []
    scores = case.base[left]
    with np.errstate(invalid="ignore"):
        off = np.abs(scores - case.log.score[left])
    small = off <= _rounding(case)
    parts = []
    if small.any():
        detail = f"differences up to {off[small].max():.2g}, as sums in float32 may have"
        parts.append(Explained(ROUNDING, detail, left[small], scores[small]))
    if not small.all():
        parts.append(Explained(UNEXPLAINED, "", left[~small], scores[~small]))
    return parts


def _rounding(case: Case) -> float:
    """Return the difference that rounding of float32 sums may make, a few of its deviations."""
    trees = case.production.ensemble
    eps = float(np.finfo(np.float32).eps)
    if trees is None or not trees.n_trees:
        largest = float(np.nanmax(np.abs(case.base), initial=1.0))
        return 8 * eps * max(1.0, largest if np.isfinite(largest) else 1.0)
    highest = np.maximum.reduceat(np.abs(trees.value), trees.leaf_ptr[:-1]).sum()
    return 4 * eps * float(np.sqrt(trees.n_trees)) * (abs(trees.base) + float(highest))
