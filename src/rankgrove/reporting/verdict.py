"""One sentence: which model is better, and whether that is significant."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rankgrove.evaluation.compare import Comparison, Contrast
from rankgrove.evaluation.evaluate import Evaluation
from rankgrove.validation import counted

LEVEL = 0.05  # of significance, by the randomisation test, corrected for several comparisons


def p_text(p: float) -> str:
    """Return a p-value as text: ``p = .0321`` or ``p < .0001``."""
    return "p < .0001" if p < 0.0001 else f"p = {p:.4f}".replace("0.", ".")


def signed(value: float) -> str:
    """Return a difference with its sign and four decimals; zero is never ``-0.0000``."""
    return f"{round(value, 4) + 0.0:+.4f}"


def is_significant(contrast: Contrast) -> bool:
    """Return whether a difference is statistically significant."""
    return contrast.holm_randomisation < LEVEL


@dataclass(frozen=True)
class Verdict:
    """One sentence, and the figures behind it."""

    sentence: str
    figures: str

    def __str__(self) -> str:
        return f"{self.sentence} {self.figures}"


def verdict_of_one(name: str, measure: str, result: Evaluation) -> Verdict:
    """Return the verdict on a single model."""
    low, high = result.interval[measure]
    used = result.query_ids.size - len(result.dropped[measure])
    interval = "no interval" if math.isnan(low) else f"95 % interval {low:.4f} to {high:.4f}"
    return Verdict(
        f"{name} has a mean {measure} of {result.mean[measure]:.4f}.",
        f"{interval.capitalize()}, on {counted(used, 'query', 'queries')}.",
    )


def verdict(comparison: Comparison) -> Verdict:
    """Return the verdict on several models: the best compared with the first.

    If the first is the best, it is compared with the second best.
    """
    measure, mean = comparison.measure_name, comparison.mean
    first, *others = mean
    best = max(mean, key=lambda name: mean[name])
    ahead, behind = best, first
    if best == first:
        behind = max(others, key=lambda name: mean[name])
    contrast = next(c for c in comparison.contrasts if {c.system, c.against} == {ahead, behind})
    sign = 1.0 if contrast.system == ahead else -1.0
    wins, losses = (
        (contrast.wins, contrast.losses) if sign > 0 else (contrast.losses, contrast.wins)
    )
    low, high = sorted((sign * contrast.low, sign * contrast.high))
    queries = counted(comparison.query_ids.size, "query", "queries")
    if not wins and not losses:
        return _verdict_of_equals(comparison, queries)
    interval = f"95 % interval {signed(low)} to {signed(high)}"
    figures = (
        f"Mean {measure} {mean[ahead]:.4f} against {mean[behind]:.4f} on {queries}: a difference "
        f"of {signed(sign * contrast.difference)} "
        f"({'no interval' if math.isnan(low) else interval}), "
        f"{counted(wins, 'query', 'queries')} won and {losses:,} lost, "
        f"{p_text(contrast.holm_randomisation)}."
    )
    place = f", the best of {len(mean)}," if len(mean) > 2 else ""
    if is_significant(contrast):
        return Verdict(f"{ahead}{place} is significantly better than {behind}.", figures)
    return Verdict(f"{ahead}{place} is ahead of {behind}, but not significantly.", figures)


def _verdict_of_equals(comparison: Comparison, queries: str) -> Verdict:
    """Return the verdict if the best systems have equal values: they, and the best other."""
    measure, mean = comparison.measure_name, comparison.mean
    first, *others = mean
    against_first = {c.system: c for c in comparison.contrasts if c.against == first}
    rest = [n for n in others if against_first[n].wins or against_first[n].losses]
    *names, last = [name for name in mean if name not in rest]
    sentence = f"{', '.join(names)} and {last} have the same {measure} on every query"
    figures = f"Mean {measure} {mean[first]:.4f} on {queries}."
    if not rest:
        return Verdict(f"{sentence}.", figures)
    other = max(rest, key=lambda name: mean[name])
    contrast = against_first[other]
    whom = other if len(rest) == 1 else f"{other}, the best of the other {len(rest)}"
    better = (
        f"are significantly better than {whom}"
        if is_significant(contrast)
        else f"are ahead of {whom}, but not significantly"
    )
    return Verdict(
        f"{sentence}, and {better}.",
        f"{figures} {other} has {mean[other]:.4f}: a difference of {signed(contrast.difference)}, "
        f"{p_text(contrast.holm_randomisation)}.",
    )
