"""``rg.plot``: functions that each return a Matplotlib figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from rankgrove.reporting.figure import new_panels
from rankgrove.reporting.look import N_COLOURS, styled
from rankgrove.reporting.plots_adaptation import adaptation
from rankgrove.reporting.plots_bagging import pruning, tuning
from rankgrove.reporting.plots_calibration import reliability
from rankgrove.reporting.plots_clicks import click_check, examination
from rankgrove.reporting.plots_combining import combination_curve
from rankgrove.reporting.plots_explaining import explanation, partial_dependence
from rankgrove.reporting.plots_models import (
    comparison,
    importance,
    learning_curve,
    score_distribution,
    trees_against_quality,
    wins_and_losses,
)
from rankgrove.reporting.plots_nets import local_optimum
from rankgrove.reporting.plots_svm import base_function_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "adaptation",
    "base_function_weights",
    "click_check",
    "combination_curve",
    "comparison",
    "curves",
    "examination",
    "explanation",
    "importance",
    "learning_curve",
    "local_optimum",
    "partial_dependence",
    "pruning",
    "reliability",
    "score_distribution",
    "trees_against_quality",
    "tuning",
    "wins_and_losses",
]

FEW_POINTS, FEW_LINES = 15, 4
DASHES = ("-", "--", ":")  # of more lines than colours, the first, second and third lot


@styled
def curves(
    lines: Mapping[str, tuple[np.ndarray, np.ndarray]],
    x_label: str,
    y_label: str,
    title: str,
    *,
    log_x: bool = False,
    log_y: bool = False,
    ax: Axes | None = None,
) -> Figure:
    """Plot lines, given as name -> (x, y); on `ax`, if it is given.

    Returns
    -------
    a Matplotlib figure
    """
    figure, [axes] = new_panels("curves", 1, ax)
    for k, (name, (x, y)) in enumerate(lines.items()):
        marker = "o" if len(x) <= FEW_POINTS else ""  # tells measured points from joining lines
        dash = DASHES[k // N_COLOURS % len(DASHES)]
        axes.plot(x, y, dash, label=name, linewidth=1.3, marker=marker, markersize=3)
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_title(title)
    axes.grid()
    if len(lines) > FEW_LINES:  # no corner of the plot would be free
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    else:
        axes.legend(loc="best")
    return figure
