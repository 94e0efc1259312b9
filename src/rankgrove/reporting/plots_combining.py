"""The plot of a combination of two rankers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rankgrove.errors import ParameterError
from rankgrove.operations.combining import FORMULAS, OptimalCombination
from rankgrove.rankers.ensembles.combination import CombinedRanker
from rankgrove.reporting.changes import envelope
from rankgrove.reporting.figure import new_panels
from rankgrove.reporting.look import styled
from rankgrove.validation import refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_COLUMNS = 2000  # a curve with more steps is drawn as this many columns, from least to largest


@styled
def combination_curve(result: OptimalCombination, *, ax: Axes | None = None) -> Figure:
    """Plot the measure of a combination of two rankers over its weight.

    Parameters
    ----------
    result : the result of :func:`rankgrove.optimal_combination`
    ax : axes of Matplotlib to draw on; None: those of a new figure

    Returns
    -------
    a Matplotlib figure; ``figure.savefig("curve.png")`` writes it

    Notes
    -----
    A curve with very many steps is drawn as a band between its least and largest values, so that
    no peak is lost. Dots mark the values at the two ends, and at single weights where tied
    documents make the measure higher than on both sides (the highest ones, if there are very many).
    """
    if isinstance(result, CombinedRanker):  # a likely mistake
        raise ParameterError(
            "combination_curve: a CombinedRanker keeps its weights, not the curve that they were "
            "found on. Give rg.optimal_combination(*model.rankers_, data, measure), on any judged "
            "data."
        )
    if not isinstance(result, OptimalCombination):
        refuse("result", "combination_curve", "the result of rg.optimal_combination", result)
    figure, [axes] = new_panels("combination_curve", 1, ax)
    curve = result.curve
    low, high = result.bounds
    thin_alpha, least, largest = envelope(curve.alpha, curve.value, MOST_COLUMNS)
    axes.fill_between(thin_alpha, least, largest, step="post", color="C0", alpha=0.35, linewidth=0)
    axes.step(thin_alpha, largest, where="post", color="C0", linewidth=1.0)
    for name, value, style in zip(result.names, result.values, (":", "--"), strict=True):
        axes.axhline(value, color="0.45", linestyle=style, linewidth=1.0, label=name)
    axes.plot([low, high], [curve.at_low, curve.at_high], "o", color="C0", markersize=4)
    highest = np.argsort(-curve.point_value, kind="stable")[:MOST_COLUMNS]
    if highest.size:
        points = curve.point_alpha[highest], curve.point_value[highest]
        axes.plot(*points, "o", color="C0", markersize=2)
    axes.plot(
        result.alpha,
        result.value,
        "*",
        color="C3",
        markersize=13,
        label=f"best: {result.value:.4f} at {result.alpha:.4g}",
    )
    axes.set_xlim(low - 0.02 * (high - low), high + 0.02 * (high - low))
    axes.set_xlabel(f"alpha in {FORMULAS[result.form]}")
    axes.set_ylabel(f"mean {result.measure}")
    axes.legend(loc="best")
    return figure
