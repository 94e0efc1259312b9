"""Causes of differences: which hypothesis makes which documents' scores right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from rankgrove.parity.case import FEW, Case, Hypothesis, sample_of
from rankgrove.parity.causes import ROUNDING, UNEXPLAINED
from rankgrove.parity.edits import edit_hypotheses
from rankgrove.parity.fewer_trees import fewer_trees
from rankgrove.parity.fitted import RANK, fitted_hypotheses
from rankgrove.parity.free_values import free_values
from rankgrove.parity.hypotheses import LAST, plain_hypotheses, sided

_MOST_CAUSES = 12
_FEW = 0.03  # of the documents whose scores differ: fewer are no proof of a cause that was fitted
_FEW_AGAINST = 0.1  # the same, if documents whose scores agree speak against the cause
_MOST_OF_THEM = 0.5  # documents that a cause explains: beyond that, no value is left free
_TWO = "; and "  # in texts, between two changes


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
    is_fitted : whether the cause was found by a search, so that a few documents may fit by chance
    """

    cause: str
    detail: str
    rows: np.ndarray
    scores: np.ndarray
    also: list[str] = field(default_factory=list)
    n_tried: int = 0
    n_against: int = 0
    is_fitted: bool = False


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
    left, control = wrong, sample_of(right, FEW)
    while left.size and len(found) < _MOST_CAUSES:
        part = _next_cause(case, simple, left, control, first=not found)
        if part is None:
            break
        share = _FEW_AGAINST if part.n_against else _FEW
        if part.is_fitted and part.rows.size < share * wrong.size:
            break
        found.append(part)
        left = np.setdiff1d(left, part.rows, assume_unique=True)
    return [*sorted(found, key=lambda part: -part.rows.size), *_rest(case, left)]


def _next_cause(
    case: Case, simple: list[Hypothesis], left: np.ndarray, control: np.ndarray, first: bool
) -> Explained | None:
    """Return the documents that the best hypothesis explains; None if there is none.

    `first`: no cause has been found yet; later ones need more documents, as they may fit by chance.
    """
    sample = sample_of(left, FEW)
    trials = [_tried(case, hypothesis, sample, control) for hypothesis in simple]
    best = max(trials, key=lambda trial: trial.quality)
    sure = best.explains.all() and best.n_against == 0 and best.hypothesis.rank < LAST
    if not sure:
        more = [
            *fitted_hypotheses(case, sample, _promising(trials)),
            *fewer_trees(case, sample),
            *edit_hypotheses(case, sample),
        ]
        trials += [_tried(case, hypothesis, sample, control) for hypothesis in more]
        best = max(trials, key=lambda trial: trial.quality)
        if not best.explains.all():
            both = _with_missing_rules(case, sample)
            trials += [_tried(case, hypothesis, sample, control) for hypothesis in both]
            best = max(trials, key=lambda trial: trial.quality)
        if best.explains.mean() < _MOST_OF_THEM:
            free = free_values(case, sample)
            trials += [_tried(case, hypothesis, sample, control) for hypothesis in free]
            best = max(trials, key=lambda trial: trial.quality)
    n = int(best.explains.sum())
    enough = n >= best.hypothesis.least and (first or n >= 3 or best.n_against == 0)
    if n == 0 or not enough:
        return None
    scores = best.hypothesis.scores(left)
    noise = max(best.hypothesis.noise, case.noise if left.size <= FEW else 0.0)
    agree = case.agree(scores, left, noise)
    if not agree.any():
        return None
    others = [
        trial.hypothesis.detail
        for trial in sorted(trials, key=lambda trial: trial.hypothesis.rank)
        if trial is not best
        # two changes are no other explanation where one of them alone does it
        and (_TWO in best.hypothesis.detail or _TWO not in trial.hypothesis.detail)
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
        best.hypothesis.rank >= RANK and best.hypothesis.cause != "engine-rules",
    )


def _tried(case: Case, hypothesis: Hypothesis, sample: np.ndarray, control: np.ndarray) -> _Trial:
    noise = max(hypothesis.noise, case.noise)  # of quick scores; all documents are looked at later
    explains = case.agree(hypothesis.scores(sample), sample, noise)
    against = 0
    if explains.any() and control.size:
        against = int((~case.agree(hypothesis.scores(control), control, noise)).sum())
    return _Trial(hypothesis, explains, against)


def _with_missing_rules(case: Case, sample: np.ndarray) -> list[Hypothesis]:
    """Return other causes on top of rules for missing values, the most frequent cause by far."""
    if not case.missing[sample].any():
        return []
    filled = np.where(np.isnan(case.values), 0.0, case.values)
    right = sided(case, "right")
    nested = [("a missing value is taken as 0", replace(case, values=filled, engines=dict))]
    if right is not None:
        turned = replace(case, production=right, engines=dict)
        nested.append(("a missing value goes to the right at every split", turned))
    return [
        replace(h, detail=f"{detail}; and {h.detail}", rank=h.rank + 2 * LAST, least=3)
        for detail, inner in nested
        for h in [
            *plain_hypotheses(inner),
            *fewer_trees(inner, sample),
            *edit_hypotheses(inner, sample),
        ]
    ]


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
    if small.sum() < _FEW * left.size:  # by chance
        small[:] = False
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
